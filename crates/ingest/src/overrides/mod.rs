//! Overrides: what operators say of products, over every load, until it ends.
//!
//! An override is a selection of products, values of fields, a span of time and a reason. Loads bring the base; the effective
//! product, which clients see, is made of it here, whenever a base or the overrides change.
//!
//! - `assignment`: a value that an override sets
//! - [`effect`](mod@effect): what overrides make of a product; `narrowing` of its amounts, `lists` of its lists
//! - `attribution`: the overrides that make what clients see of products
//! - `publication`: a publish of bases, with the overrides over them; `ineffective`: the changes that these hide
//! - `pass`: a pass over products whose overrides change; `compared`: its findings
//! - [`unreadable`]: overrides whose definition can't be read
//! - [`disabling`]: overrides that disable products
//! - [`rollback`]: making an old revision live again
//! - [`change`]: making and ending overrides, and `changed`: the outcome; [`instants`]: their beginnings and ends when their time comes

pub mod assignment;
mod attribution;
pub mod change;
mod changed;
mod compared;
pub mod disabling;
pub mod effect;
mod ineffective;
pub mod instants;
mod lists;
mod narrowing;
mod pass;
mod publication;
pub mod rollback;
pub mod unreadable;

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use vitrine_model::selector::{Codes, Selector};
use vitrine_store::StoreError;
use vitrine_store::overrides::{BaseHint, StoredOverride};
use vitrine_store::record::StoredProduct;

pub use assignment::{Assignment, ListChange, crossed_amounts};
pub use attribution::{OverrideProducts, count_effects, is_hidden, overrides_of, products_of};
pub use effect::{Effect, effect};
pub use publication::{dry_run, publish, restore};
use unreadable::Unreadable;

use crate::as_texts;
use crate::load::guard::Allowance;
use crate::selection::{SelectorJson, selects};

/// Maximum number of codes that a summary names.
const MAX_NAMED_CODES: usize = 10;

/// Kind of an override: the command that made it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// `vitrine disable`, which `vitrine overrides end --codes` ends.
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
    #[serde(with = "SelectorJson")]
    pub selection: Selector,
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
            None => selects(&self.selection, base),
        }
    }

    /// Returns the codes of all products that it can be about, if that is known without looking at them.
    #[must_use]
    pub fn codes(&self) -> Option<Vec<&str>> {
        if let Some(frozen) = &self.frozen {
            return Some(frozen.iter().map(String::as_str).collect());
        }
        let codes = self.selection.codes.as_ref()?;
        (codes.pattern_count() == 0).then(|| codes.exact().iter().collect())
    }

    /// Returns the products among which those that it is about are, by a part of the selection that a store can tell.
    #[must_use]
    pub(crate) fn hint(&self) -> BaseHint {
        let Selector {
            codes,
            countries,
            categories,
            ..
        } = &self.selection;
        BaseHint {
            code_prefix: codes.as_ref().map_or("", Codes::prefix).to_owned(),
            categories: categories.clone().unwrap_or_default(),
            countries: countries.clone().unwrap_or_default(),
        }
    }

    /// Returns the products in words: `BRIARWICK-*, country SE or NO`. It has texts of outside.
    #[must_use]
    pub fn products_text(&self) -> String {
        self.products_with_codes(usize::MAX)
    }

    /// Returns the products in words, of many codes the first ones. It has texts of outside.
    #[must_use]
    pub fn products_summary(&self) -> String {
        self.products_with_codes(MAX_NAMED_CODES)
    }

    fn products_with_codes(&self, max_codes: usize) -> String {
        if let Some(frozen) = &self.frozen {
            return match frozen.len() {
                1 => "1 product that matched when it was made".to_owned(),
                products => format!("{products} products that matched when it was made"),
            };
        }
        let Selector {
            codes,
            countries,
            categories,
            currencies,
            payout_types,
            states,
            name,
            is_orderable,
        } = &self.selection;
        fn texts<T: ToString>(values: Option<&Vec<T>>) -> String {
            let values = values.into_iter().flatten().map(ToString::to_string);
            values.collect::<Vec<_>>().join(" or ")
        }
        let mut all = codes.iter().flat_map(Codes::texts);
        let mut named: Vec<String> = all.by_ref().take(max_codes).map(str::to_owned).collect();
        match all.count() {
            0 => {}
            1 => named.push("1 other code".to_owned()),
            others => named.push(format!("{others} other codes")),
        }
        let orderable = match is_orderable {
            Some(true) => "orderable",
            Some(false) => "not orderable",
            None => "",
        };
        let parts = [
            ("", texts(Some(&named))),
            ("country ", texts(countries.as_ref())),
            ("category ", texts(categories.as_ref())),
            ("currency ", texts(currencies.as_ref())),
            ("payout type ", texts(payout_types.as_ref())),
            ("state ", texts(states.as_ref())),
            ("name ", name.clone().unwrap_or_default()),
            ("", orderable.to_owned()),
        ];
        let parts = parts.iter().filter(|(_, values)| !values.is_empty());
        let parts: Vec<String> = parts
            .map(|(name, values)| format!("{name}{values}"))
            .collect();
        parts.join(", ")
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
    pub fn parse(stored: StoredOverride) -> Result<Self, Box<Unreadable>> {
        match serde_json::from_str(&stored.made.definition) {
            Ok(definition) => Ok(Self {
                number: stored.number,
                definition,
                stored,
            }),
            Err(error) => Err(Box::new(Unreadable {
                stored,
                reason: error.to_string(),
            })),
        }
    }

    /// Reads those of stored overrides that are active.
    ///
    /// # Errors
    ///
    /// If the definition of one is damaged, or by a later release: what its products are for clients is unknown then.
    pub fn read_active(mut stored: Vec<StoredOverride>) -> Result<Vec<Self>, StoreError> {
        stored.retain(StoredOverride::is_active);
        let read = |one| Self::parse(one).map_err(|one| one.error());
        stored.into_iter().map(read).collect()
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

    /// Returns true while it lies on products.
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.stored.is_active()
    }
}
