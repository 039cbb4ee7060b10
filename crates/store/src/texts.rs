//! Texts: reading them, taking them down and putting them back; and results of fetching them.

use std::collections::HashMap;

use jiff::Timestamp;
use vitrine_model::content::{PackedMarkdown, TextDigest};

use crate::audit::{self, AuditContext, text_change};
use crate::db::{Tx, Value, values};
use crate::fail_point::FailPoint;
use crate::postgres::Lock;
use crate::record::FetchedText;
use crate::values::{from_millis, random_step, taken_down_at, text_digest, text_status};
use crate::{StoreError, TextStatus};

const READING: &str = "reading texts";
const SERVING: &str = "taking a text down or putting it back";

impl crate::Store {
    /// Returns a text's Markdown, even if it was taken down.
    pub fn text(&self, digest: &TextDigest) -> Result<Option<PackedMarkdown>, StoreError> {
        Ok(self.texts(&[*digest])?.remove(digest))
    }

    /// Returns those of these texts, a product's, that the store has; even those that were taken down.
    ///
    /// # Errors
    ///
    /// If the store can't be read.
    pub fn texts(
        &self,
        digests: &[TextDigest],
    ) -> Result<HashMap<TextDigest, PackedMarkdown>, StoreError> {
        if digests.is_empty() {
            return Ok(HashMap::new());
        }
        let places: Vec<String> = (1..=digests.len()).map(|n| format!("${n}")).collect();
        let places = places.join(", ");
        let sql = format!(
            "select digest, markdown from vitrine.markdown_text where digest in ({places})"
        );
        let values: Vec<Value<'_>> = digests
            .iter()
            .map(|digest| digest.as_bytes().into())
            .collect();
        let found = self.db().quick(READING, |tx| {
            tx.rows(&sql, &values, |row| {
                Ok((
                    text_digest(row.get(0)?)?,
                    PackedMarkdown::from_bytes(row.get(1)?),
                ))
            })
        })?;
        Ok(found.into_iter().collect())
    }

    /// Returns the text last fetched from an outside URL, and whether it is served.
    pub fn fetched_text(&self, url: &str) -> Result<Option<(FetchedText, TextStatus)>, StoreError> {
        let sql = "select f.digest, f.etag, f.last_modified, f.fetched_at, t.taken_down_at is not null \
               from vitrine.fetched_text f join vitrine.markdown_text t on t.digest = f.digest \
               where f.url = $1";
        self.db().quick("reading what was fetched", |tx| {
            tx.row(sql, values![url], |row| {
                let fetched = FetchedText {
                    url: url.to_owned(),
                    digest: text_digest(row.get(0)?)?,
                    etag: row.get(1)?,
                    last_modified: row.get(2)?,
                    fetched_at: from_millis(row.get(3)?)?,
                };
                Ok((fetched, text_status(row.get(4)?)))
            })
        })
    }

    /// Takes a text down at once, or puts it back, with an entry in the audit log if that changes its status. Returns
    /// whether the store has such a text.
    pub fn set_text_status(
        &self,
        digest: &TextDigest,
        status: TextStatus,
        context: &AuditContext,
    ) -> Result<bool, StoreError> {
        self.db()
            .write(Lock::Keys, FailPoint::TextsCommitted, SERVING, |tx| {
                let now = Timestamp::now().as_millisecond();
                let sql =
                    "select taken_down_at is not null from vitrine.markdown_text where digest = $1";
                let Some(was_down) = tx.row(sql, values![digest.as_bytes()], |row| row.get(0))?
                else {
                    return Ok(false);
                };
                let sql = "update vitrine.markdown_text set taken_down_at = $2 where digest = $1";
                let values = values![digest.as_bytes(), taken_down_at(status, now)];
                // A prune may have deleted it meanwhile.
                if tx.execute(sql, values)? == 0 {
                    return Ok(false);
                }
                FailPoint::TextsMarked.pass()?;
                let change = text_change(digest, text_status(was_down), status);
                audit::write(tx, context, change.into_iter().collect())?;
                let before: i64 = tx.value("select texts_counter from vitrine.state", &[])?;
                let counter = count(tx, before)?;
                FailPoint::TextsCounted.pass()?;
                let sql = "insert into vitrine.text_change \
                   (counter, counter_before, digest, is_taken_down, changed_at) \
                   values ($1, $2, $3, $4, $5)";
                let is_taken_down = status == TextStatus::TakenDown;
                let values = values![counter, before, digest.as_bytes(), is_taken_down, now];
                tx.execute(sql, values)?;
                FailPoint::TextsRecorded.pass()?;
                tx.notify()?;
                Ok(true)
            })
    }
}

/// Increments the counter of texts, or `least` if that is greater, by a random step: a server with a snapshot file of this
/// store may see a copy of an earlier state that was changed since, which mustn't have the same number. Returns the counter.
pub(crate) fn count(tx: &mut Tx<'_>, least: i64) -> Result<i64, StoreError> {
    let sql = "update vitrine.state set texts_counter = greatest(texts_counter, $1) + $2 \
               returning texts_counter";
    tx.value(sql, values![least, random_step()?])
}

/// See [`Publication::put_fetched`](crate::Publication::put_fetched).
pub(crate) fn put_fetched(tx: &mut Tx<'_>, fetched: &FetchedText) -> Result<(), StoreError> {
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
    let fetched_at = fetched_at.as_millisecond();
    let values = values![url, digest.as_bytes(), etag, last_modified, fetched_at];
    tx.execute(sql, values).map(drop)
}
