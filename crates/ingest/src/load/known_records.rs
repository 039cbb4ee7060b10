//! Records that are known to lead to live products, by a digest of their JSON: most of those of a feed that comes every hour.
//! They aren't parsed and rendered again.
//!
//! What is known is read once, before the store is held. So it's compared again within the publish, and a record that isn't
//! known any more is rendered then.

use std::collections::HashMap;
use std::sync::OnceLock;

use vitrine_model::code::ProductCode;
use vitrine_store::Store;
use vitrine_store::prepared::RecordDigest;
use xxhash_rust::xxh3::xxh3_128_with_seed;

/// Version of the check and of rendering. Raise it with each change by which records lead to other products or findings:
/// then all records are read again.
const RENDERING: u64 = 1;

/// Number of records after which the store is asked for the first time.
const FIRST_ASKED: u64 = 256;

/// Maximum number of live products for each record that was read: digests of a large catalog aren't read for a small load.
const MAX_PRODUCTS_PER_RECORD: u64 = 32;

/// Findings of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Warnings {
    None,
    Some,
}

/// Returns the digest of a record without faults. Its last bit tells whether there were warnings.
pub(super) fn record_digest(json: &str, warnings: Warnings) -> RecordDigest {
    let digest = xxh3_128_with_seed(json.as_bytes(), RENDERING);
    let digest = match warnings {
        Warnings::None => digest & !1,
        Warnings::Some => digest | 1,
    };
    RecordDigest(digest.to_be_bytes())
}

/// Records that are known.
#[derive(Debug, Default)]
pub(super) struct KnownRecords(OnceLock<HashMap<RecordDigest, ProductCode>>);

impl KnownRecords {
    /// Returns the code and the digest of a record, if it is known, and whether it had warnings.
    pub(super) fn find(&self, json: &str) -> Option<(&ProductCode, RecordDigest, Warnings)> {
        let known = self.0.get()?;
        [Warnings::None, Warnings::Some]
            .into_iter()
            .find_map(|warnings| {
                let digest = record_digest(json, warnings);
                Some((known.get(&digest)?, digest, warnings))
            })
    }
}

/// Decides when the store is asked.
#[derive(Debug)]
pub(super) struct Asking {
    next_at: u64,
}

impl Asking {
    pub(super) const fn new() -> Self {
        Self {
            next_at: FIRST_ASKED,
        }
    }

    /// Reads what is known, if so many records make it worth its time.
    ///
    /// # Errors
    ///
    /// If the store can't be read.
    pub(super) fn ask(
        &mut self,
        records: u64,
        store: &dyn Store,
        known: &KnownRecords,
    ) -> anyhow::Result<()> {
        if records < self.next_at {
            return Ok(());
        }
        let max_products = records.saturating_mul(MAX_PRODUCTS_PER_RECORD);
        let max_products = u32::try_from(max_products).unwrap_or(u32::MAX);
        match store.record_digests(max_products)? {
            Some(digests) => {
                // Asked once.
                let _ = known.0.set(digests);
                self.next_at = u64::MAX;
            }
            None => self.next_at = records.saturating_mul(2),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use sha2::{Digest as _, Sha256};
    use vitrine_model::hexadecimal::Hexadecimal;
    use vitrine_store::prepared::PreparedProduct;

    use super::*;
    use crate::load::check::check;
    use crate::load::read::Record;
    use crate::load::rendered::{Packer, RenderedRecord};
    use crate::load::report::Place;

    #[test]
    fn digests_tell_warnings_apart_and_nothing_else() {
        let digest = |json, warnings| record_digest(json, warnings);
        let quiet = digest("{}", Warnings::None);
        assert_eq!(quiet, digest("{}", Warnings::None));
        assert_ne!(quiet, digest("{}", Warnings::Some));
        assert_ne!(quiet, digest("{ }", Warnings::None));
    }

    #[test]
    fn changed_rendering_has_another_version() {
        let mut products = Sha256::new();
        for line in include_str!("../../../../fixtures/catalog.ndjson").lines() {
            let record = Record::new(Place::file("a"), line.to_owned());
            let mut findings = Vec::new();
            let checked = check(&record, &mut findings).record.expect("no faults");
            let rendered = RenderedRecord::new(&checked, &mut Packer::default()).expect("JSON");
            let product = PreparedProduct::new(rendered.product).expect("a product");
            products.update(format!("{:?} {}", product.digest(), findings.len()));
        }
        assert_eq!(
            (RENDERING, &*Hexadecimal(&products.finalize()).to_string()),
            (
                1,
                "866884b8677be6fe841032ab6234b8fc9527ab14c3ca27a4b03afcb6d54becde"
            ),
            "records of the sample catalog lead to other products or findings: raise `RENDERING`, and set both here"
        );
    }
}
