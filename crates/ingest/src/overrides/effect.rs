//! The effective product: a base with the overrides that select it.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use vitrine_model::money::{Amount, DiscountMultiplier};
use vitrine_store::record::StoredProduct;

use super::Override;
use super::assignment::{Assignment, ListChange};
use crate::members::Members;

/// Effect of overrides on a product.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effect {
    /// The effective product; `None` if it is hidden.
    pub product: Option<StoredProduct>,
    /// The fields that differ from the base, each with the numbers of the overrides that made its value: of lists and amounts
    /// these may be several.
    pub fields: BTreeMap<&'static str, BTreeSet<u64>>,
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
    let (product, fields) = change.finish().map_err(damaged)?;
    Ok((product != *base).then_some(Effect {
        product: Some(product),
        fields,
    }))
}

/// A product in the course of its change.
struct Change<'b> {
    base: &'b StoredProduct,
    members: Members<'b>,
    product: StoredProduct,
    narrowing: Narrowing,
    /// Values as JSON of the fields that were assigned, each with the overrides that made it.
    assigned: BTreeMap<&'static str, (BTreeSet<u64>, String)>,
}

/// Amounts that overrides leave.
#[derive(Default)]
struct Narrowing {
    minimum: Option<Amount>,
    maximum: Option<Amount>,
    list: Option<Vec<Amount>>,
    /// The overrides that narrow.
    numbers: BTreeSet<u64>,
}

impl<'b> Change<'b> {
    fn of(base: &'b StoredProduct) -> serde_json::Result<Self> {
        Ok(Self {
            base,
            members: Members::parse(&base.document)?,
            product: base.clone(),
            narrowing: Narrowing::default(),
            assigned: BTreeMap::new(),
        })
    }

    fn assign(&mut self, number: u64, value: &Assignment) {
        let field = value.field();
        match value {
            Assignment::State(state) => self.set(field, number, json(state.as_str())),
            Assignment::IsOrderable(is_orderable) => {
                self.product.is_orderable = *is_orderable;
                self.set(field, number, json(is_orderable));
            }
            Assignment::Availability(availability) => {
                self.set(field, number, json(availability.as_str()));
            }
            Assignment::Discount(discount) => {
                self.set_discount(discount);
                self.set(field, number, json(&discount.cut()));
            }
            Assignment::Category(change, name) => {
                let name = name.as_str().to_owned();
                if change_list(&mut self.product.categories, *change, name) {
                    let list = json(&self.product.categories);
                    self.add(field, number, list);
                }
            }
            Assignment::Country(change, country) => {
                if change_list(&mut self.product.countries, *change, *country) {
                    let countries = self.product.countries.iter().map(ToString::to_string);
                    let list = json(&countries.collect::<Vec<_>>());
                    self.add(field, number, list);
                }
            }
            narrowing => self.narrowing.add(number, narrowing),
        }
    }

    /// Sets a field, whatever other overrides made of it.
    fn set(&mut self, field: &'static str, number: u64, json: String) {
        self.assigned
            .insert(field, (BTreeSet::from([number]), json));
    }

    /// Sets a field to what this override made of what others had made.
    fn add(&mut self, field: &'static str, number: u64, json: String) {
        let (numbers, value) = self.assigned.entry(field).or_default();
        numbers.insert(number);
        *value = json;
    }

    /// Sets the discount, unless it is the same number in other digits.
    fn set_discount(&mut self, discount: &DiscountMultiplier) {
        let base = self.base.discount_multiplier.parse::<DiscountMultiplier>();
        let exact = match base {
            Ok(base) if base.is_same_number(discount) => base.exact().to_owned(),
            _ => discount.exact().to_owned(),
        };
        self.product.discount_multiplier = exact;
    }

    fn finish(
        mut self,
    ) -> serde_json::Result<(StoredProduct, BTreeMap<&'static str, BTreeSet<u64>>)> {
        if !self.narrowing.numbers.is_empty() {
            self.narrow()?;
        }
        // The document may lack digits in which the discount differs.
        let has_other_discount = self.product.discount_multiplier != self.base.discount_multiplier;
        let mut fields = BTreeMap::new();
        for (name, (numbers, json)) in self.assigned {
            let is_same = self.members.get(name) == Some(&json);
            if !is_same && name != "denominations" {
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
        Ok((self.product, fields))
    }

    /// Narrows the amounts of a gift card or a payment. If none is left, the product can't be ordered.
    fn narrow(&mut self) -> serde_json::Result<()> {
        let payout_type = self.members.text("payout_type")?;
        let Some(detail) = self.members.get(&payout_type) else {
            return Ok(());
        };
        if !["gift_card", "payment"].contains(&payout_type.as_str()) {
            return Ok(());
        }
        let mut detail = Members::parse(detail)?;
        let Some(json_before) = detail.get("denominations").map(str::to_owned) else {
            return Ok(());
        };
        match self.narrowing.apply(&json_before)? {
            None => {
                self.product.is_orderable = false;
                let numbers = self.narrowing.numbers.clone();
                self.assigned
                    .insert("is_orderable", (numbers, json(&false)));
            }
            Some(narrowed) if narrowed == json_before => {}
            Some(narrowed) => {
                detail.set("denominations", "", narrowed.clone());
                let detail = detail.to_json()?;
                self.members.set(&payout_type, "", detail);
                let numbers = self.narrowing.numbers.clone();
                self.assigned.insert("denominations", (numbers, narrowed));
            }
        }
        Ok(())
    }
}

impl Narrowing {
    fn add(&mut self, number: u64, value: &Assignment) {
        match value {
            Assignment::Minimum(amount) => self.minimum = self.minimum.max(Some(*amount)),
            Assignment::Maximum(amount) => {
                let least = self.maximum.map_or(*amount, |maximum| maximum.min(*amount));
                self.maximum = Some(least);
            }
            Assignment::Amounts(amounts) => {
                let mut amounts = amounts.clone();
                amounts.retain(|amount| {
                    (self.list.as_ref()).is_none_or(|before| before.contains(amount))
                });
                self.list = Some(amounts);
            }
            _ => return,
        }
        self.numbers.insert(number);
    }

    /// Returns the denominations that are left of these; `None` if no amount is.
    fn apply(&self, denominations: &str) -> serde_json::Result<Option<String>> {
        let mut members = Members::parse(denominations)?;
        let amount = |text: &str| {
            let invalid = |_| serde::de::Error::custom(format!("`{text}` is no amount"));
            text.parse::<Amount>().map_err(invalid)
        };
        let minimum = Some(amount(&members.text("minimum_value")?)?).max(self.minimum);
        let maximum = amount(&members.text("maximum_value")?)?;
        let maximum = self.maximum.map_or(maximum, |other| other.min(maximum));
        let is_left = |amount: &Amount| Some(*amount) >= minimum && *amount <= maximum;
        let listed: Option<Vec<String>> = match members.get("available_list") {
            Some(list) => serde_json::from_str(list)?,
            None => None,
        };
        let listed: Option<Vec<Amount>> = match listed {
            Some(list) => Some(
                list.iter()
                    .map(|text| amount(text))
                    .collect::<Result<_, _>>()?,
            ),
            None => None,
        };
        let is_fixed = members.get("type") == Some("\"fixed\"");
        let allowed = match (is_fixed, &self.list) {
            (true, allowed) => {
                let mut amounts = listed.clone().unwrap_or_default();
                amounts.retain(|amount| {
                    is_left(amount)
                        && (allowed.as_ref()).is_none_or(|allowed| allowed.contains(amount))
                });
                Some(amounts)
            }
            // A payment has no list: no amount can be left.
            (false, Some(_)) if members.get("type").is_none() => Some(Vec::new()),
            (false, Some(allowed)) => Some(
                allowed
                    .iter()
                    .copied()
                    .filter(|amount| is_left(amount))
                    .collect(),
            ),
            (false, None) => None,
        };
        match allowed {
            Some(amounts) if is_fixed && Some(&amounts) == listed.as_ref() => {}
            Some(amounts) => {
                let (Some(least), Some(greatest)) = (amounts.iter().min(), amounts.iter().max())
                else {
                    return Ok(None);
                };
                members.set("type", "", json("fixed"));
                members.set("minimum_value", "", json(&least.to_string()));
                members.set("maximum_value", "", json(&greatest.to_string()));
                members.set("available_list", "", amounts_json(&amounts));
            }
            None if minimum > Some(maximum) => return Ok(None),
            None => {
                let minimum = minimum.unwrap_or(maximum);
                members.set("minimum_value", "", json(&minimum.to_string()));
                members.set("maximum_value", "", json(&maximum.to_string()));
                if let Some(suggestions) = listed {
                    let left: Vec<Amount> = suggestions.into_iter().filter(is_left).collect();
                    let left = match left.is_empty() {
                        true => "null".to_owned(),
                        false => amounts_json(&left),
                    };
                    members.set("available_list", "", left);
                }
            }
        }
        members.to_json().map(Some)
    }
}

fn amounts_json(amounts: &[Amount]) -> String {
    json(&amounts.iter().map(ToString::to_string).collect::<Vec<_>>())
}

/// Changes a list; returns false if it has the value already, or hasn't it anyway.
fn change_list<T: PartialEq>(list: &mut Vec<T>, change: ListChange, value: T) -> bool {
    let has_it = list.contains(&value);
    match change {
        ListChange::Remove => list.retain(|own| *own != value),
        ListChange::Add if has_it => {}
        ListChange::Add => list.push(value),
    }
    has_it == (change == ListChange::Remove)
}

/// Returns a value as JSON; none of these can fail.
fn json(value: &(impl Serialize + ?Sized)) -> String {
    serde_json::to_string(value).unwrap_or_default()
}
