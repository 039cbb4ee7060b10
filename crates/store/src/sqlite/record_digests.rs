//! Records from which the live products were loaded.

use super::{SqliteStore, during};
use crate::StoreError;
use crate::prepared::{LoadedVersions, RecordDigest, RecordDigestStore, VersionId};
use crate::values;

const READING: &str = "reading the digests of records";

impl RecordDigestStore for SqliteStore {
    fn loaded_versions(&self, max_products: u32) -> Result<Option<LoadedVersions>, StoreError> {
        let mut connection = self.connect()?;
        // One state of the store.
        let connection = connection.transaction().map_err(during(READING))?;
        let sql = "select count(*) from \
                   (select 1 from product_version where until_revision is null limit ?)";
        let limit = u64::from(max_products) + 1;
        let live: u64 = connection
            .query_row(sql, [limit], |row| row.get(0))
            .map_err(during(READING))?;
        if live == limit {
            return Ok(None);
        }
        let revision = connection
            .query_row("select revision_id from state", [], |row| row.get(0))
            .map_err(during(READING))?;
        let sql = "select record_digest, code, id from product_version \
                   where until_revision is null and record_digest is not null";
        let mut statement = connection.prepare(sql).map_err(during(READING))?;
        let mut rows = statement.query([]).map_err(during(READING))?;
        let mut loaded = LoadedVersions {
            revision,
            ..LoadedVersions::default()
        };
        while let Some(row) = rows.next().map_err(during(READING))? {
            let digest: Vec<u8> = row.get(0).map_err(during(READING))?;
            let code: String = row.get(1).map_err(during(READING))?;
            let id = VersionId(row.get(2).map_err(during(READING))?);
            if let Some(digest) = RecordDigest::stored(&digest) {
                (loaded.by_record).insert(digest, (values::code(&code)?, id));
            }
        }
        Ok(Some(loaded))
    }
}
