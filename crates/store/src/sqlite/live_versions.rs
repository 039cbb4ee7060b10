//! Live versions, as a publish sees them.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension, Row};
use vitrine_model::code::ProductCode;

use super::during;
use super::publish::PUBLISHING;
use crate::StoreError;
use crate::prepared::{LiveDigests, ProductDigest, RecordDigest};

/// The live version of a product.
#[derive(Clone, Copy)]
pub(super) struct LiveVersion {
    pub(super) id: i64,
    pub(super) digests: LiveDigests,
}

impl LiveVersion {
    /// Reads the live version of a product.
    pub(super) fn find(
        connection: &Connection,
        code: &ProductCode,
    ) -> Result<Option<Self>, StoreError> {
        let sql = "select id, digest, record_digest from product_version \
                   where code = ? and until_revision is null";
        let read = |row: &Row<'_>| Self::read(row, [0, 1, 2]);
        connection
            .prepare_cached(sql)
            .and_then(|mut statement| statement.query_row([code.as_str()], read).optional())
            .map_err(during(PUBLISHING))
    }

    /// Reads a live version from a row with its id, its digest and that of its record in these columns.
    pub(super) fn read(row: &Row<'_>, columns: [usize; 3]) -> rusqlite::Result<Self> {
        let [id, product, record] = columns;
        let product = row.get_ref(product)?.as_blob()?;
        let record = row.get_ref(record)?.as_blob_or_null()?;
        Ok(Self {
            id: row.get(id)?,
            digests: LiveDigests {
                // A damaged one equals no other, so the product is written anew.
                product: ProductDigest(product.try_into().unwrap_or_default()),
                record: record.and_then(RecordDigest::stored),
            },
        })
    }
}

/// Ids of the live versions that were put or kept as they are; the others are retired. A bit each, since ids are dense.
#[derive(Default)]
pub(super) struct SeenVersions {
    words: HashMap<i64, u64>,
    count: u64,
}

impl SeenVersions {
    fn place(id: i64) -> (i64, u64) {
        (id >> 6, 1 << (id & 63))
    }

    pub(super) fn add(&mut self, id: i64) {
        let (word, bit) = Self::place(id);
        let word = self.words.entry(word).or_default();
        self.count += u64::from(*word & bit == 0);
        *word |= bit;
    }

    pub(super) fn remove(&mut self, id: i64) {
        let (word, bit) = Self::place(id);
        if let Some(word) = self.words.get_mut(&word) {
            self.count -= u64::from(*word & bit != 0);
            *word &= !bit;
        }
    }

    /// Returns their number.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn contains(&self, id: i64) -> bool {
        let (word, bit) = Self::place(id);
        self.words.get(&word).is_some_and(|bits| bits & bit != 0)
    }
}
