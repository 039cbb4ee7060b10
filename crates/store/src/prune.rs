//! Deleting data that only old revisions have, while others read and write: in batches, each of which selects its rows
//! again. So nothing is kept between transactions, and after an interrupted prune the next one finds the remaining rows.

use std::time::Duration;

use jiff::Timestamp;

use crate::StoreError;
use crate::db::{Db, Tx, WORK_TIMEOUT, WriteConnection, free_bytes, values};
use crate::postgres::Lock;
use crate::record::{Keep, PruneReport};

const PRUNING: &str = "pruning the history";

/// Number of rows deleted in one transaction.
const BATCH: u32 = 1_000;

/// Pause between two batches, in which other writers get their turn: one that waits for SQLite's lock retries only now and
/// then.
const PAUSE: Duration = Duration::from_millis(10);

/// Condition for versions to delete: no kept revision has them ($1 is the oldest), and they have no texts or were replaced
/// before $2: texts of later ones are still served. Those that are [`KEPT_AS_BASE`] stay.
const PRUNABLE: &str = "v.until_revision <= $1 and (v.until_revision < coalesce( \
        (select min(number) from vitrine.revision where created_at > $2), $1 + 1) \
     or not exists (select 1 from vitrine.product_text where product_version_id = v.id))";

/// Condition for versions that a kept revision has as a base.
const KEPT_AS_BASE: &str = "exists (select 1 from vitrine.product_base b where b.version_id = v.id \
     and (b.until_revision is null or b.until_revision > $1))";

/// Condition for versions with texts that stay.
const KEPT_WITH_TEXTS: &str = "(v.until_revision is null or v.until_revision > $1 \
     or v.until_revision >= coalesce( \
        (select min(number) from vitrine.revision where created_at > $2), $1 + 1))";

/// Condition for texts that nothing names. One that was taken down stays, so that it is still down if it is loaded again.
const UNNAMED: &str = "taken_down_at is null \
     and not exists (select 1 from vitrine.product_text t where t.digest = x.digest)";

/// Part of the history that a prune keeps.
#[derive(Clone, Copy)]
struct Kept {
    /// Oldest revision that stays readable.
    oldest: i64,
    /// Time since which replaced texts are still served, in milliseconds since 1970.
    since: i64,
}

impl crate::Store {
    /// Returns what [`prune`](Self::prune) would free now, and changes nothing.
    pub fn plan_prune(
        &self,
        keep: Keep,
        texts_kept_since: Timestamp,
    ) -> Result<PruneReport, StoreError> {
        let sql = format!(
            "select count(*) from vitrine.markdown_text x /*scan*/ where taken_down_at is null \
         and not exists (select 1 from vitrine.product_text t \
            join vitrine.product_version v on v.id = t.product_version_id \
            where t.digest = x.digest and ({KEPT_WITH_TEXTS} or {KEPT_AS_BASE}))"
        );
        self.db().read_within(WORK_TIMEOUT, PRUNING, |tx| {
            let Some(kept) = kept(tx, keep, texts_kept_since)? else {
                return Ok(PruneReport::default());
            };
            let texts: i64 = tx.value(&sql, values![kept.oldest, kept.since])?;
            let (versions, waiting_versions) = versions(tx, kept)?;
            Ok(PruneReport {
                oldest_readable: Some(kept.oldest.unsigned_abs()),
                revisions: newly_unreadable(tx, kept.oldest)?,
                versions,
                texts: texts.unsigned_abs(),
                waiting_versions,
                free_bytes: free_bytes(tx)?,
            })
        })
    }

    /// Deletes versions of products that no kept revision shows, and texts that nothing names any more. Versions replaced
    /// after `texts_kept_since` stay while they have texts, which [`read_catalog`](Self::read_catalog) still returns; a
    /// text that was taken down stays. The live catalog, [`state`](Self::state) and the records of revisions stay as
    /// they are.
    ///
    /// A first transaction makes older revisions unreadable; then rows are deleted in transactions of moderate size,
    /// between which others read and write. Interrupted anywhere, it leaves a consistent store; the next prune deletes the
    /// rest.
    pub fn prune(
        &self,
        keep: Keep,
        texts_kept_since: Timestamp,
    ) -> Result<PruneReport, StoreError> {
        let db = self.db();
        let writer = &mut db.writer()?;
        let begun = writer.write(Lock::Catalog, PRUNING, |tx| {
            let Some(kept) = kept(tx, keep, texts_kept_since)? else {
                return Ok(None);
            };
            let revisions = newly_unreadable(tx, kept.oldest)?;
            if revisions > 0 {
                let sql = "update vitrine.state set oldest_readable = $1";
                tx.execute(sql, values![kept.oldest])?;
            }
            let (_, waiting_versions) = versions(tx, kept)?;
            Ok(Some((kept, revisions, waiting_versions)))
        })?;
        let Some((kept, revisions, waiting_versions)) = begun else {
            return Ok(PruneReport::default());
        };
        delete_bases(writer, kept)?;
        let versions = delete_versions(writer, kept)?;
        Ok(PruneReport {
            oldest_readable: Some(kept.oldest.unsigned_abs()),
            revisions,
            versions,
            texts: delete_texts(db, writer)?,
            waiting_versions,
            free_bytes: match db {
                Db::Sqlite(_) => db.read(PRUNING, free_bytes)?,
                Db::Postgres(_) => 0,
            },
        })
    }
}

/// Returns what stays; `None` if nothing was published. Pruned revisions stay pruned.
fn kept(
    tx: &mut Tx<'_>,
    keep: Keep,
    texts_kept_since: Timestamp,
) -> Result<Option<Kept>, StoreError> {
    let (sql, value) = match keep {
        Keep::Newest(count) => (
            "select greatest(min(number), (select coalesce(oldest_readable, 0) from vitrine.state)) \
             from (select number from vitrine.revision order by number desc limit $1) newest \
             having count(*) > 0",
            i64::from(count.get()),
        ),
        // A revision was live until the next one.
        Keep::LiveSince(moment) => (
            "select greatest((select coalesce(oldest_readable, 0) from vitrine.state), coalesce( \
                (select max(number) from vitrine.revision where number < later), later, \
                (select max(number) from vitrine.revision))) \
             from (select min(number) as later from vitrine.revision /*scan*/ where created_at > $1) after \
             where exists (select 1 from vitrine.revision)",
            moment.as_millisecond(),
        ),
    };
    let since = texts_kept_since.as_millisecond();
    tx.row(sql, values![value], |row| {
        let oldest = row.get(0)?;
        Ok(Kept { oldest, since })
    })
}

/// Returns the number of revisions before `oldest` that can still be read.
fn newly_unreadable(tx: &mut Tx<'_>, oldest: i64) -> Result<u64, StoreError> {
    let sql = "select count(*) from vitrine.revision where number < $1 \
               and number >= (select coalesce(oldest_readable, 0) from vitrine.state)";
    tx.value(sql, values![oldest]).map(i64::unsigned_abs)
}

/// Returns the number of versions to delete, and of those that no kept revision has and that stay.
fn versions(tx: &mut Tx<'_>, kept: Kept) -> Result<(u64, u64), StoreError> {
    let count = "select count(*) from vitrine.product_version v where";
    let sql = format!("{count} {PRUNABLE} and not {KEPT_AS_BASE}");
    let going: i64 = tx.value(&sql, values![kept.oldest, kept.since])?;
    let sql = format!("{count} v.until_revision <= $1 and not {KEPT_AS_BASE}");
    let all: i64 = tx.value(&sql, values![kept.oldest])?;
    Ok((going.unsigned_abs(), (all - going).unsigned_abs()))
}

/// Deletes versions. Returns their number.
fn delete_versions(writer: &mut WriteConnection<'_>, kept: Kept) -> Result<u64, StoreError> {
    // Versions that are readable now stay: the store may have been restored meanwhile.
    let going = format!(
        "select v.id from vitrine.product_version v where v.id > $3 and v.id <= $4 \
         and {PRUNABLE} and v.until_revision <= (select oldest_readable from vitrine.state) \
         and not exists (select 1 from vitrine.product_base b where b.version_id = v.id)"
    );
    let end = format!(
        "select max(id), count(*) from (select v.id from vitrine.product_version v \
         where v.id > $3 and {PRUNABLE} and not {KEPT_AS_BASE} order by v.id limit $4) batch having count(*) > 0"
    );
    let (mut deleted, mut last) = (0, -1_i64);
    loop {
        let done = writer.write(Lock::Catalog, PRUNING, |tx| {
            let values = values![kept.oldest, kept.since, last, BATCH];
            let Some(end): Option<i64> = tx.row(&end, values, |row| row.get(0))? else {
                return Ok(None);
            };
            let values = values![kept.oldest, kept.since, last, end];
            let mut count = 0;
            for (table, id) in [
                ("product_document", "product_version_id"),
                ("product_text", "product_version_id"),
                ("product_version", "id"),
            ] {
                let sql = format!("delete from vitrine.{table} where {id} in ({going})");
                count = tx.execute(&sql, values)?;
            }
            Ok(Some((end, count)))
        })?;
        let Some((end, count)) = done else {
            return Ok(deleted);
        };
        deleted += count;
        last = end;
        std::thread::sleep(PAUSE);
    }
}

/// Deletes bases that no kept revision has; their versions stay.
fn delete_bases(writer: &mut WriteConnection<'_>, kept: Kept) -> Result<(), StoreError> {
    let sql = "delete from vitrine.product_base where (code, from_revision) in ( \
                  select code, from_revision from vitrine.product_base where until_revision <= $1 \
                  and until_revision <= (select oldest_readable from vitrine.state) limit $2)";
    let delete = |tx: &mut Tx<'_>| tx.execute(sql, values![kept.oldest, BATCH]);
    while writer.write(Lock::Catalog, PRUNING, delete)? > 0 {
        std::thread::sleep(PAUSE);
    }
    Ok(())
}

/// Deletes texts that nothing names, with the records of fetching them. Returns their number.
fn delete_texts(db: Db<'_>, writer: &mut WriteConnection<'_>) -> Result<u64, StoreError> {
    // Without a lock: where nothing is to be deleted, this looks at all texts.
    let batch = format!(
        "select digest from vitrine.markdown_text x where digest > $1 and {UNNAMED} \
         order by digest limit $2"
    );
    let records = format!(
        "delete from vitrine.fetched_text where digest = $1 and exists \
            (select 1 from vitrine.markdown_text x where x.digest = $1 and {UNNAMED})"
    );
    let texts = format!("delete from vitrine.markdown_text as x where digest = $1 and {UNNAMED}");
    let (mut deleted, mut last) = (0, Vec::new());
    loop {
        let digests: Vec<Vec<u8>> = db.read_within(WORK_TIMEOUT, PRUNING, |tx| {
            tx.rows(&batch, values![&last, BATCH], |row| row.get(0))
        })?;
        let Some(end) = digests.last() else {
            return Ok(deleted);
        };
        // With the lock of keys, too: it keeps others from taking a text down meanwhile.
        deleted += writer.write(Lock::Everything, PRUNING, |tx| {
            let values = digests.iter().map(|digest| values![digest].to_vec());
            let values: Vec<_> = values.collect();
            tx.execute_each(&records, &values)?;
            tx.execute_each(&texts, &values)
        })?;
        last.clone_from(end);
        std::thread::sleep(PAUSE);
    }
}
