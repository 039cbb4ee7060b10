//! Changes of bases that clients don't see, and the overrides that hide them.

use std::collections::{BTreeMap, BTreeSet};

use vitrine_store::record::StoredProduct;

use super::Override;
use super::assignment::DENOMINATIONS;
use super::effect::{Effect, effect, seen, unhidden};
use crate::load::difference::difference;

/// Returns the override that hides it, for each change of a base that clients don't see: one without which they would see the
/// change. If several hide it together, it is the one whose value they see.
pub(super) fn hiding(
    before: Option<&StoredProduct>,
    (base, effect_after): (&StoredProduct, Option<&Effect>),
    active: &[Override],
) -> anyhow::Result<Vec<u64>> {
    let (nothing, none) = (BTreeMap::new(), BTreeSet::new());
    let effect_before = match before {
        Some(before) => effect(before, active)?,
        None => None,
    };
    let [by_before, by_after] = [effect_before.as_ref(), effect_after]
        .map(|effect| effect.map_or(&nothing, |effect| &effect.fields));
    if let Some(hidden_by) = by_after.get("visible").and_then(BTreeSet::last) {
        let changes = before.map_or(1, |before| changed_fields(before, base).len());
        return Ok(vec![*hidden_by; changes]);
    }
    let seen_after = seen(base, effect_after).unwrap_or(base);
    let without = |base: &StoredProduct, number: u64| {
        let others = active.iter().filter(|one| one.number != number);
        unhidden(base, others)
    };
    let mut hiding = Vec::new();
    let Some(before) = before else {
        for (field, numbers) in by_after {
            hiding.extend(latest(numbers, numbers, |number| {
                let seen_then = without(base, number)?;
                Ok(changed_fields(seen_after, &seen_then).contains(*field))
            })?);
        }
        return Ok(hiding);
    };
    let seen_before = seen(before, effect_before.as_ref()).unwrap_or(before);
    let told = changed_fields(seen_before, seen_after);
    for field in changed_fields(before, base).difference(&told) {
        let [by_before, by_after] =
            [by_before, by_after].map(|by| by.get(field.as_str()).unwrap_or(&none));
        let by_either = by_before | by_after;
        let value_by = if by_after.is_empty() {
            by_before
        } else {
            by_after
        };
        hiding.extend(latest(&by_either, value_by, |number| {
            let (old, new) = (without(before, number)?, without(base, number)?);
            Ok(changed_fields(&old, &new).contains(field))
        })?);
    }
    Ok(hiding)
}

/// Returns the latest of these overrides without which clients would see a change; if there is none, the latest that made the
/// value.
fn latest(
    candidates: &BTreeSet<u64>,
    value_by: &BTreeSet<u64>,
    shows_without: impl Fn(u64) -> anyhow::Result<bool>,
) -> anyhow::Result<Option<u64>> {
    if candidates.len() > 1 {
        for number in candidates.iter().rev() {
            if shows_without(*number)? {
                return Ok(Some(*number));
            }
        }
    }
    Ok(value_by.last().copied())
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
