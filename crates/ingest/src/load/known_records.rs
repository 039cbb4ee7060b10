//! Records that are known to lead to live products, by a digest of their JSON: most of those of a feed that comes every hour.
//! They aren't parsed and rendered again.
//!
//! The digests are read once, before the store is held. So if another revision was made since, each is compared again within the
//! publish, and a record whose digest isn't live any more is rendered then.

use std::sync::OnceLock;

use vitrine_model::code::ProductCode;
use vitrine_store::Store;
use vitrine_store::prepared::{LoadedVersions, RecordDigest, VersionId};
use xxhash_rust::xxh3::xxh3_128_with_seed;

/// Version of the check and of rendering. Raise it with each change by which records lead to other products or findings:
/// then all records are read again.
const RENDERING: u64 = 1;

/// Number of records from which on the digests may be read.
const FIRST_PREFETCH: u64 = 256;

/// Maximum number of live products for each record that was read: digests of a large catalog aren't read for a small load.
const MAX_PRODUCTS_PER_RECORD: u64 = 32;

/// Findings of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Warnings {
    None,
    Some,
}

/// Hash of a record's JSON.
#[derive(Debug, Clone, Copy)]
pub(super) struct RecordHash(u128);

impl RecordHash {
    pub(super) fn of(json: &str) -> Self {
        Self(xxh3_128_with_seed(json.as_bytes(), RENDERING))
    }

    /// Returns the digest of a record without faults. Its last bit is set if there were warnings.
    pub(super) fn digest(self, warnings: Warnings) -> RecordDigest {
        let digest = match warnings {
            Warnings::None => self.0 & !1,
            Warnings::Some => self.0 | 1,
        };
        RecordDigest(digest.to_be_bytes())
    }
}

/// Records that are known.
#[derive(Debug, Default)]
pub(super) struct KnownRecords(OnceLock<LoadedVersions>);

/// Product and version that a known record leads to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known<'k> {
    pub(super) code: &'k ProductCode,
    /// Version that it leads to.
    pub(super) version: VersionId,
    pub(super) digest: RecordDigest,
    pub(super) warnings: Warnings,
}

impl KnownRecords {
    /// Returns what is known of a record.
    pub(super) fn find(&self, hash: RecordHash) -> Option<Known<'_>> {
        let known = &self.0.get()?.by_record;
        [Warnings::None, Warnings::Some]
            .into_iter()
            .find_map(|warnings| {
                let digest = hash.digest(warnings);
                let (code, version) = known.get(&digest)?;
                Some(Known {
                    code,
                    version: *version,
                    digest,
                    warnings,
                })
            })
    }

    /// Returns the id of the revision in which all versions were live.
    pub(super) fn revision(&self) -> Option<&str> {
        self.0.get()?.revision.as_deref()
    }
}

/// Prefetch of the digests, once enough records were read.
#[derive(Debug)]
pub(super) struct DigestPrefetch {
    /// Number of records at which the next attempt is due.
    next_at: u64,
}

impl DigestPrefetch {
    pub(super) const fn new() -> Self {
        Self {
            next_at: FIRST_PREFETCH,
        }
    }

    /// Reads the digests if this number of records makes it worth its time.
    ///
    /// # Errors
    ///
    /// If the store can't be read.
    pub(super) fn prefetch(
        &mut self,
        records: u64,
        store: &Store,
        known: &KnownRecords,
    ) -> anyhow::Result<()> {
        if records < self.next_at {
            return Ok(());
        }
        let max_products = records.saturating_mul(MAX_PRODUCTS_PER_RECORD);
        let max_products = u32::try_from(max_products).unwrap_or(u32::MAX);
        // No further attempt after this one, also if it fails.
        self.next_at = u64::MAX;
        match store.loaded_versions(max_products)? {
            Some(loaded) => drop(known.0.set(loaded)),
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
        let digest = |json, warnings| RecordHash::of(json).digest(warnings);
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
                "f2b95eeb904c86129ad581f3f26fa1b4e79285f024c6b93e433a18dc075eff03"
            ),
            "records of the sample catalog lead to other products or findings: raise `RENDERING`, and set both here"
        );
    }
}
