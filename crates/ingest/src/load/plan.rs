//! Plan of a load: the products that it creates, changes and retires, and the changed fields of each.

mod append;

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};
use std::fmt::{self, Write as _};

use serde::ser::SerializeStruct as _;
use serde::{Serialize, Serializer};
use serde_json::json;
use vitrine_model::code::ProductCode;
use vitrine_store::record::{PublishedCounts, StoredProduct};

use super::difference::{FieldChange, Pair};
use super::report::shown;
use crate::escape::single_line;
use crate::text_difference::TextDifference;

/// Maximum number of products of each kind, and of fields, that a summary names.
const MAX_SUMMARY: usize = 20;

/// Minimum number of products with an identical change for a summary to leave it out at each of them.
const MIN_SHARED_PRODUCTS: usize = 5;

/// Detail of a plan's text; JSON has all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listing {
    /// All products with all changes: for files, pipes, and `--all`.
    Complete,
    /// The first products, and identical changes only once: for terminals.
    Summary,
    /// No products: the fields that differ, with the number of products.
    Counts,
}

impl Listing {
    fn most(self) -> usize {
        match self {
            Self::Complete => usize::MAX,
            Self::Summary => MAX_SUMMARY,
            Self::Counts => 0,
        }
    }

    /// Maximum number of lines of findings: as many as fit on a screen, with the verdict below.
    pub(crate) fn most_lines(self) -> usize {
        match self {
            Self::Complete | Self::Counts => usize::MAX,
            Self::Summary => MAX_SUMMARY,
        }
    }

    fn most_fields(self) -> usize {
        match self {
            Self::Complete | Self::Counts => usize::MAX,
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
    /// Texts that differ, line by line, if they were asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub texts: Vec<TextDifference>,
}

/// A field that differs, in all products together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldCount<'p> {
    /// Position: a JSON pointer into the product object.
    pub pointer: &'p str,
    /// Number of products in which it differs.
    pub products: usize,
    /// Its changes with the number of products, the most frequent first.
    pub changes: Vec<(&'p FieldChange, usize)>,
}

impl FieldCount<'_> {
    /// Returns the changes that at least so many products share.
    fn shared(&self, products: usize) -> &[(&FieldChange, usize)] {
        let is_shared = |(_, shared): &(&FieldChange, usize)| *shared >= products;
        &self.changes[..self.changes.partition_point(is_shared)]
    }

    /// Returns the field as JSON: the changes that products share, and the number of those with a change of their own.
    fn to_json(&self) -> serde_json::Value {
        let change = |(change, products): &(&FieldChange, usize)| {
            let FieldChange { old, new, .. } = change;
            json!({"old": old, "new": new, "products": products})
        };
        let shared = self.shared(2);
        json!({
            "pointer": self.pointer,
            "products": self.products,
            "shared_changes": shared.iter().map(change).collect::<Vec<_>>(),
            "other_changes": self.products - number_of(shared),
        })
    }

    fn write(&self, out: &mut impl fmt::Write, listing: Listing) -> fmt::Result {
        let Self {
            pointer, products, ..
        } = self;
        let pointer = single_line(pointer);
        let counted = ProductCount(*products as u64);
        let shared = self.shared(2);
        match (&self.changes[..], shared) {
            ([(change, _)], _) => {
                return writeln!(out, "~ {pointer}: {}: {counted}", ShownValues(change));
            }
            (_, []) => return writeln!(out, "~ {pointer}: {counted}, each another change"),
            _ => writeln!(out, "~ {pointer}: {counted}")?,
        }
        let shown = &shared[..shared.len().min(listing.most_fields())];
        for (change, products) in shown {
            writeln!(out, "    {}: {products}", ShownValues(change))?;
        }
        match products - number_of(shown) {
            0 => Ok(()),
            others => writeln!(out, "    other changes: {others}"),
        }
    }
}

/// Returns the number of products with these changes.
fn number_of(changes: &[(&FieldChange, usize)]) -> usize {
    changes.iter().map(|(_, products)| products).sum()
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
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    /// Codes of new products.
    pub created: Vec<String>,
    /// Changed products.
    pub changed: Vec<ChangedProduct>,
    /// Codes of retired products.
    pub retired: Vec<String>,
    /// Number of unchanged products.
    pub unchanged: u64,
    detail: Detail,
    counts: PublishedCounts,
}

impl Serialize for Plan {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let by_field: Vec<_> = self.by_field().iter().map(FieldCount::to_json).collect();
        let mut plan = serializer.serialize_struct("Plan", 5)?;
        plan.serialize_field("by_field", &by_field)?;
        plan.serialize_field("created", &self.created)?;
        plan.serialize_field("changed", &self.changed)?;
        plan.serialize_field("retired", &self.retired)?;
        plan.serialize_field("unchanged", &self.unchanged)?;
        plan.end()
    }
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
        match live {
            None => self.create(&next.code),
            Some(live) if live == next => self.keep(),
            Some(live) => self.change(&Pair::of(live, next)),
        }
    }

    /// Adds a new product.
    pub(crate) fn create(&mut self, code: &ProductCode) {
        self.counts.created += 1;
        self.created.extend(self.fields().map(|_| code.to_string()));
    }

    /// Adds a live product that changes.
    pub(crate) fn change(&mut self, pair: &Pair<'_>) {
        self.counts.changed += 1;
        self.changed.extend(self.fields().map(|_| ChangedProduct {
            code: pair.new.code.to_string(),
            fields: pair.difference(),
            texts: Vec::new(),
        }));
    }

    /// Adds an unchanged live product.
    pub fn keep(&mut self) {
        self.counts.unchanged += 1;
        self.unchanged += 1;
    }

    /// Adds a retired product.
    pub fn retire(&mut self, code: &ProductCode) {
        self.counts.retired += 1;
        self.retired.extend(self.fields().map(|_| code.to_string()));
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

    /// Writes the changed products: first the fields that differ, with the number of products; then each product. A summary
    /// doesn't repeat changes that many products share.
    fn write_changed(&self, out: &mut impl fmt::Write, listing: Listing) -> fmt::Result {
        let by_field = self.by_field();
        // For one product, that would be the same twice.
        if self.changed.len() > 1 || listing == Listing::Counts {
            let most = by_field.iter().take(listing.most_fields());
            most.clone()
                .try_for_each(|field| field.write(out, listing))?;
            write_rest(out, '~', "fields", by_field.len(), listing.most_fields())?;
        }
        let shared: HashSet<&FieldChange> = (by_field.iter())
            .flat_map(|field| field.shared(MIN_SHARED_PRODUCTS))
            .map(|(change, _)| *change)
            .collect();
        let is_own =
            |change: &&FieldChange| listing != Listing::Summary || !shared.contains(change);
        let has_own = |product: &&ChangedProduct| {
            product.fields.iter().any(|change| is_own(&change)) || !product.texts.is_empty()
        };
        for product in self.changed.iter().filter(has_own).take(listing.most()) {
            writeln!(out, "~ {}", product.code)?;
            for change in product.fields.iter().filter(is_own) {
                writeln!(out, "    {}", Shown(change))?;
            }
            (product.texts.iter()).try_for_each(|text| write_text_difference(out, text))?;
        }
        let named = self.changed.iter().filter(has_own).count();
        write_rest(out, '~', "products", named, listing.most())
    }

    /// Returns the fields that differ, those of the most products first.
    #[must_use]
    pub fn by_field(&self) -> Vec<FieldCount<'_>> {
        let mut fields: BTreeMap<&str, BTreeMap<&FieldChange, usize>> = BTreeMap::new();
        for change in self.changed.iter().flat_map(|product| &product.fields) {
            let changes = fields.entry(&change.pointer).or_default();
            *changes.entry(change).or_default() += 1;
        }
        let mut counts: Vec<FieldCount<'_>> = (fields.into_iter())
            .map(|(pointer, changes)| {
                let mut changes: Vec<_> = changes.into_iter().collect();
                changes.sort_by_key(|(_, products)| Reverse(*products));
                FieldCount {
                    pointer,
                    products: changes.iter().map(|(_, products)| products).sum(),
                    changes,
                }
            })
            .collect();
        counts.sort_by_key(|field| Reverse(field.products));
        counts
    }

    /// Keeps only changes of fields that `is_wanted`, by their pointers, and the products that have any; created and retired
    /// products are dropped. The counts stay those of the whole plan.
    pub fn retain_fields(&mut self, is_wanted: impl Fn(&str) -> bool) {
        for product in &mut self.changed {
            product.fields.retain(|change| is_wanted(&change.pointer));
        }
        self.changed.retain(|product| !product.fields.is_empty());
        self.created.clear();
        self.retired.clear();
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

/// Number of products, in words.
pub struct ProductCount(pub u64);

impl fmt::Display for ProductCount {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            1 => out.write_str("1 product"),
            products => write!(out, "{products} products"),
        }
    }
}

/// A change on one line, with its field.
pub struct Shown<'c>(pub &'c FieldChange);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pointer = single_line(&self.0.pointer);
        write!(out, "{pointer}: {}", ShownValues(self.0))
    }
}

/// The values of a change on one line.
struct ShownValues<'c>(&'c FieldChange);

impl fmt::Display for ShownValues<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = |value: &Option<String>| {
            let value = value.as_deref().map_or_else(|| "nothing".to_owned(), shown);
            single_line(&value).into_owned()
        };
        write!(out, "{} → {}", value(&self.0.old), value(&self.0.new))
    }
}

/// Writes a text's difference below its product.
///
/// # Errors
///
/// If `out` can't be written.
pub fn write_text_difference(out: &mut impl fmt::Write, text: &TextDifference) -> fmt::Result {
    writeln!(out, "    {}", text.name)?;
    (text.lines.lines()).try_for_each(|line| writeln!(out, "      {}", single_line(line)))
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
    write_rest(out, sign, "products", products.len(), listing.most())
}

/// Writes the number of products that a summary leaves out.
fn write_rest(
    out: &mut impl fmt::Write,
    sign: char,
    things: &str,
    all: usize,
    most: usize,
) -> fmt::Result {
    match all.saturating_sub(most) {
        // Counts don't list any.
        0 => Ok(()),
        _ if most == 0 => Ok(()),
        rest => writeln!(out, "{sign} … and {rest} more {things}; --all lists them"),
    }
}
