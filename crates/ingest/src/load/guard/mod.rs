//! The guard: its rules, their default limits, and the message of a refusal.
//!
//! It holds for loads and mirrors, and is meant for truncated files, shifted columns and lost decimal points. Each limit is a
//! share of what was live before; `--allow` raises one.
//!
//! - `tally`: counts the effects of a publish, and compares them with the limits (`Tally::exceeded`)
//! - `emptied`: fields that lose their values
//! - `percent`: shares
//!
//! The refusal itself is in `load::apply`: `finish` drops the publish if a limit is exceeded.

mod emptied;
mod percent;
mod tally;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::Serialize;
use vitrine_model::code::ProductCode;

pub use percent::Percent;
pub use tally::Tally;

/// Maximum number of changes that the text of a refusal counts by field.
const MAX_FIELDS: usize = 8;

/// A kind of change that the guard limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// Live products that are retired.
    Retire,
    /// Live products that can be ordered before and not afterwards.
    NotOrderable,
    /// Live products that leave the state `LIVE`.
    States,
    /// Live products whose list of countries or categories becomes empty.
    EmptiedLists,
    /// Live products that lose the value of another field or text, as a share of those that have one.
    EmptiedFields,
    /// Live products that get another currency.
    Currencies,
    /// Amounts of live products that become ten times as large or as small, or more.
    Amounts,
    /// Discounts of live products that do.
    Discounts,
}

impl Rule {
    /// All of them, in the order in which they are reported.
    pub const ALL: [Self; 8] = [
        Self::Retire,
        Self::NotOrderable,
        Self::States,
        Self::EmptiedLists,
        Self::EmptiedFields,
        Self::Currencies,
        Self::Amounts,
        Self::Discounts,
    ];

    /// Returns its name, as `--allow` takes it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Retire => "retire",
            Self::NotOrderable => "not-orderable",
            Self::States => "states",
            Self::EmptiedLists => "emptied-lists",
            Self::EmptiedFields => "emptied-fields",
            Self::Currencies => "currencies",
            Self::Amounts => "amounts",
            Self::Discounts => "discounts",
        }
    }

    /// Returns the limit that the last of its allowances sets, or the default one.
    fn limit(self, allowances: &[Allowance]) -> Percent {
        let own = allowances.iter().rev().find(|allowed| allowed.rule == self);
        own.map_or(self.default_limit(), |allowed| allowed.limit)
    }

    fn default_limit(self) -> Percent {
        match self {
            Self::Currencies | Self::Amounts | Self::Discounts => Percent::whole(5),
            _ => Percent::whole(20),
        }
    }

    /// Returns what a load or an override would do, as in "this would …". `retire` is the word for products that go.
    fn describe(self, count: u64, live: u64, retire: &str) -> String {
        match self {
            Self::Retire => format!("{retire} {count} of {live} live products"),
            Self::NotOrderable => format!("make {count} of {live} live products unorderable"),
            Self::States => format!("take {count} of {live} live products out of state LIVE"),
            Self::EmptiedLists => {
                format!("empty the countries or categories of {count} of {live} live products")
            }
            Self::EmptiedFields => {
                format!(
                    "empty a field of {count} of the {live} live products that have a value there"
                )
            }
            Self::Currencies => format!("change the currency of {count} of {live} live products"),
            Self::Amounts => format!("change {count} of {live} live amounts tenfold or more"),
            Self::Discounts => format!("change {count} of {live} live discounts tenfold or more"),
        }
    }
}

/// One rule with another limit than the usual one: `retire=100%`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allowance {
    rule: Rule,
    limit: Percent,
}

impl fmt::Display for Allowance {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}={}", self.rule.name(), self.limit)
    }
}

impl FromStr for Allowance {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let names = || Rule::ALL.map(Rule::name).join(", ");
        let Some((name, limit)) = text.split_once('=') else {
            return Err(format!(
                "expected NAME=PERCENT%; NAME is one of {}",
                names()
            ));
        };
        let rule = Rule::ALL.into_iter().find(|rule| rule.name() == name);
        let rule = rule.ok_or_else(|| format!("expected a name among {}", names()))?;
        let limit = limit.parse()?;
        Ok(Self { rule, limit })
    }
}

/// A limit that a load would exceed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Exceeded {
    /// The limit's rule.
    pub rule: Rule,
    /// Number of products, amounts or discounts.
    pub count: u64,
    /// Of how many live ones.
    pub live: u64,
    /// Their share, rounded up.
    #[serde(serialize_with = "serialize_display")]
    pub share: Percent,
    /// The greatest share that is allowed.
    #[serde(serialize_with = "serialize_display")]
    pub limit: Percent,
    /// Number of products.
    pub products: u64,
    /// The first of them.
    #[serde(serialize_with = "serialize_codes")]
    pub first_products: Vec<ProductCode>,
    /// Number of changes in each field; empty for retired products.
    pub by_field: BTreeMap<String, u64>,
}

/// Compares the products that an edit of an assortment takes away, of so many that it showed, with the limit of
/// `retire`. Returns it if it is exceeded.
#[must_use]
pub fn exceeded_by_edit(lost: &[&str], shown: u64, allowances: &[Allowance]) -> Option<Exceeded> {
    let rule = Rule::Retire;
    let limit = rule.limit(allowances);
    let count = lost.len() as u64;
    limit.is_exceeded(count, shown).then(|| Exceeded {
        rule,
        count,
        live: shown,
        share: Percent::of(count, shown),
        limit,
        products: count,
        first_products: lost
            .iter()
            .take(tally::MAX_NAMED)
            .filter_map(|code| code.parse().ok())
            .collect(),
        by_field: BTreeMap::new(),
    })
}

fn serialize_display<S: serde::Serializer>(
    percent: &Percent,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_str(percent)
}

fn serialize_codes<S: serde::Serializer>(
    codes: &[ProductCode],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(codes.iter().map(ProductCode::as_str))
}

impl fmt::Display for Exceeded {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(out, "retire")
    }
}

impl Exceeded {
    /// Returns the text about an override, which hides products instead of retiring them.
    #[must_use]
    pub fn of_override(&self) -> String {
        let mut text = String::new();
        // Writing to a string can't fail.
        let _ = self.write(&mut text, "hide");
        text
    }

    fn write(&self, out: &mut impl fmt::Write, retire: &str) -> fmt::Result {
        let (name, share, limit) = (self.rule.name(), self.share, self.limit);
        let load = self.rule.describe(self.count, self.live, retire);
        write!(
            out,
            "guard: {name}: this would {load} ({share}, more than {limit}); \
             if this is intended: --allow {name}={share}"
        )?;
        let codes: Vec<&str> = self
            .first_products
            .iter()
            .map(ProductCode::as_str)
            .collect();
        write!(out, "\n    products: {}", codes.join(", "))?;
        match self.products.saturating_sub(codes.len() as u64) {
            0 => {}
            more => write!(out, " … and {more} more")?,
        }
        let mut fields: Vec<(&String, &u64)> = self.by_field.iter().collect();
        fields.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        for (field, count) in fields.into_iter().take(MAX_FIELDS) {
            write!(out, "\n    {field}: {count}")?;
        }
        Ok(())
    }
}
