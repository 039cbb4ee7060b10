//! Overrides that make what clients see of products, now and at older revisions.

use std::collections::{BTreeMap, BTreeSet};

use vitrine_model::code::ProductCode;
use vitrine_store::overrides::{OverrideStatus, StoredOverride};
use vitrine_store::record::{Moment, StoredProduct};
use vitrine_store::{Store, StoreError};

use super::Override;
use super::effect::effect;
use super::pass::each_base;
use super::unreadable::{ReadOverrides, Unreadable};

/// Fields of a product that overrides make, each with their numbers.
type Fields = BTreeMap<&'static str, BTreeSet<u64>>;

/// Returns the overrides that set values of a product at a moment, each with the fields.
///
/// # Errors
///
/// If the store can't be read, or the product or an override is damaged.
pub fn overrides_of(
    store: &Store,
    code: &ProductCode,
    moment: Moment,
) -> anyhow::Result<Vec<(Override, Vec<&'static str>)>> {
    let lying = lying(store, moment)?;
    let base = match lying.is_empty() {
        true => None,
        false => store.base_product(code, moment)?,
    };
    let Some(base) = base else {
        return Ok(Vec::new());
    };
    let fields = fields_of(&base, &lying, store.product(code, moment)?.as_ref())?;
    let mut found = Vec::new();
    for one in lying {
        let own = (fields.iter()).filter(|(_, numbers)| numbers.contains(&one.number));
        let own: Vec<&'static str> = own.map(|(field, _)| *field).collect();
        if !own.is_empty() {
            found.push((one, own));
        }
    }
    Ok(found)
}

/// Returns true if an override hides a product at a moment; which one it is needn't be known.
///
/// # Errors
///
/// If the store can't be read.
pub fn is_hidden(store: &Store, code: &ProductCode, moment: Moment) -> Result<bool, StoreError> {
    Ok(store.product(code, moment)?.is_none() && store.base_product(code, moment)?.is_some())
}

/// Returns the overrides that lay on products at a moment, by their times. At a revision that came between the time of an
/// instant and its revision these are others: compare what they make of a product with what clients saw.
fn lying(store: &Store, moment: Moment) -> Result<Vec<Override>, StoreError> {
    let Moment::Revision(number) = moment else {
        return active(store);
    };
    let Some(published) = store.revision(number)? else {
        return Ok(Vec::new());
    };
    let at = published.revision.created_at;
    let mut stored = store.overrides()?;
    stored.retain(|one| {
        let has_begun = one.made.status != OverrideStatus::Scheduled && one.made.from <= at;
        has_begun && one.ended.as_ref().is_none_or(|end| end.at > at)
    });
    let read = |one| Override::parse(one).map_err(|one| one.error());
    stored.into_iter().map(read).collect()
}

/// Returns the fields that overrides set of a product, each with their numbers; none if what they make of it isn't what clients
/// saw.
fn fields_of(
    base: &StoredProduct,
    overrides: &[Override],
    seen: Option<&StoredProduct>,
) -> anyhow::Result<Fields> {
    let effect = effect(base, overrides)?;
    let effect = effect.filter(|effect| effect.product.as_ref() == seen);
    Ok(effect.map(|effect| effect.fields).unwrap_or_default())
}

/// Live products that an override is about.
#[derive(Debug, Default)]
pub struct OverrideProducts {
    /// Number of those that it selects.
    pub selected: u64,
    /// Codes of those of which it makes a value now.
    pub changed: Vec<ProductCode>,
    /// Number of those of which it would make one, were it not for `unreadable`: nobody knows what these make of it.
    pub unknown: u64,
    /// Active overrides whose definition can't be read.
    pub unreadable: Vec<Unreadable>,
}

/// Returns the live products that an override selects, and those of which it makes a value now.
///
/// # Errors
///
/// If the store can't be read, or a product is damaged.
pub fn products_of(store: &Store, one: &Override) -> anyhow::Result<OverrideProducts> {
    let mut active = store.overrides()?;
    active.retain(StoredOverride::is_active);
    let ReadOverrides {
        readable: active,
        unreadable,
    } = ReadOverrides::of(active);
    let makes = |fields: &Fields| fields.values().any(|by| by.contains(&one.number));
    let mut found = OverrideProducts::default();
    let mut none_missing = BTreeSet::new();
    each_base(store, &[&one.definition], &mut none_missing, &mut |base| {
        if one.definition.selects(&base)? {
            found.selected += 1;
            if effect(&base, &active)?.is_some_and(|effect| makes(&effect.fields)) {
                found.changed.push(base.code);
            }
        }
        Ok(())
    })?;
    if !unreadable.is_empty() {
        for code in std::mem::take(&mut found.changed) {
            let Some(base) = store.base_product(&code, Moment::Live)? else {
                continue;
            };
            let seen = store.product(&code, Moment::Live)?;
            match makes(&fields_of(&base, &active, seen.as_ref())?) {
                true => found.changed.push(code),
                false => found.unknown += 1,
            }
        }
    }
    found.unreadable = unreadable;
    Ok(found)
}

/// Returns the active overrides.
fn active(store: &Store) -> Result<Vec<Override>, StoreError> {
    Override::read_active(store.overrides()?)
}

/// Counts the products of which overrides set values at a moment, by override and field. `wanted` returns `None` for products that
/// aren't counted, and else what clients saw of the product: nothing if it was hidden.
///
/// # Errors
///
/// As [`overrides_of`].
pub fn count_effects<'p>(
    store: &Store,
    moment: Moment,
    wanted: &dyn Fn(&ProductCode) -> Option<Option<&'p StoredProduct>>,
) -> anyhow::Result<BTreeMap<u64, BTreeMap<&'static str, u64>>> {
    let lying = lying(store, moment)?;
    let mut counts: BTreeMap<u64, BTreeMap<&'static str, u64>> = BTreeMap::new();
    if lying.is_empty() {
        return Ok(counts);
    }
    store.read_base(moment, &mut |base| {
        let Some(seen) = wanted(&base.code) else {
            return Ok(());
        };
        for (field, numbers) in fields_of(&base, &lying, seen)? {
            for number in numbers {
                *counts.entry(number).or_default().entry(field).or_default() += 1;
            }
        }
        Ok(())
    })?;
    Ok(counts)
}
