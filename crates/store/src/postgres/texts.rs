//! Texts: reading them, taking them down and putting them back; and results of fetching them.

use std::time::Duration;

use jiff::Timestamp;
use vitrine_model::content::{PackedMarkdown, TextDigest};

use super::BEGIN;
use super::audit;
use super::lock::{self, Lock};
use super::session::{Session, Typed, get};
use crate::audit::{AuditContext, text_change};
use crate::fail_point::FailPoint;
use crate::record::FetchedText;
use crate::values::{from_millis, taken_down_at, text_digest, text_status};
use crate::{StoreError, TextStatus};

const READING: &str = "reading a text";
const SERVING: &str = "taking a text down or putting it back";

/// See [`Store::text`](crate::Store::text).
pub(super) fn read(
    session: &mut Session,
    digest: &TextDigest,
) -> Result<Option<PackedMarkdown>, StoreError> {
    let sql = "select markdown from vitrine.markdown_text where digest = $1";
    let row = session.row(READING, sql, &[(&digest.as_bytes()[..]).param()])?;
    row.map(|row| Ok(PackedMarkdown::from_bytes(get(&row, 0)?)))
        .transpose()
}

/// See [`Store::set_text_status`](crate::Store::set_text_status).
pub(super) fn set_status(
    session: &mut Session,
    digest: &TextDigest,
    status: TextStatus,
    context: &AuditContext,
    lock_wait: Duration,
) -> Result<bool, StoreError> {
    let now = Timestamp::now().as_millisecond();
    let (taken_down_at, is_taken_down) =
        (taken_down_at(status, now), status == TextStatus::TakenDown);
    session.transaction(SERVING, BEGIN, |session| {
        lock::take(session, Lock::Keys, lock_wait)?;
        let hash = &digest.as_bytes()[..];
        let sql = "select taken_down_at is not null from vitrine.markdown_text where digest = $1";
        let Some(row) = session.row(SERVING, sql, &[hash.param()])? else {
            return Ok(false);
        };
        let change = text_change(digest, text_status(get(&row, 0)?), status);
        let sql = "update vitrine.markdown_text set taken_down_at = $2 where digest = $1";
        // A prune may have deleted it meanwhile.
        if session.execute(SERVING, sql, &[hash.param(), taken_down_at.param()])? == 0 {
            return Ok(false);
        }
        FailPoint::TextsMarked.pass()?;
        audit::write(session, context, change.into_iter().collect())?;
        // No other transaction changes the counter: all of them take the lock.
        let sql = "select texts_counter from vitrine.state";
        let before = session.number(SERVING, sql, &[])?;
        let counter = session.number(SERVING, COUNT_TEXTS, &[before.param()])?;
        FailPoint::TextsCounted.pass()?;
        let sql = "insert into vitrine.text_change \
                   (counter, counter_before, digest, is_taken_down, changed_at) \
                   values ($1, $2, $3, $4, $5)";
        let row = [
            counter.param(),
            before.param(),
            hash.param(),
            is_taken_down.param(),
            now.param(),
        ];
        session.execute(SERVING, sql, &row)?;
        FailPoint::TextsRecorded.pass()?;
        session.run(SERVING, NOTIFY)?;
        Ok(true)
    })
}

/// Increments the counter of texts, or $1 if that is greater, by a random step: a server with a snapshot file of this store
/// may see a copy of an earlier state that was changed since, which mustn't have the same number. Returns the counter.
pub(super) const COUNT_TEXTS: &str = "update vitrine.state \
    set texts_counter = greatest(texts_counter, $1) + 1 + floor(random() * 4294967296)::bigint \
    returning texts_counter";

/// Notifies listeners when this transaction is committed.
pub(super) const NOTIFY: &str = "select pg_notify('vitrine', '')";

/// See [`Store::fetched_text`](crate::Store::fetched_text).
pub(super) fn fetched(
    session: &mut Session,
    url: &str,
) -> Result<Option<(FetchedText, TextStatus)>, StoreError> {
    let sql = "select f.digest, f.etag, f.last_modified, f.fetched_at, t.taken_down_at is not null \
               from vitrine.fetched_text f join vitrine.markdown_text t on t.digest = f.digest \
               where f.url = $1";
    let Some(row) = session.row("reading what was fetched", sql, &[url.param()])? else {
        return Ok(None);
    };
    let fetched = FetchedText {
        url: url.to_owned(),
        digest: text_digest(get(&row, 0)?)?,
        etag: get(&row, 1)?,
        last_modified: get(&row, 2)?,
        fetched_at: from_millis(get(&row, 3)?)?,
    };
    Ok(Some((fetched, text_status(get(&row, 4)?))))
}

/// See [`Publication::put_fetched`](crate::Publication::put_fetched).
pub(super) fn put_fetched(
    session: &mut Session,
    doing: &'static str,
    fetched: &FetchedText,
) -> Result<(), StoreError> {
    let FetchedText {
        url,
        digest,
        etag,
        last_modified,
        fetched_at,
    } = fetched;
    let sql = "insert into vitrine.fetched_text (url, digest, etag, last_modified, fetched_at) \
               values ($1, $2, $3, $4, $5) on conflict (url) do update set digest = excluded.digest, \
               etag = excluded.etag, last_modified = excluded.last_modified, \
               fetched_at = excluded.fetched_at";
    let (digest, fetched_at) = (&digest.as_bytes()[..], fetched_at.as_millisecond());
    let params = [
        url.param(),
        digest.param(),
        etag.param(),
        last_modified.param(),
        fetched_at.param(),
    ];
    session.execute(doing, sql, &params).map(drop)
}
