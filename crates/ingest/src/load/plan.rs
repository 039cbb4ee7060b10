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

/// Minimum number of products with an identical change for it to be summed up.
const MIN_SHARED_PRODUCTS: usize = 5;

/// Detail of a plan's text; JSON has all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listing {
    /// Every product with every change: for files, pipes, and `--all`.
    Complete,
    /// The first products, and identical changes only once: for a terminal.
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

/// A product that changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChangedProduct {
    /// Its code.
    pub code: String,
    /// Its fields that differ.
    pub fields: Vec<FieldChange>,
}

/// Detail that a plan keeps in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Detail {
    /// Every product and field that differs.
    #[default]
    Fields,
    /// Only the number of products that differ: enough for an applied plan, in constant memory.
    Counts,
}

/// The difference between the live catalog and what is to be.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Plan {
    /// The codes of new products.
    pub created: Vec<String>,
    /// The products that change.
    pub changed: Vec<ChangedProduct>,
    /// The codes of products that go.
    pub retired: Vec<String>,
    /// Number of products that stay as they are.
    pub unchanged: u64,
    #[serde(skip)]
    detail: Detail,
    #[serde(skip)]
    counts: PublishedCounts,
}

impl Plan {
    /// A plan of nothing yet.
    #[must_use]
    pub fn new(detail: Detail) -> Self {
        Self {
            detail,
            ..Self::default()
        }
    }

    /// A plan that leaves so many products as they are.
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

    /// Takes note of a product, as it is live and as it is to be.
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

    /// Takes note of a live product that stays as it is.
    pub fn keep(&mut self) {
        self.counts.unchanged += 1;
        self.unchanged += 1;
    }

    /// Takes note of a product that goes.
    pub fn retire(&mut self, code: &ProductCode) {
        self.counts.retired += 1;
        let keeps_fields = self.detail == Detail::Fields;
        self.retired.extend(keeps_fields.then(|| code.to_string()));
    }

    /// The plan in numbers.
    #[must_use]
    pub fn counts(&self) -> PublishedCounts {
        self.counts
    }

    /// The plan field by field, if it knows that.
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
        write_codes(out, '+', &self.created, listing)?;
        self.write_changed(out, listing)?;
        write_codes(out, '-', &self.retired, listing)
    }

    /// Writes the products that change. What many share comes first, summed up; a summary doesn't repeat it under
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

    /// Returns the changes that many products share, with how many.
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

fn write_codes(
    out: &mut impl fmt::Write,
    sign: char,
    codes: &[String],
    listing: Listing,
) -> fmt::Result {
    for code in codes.iter().take(listing.most()) {
        writeln!(out, "{sign} {code}")?;
    }
    write_rest(out, sign, "products", codes.len(), listing)
}

/// Writes how many a summary leaves out.
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
