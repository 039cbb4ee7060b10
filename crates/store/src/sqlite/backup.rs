//! Backup and restore.
//!
//! Copies are made with `vacuum into`: it reads in one read transaction, so writers neither wait nor make it start again,
//! as they do with SQLite's backup API; and since it reads rows instead of pages, damage fails here instead of in the
//! copy. The copy is one file, without a log beside it.

use std::path::Path;

use jiff::Timestamp;
use rusqlite::{Connection, Transaction, TransactionBehavior};
use vitrine_model::revision::Revision;

use super::partial::{Partial, exists, with_ending};
use super::{committed, during, history, open, unpacked};
use crate::StoreError;
use crate::assortment::{self, View};
use crate::audit::{AuditContext, Standing, created, log, named, restored};
use crate::check::found::AUDIT_RULE;
use crate::check::run as check;
use crate::db::Tx;
use crate::fail_point::FailPoint;
use crate::keys;
use crate::problem::Severity;
use crate::record::Moment;
use crate::values::random_id;
use crate::webhooks::backup::{self as webhooks_backup, BackedUp, read_backup};
use crate::webhooks::place;

const BACKING_UP: &str = "backing up the store";
const RESTORING: &str = "restoring the store";

/// See [`Store::backup`](crate::Store::backup).
pub(super) fn backup(
    connection: &Connection,
    store: &Path,
    path: &Path,
) -> Result<Option<Revision>, StoreError> {
    // Early, before much is written; dangling links count, too.
    if path.symlink_metadata().is_ok() {
        return Err(exists(path));
    }
    let partial = Partial::create_beside(path)?;
    copy(connection, &partial, BACKING_UP)?;
    let copied = open::copied(partial.path())?;
    end_sessions(&copied).map_err(during(BACKING_UP))?;
    webhooks_backup::write(store, &place::id(&copied, "state")?, &copied)?;
    drop(copied);
    let revision = history::revision(&open::read_only(partial.path())?, Moment::Live)?;
    partial.place()?;
    Ok(revision)
}

fn copy(connection: &Connection, into: &Partial, doing: &'static str) -> Result<(), StoreError> {
    connection
        .execute("vacuum into ?", [into.path_text()?])
        .map_err(during(doing))?;
    FailPoint::FileCopied.pass()?;
    Ok(())
}

/// See [`Store::restore`](crate::Store::restore).
pub(super) fn restore(
    mut standing: Connection,
    standing_path: &Path,
    backup: &Path,
    context: &AuditContext,
) -> Result<Option<Revision>, StoreError> {
    let (copy, checked) = verified_copy(backup, standing_path)?;
    let endpoints = read_backup(&checked)?;
    drop(checked);
    let failed = during(RESTORING);
    // The copy was checked. Checking each row would take minutes, and tables aren't in order of their references.
    standing
        .execute_batch("pragma foreign_keys = off; pragma temp_store = memory")
        .map_err(&failed)?;
    standing
        .execute("attach database ? as backup", [copy.path_text()?])
        .map_err(&failed)?;
    let transaction = standing
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(&failed)?;
    FailPoint::RestoreBegun.pass()?;
    let new_id = random_id()?;
    let before = state_of(&transaction)?;
    replace(&transaction).map_err(&failed)?;
    end_sessions(&transaction).map_err(&failed)?;
    keys::renew_digests(&mut Tx::sqlite(&transaction, RESTORING))?;
    FailPoint::RestoreReplaced.pass()?;
    give_new_id(&transaction, &new_id).map_err(&failed)?;
    FailPoint::RestoreIdGiven.pass()?;
    let changes = restored(&named(backup), &before, &state_of(&transaction)?);
    log::write(
        &mut Tx::sqlite(&transaction, "writing the audit log"),
        context,
        changes,
    )?;
    let revision = history::revision(&transaction, Moment::Live)?;
    // First: after a crash in between, those that are replaced below tell nobody of the restored catalog.
    let store_id = place::id(&transaction, "state")?;
    webhooks_backup::pause(standing_path, &store_id)?;
    committed(transaction.commit(), FailPoint::RestoreCommitted, RESTORING)?;
    restore_webhooks(standing_path, &store_id, &endpoints)?;
    Ok(revision)
}

fn state_of(transaction: &Transaction<'_>) -> Result<Standing, StoreError> {
    log::standing(&mut Tx::sqlite(transaction, RESTORING))
}

/// Restores the endpoints, after everything else.
fn restore_webhooks(path: &Path, store_id: &str, endpoints: &BackedUp) -> Result<(), StoreError> {
    let restored = webhooks_backup::restore(path, store_id, endpoints);
    restored.map_err(|source| StoreError::WebhooksNotRestored(Box::new(source)))
}

/// See [`StoreAddress::create_from`](crate::StoreAddress::create_from).
pub(crate) fn create_from(
    path: &Path,
    backup: &Path,
    context: &AuditContext,
) -> Result<Option<Revision>, StoreError> {
    // A leftover log would be taken for the new file's.
    for ending in ["", "-wal", "-journal", "-webhooks"] {
        let path = with_ending(path, ending);
        if path.symlink_metadata().is_ok() {
            return Err(exists(&path));
        }
    }
    let (copy, mut connection) = verified_copy(backup, path)?;
    let failed = during(RESTORING);
    let transaction = connection.transaction().map_err(&failed)?;
    transaction
        .execute("update state set store_id = ?", [random_id()?])
        .map_err(&failed)?;
    give_new_id(&transaction, &random_id()?).map_err(&failed)?;
    FailPoint::CreateIdGiven.pass()?;
    let after = state_of(&transaction)?;
    log::write(
        &mut Tx::sqlite(&transaction, "writing the audit log"),
        context,
        created(&named(backup), &after),
    )?;
    let revision = history::revision(&transaction, Moment::Live)?;
    transaction.commit().map_err(&failed)?;
    FailPoint::CreateCommitted.pass()?;
    let (endpoints, store_id) = (read_backup(&connection)?, place::id(&connection, "state")?);
    empty_webhooks(&connection).map_err(&failed)?;
    end_sessions(&connection).map_err(&failed)?;
    drop(connection);
    copy.place()?;
    restore_webhooks(path, &store_id, &endpoints)?;
    Ok(revision)
}

/// Ends the sessions of all operators: those of a backup may have ended since.
fn end_sessions(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch("delete from main.operator_session")
}

/// Empties the tables of a backup that a store in use doesn't have.
fn empty_webhooks(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(
        "delete from webhook_state; delete from webhook_endpoint; delete from webhook_attempt;",
    )
}

/// Copies the backup to the new file `path`, and checks the copy. The connection has functions that unpack.
pub(crate) fn checked_copy(backup: &Path, path: &Path) -> Result<Connection, StoreError> {
    let (copy, connection) = verified_copy(backup, path)?;
    drop(connection);
    copy.place()?;
    let connection = open::read_only(path)?;
    unpacked::add_functions(&connection).map_err(during(RESTORING))?;
    Ok(connection)
}

/// Returns the keys and the live assortments of a backup, for
/// [`plan_restore`](crate::assortment::AssortmentStore::plan_restore).
pub(crate) fn view(backup: &Path) -> Result<View, StoreError> {
    let unusable = |error| unusable(backup, error);
    let mut connection = open::backup(backup).map_err(unusable)?;
    let transaction = connection.transaction().map_err(during(RESTORING))?;
    let tx = &mut Tx::sqlite(&transaction, "reading the backup");
    let read = keys::records(tx).and_then(|keys| Ok(View::new(keys, assortment::live(tx)?)));
    read.map_err(unusable)
}

/// Converts the errors of a damaged backup.
fn unusable(backup: &Path, error: StoreError) -> StoreError {
    let reason = match error {
        StoreError::Damaged(reason) => reason,
        // Not `Disk`: that may be the store's disk.
        StoreError::Database { source, .. } => source.to_string(),
        other => return other,
    };
    StoreError::UnusableBackup {
        path: backup.to_owned(),
        reason,
    }
}

/// Copies the backup to a new file beside `path`, and checks the copy. The checked copy is what is restored: the
/// backup itself is only read, and may change or vanish afterwards.
fn verified_copy(backup: &Path, path: &Path) -> Result<(Partial, Connection), StoreError> {
    let unusable = |error| unusable(backup, error);
    let source = open::backup(backup).map_err(unusable)?;
    let partial = Partial::create_beside(path)?;
    copy(&source, &partial, "copying the backup").map_err(unusable)?;
    let mut connection = open::copied(partial.path()).map_err(unusable)?;
    let mut problems = check::check_file(&mut connection).map_err(unusable)?;
    problems.retain(|problem| problem.severity == Severity::Fault && problem.rule != AUDIT_RULE);
    match problems.first() {
        None => {
            FailPoint::RestoreCopyChecked.pass()?;
            Ok((partial, connection))
        }
        Some(first) => Err(StoreError::UnusableBackup {
            path: backup.to_owned(),
            reason: format!(
                "{} {} ({}; problems in all: {})",
                first.place,
                first.what,
                first.rule,
                problems.len()
            ),
        }),
    }
}

/// Replaces all rows of all tables but those of the audit log, the days of keys and the operators with the backup's. The id of the store
/// stays, and so do revocations and rotations of keys and texts taken down: a restore mustn't undo these. To the texts it is
/// one step, from the backup's state.
fn replace(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    transaction.execute_batch(
        "create temp table kept_state as select * from main.state;
         create temp table kept_key as \
            select prefix, expires_at, revoked_at, rotated_at from main.api_key;
         create temp table taken_down as \
            select * from main.markdown_text where taken_down_at is not null;",
    )?;
    let sql = "select name from main.sqlite_schema \
               where type = 'table' and name not like 'sqlite\\_%' escape '\\' \
                  and name not in ('audit_entry', 'api_key_day', 'operator', 'operator_session', \
                     'webhook_state', 'webhook_endpoint', 'webhook_attempt')";
    let mut tables = transaction.prepare(sql)?;
    let tables = tables.query_map([], |row| row.get::<_, String>(0))?;
    for table in tables.collect::<rusqlite::Result<Vec<_>>>()? {
        // By name: a missing column fails, and swapped ones don't matter.
        let sql = "select group_concat('\"' || name || '\"') from pragma_table_info(?, 'main')";
        let columns: String = transaction.query_row(sql, [&table], |row| row.get(0))?;
        transaction.execute_batch(&format!(
            "delete from main.\"{table}\";
             insert into main.\"{table}\" ({columns}) select {columns} from backup.\"{table}\";"
        ))?;
        FailPoint::RestoreTableReplaced.pass()?;
    }
    let now = Timestamp::now().as_millisecond();
    transaction.execute_batch(&format!(
        "update main.state set store_id = kept.store_id, \
            texts_counter = max(kept.texts_counter, state.texts_counter, 0) + 1 \
               + (random() & 0xffffffff), \
            keys_counter = max(kept.keys_counter, 0) + 1 + (random() & 0xffffffff), \
            assortments_counter = max(kept.assortments_counter, 0) + 1 + (random() & 0xffffffff), \
            assortments_accepted = max(coalesce(kept.assortments_accepted, 0) + 1, {now}) \
            from temp.kept_state as kept;
         insert into main.text_change (counter, counter_before, digest, is_taken_down, changed_at) \
            select state.texts_counter, old.texts_counter, x.digest, 1, {now} \
            from main.state join backup.state as old join temp.taken_down as kept \
               join main.markdown_text x on x.digest = kept.digest where x.taken_down_at is null;
         insert into main.text_change (counter, counter_before, digest, is_taken_down, changed_at) \
            select state.texts_counter, old.texts_counter, x'', 0, {now} \
            from main.state join backup.state as old where not exists \
               (select * from main.text_change where counter = state.texts_counter);
         insert into main.markdown_text (digest, markdown, taken_down_at) \
            select digest, markdown, taken_down_at from temp.taken_down where true \
            on conflict (digest) do update set taken_down_at = \
               coalesce(markdown_text.taken_down_at, excluded.taken_down_at);
         update main.api_key as k set \
            revoked_at = coalesce(k.revoked_at, kept.revoked_at), \
            rotated_at = coalesce(kept.rotated_at, k.rotated_at), \
            expires_at = coalesce(min(k.expires_at, kept.expires_at), \
               k.expires_at, kept.expires_at) \
            from temp.kept_key as kept where kept.prefix = k.prefix;",
    ))
}

/// Gives the live revision an id that no server has seen: the backup's may be live already, with other keys and texts.
/// The former id is kept beside it.
fn give_new_id(transaction: &Transaction<'_>, id: &str) -> rusqlite::Result<()> {
    transaction.execute(
        "update main.revision set former_id = id, id = ?1 \
         where number = (select revision_number from main.state)",
        [id],
    )?;
    transaction.execute(
        "update main.state set revision_id = ?1 where revision_number is not null",
        [id],
    )?;
    Ok(())
}
