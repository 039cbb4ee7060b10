//! Overrides by `vitrine disable`, found by their products, to end them.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::bail;
use vitrine_model::selector::Selector;
use vitrine_store::Store;
use vitrine_store::overrides::StoredOverride;
use vitrine_store::record::Moment;

use super::unreadable::ReadOverrides;
use super::{Kind, Override};
use crate::selection::selects;

/// Overrides by `vitrine disable` of selected products.
pub struct Disabling {
    /// Numbers of the active ones, which are about no other product.
    pub numbers: Vec<u64>,
    /// Those that begin later.
    pub scheduled: Vec<Override>,
}

/// Returns the overrides by `vitrine disable` of the selected products.
///
/// # Errors
///
/// If none is active, or one is about other products as well, or the store can't be read.
pub fn disabling(store: &Store, selection: &Selector) -> anyhow::Result<Disabling> {
    let mut open = store.overrides()?;
    open.retain(|one| one.ended.is_none());
    let mut open = ReadOverrides::of(open).unless(StoredOverride::is_active)?;
    open.retain(|one| one.definition.kind == Kind::Disable);
    let mut found = BTreeSet::new();
    // The number of products that aren't selected, and the first of them.
    let mut unselected: BTreeMap<u64, (u64, String)> = BTreeMap::new();
    let mut selected = 0_u64;
    store.read_base(Moment::Live, &mut |base| {
        let is_selected = selects(selection, &base)?;
        selected += u64::from(is_selected);
        for one in &open {
            match (one.definition.selects(&base)?, is_selected) {
                (true, true) => drop(found.insert(one.number)),
                (true, false) => {
                    let first = || (0, base.code.to_string());
                    unselected.entry(one.number).or_insert_with(first).0 += 1;
                }
                (false, _) => {}
            }
        }
        Ok(())
    })?;
    if selected == 0 {
        bail!("no live product is selected");
    }
    open.retain(|one| found.contains(&one.number));
    let (active, scheduled): (Vec<Override>, Vec<Override>) =
        open.into_iter().partition(Override::is_active);
    if active.is_empty() {
        bail!(
            "no active override by `vitrine disable` is about these products; see `vitrine overrides list`"
        );
    }
    for Override { number, .. } in &active {
        if let Some((count, first)) = unselected.get(number) {
            bail!(
                "override {number} disables {count} other products as well, such as {first}; end it with \
                 `vitrine overrides end {number}`, and disable those again that are to stay so"
            );
        }
    }
    Ok(Disabling {
        numbers: active.iter().map(|one| one.number).collect(),
        scheduled,
    })
}
