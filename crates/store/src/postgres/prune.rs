//! Deleting data that only old revisions have, while others read and write: in batches, each of which selects its rows
//! anew. So nothing is kept between transactions, and after an interrupted prune the next one finds the remaining rows.

use std::time::Duration;

use jiff::Timestamp;
use tokio_postgres::Row;

use super::BEGIN;
use super::lock::{self, Lock};
use super::session::{Session, Typed, get, number};
use crate::StoreError;
use crate::record::{Keep, PruneReport};

pub(super) const PRUNING: &str = "pruning the history";

/// Number of rows deleted in one transaction.
const BATCH: i64 = 1_000;

/// Condition for versions to delete: no kept revision has them ($1 is the oldest), and they have no texts or were replaced
/// before $2: texts of later ones are still served (see `catalog::served_texts`).
const PRUNABLE: &str = "v.until_revision <= $1 and (v.until_revision < coalesce( \
        (select min(number) from vitrine.revision where created_at > $2), $1 + 1) \
     or not exists (select 1 from vitrine.product_text where product_version_id = v.id))";

/// Condition for versions with texts that stay.
const KEPT_WITH_TEXTS: &str = "(v.until_revision is null or v.until_revision > $1 \
     or v.until_revision >= coalesce( \
        (select min(number) from vitrine.revision where created_at > $2), $1 + 1))";

/// See [`Store::plan_prune`](crate::Store::plan_prune).
pub(super) fn plan(
    session: &mut Session,
    keep: Keep,
    texts_kept_since: Timestamp,
) -> Result<PruneReport, StoreError> {
    let Some(oldest) = oldest_kept(session, keep)? else {
        return Ok(PruneReport::default());
    };
    let since = texts_kept_since.as_millisecond();
    // A text is deleted if no remaining version names it; one that was taken down stays, so that it is still down if it is
    // loaded again.
    let sql = format!(
        "select count(*) from vitrine.markdown_text x where taken_down_at is null \
         and not exists (select 1 from vitrine.product_text t \
            join vitrine.product_version v on v.id = t.product_version_id \
            where t.digest = x.digest and {KEPT_WITH_TEXTS}) \
         and not exists (select 1 from vitrine.base_text t \
            join vitrine.base_version b on b.id = t.base_version_id where t.digest = x.digest \
               and (b.until_revision is null or b.until_revision > $1))"
    );
    let texts = session.number(PRUNING, &sql, &[oldest.param(), since.param()])?;
    let revisions = newly_unreadable(session, oldest)?;
    let (versions, waiting_versions) = versions(session, oldest, since)?;
    Ok(PruneReport {
        oldest_readable: Some(oldest.unsigned_abs()),
        revisions,
        versions,
        texts: texts.unsigned_abs(),
        waiting_versions,
        free_bytes: 0,
    })
}

/// See [`Store::prune`](crate::Store::prune).
pub(super) fn prune(
    session: &mut Session,
    keep: Keep,
    texts_kept_since: Timestamp,
    lock_wait: Duration,
) -> Result<PruneReport, StoreError> {
    let since = texts_kept_since.as_millisecond();
    let begun = session.transaction(PRUNING, BEGIN, |session| {
        lock::take(session, Lock::Catalog, lock_wait)?;
        let Some(oldest) = oldest_kept(session, keep)? else {
            return Ok(None);
        };
        let revisions = newly_unreadable(session, oldest)?;
        if revisions > 0 {
            let sql = "update vitrine.state set oldest_readable = $1";
            session.execute(PRUNING, sql, &[oldest.param()])?;
        }
        let (_, waiting) = versions(session, oldest, since)?;
        Ok(Some((oldest, revisions, waiting)))
    })?;
    let Some((oldest, revisions, waiting_versions)) = begun else {
        return Ok(PruneReport::default());
    };
    Ok(PruneReport {
        oldest_readable: Some(oldest.unsigned_abs()),
        revisions,
        versions: delete_versions(session, oldest, since, lock_wait)?,
        texts: {
            delete_bases(session, oldest, lock_wait)?;
            delete_texts(session, lock_wait)?
        },
        waiting_versions,
        free_bytes: 0,
    })
}

/// Returns the oldest revision that stays readable; pruned ones stay pruned.
fn oldest_kept(session: &mut Session, keep: Keep) -> Result<Option<i64>, StoreError> {
    let (sql, value) = match keep {
        Keep::Newest(count) => (
            "select greatest(min(number), (select coalesce(oldest_readable, 0) from vitrine.state)), \
                count(*) \
             from (select number from vitrine.revision order by number desc limit $1) newest",
            i64::from(count.get()),
        ),
        // A revision was live until the next one.
        Keep::LiveSince(moment) => (
            "select greatest((select coalesce(oldest_readable, 0) from vitrine.state), coalesce( \
                (select max(number) from vitrine.revision where number < later), later, \
                (select max(number) from vitrine.revision))), \
                (select count(*) from vitrine.revision) \
             from (select min(number) as later from vitrine.revision where created_at > $1) after",
            moment.as_millisecond(),
        ),
    };
    let row = session.row(PRUNING, sql, &[value.param()])?;
    let read = |row: Row| match get::<i64>(&row, 1)? {
        0 => Ok(None),
        _ => get(&row, 0),
    };
    row.map_or(Ok(None), read)
}

/// Returns the number of revisions before `oldest` that can still be read.
fn newly_unreadable(session: &mut Session, oldest: i64) -> Result<u64, StoreError> {
    let sql = "select count(*) from vitrine.revision where number < $1 \
               and number >= (select coalesce(oldest_readable, 0) from vitrine.state)";
    let count = session.number(PRUNING, sql, &[oldest.param()])?;
    Ok(count.unsigned_abs())
}

/// Returns the number of versions to delete, and of those that no kept revision has and that stay.
fn versions(session: &mut Session, oldest: i64, since: i64) -> Result<(u64, u64), StoreError> {
    let sql = format!("select count(*) from vitrine.product_version v where {PRUNABLE}");
    let going = session.number(PRUNING, &sql, &[oldest.param(), since.param()])?;
    let sql = "select count(*) from vitrine.product_version where until_revision <= $1";
    let all = session.number(PRUNING, sql, &[oldest.param()])?;
    Ok((going.unsigned_abs(), (all - going).unsigned_abs()))
}

/// Deletes versions. Returns their number.
fn delete_versions(
    session: &mut Session,
    oldest: i64,
    since: i64,
    lock_wait: Duration,
) -> Result<u64, StoreError> {
    // Versions that are readable now stay: the store may have been restored meanwhile.
    let sql = format!(
        "select v.id from vitrine.product_version v where v.id > $3 and {PRUNABLE} \
         and v.until_revision <= (select oldest_readable from vitrine.state) \
         order by v.id limit $4"
    );
    let (mut deleted, mut last) = (0, -1);
    loop {
        let ids = session.transaction(PRUNING, BEGIN, |session| {
            lock::take(session, Lock::Catalog, lock_wait)?;
            let params = &[oldest.param(), since.param(), last.param(), BATCH.param()];
            let rows = session.rows(PRUNING, &sql, params)?;
            let ids: Vec<i64> = rows
                .iter()
                .map(|row| get(row, 0))
                .collect::<Result<_, _>>()?;
            for sql in [
                "delete from vitrine.product_text where product_version_id = any($1)",
                "delete from vitrine.product_document where product_version_id = any($1)",
                "delete from vitrine.product_version where id = any($1)",
            ] {
                session.execute(PRUNING, sql, &[ids.param()])?;
            }
            Ok(ids)
        })?;
        let Some(end) = ids.last() else {
            return Ok(deleted);
        };
        deleted += ids.len() as u64;
        last = *end;
    }
}

/// Deletes bases that no kept revision has.
fn delete_bases(session: &mut Session, oldest: i64, lock_wait: Duration) -> Result<(), StoreError> {
    let sql = "select id from vitrine.base_version where until_revision <= $1 \
               and until_revision <= (select oldest_readable from vitrine.state) limit $2";
    loop {
        let deleted = session.transaction(PRUNING, BEGIN, |session| {
            lock::take(session, Lock::Catalog, lock_wait)?;
            let rows = session.rows(PRUNING, sql, &[oldest.param(), BATCH.param()])?;
            let ids: Vec<i64> = (rows.iter().map(|row| get(row, 0))).collect::<Result<_, _>>()?;
            for sql in [
                "delete from vitrine.base_text where base_version_id = any($1)",
                "delete from vitrine.base_version where id = any($1)",
            ] {
                session.execute(PRUNING, sql, &[ids.param()])?;
            }
            Ok(ids.len())
        })?;
        if deleted == 0 {
            return Ok(());
        }
    }
}

/// Deletes texts that no version names, with the records of fetching them. Returns their number.
fn delete_texts(session: &mut Session, lock_wait: Duration) -> Result<u64, StoreError> {
    let sql = "select digest from vitrine.markdown_text x where digest > $1 \
               and taken_down_at is null and not exists \
                  (select 1 from vitrine.product_text t where t.digest = x.digest) \
               and not exists (select 1 from vitrine.base_text t where t.digest = x.digest) \
               order by digest limit $2";
    let (mut deleted, mut last) = (0, Vec::new());
    loop {
        let (count, end) = session.transaction(PRUNING, BEGIN, |session| {
            lock::take(session, Lock::Catalog, lock_wait)?;
            // Keeps others from taking one of them down meanwhile.
            lock::take(session, Lock::Keys, lock_wait)?;
            let rows = session.rows(PRUNING, sql, &[(&last[..]).param(), BATCH.param()])?;
            let digests: Vec<&[u8]> = rows
                .iter()
                .map(|row| get(row, 0))
                .collect::<Result<_, _>>()?;
            for sql in [
                "delete from vitrine.fetched_text where digest = any($1)",
                "delete from vitrine.markdown_text where digest = any($1)",
            ] {
                session.execute(PRUNING, sql, &[digests.param()])?;
            }
            let end = digests.last().map(|digest| digest.to_vec());
            Ok((number(digests.len() as u64), end))
        })?;
        let Some(end) = end else {
            return Ok(deleted);
        };
        deleted += count.unsigned_abs();
        last = end;
    }
}
