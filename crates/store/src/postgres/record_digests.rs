//! Records from which the live products were loaded.

use super::PostgresStore;
use super::session::{Typed, get};
use crate::StoreError;
use crate::prepared::{LoadedVersions, RecordDigest, RecordDigestStore, VersionId};
use crate::values;

const READING: &str = "reading the digests of records";

impl RecordDigestStore for PostgresStore {
    fn loaded_versions(&self, max_products: u32) -> Result<Option<LoadedVersions>, StoreError> {
        let mut session = self.writer()?;
        let sql = "select count(*) from (select from vitrine.product_version \
                   where until_revision is null limit $1) live";
        let limit = i64::from(max_products) + 1;
        let row = session.row(READING, sql, &[limit.param()])?;
        let live: i64 = row.map_or(Ok(0), |row| get(&row, 0))?;
        if live == limit {
            return Ok(None);
        }
        let sql = "select record_digest, code, id from vitrine.product_version \
                   where until_revision is null and record_digest is not null";
        // Without the revision: a publish here asks for the digests of hundreds of products at a time.
        let mut loaded = LoadedVersions::default();
        session.each_row(READING, sql, &[], |row| {
            if let Some(digest) = RecordDigest::stored(get(row, 0)?) {
                let version = (values::code(get(row, 1)?)?, VersionId(get(row, 2)?));
                loaded.by_record.insert(digest, version);
            }
            Ok(())
        })?;
        Ok(Some(loaded))
    }
}
