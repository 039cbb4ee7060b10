//! Plan of a load: the products that it creates, changes and retires, and the changed fields of each.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use serde::Serialize;
use vitrine_model::code::ProductCode;
use vitrine_store::record::{PublishedCounts, StoredProduct};

use super::difference::{FieldChange, difference};
use super::report::shown;
use crate::escape::single_line;

/// Maximum number of products of each kind, and of shared changes, that a summary names.
const MAX_SUMMARY: usize = 20;

/// Minimum number of products with an identical change for it to be summarised.
const MIN_SHARED_PRODUCTS: usize = 5;

/// Detail of a plan's text; JSON has all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listing {
    /// All products with all changes: for files, pipes, and `--all`.
    Complete,
    /// The first products, and identical changes only once: for terminals.
    Summary,
}

impl Listing {
    fn most(self) -> usize {
        match self {
            Self::Complete => usize::MAX,
            Self::Summary => MAX_SUMMARY,
        }
    }
}

/// A changed product.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChangedProduct {
    /// Code of the product.
    pub code: String,
    /// Fields that differ.
    pub fields: Vec<FieldChange>,
}

/// Detail that a plan keeps in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Detail {
    /// All products and fields that differ.
    #[default]
    Fields,
    /// Only the number of products that differ: enough for an applied plan, in constant memory.
    Counts,
}

/// Difference between the live catalog and the next one.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Plan {
    /// Codes of new products.
    pub created: Vec<String>,
    /// Changed products.
    pub changed: Vec<ChangedProduct>,
    /// Codes of retired products.
    pub retired: Vec<String>,
    /// Number of unchanged products.
    pub unchanged: u64,
    #[serde(skip)]
    detail: Detail,
    #[serde(skip)]
    counts: PublishedCounts,
}

impl Plan {
    /// Returns an empty plan.
    #[must_use]
    pub fn new(detail: Detail) -> Self {
        Self {
            detail,
            ..Self::default()
        }
    }

    /// Returns a plan with this number of unchanged products.
    #[must_use]
    pub fn unchanged(products: u64) -> Self {
        Self {
            unchanged: products,
            counts: PublishedCounts {
                unchanged: products,
                ..PublishedCounts::default()
            },
            ..Self::default()
        }
    }

    /// Adds a product: its live and its next version.
    pub fn compare(&mut self, live: Option<&StoredProduct>, next: &StoredProduct) {
        let keeps_fields = self.detail == Detail::Fields;
        match live {
            None => {
                self.counts.created += 1;
                self.created
                    .extend(keeps_fields.then(|| next.code.to_string()));
            }
            Some(live) if live == next => self.keep(),
            Some(live) => {
                self.counts.changed += 1;
                self.changed.extend(keeps_fields.then(|| ChangedProduct {
                    code: next.code.to_string(),
                    fields: difference(live, next),
                }));
            }
        }
    }

    /// Adds an unchanged live product.
    pub fn keep(&mut self) {
        self.counts.unchanged += 1;
        self.unchanged += 1;
    }

    /// Adds a retired product.
    pub fn retire(&mut self, code: &ProductCode) {
        self.counts.retired += 1;
        let keeps_fields = self.detail == Detail::Fields;
        self.retired.extend(keeps_fields.then(|| code.to_string()));
    }

    /// Returns the plan's counts.
    #[must_use]
    pub fn counts(&self) -> PublishedCounts {
        self.counts
    }

    /// Returns the plan with its fields, if it has them.
    #[must_use]
    pub fn fields(&self) -> Option<&Self> {
        (self.detail == Detail::Fields).then_some(self)
    }

    /// Writes the plan for people.
    ///
    /// # Errors
    ///
    /// If `out` can't be written.
    pub fn write_text(&self, out: &mut impl fmt::Write, listing: Listing) -> fmt::Result {
        write_products(out, '+', &self.created, listing)?;
        self.write_changed(out, listing)?;
        write_products(out, '-', &self.retired, listing)
    }

    /// Writes the changed products. Changes that many share come first, summarised; a summary doesn't repeat them for
    /// each product.
    fn write_changed(&self, out: &mut impl fmt::Write, listing: Listing) -> fmt::Result {
        let shared = self.shared_changes();
        let mut by_products: Vec<(&FieldChange, usize)> = shared
            .iter()
            .map(|(change, products)| (*change, *products))
            .collect();
        by_products.sort_by_key(|(_, products)| Reverse(*products));
        for (change, products) in by_products.iter().take(listing.most()) {
            writeln!(out, "~ {}: {products} products", Shown(change))?;
        }
        write_rest(out, '~', "shared changes", shared.len(), listing)?;
        let is_own =
            |change: &&FieldChange| listing == Listing::Complete || !shared.contains_key(change);
        let has_own =
            |product: &&ChangedProduct| product.fields.iter().any(|change| is_own(&change));
        for product in self.changed.iter().filter(has_own).take(listing.most()) {
            writeln!(out, "~ {}", product.code)?;
            for change in product.fields.iter().filter(is_own) {
                writeln!(out, "    {}", Shown(change))?;
            }
        }
        let named = self.changed.iter().filter(has_own).count();
        write_rest(out, '~', "products", named, listing)
    }

    /// Returns the changes that many products share, with the number of products.
    fn shared_changes(&self) -> BTreeMap<&FieldChange, usize> {
        let mut counts: BTreeMap<&FieldChange, usize> = BTreeMap::new();
        for change in self.changed.iter().flat_map(|product| &product.fields) {
            *counts.entry(change).or_default() += 1;
        }
        counts.retain(|_, products| *products >= MIN_SHARED_PRODUCTS);
        counts
    }

    /// Returns the plan for people, as text.
    #[must_use]
    pub fn to_text(&self, listing: Listing) -> String {
        let mut text = String::new();
        // Writing to a string can't fail.
        let _ = self.write_text(&mut text, listing);
        let _ = writeln!(text, "{}", self.counts());
        text
    }
}

/// A change on one line.
struct Shown<'c>(&'c FieldChange);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = |value: &Option<String>| {
            let value = value.as_deref().map_or_else(|| "nothing".to_owned(), shown);
            single_line(&value).into_owned()
        };
        let FieldChange { pointer, old, new } = self.0;
        let pointer = single_line(pointer);
        write!(out, "{pointer}: {} → {}", value(old), value(new))
    }
}

/// Writes a line for each product behind a sign, as many as the listing has.
///
/// # Errors
///
/// If `out` can't be written.
pub fn write_products(
    out: &mut impl fmt::Write,
    sign: char,
    products: &[impl fmt::Display],
    listing: Listing,
) -> fmt::Result {
    for product in products.iter().take(listing.most()) {
        writeln!(out, "{sign} {product}")?;
    }
    write_rest(out, sign, "products", products.len(), listing)
}

/// Writes the number of products that a summary leaves out.
fn write_rest(
    out: &mut impl fmt::Write,
    sign: char,
    things: &str,
    all: usize,
    listing: Listing,
) -> fmt::Result {
    match all.saturating_sub(listing.most()) {
        0 => Ok(()),
        rest => writeln!(out, "{sign} … and {rest} more {things}; --all lists them"),
    }
}
