//! Texts: reading them, taking them down and putting them back; and results of fetching them.

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, TransactionBehavior};
use vitrine_model::content::{PackedMarkdown, TextDigest};

use super::{audit, committed, during};
use crate::audit::{AuditContext, text_change};
use crate::fail_point::FailPoint;
use crate::record::FetchedText;
use crate::values::{from_millis, taken_down_at, text_digest, text_status};
use crate::{StoreError, TextStatus};

const READING: &str = "reading a text";
const SERVING: &str = "taking a text down or putting it back";

/// See [`Store::text`](crate::Store::text).
pub(super) fn read(
    connection: &Connection,
    digest: &TextDigest,
) -> Result<Option<PackedMarkdown>, StoreError> {
    let sql = "select markdown from markdown_text where digest = ?";
    let found: Option<Vec<u8>> = connection
        .query_row(sql, [digest.as_bytes()], |row| row.get(0))
        .optional()
        .map_err(during(READING))?;
    Ok(found.map(|markdown| PackedMarkdown::from_bytes(&markdown)))
}

/// See [`Store::set_text_status`](crate::Store::set_text_status).
pub(super) fn set_status(
    connection: &mut Connection,
    digest: &TextDigest,
    status: TextStatus,
    context: &AuditContext,
) -> Result<bool, StoreError> {
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(during(SERVING))?;
    let now = Timestamp::now().as_millisecond();
    let sql = "select taken_down_at is not null from markdown_text where digest = ?";
    let was_down = transaction
        .query_row(sql, [digest.as_bytes()], |row| row.get(0))
        .optional();
    let Some(was_down) = was_down.map_err(during(SERVING))? else {
        return Ok(false);
    };
    transaction
        .execute(
            "update markdown_text set taken_down_at = ?2 where digest = ?1",
            (digest.as_bytes(), taken_down_at(status, now)),
        )
        .map_err(during(SERVING))?;
    FailPoint::TextsMarked.pass()?;
    let change = text_change(digest, text_status(was_down), status);
    audit::write(&transaction, context, change.into_iter().collect())?;
    let number = |sql| transaction.query_row(sql, [], |row| row.get::<_, i64>(0));
    let before = number("select texts_counter from state").map_err(during(SERVING))?;
    // A random step: a server with a snapshot file of this store may see a copy of an earlier state that was changed
    // since, which mustn't have the same number.
    let sql = "update state set texts_counter = texts_counter + 1 + (random() & 0xffffffff) \
               returning texts_counter";
    let counter = number(sql).map_err(during(SERVING))?;
    FailPoint::TextsCounted.pass()?;
    let sql = "insert into text_change (counter, counter_before, digest, is_taken_down, changed_at) \
               values (?, ?, ?, ?, ?)";
    let is_taken_down = status == TextStatus::TakenDown;
    let row = (counter, before, digest.as_bytes(), is_taken_down, now);
    transaction.execute(sql, row).map_err(during(SERVING))?;
    FailPoint::TextsRecorded.pass()?;
    committed(transaction.commit(), FailPoint::TextsCommitted, SERVING)?;
    Ok(true)
}

/// See [`Store::fetched_text`](crate::Store::fetched_text).
pub(super) fn fetched(
    connection: &Connection,
    url: &str,
) -> Result<Option<(FetchedText, TextStatus)>, StoreError> {
    let sql = "select f.digest, f.etag, f.last_modified, f.fetched_at, t.taken_down_at is not null \
               from fetched_text f join markdown_text t on t.digest = f.digest where f.url = ?";
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
        digest: text_digest(&digest)?,
        etag,
        last_modified,
        fetched_at: from_millis(fetched_at)?,
    };
    Ok(Some((fetched, text_status(is_down))))
}

/// See [`Publication::put_fetched`](crate::Publication::put_fetched).
pub(super) fn put_fetched(connection: &Connection, fetched: &FetchedText) -> rusqlite::Result<()> {
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
