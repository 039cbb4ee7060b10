//! Backups, copies of them to be restored, and stores made from them.
//!
//! Copies are made with `vacuum into`: it reads in one read transaction, so writers neither wait nor make it start again,
//! as they do with SQLite's backup API; and since it reads rows instead of pages, damage fails here instead of in the
//! copy. The copy is one file, without a log beside it.

use std::path::Path;

use rusqlite::Connection;
use tempfile::TempDir;
use vitrine_model::revision::Revision;

use super::partial::{Partial, exists, with_ending};
use super::{during, open};
use crate::assortment::{self, View};
use crate::audit::{AuditContext, created, log, named};
use crate::check::found::AUDIT_RULE;
use crate::check::run as check;
use crate::db::{Tx, values};
use crate::fail_point::FailPoint;
use crate::keys;
use crate::problem::Severity;
use crate::record::Moment;
use crate::values::random_id;
use crate::webhooks::backup::{self as webhooks_backup, read_backup, restore_file};
use crate::webhooks::place;
use crate::{StoreError, moments};

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
    let written = open::read_only(partial.path())?;
    let revision = moments::revision(&mut Tx::sqlite(&written, BACKING_UP), Moment::Live)?;
    drop(written);
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
    let mut copy = VerifiedCopy::beside(path, backup)?;
    let transaction = copy.connection.transaction().map_err(during(RESTORING))?;
    let tx = &mut Tx::sqlite(&transaction, RESTORING);
    let (store_id, id) = (random_id()?, random_id()?);
    // No server has seen this id: the backup's may be live already, with other keys and texts. The former one stays beside it.
    let sql = "update vitrine.revision set former_id = id, id = $1 \
               where number = (select revision_number from vitrine.state)";
    tx.execute(sql, values![&id])?;
    let sql = "update vitrine.state set store_id = $1, \
                  revision_id = case when revision_number is null then null else $2 end";
    tx.execute(sql, values![&store_id, &id])?;
    FailPoint::CreateIdGiven.pass()?;
    let after = log::standing(tx)?;
    log::write(tx, context, created(&named(backup), &after))?;
    let revision = moments::revision(tx, Moment::Live)?;
    transaction.commit().map_err(during(RESTORING))?;
    FailPoint::CreateCommitted.pass()?;
    let endpoints = read_backup(&copy.connection)?;
    empty_webhooks(&copy.connection).map_err(during(RESTORING))?;
    end_sessions(&copy.connection).map_err(during(RESTORING))?;
    copy.place()?;
    restore_file(path, &store_id, &endpoints)?;
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

/// Returns the keys and the live assortments of a backup, for
/// [`plan_restore`](crate::Store::plan_restore).
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

/// A checked copy of a backup. It is what is restored: the backup itself is only read, and may change or vanish afterwards.
pub(crate) struct VerifiedCopy {
    // First, so that it is closed before its file is removed.
    pub(crate) connection: Connection,
    file: Partial,
    /// Removed at last.
    directory: Option<TempDir>,
}

impl VerifiedCopy {
    /// Copies the backup to a new file in a temporary directory.
    pub(crate) fn temporary(backup: &Path) -> Result<Self, StoreError> {
        let directory = tempfile::tempdir().map_err(|source| StoreError::File {
            doing: "create",
            path: std::env::temp_dir(),
            source,
        })?;
        let mut copy = Self::beside(&directory.path().join("copy.db"), backup)?;
        copy.directory = Some(directory);
        Ok(copy)
    }

    /// Closes it and gives it its final name.
    fn place(self) -> Result<(), StoreError> {
        drop(self.connection);
        self.file.place()
    }

    /// Copies the backup to a new file beside `path`.
    pub(crate) fn beside(path: &Path, backup: &Path) -> Result<Self, StoreError> {
        let unusable = |error| unusable(backup, error);
        let source = open::backup(backup).map_err(unusable)?;
        let file = Partial::create_beside(path)?;
        copy(&source, &file, "copying the backup").map_err(unusable)?;
        let mut connection = open::copied(file.path()).map_err(unusable)?;
        let mut problems = check::check_file(&mut connection).map_err(unusable)?;
        problems
            .retain(|problem| problem.severity == Severity::Fault && problem.rule != AUDIT_RULE);
        match problems.first() {
            None => {
                FailPoint::RestoreCopyChecked.pass()?;
                Ok(Self {
                    connection,
                    file,
                    directory: None,
                })
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
}
