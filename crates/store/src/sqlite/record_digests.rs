//! Records from which the live products were loaded.

use std::collections::HashMap;

use vitrine_model::code::ProductCode;

use super::{SqliteStore, during};
use crate::StoreError;
use crate::prepared::{RecordDigest, RecordDigestStore};
use crate::values;

const READING: &str = "reading the digests of records";

impl RecordDigestStore for SqliteStore {
    fn record_digests(
        &self,
        max_products: u32,
    ) -> Result<Option<HashMap<RecordDigest, ProductCode>>, StoreError> {
        let connection = self.connect()?;
        let sql = "select count(*) from \
                   (select 1 from product_version where until_revision is null limit ?)";
        let limit = u64::from(max_products) + 1;
        let live: u64 = connection
            .query_row(sql, [limit], |row| row.get(0))
            .map_err(during(READING))?;
        if live == limit {
            return Ok(None);
        }
        let sql = "select record_digest, code from product_version \
                   where until_revision is null and record_digest is not null";
        let mut statement = connection.prepare(sql).map_err(during(READING))?;
        let mut rows = statement.query([]).map_err(during(READING))?;
        let mut digests = HashMap::new();
        while let Some(row) = rows.next().map_err(during(READING))? {
            let digest: Vec<u8> = row.get(0).map_err(during(READING))?;
            let code: String = row.get(1).map_err(during(READING))?;
            if let Some(digest) = RecordDigest::stored(&digest) {
                digests.insert(digest, values::code(&code)?);
            }
        }
        Ok(Some(digests))
    }
}
