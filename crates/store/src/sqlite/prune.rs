//! Deleting data that only old revisions have, while others read and write.
//!
//! The rows to delete are selected as of one moment into tables outside the store's file, so that memory stays small
//! however long the history is; then they are deleted in batches. Each batch checks again that its rows may be deleted:
//! the store may have been restored from a backup meanwhile.

use std::time::Duration;

use jiff::Timestamp;
use rusqlite::{Connection, TransactionBehavior};

use super::during;
use crate::StoreError;
use crate::record::{Keep, PruneReport};

const PRUNING: &str = "pruning the history";

/// Number of rows deleted in one transaction.
const BATCH: u32 = 1_000;

/// Pause between two batches, in which other writers get their turn: a waiting writer retries only now and then.
const PAUSE: Duration = Duration::from_millis(10);

/// Selects the versions and texts to delete. A version is deleted if no kept revision has it, unless it has texts and was
/// replaced after `?2`: those texts are still served (see `catalog::served_texts`). A text is deleted if only such
/// versions name it, or none; one that was taken down stays, so that it is still down if it is loaded again.
const SELECT_PRUNABLE: [&str; 6] = [
    "create temp table old_version (number integer primary key)",
    "insert into temp.old_version select id from product_version v where until_revision <= ?1 \
        and (until_revision < coalesce( \
                (select min(number) from revision where created_at > ?2), ?1 + 1) \
           or not exists (select 1 from product_text where product_version_id = v.id))",
    "create temp table old_base (number integer primary key)",
    "insert into temp.old_base select id from base_version where until_revision <= ?1",
    "create temp table old_text (number integer primary key, digest blob not null)",
    "insert into temp.old_text (digest) select digest from markdown_text where taken_down_at is null \
        and not exists (select 1 from product_text t where t.digest = markdown_text.digest \
           and t.product_version_id not in (select number from temp.old_version)) \
        and not exists (select 1 from base_text t where t.digest = markdown_text.digest \
           and t.base_version_id not in (select number from temp.old_base))",
];

/// Delete a batch of versions; `?1` and `?2` are the numbers before its first and of its last row.
const DELETE_VERSIONS: [&str; 3] = [
    "delete from product_document where product_version_id in ( \
        select v.id from temp.old_version old join product_version v on v.id = old.number \
        where old.number > ?1 and old.number <= ?2 \
           and v.until_revision <= (select oldest_readable from state))",
    "delete from product_text where product_version_id in ( \
        select v.id from temp.old_version old join product_version v on v.id = old.number \
        where old.number > ?1 and old.number <= ?2 \
           and v.until_revision <= (select oldest_readable from state))",
    "delete from product_version \
        where id in (select number from temp.old_version where number > ?1 and number <= ?2) \
        and until_revision <= (select oldest_readable from state)",
];

/// Delete a batch of bases, as above.
const DELETE_BASES: [&str; 2] = [
    "delete from base_text where base_version_id in ( \
        select b.id from temp.old_base old join base_version b on b.id = old.number \
        where old.number > ?1 and old.number <= ?2 \
           and b.until_revision <= (select oldest_readable from state))",
    "delete from base_version \
        where id in (select number from temp.old_base where number > ?1 and number <= ?2) \
        and until_revision <= (select oldest_readable from state)",
];

/// Delete a batch of texts and the records of fetching them, except for texts that were named again or taken down
/// meanwhile.
const DELETE_TEXTS: [&str; 2] = [
    "delete from fetched_text where digest in ( \
        select markdown_text.digest from markdown_text join temp.old_text old on old.digest = markdown_text.digest \
        where old.number > ?1 and old.number <= ?2 and taken_down_at is null \
        and not exists (select 1 from product_text where product_text.digest = markdown_text.digest) \
        and not exists (select 1 from base_text where base_text.digest = markdown_text.digest))",
    "delete from markdown_text \
        where digest in (select digest from temp.old_text where number > ?1 and number <= ?2) \
        and taken_down_at is null \
        and not exists (select 1 from product_text where product_text.digest = markdown_text.digest) \
        and not exists (select 1 from base_text where base_text.digest = markdown_text.digest)",
];

/// See [`Store::plan_prune`](crate::Store::plan_prune).
pub(super) fn plan(
    connection: &mut Connection,
    keep: Keep,
    texts_kept_since: Timestamp,
) -> Result<PruneReport, StoreError> {
    // One read transaction: all counts are of one state of the store.
    let transaction = connection.transaction().map_err(during(PRUNING))?;
    let Some(oldest) = oldest_kept(&transaction, keep)? else {
        return Ok(PruneReport::default());
    };
    let revisions = newly_unreadable(&transaction, oldest)?;
    select_prunable(&transaction, oldest, texts_kept_since)?;
    let count = |sql| number(&transaction, sql, []);
    Ok(PruneReport {
        oldest_readable: Some(oldest),
        revisions,
        versions: count("select count(*) from temp.old_version")?,
        texts: count("select count(*) from temp.old_text")?,
        waiting_versions: waiting(&transaction, oldest)?,
        free_bytes: free_bytes(&transaction)?,
    })
}

/// See [`Store::prune`](crate::Store::prune).
pub(super) fn prune(
    connection: &mut Connection,
    keep: Keep,
    texts_kept_since: Timestamp,
) -> Result<PruneReport, StoreError> {
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(during(PRUNING))?;
    let Some(oldest) = oldest_kept(&transaction, keep)? else {
        return Ok(PruneReport::default());
    };
    let revisions = newly_unreadable(&transaction, oldest)?;
    if revisions > 0 {
        transaction
            .execute("update state set oldest_readable = ?", [oldest])
            .map_err(during(PRUNING))?;
    }
    transaction.commit().map_err(during(PRUNING))?;

    let transaction = connection.transaction().map_err(during(PRUNING))?;
    select_prunable(&transaction, oldest, texts_kept_since)?;
    let waiting_versions = waiting(&transaction, oldest)?;
    transaction.commit().map_err(during(PRUNING))?;

    let versions = delete(connection, "old_version", &DELETE_VERSIONS)?;
    delete(connection, "old_base", &DELETE_BASES)?;
    let texts = delete(connection, "old_text", &DELETE_TEXTS)?;
    Ok(PruneReport {
        oldest_readable: Some(oldest),
        revisions,
        versions,
        texts,
        waiting_versions,
        free_bytes: free_bytes(connection)?,
    })
}

/// Returns the oldest revision that stays readable; pruned ones stay pruned.
fn oldest_kept(connection: &Connection, keep: Keep) -> Result<Option<u64>, StoreError> {
    let (sql, value) = match keep {
        Keep::Newest(count) => (
            "select max(min(number), (select coalesce(oldest_readable, 0) from state)) \
             from (select number from revision order by number desc limit ?)",
            i64::from(count.get()),
        ),
        // A revision was live until the next one.
        Keep::LiveSince(moment) => (
            "select max((select coalesce(oldest_readable, 0) from state), coalesce( \
                (select max(number) from revision where number < later), later, \
                (select max(number) from revision))) \
             from (select min(number) as later from revision where created_at > ?)",
            moment.as_millisecond(),
        ),
    };
    connection
        .query_row(sql, [value], |row| row.get(0))
        .map_err(during(PRUNING))
}

/// Returns the number of revisions before `oldest` that can still be read.
fn newly_unreadable(connection: &Connection, oldest: u64) -> Result<u64, StoreError> {
    let sql = "select count(*) from revision where number < ? \
               and number >= (select coalesce(oldest_readable, 0) from state)";
    number(connection, sql, [oldest])
}

fn select_prunable(
    connection: &Connection,
    oldest: u64,
    texts_kept_since: Timestamp,
) -> Result<(), StoreError> {
    for sql in SELECT_PRUNABLE {
        let mut statement = connection.prepare(sql).map_err(during(PRUNING))?;
        let since = texts_kept_since.as_millisecond();
        let done = match statement.parameter_count() {
            0 => statement.execute([]),
            1 => statement.execute([oldest]),
            _ => statement.execute((oldest, since)),
        };
        done.map_err(during(PRUNING))?;
    }
    Ok(())
}

/// Returns the number of versions that no kept revision has and that weren't selected.
fn waiting(connection: &Connection, oldest: u64) -> Result<u64, StoreError> {
    let sql = "select count(*) - (select count(*) from temp.old_version) \
               from product_version where until_revision <= ?";
    number(connection, sql, [oldest])
}

/// Deletes the rows that `table` lists, batch by batch. Returns the number of rows that the last of `statements` deleted.
fn delete(
    connection: &mut Connection,
    table: &str,
    statements: &[&str],
) -> Result<u64, StoreError> {
    let next = format!(
        "select max(number) from \
         (select number from temp.{table} where number > ?1 order by number limit ?2)"
    );
    let (mut deleted, mut before) = (0, 0);
    loop {
        let transaction = connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(during(PRUNING))?;
        let end: Option<i64> = transaction
            .query_row(&next, (before, BATCH), |row| row.get(0))
            .map_err(during(PRUNING))?;
        let Some(end) = end else {
            return Ok(deleted);
        };
        let mut rows = 0;
        for sql in statements {
            rows = transaction
                .execute(sql, (before, end))
                .map_err(during(PRUNING))?;
        }
        transaction.commit().map_err(during(PRUNING))?;
        deleted += rows as u64;
        before = end;
        std::thread::sleep(PAUSE);
    }
}

fn free_bytes(connection: &Connection) -> Result<u64, StoreError> {
    let sql = "select freelist_count * page_size from pragma_freelist_count, pragma_page_size";
    number(connection, sql, [])
}

fn number(
    connection: &Connection,
    sql: &str,
    values: impl rusqlite::Params,
) -> Result<u64, StoreError> {
    connection
        .query_row(sql, values, |row| row.get(0))
        .map_err(during(PRUNING))
}
