//! Overrides: what operators say of products, over every load, until it ends.
//!
//! An override is a selection of products, values of fields, a span of time and a reason. Loads bring the base; the effective
//! product, which clients see, is made of it here, whenever a base or the overrides change.
//!
//! - `assignment`: a value that an override sets
//! - [`effect`](mod@effect): what overrides make of a product
//! - `publication`: a publish of bases, with the overrides over them
//! - `pass`: a pass over products whose overrides change
//! - [`disabling`]: overrides that disable products
//! - [`rollback`]: making an old revision live again
//! - [`change`]: making and ending overrides; [`instants`]: their beginnings and ends when their time comes

pub mod assignment;
pub mod change;
pub mod disabling;
pub mod effect;
pub mod instants;
mod pass;
mod publication;
pub mod rollback;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use vitrine_model::code::ProductCode;
use vitrine_store::overrides::{BaseHint, OverrideStatus, StoredOverride};
use vitrine_store::record::{Moment, StoredProduct};
use vitrine_store::{Store, StoreError};

pub use assignment::{Assignment, ListChange, crossed_amounts};
pub use effect::{Effect, effect};
use pass::each_base;
pub use publication::{publish, restore};

use crate::as_texts;
use crate::escape::single_line;
use crate::load::guard::Allowance;
use crate::selection::Selection;

/// Kind of an override: the command that made it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// `vitrine disable`, which `vitrine enable` ends.
    Disable,
    /// `vitrine hide`.
    Hide,
    /// `vitrine set`.
    Set,
}

/// Definition of an override: the products, their values, and what the guard allowed. One of a later release, with members that
/// this one doesn't know, isn't read: without them it could be about all products.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    /// Kind.
    pub kind: Kind,
    /// Selection of products, resolved at each moment.
    pub selection: Selection,
    /// Codes of the products that matched when the override was made, if only these are meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frozen: Option<BTreeSet<String>>,
    /// Values.
    #[serde(with = "as_texts")]
    pub values: Vec<Assignment>,
    /// Limits of the guard that the operator raised.
    #[serde(default, with = "as_texts", skip_serializing_if = "Vec::is_empty")]
    pub allowances: Vec<Allowance>,
}

impl Definition {
    /// Returns true if the override is about this product, given as its base.
    ///
    /// # Errors
    ///
    /// If the product's document is damaged.
    pub fn selects(&self, base: &StoredProduct) -> anyhow::Result<bool> {
        match &self.frozen {
            Some(codes) => Ok(codes.contains(base.code.as_str())),
            None => self.selection.contains(base),
        }
    }

    /// Returns the codes of all products that it can be about, if that is known without looking at them.
    #[must_use]
    pub fn codes(&self) -> Option<Vec<&str>> {
        if let Some(frozen) = &self.frozen {
            return Some(frozen.iter().map(String::as_str).collect());
        }
        let codes = &self.selection.codes;
        let is_named = !codes.is_empty() && codes.iter().all(|code| !code.is_pattern());
        is_named.then(|| self.selection.named_codes().collect())
    }

    /// Returns the products among which those that it is about are, by a part of the selection that a store can tell.
    #[must_use]
    pub(crate) fn hint(&self) -> BaseHint {
        let Selection {
            codes,
            countries,
            categories,
            ..
        } = &self.selection;
        BaseHint {
            code_prefix: match codes.as_slice() {
                [one] => one.prefix().to_owned(),
                _ => String::new(),
            },
            categories: categories.clone(),
            countries: countries.clone(),
        }
    }

    /// Returns the products for people, on one line.
    #[must_use]
    pub fn selection_text(&self) -> String {
        if let Some(frozen) = &self.frozen {
            return format!("{} products that matched then", frozen.len());
        }
        let selection = &self.selection;
        let list = |values: Vec<String>| values.join(" or ");
        let texts = |values: &[String]| list(values.to_vec());
        let codes = list(selection.codes.iter().map(ToString::to_string).collect());
        let countries = list(
            selection
                .countries
                .iter()
                .map(ToString::to_string)
                .collect(),
        );
        let parts = [
            ("", codes),
            ("country ", countries),
            ("category ", texts(&selection.categories)),
            ("currency ", texts(&selection.currencies)),
            ("payout type ", texts(&selection.payout_types)),
            ("state ", texts(&selection.states)),
            ("name ", selection.name.clone().unwrap_or_default()),
            (
                "",
                match selection.is_orderable {
                    Some(true) => "orderable".to_owned(),
                    Some(false) => "not orderable".to_owned(),
                    None => String::new(),
                },
            ),
        ];
        let parts = parts.iter().filter(|(_, values)| !values.is_empty());
        let parts: Vec<String> = parts
            .map(|(name, values)| format!("{name}{values}"))
            .collect();
        single_line(&parts.join(", ")).into_owned()
    }

    /// Returns the values, as operators write them.
    #[must_use]
    pub fn values_text(&self) -> String {
        let values: Vec<String> = self.values.iter().map(ToString::to_string).collect();
        values.join(" ")
    }
}

/// A stored override with its definition.
#[derive(Debug, Clone, PartialEq)]
pub struct Override {
    /// Number, from 1.
    pub number: u64,
    /// Products and values.
    pub definition: Definition,
    /// All else.
    pub stored: StoredOverride,
}

impl Override {
    /// Reads a stored override.
    ///
    /// # Errors
    ///
    /// If its definition is damaged, or by a later release.
    pub fn read(stored: StoredOverride) -> Result<Self, StoreError> {
        let number = stored.number;
        let definition = serde_json::from_str(&stored.made.definition).map_err(|error| {
            StoreError::Damaged(format!(
                "the definition of override {number} can't be read; if a later release made it, use that: {error}"
            ))
        })?;
        Ok(Self {
            number,
            definition,
            stored,
        })
    }

    /// Reads all of these.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    pub fn read_all(stored: Vec<StoredOverride>) -> Result<Vec<Self>, StoreError> {
        stored.into_iter().map(Self::read).collect()
    }

    /// Returns the time of what comes next: its beginning, or its end.
    #[must_use]
    pub fn due(&self) -> Option<Timestamp> {
        match self.stored.made.status {
            OverrideStatus::Scheduled => Some(self.stored.made.from),
            OverrideStatus::Active => self.stored.made.until,
            OverrideStatus::Ended => None,
        }
    }

    /// Returns true if, in a span that both have, a value of this override replaces one of another, earlier one.
    fn replaces(&self, earlier: &Self) -> bool {
        let (own, other) = (&self.stored.made, &earlier.stored.made);
        let ends_before = |one: Option<Timestamp>, begin| one.is_some_and(|end| end <= begin);
        let is_apart = ends_before(own.until, other.from) || ends_before(other.until, own.from);
        let replaces =
            |value: &Assignment| (earlier.definition.values.iter()).any(|it| value.replaces(it));
        !is_apart && self.definition.values.iter().any(replaces)
    }

    /// Returns the override as it is at a time, whether that was applied or not; `None` if it has ended by then.
    fn at(mut self, time: Timestamp) -> Option<Self> {
        if self.stored.made.until.is_some_and(|until| until <= time) {
            return None;
        }
        if self.stored.made.from <= time {
            self.stored.made.status = OverrideStatus::Active;
        }
        Some(self)
    }

    /// Returns true while it lies on products.
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.stored.made.status == OverrideStatus::Active
    }
}

/// Returns the overrides that set values of a live product now, each with the fields.
///
/// # Errors
///
/// If the store can't be read, or the product or an override is damaged.
pub fn overrides_of(
    store: &dyn Store,
    code: &ProductCode,
) -> anyhow::Result<Vec<(Override, Vec<&'static str>)>> {
    let active = active(store)?;
    let base = match active.is_empty() {
        true => None,
        false => store.base_product(code, Moment::Live)?,
    };
    let effect = base
        .map(|base| effect(&base, &active))
        .transpose()?
        .flatten();
    let fields = effect.map(|effect| effect.fields).unwrap_or_default();
    let mut found = Vec::new();
    for one in active {
        let own = (fields.iter()).filter(|(_, numbers)| numbers.contains(&one.number));
        let own: Vec<&'static str> = own.map(|(field, _)| *field).collect();
        if !own.is_empty() {
            found.push((one, own));
        }
    }
    Ok(found)
}

/// Returns the number of live products that an override selects, and the codes of those of which it sets a value now.
///
/// # Errors
///
/// As [`overrides_of`].
pub fn products_of(store: &dyn Store, one: &Override) -> anyhow::Result<(u64, Vec<ProductCode>)> {
    let active = active(store)?;
    let (mut selected, mut changed) = (0, Vec::new());
    let mut none_missing = BTreeSet::new();
    each_base(store, &[&one.definition], &mut none_missing, &mut |base| {
        if one.definition.selects(&base)? {
            selected += 1;
            let effect = effect(&base, &active)?;
            let fields = effect.map(|effect| effect.fields).unwrap_or_default();
            if fields.values().any(|by| by.contains(&one.number)) {
                changed.push(base.code);
            }
        }
        Ok(())
    })?;
    Ok((selected, changed))
}

/// Returns the active overrides.
fn active(store: &dyn Store) -> Result<Vec<Override>, StoreError> {
    let mut active = store.overrides()?;
    active.retain(|one| one.made.status == OverrideStatus::Active);
    Override::read_all(active)
}

/// Counts the products of which overrides set values now, by override and field.
///
/// # Errors
///
/// As [`overrides_of`].
pub fn count_effects(
    store: &dyn Store,
    is_wanted: &dyn Fn(&StoredProduct) -> anyhow::Result<bool>,
) -> anyhow::Result<BTreeMap<u64, BTreeMap<&'static str, u64>>> {
    let active = active(store)?;
    let mut counts: BTreeMap<u64, BTreeMap<&'static str, u64>> = BTreeMap::new();
    if active.is_empty() {
        return Ok(counts);
    }
    store.read_base(Moment::Live, &mut |base| {
        if !is_wanted(&base)? {
            return Ok(());
        }
        let fields = effect(&base, &active)?.map(|effect| effect.fields);
        for (field, numbers) in fields.unwrap_or_default() {
            for number in numbers {
                *counts.entry(number).or_default().entry(field).or_default() += 1;
            }
        }
        Ok(())
    })?;
    Ok(counts)
}
