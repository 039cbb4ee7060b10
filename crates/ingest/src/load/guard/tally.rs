//! Counts of a publish's effects on live products, and their comparison with the guard's limits.

use std::collections::BTreeMap;

use vitrine_model::code::ProductCode;
use vitrine_model::money::{Amount, Discount};
use vitrine_store::record::StoredProduct;
use vitrine_store::{Publication, StoreError};

use super::emptied::{self, Values};
use super::{Allowance, Exceeded, Percent, Rule};
use crate::load::difference::Pair;
use crate::load::json::Node;

/// Maximum number of products that a refusal names.
pub(super) const MAX_NAMED: usize = 10;

/// The state of products that can be sold.
const LIVE: &str = "LIVE";

/// Effects of a publish on live products, by rule.
#[derive(Debug, Default)]
pub struct Tally {
    counts: [Count; Rule::ALL.len()],
    compared_amounts: u64,
    /// Number of live products that clients didn't see.
    hidden: u64,
}

/// Count and first products of one rule.
#[derive(Debug, Default)]
struct Count {
    /// Number of products, amounts or discounts, depending on the rule.
    all: u64,
    products: u64,
    first_products: Vec<ProductCode>,
    by_field: BTreeMap<String, Field>,
}

/// Count and first products of one field.
#[derive(Debug, Default)]
struct Field {
    changed: u64,
    first_products: Vec<ProductCode>,
}

impl Tally {
    /// Counts a change of a live product.
    pub fn compare(&mut self, live: &StoredProduct, next: &StoredProduct) {
        self.change(&Pair::of(live, next));
    }

    /// As [`compare`](Self::compare).
    pub(crate) fn change(&mut self, pair: &Pair<'_>) {
        let (live, next) = (pair.old, pair.new);
        let code = &live.code;
        let [old, new] = pair.nodes();
        if live.is_orderable && !next.is_orderable {
            self.note(Rule::NotOrderable, code, [("is_orderable".to_owned(), 1)]);
        }
        let field = |name: &str| {
            let [old, new] = [&old, &new].map(|product| product.member(name).and_then(Node::text));
            (old.unwrap_or_default(), new.unwrap_or_default())
        };
        let (old_state, new_state) = field("state");
        if old_state == LIVE && new_state != LIVE {
            let change = format!("state {old_state} → {new_state}");
            self.note(Rule::States, code, [(change, 1)]);
        }
        let (old_currency, new_currency) = field("currency");
        if old_currency != new_currency {
            let change = format!("currency {old_currency} → {new_currency}");
            self.note(Rule::Currencies, code, [(change, 1)]);
        }
        let emptied = [
            (
                "countries_redeemable_in",
                !live.countries.is_empty() && next.countries.is_empty(),
            ),
            (
                "categories",
                !live.categories.is_empty() && next.categories.is_empty(),
            ),
        ];
        let emptied = emptied.into_iter().filter(|(_, is_emptied)| *is_emptied);
        self.note(
            Rule::EmptiedLists,
            code,
            emptied.map(|(name, _)| (name.to_owned(), 1)),
        );
        let fields = emptied::emptied(&old, Some(&new));
        self.note(
            Rule::EmptiedFields,
            code,
            fields.into_iter().map(|name| (name, 1)),
        );
        self.compare_money((live, &old), (next, &new));
    }

    /// Returns the number of live products that lose the value of a field, by its name.
    pub(crate) fn emptied(&self) -> impl Iterator<Item = (&str, u64)> {
        self.counts[Rule::EmptiedFields as usize].changes()
    }

    fn compare_money(
        &mut self,
        (live, old): (&StoredProduct, &Node<'_>),
        (next, new): (&StoredProduct, &Node<'_>),
    ) {
        let (before, after) = (amounts(old), amounts(new));
        self.compared_amounts += count(&before);
        let kinds = AMOUNTS.into_iter().zip(before.into_iter().zip(after));
        let changed = kinds.map(|(name, (old, new))| (name.to_owned(), tenfold(old, new)));
        self.note(Rule::Amounts, &live.code, changed);
        let discount = |product: &StoredProduct| product.discount_multiplier.parse();
        let discounts: Result<(Discount, Discount), _> =
            discount(live).and_then(|old| Ok((old, discount(next)?)));
        if discounts
            .is_ok_and(|(old, new)| old.value().is_tenfold(new.value()) && !gains_digits(old, new))
        {
            let name = "discount_multiplier".to_owned();
            self.note(Rule::Discounts, &live.code, [(name, 1)]);
        }
    }

    /// Leaves hidden products out of the live ones, of which retired and newly hidden ones are a share.
    pub(crate) fn leave_out(&mut self, hidden: u64) {
        self.hidden = hidden;
    }

    /// Counts a retired product.
    pub fn retire(&mut self, code: &ProductCode) {
        self.counts[Rule::Retire as usize].add_product(code);
    }

    /// Adds the counts of other products.
    pub(crate) fn append(&mut self, other: Self) {
        self.compared_amounts += other.compared_amounts;
        for (count, other) in self.counts.iter_mut().zip(other.counts) {
            count.all += other.all;
            count.products += other.products;
            name_first(&mut count.first_products, &other.first_products);
            for (field, other) in other.by_field {
                let field = count.by_field.entry(field).or_default();
                field.changed += other.changed;
                name_first(&mut field.first_products, &other.first_products);
            }
        }
    }

    /// Counts changes of a product by field, each with its number. Fields with the number 0 don't count.
    fn note(
        &mut self,
        rule: Rule,
        code: &ProductCode,
        fields: impl IntoIterator<Item = (String, u64)>,
    ) {
        let count = &mut self.counts[rule as usize];
        let mut times = 0;
        for (field, changed) in fields.into_iter().filter(|(_, changed)| *changed > 0) {
            let field = count.by_field.entry(field).or_default();
            field.changed += changed;
            name_first(&mut field.first_products, [code]);
            times += changed;
        }
        if times > 0 {
            count.add_product(code);
            if rule == Rule::Amounts {
                // The limit is a share of amounts, and a product has several.
                count.all += times - 1;
            }
        }
    }

    /// Compares the counts with the limits of `allowances`, else with the default ones. Returns the limits that are
    /// exceeded.
    ///
    /// # Errors
    ///
    /// If the store can't be read.
    pub fn exceeded(
        self,
        publication: &mut dyn Publication,
        allowances: &[Allowance],
    ) -> Result<Vec<Exceeded>, StoreError> {
        let live_products = publication.live_before();
        let mut exceeded = Vec::new();
        for (rule, mut count) in Rule::ALL.into_iter().zip(self.counts) {
            let limit = rule.limit(allowances);
            let live = match rule {
                // Products that weren't compared, or whose amounts didn't change, have amounts too. They are counted only if
                // it matters.
                Rule::Amounts if limit.is_exceeded(count.all, self.compared_amounts) => {
                    live_amounts(publication)?
                }
                Rule::Amounts => continue,
                Rule::EmptiedFields => {
                    let fields = emptied_beyond(limit, &count, publication)?;
                    let Some((first, lost, live)) = fields.first() else {
                        continue;
                    };
                    (count.all, count.products) = (*lost, *lost);
                    if let Some(first) = count.by_field.get_mut(first) {
                        count.first_products = std::mem::take(&mut first.first_products);
                    }
                    let is_exceeded = |name: &str| fields.iter().any(|(field, ..)| field == name);
                    count.by_field.retain(|field, _| is_exceeded(field));
                    *live
                }
                // Other changes of hidden products count, as clients will see them.
                Rule::Retire => live_products.saturating_sub(self.hidden),
                _ => live_products,
            };
            if limit.is_exceeded(count.all, live) {
                exceeded.push(Exceeded {
                    rule,
                    count: count.all,
                    live,
                    share: Percent::of(count.all, live),
                    limit,
                    products: count.products,
                    first_products: count.first_products,
                    by_field: (count.by_field.into_iter())
                        .map(|(name, field)| (name, field.changed))
                        .collect(),
                });
            }
        }
        Ok(exceeded)
    }
}

impl Count {
    fn add_product(&mut self, code: &ProductCode) {
        self.all += 1;
        self.products += 1;
        name_first(&mut self.first_products, [code]);
    }

    /// Returns the number of changes by field.
    fn changes(&self) -> impl Iterator<Item = (&str, u64)> {
        let fields = self.by_field.iter();
        fields.map(|(name, field)| (name.as_str(), field.changed))
    }
}

/// Adds products to those that a refusal names, as far as it names more.
fn name_first<'c>(first: &mut Vec<ProductCode>, others: impl IntoIterator<Item = &'c ProductCode>) {
    let free = MAX_NAMED.saturating_sub(first.len());
    first.extend(others.into_iter().take(free).cloned());
}

/// Returns true if the live discount is the new one, cut to two digits: so do copies change whose source begins to show more.
fn gains_digits(live: Discount, new: Discount) -> bool {
    new.cut() == live
}

/// Counts the amounts of the products that were live when the publish began.
fn live_amounts(publication: &mut dyn Publication) -> Result<u64, StoreError> {
    let mut all = 0;
    publication.read_live_before(&mut |product| {
        all += count(&amounts(&Node::parse(&product.document).0));
        Ok(())
    })?;
    Ok(all)
}

/// Returns the fields that lose more values than the limit allows.
fn emptied_beyond(
    limit: Percent,
    count: &Count,
    publication: &mut dyn Publication,
) -> Result<Vec<(String, u64, u64)>, StoreError> {
    let mut values = Values::of(count.changes(), limit);
    if values.are_open() {
        publication.read_live_before(&mut |product| {
            if values.are_open() {
                values.count(&Node::parse(&product.document).0);
            }
            Ok(())
        })?;
    }
    Ok(values.exceeded())
}

/// Amounts by kind, in the order of [`AMOUNTS`].
type Amounts = [Vec<Amount>; 4];

/// The fields that hold amounts.
const AMOUNTS: [&str; 4] = ["minimum_value", "maximum_value", "available_list", "price"];

fn count(amounts: &Amounts) -> u64 {
    amounts.iter().map(|kind| kind.len() as u64).sum()
}

/// Returns the number of amounts that changed tenfold. Amounts in both lists are left out; the others are compared in
/// ascending order, the least with the least, so that an amount added or removed doesn't shift the rest.
fn tenfold(mut old: Vec<Amount>, mut new: Vec<Amount>) -> u64 {
    let both: Vec<Amount> = old
        .iter()
        .filter(|old| new.contains(old))
        .copied()
        .collect();
    for amounts in [&mut old, &mut new] {
        amounts.retain(|amount| !both.contains(amount));
        amounts.sort_unstable();
    }
    let pairs = old.iter().zip(&new);
    pairs
        .filter(|(old, new)| old.value().is_tenfold(new.value()))
        .count() as u64
}

/// Returns the amounts of a product.
fn amounts(document: &Node<'_>) -> Amounts {
    let payout_type = document.member("payout_type").and_then(Node::text);
    let detail = payout_type.and_then(|payout_type| document.member(payout_type));
    let denominations = detail.and_then(|detail| detail.member("denominations"));
    let under = |key| denominations.and_then(|denominations| denominations.member(key));
    let plans = detail.and_then(|detail| detail.member("subscription_plans"));
    let prices = plans.map_or(&[][..], Node::items).iter();
    [
        under("minimum_value")
            .and_then(amount)
            .into_iter()
            .collect(),
        under("maximum_value")
            .and_then(amount)
            .into_iter()
            .collect(),
        under("available_list")
            .map_or(&[][..], Node::items)
            .iter()
            .filter_map(amount)
            .collect(),
        prices
            .filter_map(|plan| plan.member("price").and_then(amount))
            .collect(),
    ]
}

fn amount(node: &Node<'_>) -> Option<Amount> {
    node.text()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(old: &[&str], new: &[&str]) -> u64 {
        let amounts = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        tenfold(amounts(old), amounts(new))
    }

    #[test]
    fn added_and_removed_amounts_do_not_count_as_tenfold() {
        assert_eq!(changed(&["10.00", "25.00"], &["1000.00", "2500.00"]), 2);
        assert_eq!(changed(&["10", "100"], &["1", "10", "100"]), 0);
        assert_eq!(changed(&["1", "10", "100"], &["10", "100"]), 0);
        assert_eq!(changed(&["10", "20"], &["10", "199.99"]), 0);
        assert_eq!(changed(&["10", "20"], &["10", "200"]), 1);
        assert_eq!(changed(&["200"], &["20"]), 1);
    }

    #[test]
    fn discounts_that_gain_digits_do_not_count() {
        for (live, new, expected) in [
            ("0.00", "0.0045", true),
            ("0", "0.009999", true),
            ("0.05", "0.0512", true),
            ("0.00", "0.01", false),
            ("0.00", "0.0145", false),
            ("0.0045", "0.00", false),
            ("0.0004", "0.0045", false),
        ] {
            let discounts = [live, new].map(|text| text.parse().unwrap());
            assert_eq!(
                gains_digits(discounts[0], discounts[1]),
                expected,
                "{live} {new}"
            );
        }
    }
}
