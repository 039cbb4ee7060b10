//! What outside addresses gave: read before they are asked again, written with the publish that makes it
//! live.

use rusqlite::{Connection, OptionalExtension};
use vitrine_model::content::TextDigest;

use super::during;
use crate::record::FetchedText;
use crate::values::{bytes_32, from_millis};
use crate::{StoreError, TextServed};

/// See [`Store::fetched_text`](crate::Store::fetched_text).
pub(super) fn read(
    connection: &Connection,
    url: &str,
) -> Result<Option<(FetchedText, TextServed)>, StoreError> {
    let sql = "select f.digest, f.etag, f.last_modified, f.fetched_at, t.taken_down_at is not null \
               from fetched_text f join text t on t.digest = f.digest where f.url = ?";
    let read = |row: &rusqlite::Row<'_>| {
        let digest: Vec<u8> = row.get(0)?;
        let (etag, last_modified) = (row.get(1)?, row.get(2)?);
        let (fetched_at, is_down): (i64, bool) = (row.get(3)?, row.get(4)?);
        Ok((digest, etag, last_modified, fetched_at, is_down))
    };
    let found = connection
        .prepare_cached(sql)
        .and_then(|mut statement| statement.query_row([url], read).optional())
        .map_err(during("reading what was fetched"))?;
    let Some((digest, etag, last_modified, fetched_at, is_down)) = found else {
        return Ok(None);
    };
    let fetched = FetchedText {
        url: url.to_owned(),
        digest: TextDigest::from_bytes(bytes_32(&digest)?),
        etag,
        last_modified,
        fetched_at: from_millis(fetched_at)?,
    };
    let served = if is_down {
        TextServed::No
    } else {
        TextServed::Yes
    };
    Ok(Some((fetched, served)))
}

/// See [`Publication::remember_fetched`](crate::Publication::remember_fetched).
pub(super) fn write(connection: &Connection, fetched: &FetchedText) -> rusqlite::Result<()> {
    let FetchedText {
        url,
        digest,
        etag,
        last_modified,
        fetched_at,
    } = fetched;
    let sql = "insert or replace into fetched_text (url, digest, etag, last_modified, fetched_at) \
               values (?, ?, ?, ?, ?)";
    let values = rusqlite::params![
        url,
        digest.as_bytes(),
        etag,
        last_modified,
        fetched_at.as_millisecond(),
    ];
    connection.prepare_cached(sql)?.execute(values).map(drop)
}
