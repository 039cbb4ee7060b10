//! What a load would do, or did: which products it creates, changes and retires, and which fields of
//! the changed ones.

use std::fmt::{self, Write as _};

use serde::Serialize;
use vitrine_model::code::ProductCode;
use vitrine_store::record::{PublishedCounts, StoredProduct};

use super::difference::{FieldChange, difference};
use super::report::{shown, visible};

/// How many products of each kind a plan names in text. JSON has them all.
const SHOWN_PRODUCTS: usize = 20;

/// A product that changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChangedProduct {
    /// Its code.
    pub code: String,
    /// Its fields that differ.
    pub fields: Vec<FieldChange>,
}

/// How much a plan keeps in mind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Detail {
    /// Every product and field that differs.
    #[default]
    Fields,
    /// How many products differ: what is done needs no more, and a million products no more memory.
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
    /// How many stay as they are.
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

    /// The plan for people.
    ///
    /// # Errors
    ///
    /// Where `out` can't be written.
    pub fn write_text(&self, out: &mut impl fmt::Write) -> fmt::Result {
        write_codes(out, '+', &self.created)?;
        for product in self.changed.iter().take(SHOWN_PRODUCTS) {
            writeln!(out, "~ {}", product.code)?;
            for field in &product.fields {
                let value = |value: &Option<String>| {
                    value.as_deref().map_or_else(|| "nothing".to_owned(), shown)
                };
                let (old, new) = (value(&field.old), value(&field.new));
                let pointer = visible(&field.pointer);
                writeln!(out, "    {pointer}: {} → {}", visible(&old), visible(&new))?;
            }
        }
        write_rest(out, '~', self.changed.len())?;
        write_codes(out, '-', &self.retired)
    }

    /// The plan for people, as text.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        // Writing to a string can't fail.
        let _ = self.write_text(&mut text);
        let _ = writeln!(text, "{}", self.counts());
        text
    }
}

fn write_codes(out: &mut impl fmt::Write, sign: char, codes: &[String]) -> fmt::Result {
    for code in codes.iter().take(SHOWN_PRODUCTS) {
        writeln!(out, "{sign} {code}")?;
    }
    write_rest(out, sign, codes.len())
}

fn write_rest(out: &mut impl fmt::Write, sign: char, all: usize) -> fmt::Result {
    match all.checked_sub(SHOWN_PRODUCTS) {
        None | Some(0) => Ok(()),
        Some(rest) => writeln!(out, "{sign} … and {rest} more"),
    }
}
