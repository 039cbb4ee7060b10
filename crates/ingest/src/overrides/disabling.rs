//! Overrides that disable products, to end them.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{anyhow, bail};
use jiff::Timestamp;
use vitrine_store::Store;
use vitrine_store::overrides::StoredOverride;
use vitrine_store::record::{Moment, StoredProduct};

use super::assignment::DENOMINATIONS;
use super::effect::effect;
use super::unreadable::ReadOverrides;
use super::{Assignment, Kind, Override};
use crate::load::plan::ProductCount;
use crate::selection::Selection;

/// Overrides by `vitrine disable` of selected products.
pub struct Disabling {
    /// Numbers of the active ones, which are about no other product.
    pub numbers: Vec<u64>,
    /// Those that begin later.
    pub scheduled: Vec<Override>,
    /// Active ones by other commands, which stay.
    pub remaining: Vec<Remaining>,
}

/// An override by another command that hides selected products, or decides whether they can be ordered.
pub struct Remaining {
    /// Number.
    pub number: u64,
    /// Number of these products.
    pub products: u64,
    /// Values that decide; none if it hides them.
    values: Vec<String>,
}

impl Remaining {
    /// Returns what it does: `sets state=TEMPORARILY_DISABLED of 2 products`, `hides 1 product`.
    #[must_use]
    pub fn does(&self) -> String {
        let products = ProductCount(self.products);
        match self.values.is_empty() {
            true => format!("hides {products}"),
            false => format!("sets {} of {products}", self.values.join(" ")),
        }
    }
}

/// Returns the overrides by `vitrine disable` of the selected products.
///
/// # Errors
///
/// If there is none, or one is about other products as well, or the store can't be read.
pub fn disabling(store: &Store, selection: &Selection) -> anyhow::Result<Disabling> {
    let mut open = store.overrides()?;
    open.retain(|one| one.ended.is_none());
    let open = ReadOverrides::of(open).unless(StoredOverride::is_active)?;
    let is_disabling = |one: &Override| one.definition.kind == Kind::Disable;
    let (mut open, mut others): (Vec<Override>, Vec<Override>) =
        open.into_iter().partition(is_disabling);
    others.retain(Override::is_active);
    let mut found = BTreeSet::new();
    let mut remaining = BTreeMap::new();
    // The number of products that aren't selected, and the first of them.
    let mut unselected: BTreeMap<u64, (u64, String)> = BTreeMap::new();
    let mut selected = 0_u64;
    store.read_base(Moment::Live, &mut |base| {
        let is_selected = selection.contains(&base)?;
        if is_selected {
            selected += 1;
            add_remaining(&mut remaining, &base, &others)?;
        }
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
    let remaining: Vec<Remaining> = remaining.into_values().collect();
    if active.is_empty() {
        return Err(nothing_to_end(selected, &scheduled, &remaining));
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
        remaining,
    })
}

/// Adds the overrides that decide whether clients can order a product.
fn add_remaining(
    remaining: &mut BTreeMap<u64, Remaining>,
    base: &StoredProduct,
    overrides: &[Override],
) -> anyhow::Result<()> {
    let effect = effect(base, overrides)?;
    let fields = effect.map(|effect| effect.fields).unwrap_or_default();
    for one in overrides {
        let makes = |field: &str| (fields.get(field)).is_some_and(|by| by.contains(&one.number));
        let decides = |value: &&Assignment| match value.field() {
            // Without any amount a product can't be ordered.
            DENOMINATIONS => makes("is_orderable"),
            field => ["state", "is_orderable"].contains(&field) && makes(field),
        };
        let values: Vec<&Assignment> = one.definition.values.iter().filter(decides).collect();
        if values.is_empty() && !makes("visible") {
            continue;
        }
        let found = remaining.entry(one.number).or_insert(Remaining {
            number: one.number,
            products: 0,
            values: Vec::new(),
        });
        found.products += 1;
        for value in values.into_iter().map(ToString::to_string) {
            if !found.values.contains(&value) {
                found.values.push(value);
            }
        }
    }
    Ok(())
}

/// Returns the error of products that no active override by `vitrine disable` is about.
fn nothing_to_end(selected: u64, scheduled: &[Override], remaining: &[Remaining]) -> anyhow::Error {
    let (none, its) = match selected {
        1 => ("the selected product isn't".to_owned(), "its"),
        selected => (
            format!("none of the {selected} selected products is"),
            "their",
        ),
    };
    let mut why: Vec<String> = Vec::new();
    for one in remaining {
        let (number, does) = (one.number, one.does());
        why.push(format!(
            "override {number} {does}: `vitrine overrides end {number}` ends it"
        ));
    }
    if let Some(one) = scheduled.first() {
        let (number, from) = (one.number, second(one.stored.made.from));
        why.push(format!(
            "override {number} does so from {from} on: `vitrine overrides end {number}` cancels it"
        ));
    }
    if why.is_empty() {
        why.push(format!("{its} state is the one that loads brought"));
    }
    anyhow!(
        "{none} disabled by `vitrine disable` now; {}",
        why.join("; ")
    )
}

/// Returns a time to the second, as text.
fn second(time: Timestamp) -> String {
    format!("{time:.0}")
}
