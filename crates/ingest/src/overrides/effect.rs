//! The effective product: a base with the overrides that select it.

use std::collections::{BTreeMap, BTreeSet};

use vitrine_model::geo::Country;
use vitrine_model::money::Discount;
use vitrine_store::record::StoredProduct;

use super::Override;
use super::assignment::{Assignment, DENOMINATIONS};
use super::lists::ListChanges;
use super::narrowing::{Narrowed, Narrowing, json};
use crate::load::difference::differing;
use crate::members::Members;

/// Effect of overrides on a product.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effect {
    /// The effective product; `None` if it is hidden.
    pub product: Option<StoredProduct>,
    /// The fields that differ from the base, each with the numbers of the overrides that made its value: of lists and amounts
    /// these may be several.
    pub fields: BTreeMap<&'static str, BTreeSet<u64>>,
    /// The documents of base and effective product, without the fields that are the same in both; `None` if it is hidden.
    pub(super) differing: Option<[String; 2]>,
}

/// Returns what `overrides`, which are in the order of their numbers, make of a product; `None` if it stays as its base is.
///
/// The later override takes precedence in each field, amounts are narrowed by all, and lists are changed by one after the
/// other.
///
/// # Errors
///
/// If the product is damaged.
pub fn effect<'o>(
    base: &StoredProduct,
    overrides: impl IntoIterator<Item = &'o Override>,
) -> anyhow::Result<Option<Effect>> {
    let selecting = selecting(base, overrides)?;
    let hides = |one: &&&Override| one.definition.values.contains(&Assignment::Hidden);
    match selecting.iter().rfind(hides) {
        Some(one) => Ok(Some(Effect {
            product: None,
            fields: BTreeMap::from([("visible", BTreeSet::from([one.number]))]),
            differing: None,
        })),
        None => effect_of(base, &selecting),
    }
}

/// Returns the product as these overrides make it, as if none hid it.
///
/// # Errors
///
/// If the product is damaged.
pub(super) fn unhidden<'o>(
    base: &StoredProduct,
    overrides: impl IntoIterator<Item = &'o Override>,
) -> anyhow::Result<StoredProduct> {
    let effect = effect_of(base, &selecting(base, overrides)?)?;
    let product = effect.and_then(|effect| effect.product);
    Ok(product.unwrap_or_else(|| base.clone()))
}

/// Returns the product that clients see; `None` if it is hidden.
pub(super) fn seen<'e>(
    base: &'e StoredProduct,
    effect: Option<&'e Effect>,
) -> Option<&'e StoredProduct> {
    match effect {
        None => Some(base),
        Some(effect) => effect.product.as_ref(),
    }
}

/// Returns the overrides that select a product.
fn selecting<'o>(
    base: &StoredProduct,
    overrides: impl IntoIterator<Item = &'o Override>,
) -> anyhow::Result<Vec<&'o Override>> {
    let mut selecting = Vec::new();
    for one in overrides {
        if one.definition.selects(base)? {
            selecting.push(one);
        }
    }
    Ok(selecting)
}

/// Returns the values that overrides which select a product give it.
fn effect_of(base: &StoredProduct, selecting: &[&Override]) -> anyhow::Result<Option<Effect>> {
    if selecting.is_empty() {
        return Ok(None);
    }
    let damaged = |error| anyhow::anyhow!("the product {} is damaged: {error}", base.code);
    let mut change = Change::of(base).map_err(damaged)?;
    for one in selecting {
        for value in &one.definition.values {
            change.assign(one.number, value);
        }
    }
    let effect = change.finish().map_err(damaged)?;
    Ok(Some(effect).filter(|effect| effect.product.as_ref() != Some(base)))
}

/// A product in the course of its change.
struct Change<'b> {
    base: &'b StoredProduct,
    members: Members<'b>,
    product: StoredProduct,
    narrowing: Narrowing<'b>,
    categories: ListChanges<String>,
    countries: ListChanges<Country>,
    /// Values as JSON of the fields that were assigned, each with the overrides that made it.
    assigned: BTreeMap<&'static str, (BTreeSet<u64>, String)>,
}

impl<'b> Change<'b> {
    fn of(base: &'b StoredProduct) -> serde_json::Result<Self> {
        Ok(Self {
            base,
            members: Members::parse(&base.document)?,
            product: base.clone(),
            narrowing: Narrowing::default(),
            categories: ListChanges::default(),
            countries: ListChanges::default(),
            assigned: BTreeMap::new(),
        })
    }

    fn assign(&mut self, number: u64, value: &'b Assignment) {
        match value {
            Assignment::State(state) => self.set(value, number, json(state.as_str())),
            Assignment::IsOrderable(is_orderable) => {
                self.product.is_orderable = *is_orderable;
                self.set(value, number, json(is_orderable));
            }
            Assignment::Availability(availability) => {
                self.set(value, number, json(availability.as_str()));
            }
            Assignment::Discount(discount) => {
                self.set_discount(*discount);
                self.set(value, number, json(discount.cut().text().as_str()));
            }
            Assignment::Category(change, name) => {
                (self.categories).add(number, *change, name.as_str().to_owned());
            }
            Assignment::Country(change, country) => self.countries.add(number, *change, *country),
            narrowing => self.narrowing.add(number, narrowing),
        }
    }

    /// Sets a field, whatever other overrides made of it.
    fn set(&mut self, value: &Assignment, number: u64, json: String) {
        self.assigned
            .insert(value.field(), (BTreeSet::from([number]), json));
    }

    /// Sets the discount, unless it is the same number in other digits. Of overrides, the same number has the same digits, too:
    /// clients see no difference (docs/contract/resources.md#discounts).
    fn set_discount(&mut self, discount: Discount) {
        let base = self.base.discount_multiplier.parse::<Discount>();
        let exact = match base {
            Ok(base) if base == discount => base,
            _ => discount.respelt(),
        };
        self.product.discount_multiplier = exact.to_string();
    }

    fn finish(mut self) -> serde_json::Result<Effect> {
        let base = self.members.clone();
        self.change_lists();
        self.narrow()?;
        // The document may lack digits in which the discount differs.
        let has_other_discount = self.product.discount_multiplier != self.base.discount_multiplier;
        let mut fields = BTreeMap::new();
        for (name, (numbers, json)) in self.assigned {
            let is_same = self.members.get(name) == Some(&json);
            if !is_same && name != DENOMINATIONS {
                self.members.set(name, "discount_multiplier", json);
            }
            if !is_same || (name == "discount_multiplier" && has_other_discount) {
                fields.insert(name, numbers);
            }
        }
        let document = self.members.to_json()?;
        // All that changes is in front of the content resources.
        let shift = |at: usize| (at + document.len()).saturating_sub(self.base.document.len());
        self.product.content =
            (self.base.content.as_ref()).map(|range| shift(range.start)..shift(range.end));
        self.product.document = document;
        Ok(Effect {
            differing: Some(differing(&base, &self.members)?),
            product: Some(self.product),
            fields,
        })
    }

    fn change_lists(&mut self) {
        if let Some((categories, by)) = self.categories.apply(&self.base.categories) {
            (self.assigned).insert("categories", (by, json(&categories)));
            self.product.categories = categories;
        }
        if let Some((countries, by)) = self.countries.apply(&self.base.countries) {
            let list: Vec<String> = countries.iter().map(ToString::to_string).collect();
            (self.assigned).insert("countries_redeemable_in", (by, json(&list)));
            self.product.countries = countries;
        }
    }

    /// Narrows the amounts of a gift card or a payment. If none is left, the product can't be ordered.
    fn narrow(&mut self) -> serde_json::Result<()> {
        let Some((payout_type, mut detail, narrowed)) = narrowed(&self.members, &self.narrowing)?
        else {
            return Ok(());
        };
        let Narrowed { left, by } = narrowed;
        let Some(left) = left else {
            self.product.is_orderable = false;
            let no = json(&false);
            // An override that says so is why, whatever the amounts are.
            if (self.assigned.get("is_orderable")).is_none_or(|(_, value)| *value != no) {
                self.assigned.insert("is_orderable", (by, no));
            }
            return Ok(());
        };
        detail.set(DENOMINATIONS, "", left.clone());
        let detail = detail.to_json()?;
        self.members.set(&payout_type, "", detail);
        self.assigned.insert(DENOMINATIONS, (by, left));
        Ok(())
    }
}

/// Returns the payout type of a product, its detail, and the amounts that are left; `None` if all are.
fn narrowed<'m>(
    members: &'m Members<'_>,
    narrowing: &Narrowing<'_>,
) -> serde_json::Result<Option<(String, Members<'m>, Narrowed)>> {
    if narrowing.is_empty() {
        return Ok(None);
    }
    let payout_type = members.text("payout_type")?;
    let detail = match payout_type.as_str() {
        "gift_card" | "payment" => members.get(&payout_type),
        _ => None,
    };
    let Some(detail) = detail.map(Members::parse).transpose()? else {
        return Ok(None);
    };
    let narrowed = match detail.get(DENOMINATIONS) {
        Some(denominations) => narrowing.narrow(denominations)?,
        None => None,
    };
    Ok(narrowed.map(|narrowed| (payout_type, detail, narrowed)))
}

#[cfg(test)]
mod tests {
    use vitrine_model::content::Content;
    use vitrine_store::overrides::{NewOverride, OverrideStatus, StoredOverride};

    use super::*;
    use crate::load::check::check;
    use crate::load::difference::Pair;
    use crate::load::read::Record;
    use crate::load::report::Place;
    use crate::overrides::Definition;
    use crate::view::document;

    /// Returns the products of the sample catalog.
    fn products() -> Vec<StoredProduct> {
        let lines = include_str!("../../../../fixtures/catalog.ndjson").lines();
        let stored = |line: &str| {
            let record = Record::new(Place::file("a"), line.to_owned());
            let product = check(&record, &mut Vec::new()).record.unwrap().product;
            let rendered = document(&product, &Content::default()).unwrap();
            StoredProduct {
                code: product.code,
                document: rendered.json,
                content: rendered.content,
                discount_multiplier: product.discount_multiplier.to_string(),
                is_orderable: product.is_orderable,
                countries: product.countries_redeemable_in,
                categories: product.categories.iter().map(ToString::to_string).collect(),
                own_texts: Vec::new(),
            }
        };
        lines.map(stored).collect()
    }

    /// Returns an override of all products.
    fn of_all(values: &[&str]) -> Override {
        let definition = serde_json::json!({"kind": "set", "selection": {}, "values": values});
        let from = "2026-01-01T00:00:00Z".parse().unwrap();
        let made = NewOverride {
            definition: definition.to_string(),
            from,
            until: None,
            created_at: from,
            created_by: "ann".to_owned(),
            note: None,
            status: OverrideStatus::Active,
        };
        Override {
            number: 1,
            definition: serde_json::from_value::<Definition>(definition).unwrap(),
            stored: StoredOverride {
                number: 1,
                made,
                ended: None,
            },
        }
    }

    #[test]
    fn differing_members_tell_the_whole_difference() {
        let mut differences = 0;
        for values in [
            &["state=TEMPORARILY_DISABLED", "is_orderable=false"][..],
            &["availability=stocked", "is_orderable=true"],
            &["discount_multiplier=0.0125"],
            &["discount_multiplier=0.01250000001"],
            &["minimum_value=20", "categories+=new"],
            &["maximum_value=30", "countries_redeemable_in-=GB"],
            &["available_list=10,25", "countries_redeemable_in+=SE"],
        ] {
            for base in products() {
                let Some(effect) = effect(&base, [&of_all(values)]).unwrap() else {
                    continue;
                };
                let seen = effect.product.unwrap();
                assert!(effect.differing.is_some());
                let pair = Pair::of(&base, &seen).with_differing(effect.differing);
                let expected = Pair::of(&base, &seen).difference();
                assert_eq!(pair.difference(), expected, "{values:?} {}", base.document);
                differences += expected.len();
            }
        }
        assert!(differences > 100, "{differences}");
    }
}
