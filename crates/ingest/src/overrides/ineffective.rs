//! Changes of bases that clients don't see, and the overrides that hide them.

use std::collections::{BTreeMap, BTreeSet};

use vitrine_store::record::StoredProduct;

use super::Override;
use super::assignment::DENOMINATIONS;
use super::effect::{Effect, effect, seen};
use crate::load::difference::difference;

/// Returns the override that hides it, for each change of a base that clients don't see: the latest of those that make the
/// value that they see.
pub(super) fn hiding(
    before: Option<&StoredProduct>,
    (base, effect_after): (&StoredProduct, Option<&Effect>),
    active: &[Override],
) -> anyhow::Result<Vec<u64>> {
    let effect_before = match before {
        Some(before) => effect(before, active)?,
        None => None,
    };
    let nothing = BTreeMap::new();
    let [by_before, by_after] = [effect_before.as_ref(), effect_after]
        .map(|effect| effect.map_or(&nothing, |effect| &effect.fields));
    if let Some(hidden_by) = by_after.get("visible").and_then(BTreeSet::last) {
        let changes = before.map_or(1, |before| changed_fields(before, base).len());
        return Ok(vec![*hidden_by; changes]);
    }
    let Some(before) = before else {
        let latest = by_after.values().filter_map(BTreeSet::last);
        return Ok(latest.copied().collect());
    };
    let seen_before = seen(before, effect_before.as_ref()).unwrap_or(before);
    let seen_after = seen(base, effect_after).unwrap_or(base);
    let told = changed_fields(seen_before, seen_after);
    let changed = changed_fields(before, base);
    let latest = |field: &String| {
        let by = by_after.get(&**field).or_else(|| by_before.get(&**field));
        by.and_then(BTreeSet::last).copied()
    };
    Ok(changed.difference(&told).filter_map(latest).collect())
}

/// Returns the names of the fields that differ between two products, those of amounts as one.
fn changed_fields(before: &StoredProduct, after: &StoredProduct) -> BTreeSet<String> {
    let name = |pointer: &str| {
        let mut names = pointer.split('/').skip(1);
        let first = names.next().unwrap_or_default();
        let is_amount = names.next() == Some(DENOMINATIONS);
        if is_amount { DENOMINATIONS } else { first }.to_owned()
    };
    (difference(before, after).iter())
        .map(|change| name(&change.pointer))
        .collect()
}
