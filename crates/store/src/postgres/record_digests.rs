//! Records from which the live products were loaded.

use std::collections::HashMap;

use vitrine_model::code::ProductCode;

use super::PostgresStore;
use super::session::{Typed, get};
use crate::StoreError;
use crate::prepared::{RecordDigest, RecordDigestStore};
use crate::values;

const READING: &str = "reading the digests of records";

impl RecordDigestStore for PostgresStore {
    fn record_digests(
        &self,
        max_products: u32,
    ) -> Result<Option<HashMap<RecordDigest, ProductCode>>, StoreError> {
        let mut session = self.writer()?;
        let sql = "select count(*) from (select from vitrine.product_version \
                   where until_revision is null limit $1) live";
        let limit = i64::from(max_products) + 1;
        let row = session.row(READING, sql, &[limit.param()])?;
        let live: i64 = row.map_or(Ok(0), |row| get(&row, 0))?;
        if live == limit {
            return Ok(None);
        }
        let sql = "select record_digest, code from vitrine.product_version \
                   where until_revision is null and record_digest is not null";
        let mut digests = HashMap::new();
        session.each_row(READING, sql, &[], |row| {
            if let Some(digest) = RecordDigest::stored(get(row, 0)?) {
                digests.insert(digest, values::code(get(row, 1)?)?);
            }
            Ok(())
        })?;
        Ok(Some(digests))
    }
}
