//! Live products, as a publish sees them.

use std::collections::HashMap;

use vitrine_model::code::ProductCode;

use crate::StoreError;
use crate::db::{Tx, values};
use crate::prepared::ProductDigest;
use crate::record::StoredProduct;
use crate::values::code;

/// A live product.
pub(super) struct Live {
    /// Id of its version.
    pub(super) id: i64,
    pub(super) digest: ProductDigest,
    /// None if only its digest is known.
    pub(super) product: Option<StoredProduct>,
}

/// Returns the live products of these codes without their documents, in any order.
pub(super) fn live_of(
    tx: &mut Tx<'_>,
    codes: &[&str],
) -> Result<Vec<(ProductCode, Live)>, StoreError> {
    let sql = "select id, digest, code from vitrine.product_version \
               where code = any($1) and until_revision is null";
    tx.rows(sql, values![codes], |row| {
        let product: &[u8] = row.get(1)?;
        let live = Live {
            id: row.get(0)?,
            // A damaged one equals no other, so the product is written again.
            digest: ProductDigest(product.try_into().unwrap_or_default()),
            product: None,
        };
        Ok((code(row.get(2)?)?, live))
    })
}

/// Ids of versions. A bit each, since ids are dense.
#[derive(Default)]
pub(super) struct VersionSet {
    words: HashMap<i64, u64>,
    count: u64,
}

impl VersionSet {
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
