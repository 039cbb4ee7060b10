//! What a load would do, or did: which products it creates, changes and retires, and which fields of
//! the changed ones.

use std::fmt::{self, Write as _};

use serde::Serialize;
use vitrine_model::code::ProductCode;
use vitrine_store::record::{PublishedCounts, StoredProduct};

use super::difference::{FieldChange, difference};
use super::report::shown;

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
}

impl Plan {
    /// Takes note of a product, as it is live and as it is to be.
    pub fn compare(&mut self, live: Option<&StoredProduct>, next: &StoredProduct) {
        let code = next.code.to_string();
        match live {
            None => self.created.push(code),
            Some(live) if live == next => self.unchanged += 1,
            Some(live) => self.changed.push(ChangedProduct {
                code,
                fields: difference(live, next),
            }),
        }
    }

    /// Takes note of products that go.
    pub fn retire(&mut self, codes: impl IntoIterator<Item = ProductCode>) {
        self.retired
            .extend(codes.into_iter().map(|code| code.to_string()));
    }

    /// The plan in numbers.
    #[must_use]
    pub fn counts(&self) -> PublishedCounts {
        PublishedCounts {
            created: self.created.len() as u64,
            changed: self.changed.len() as u64,
            retired: self.retired.len() as u64,
            unchanged: self.unchanged,
        }
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
                writeln!(out, "    {}: {old} → {new}", field.pointer)?;
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
