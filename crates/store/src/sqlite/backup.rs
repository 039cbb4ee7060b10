//! Backups, copies of them to be restored, and stores made from them; and the incomplete files that they are written to.
//!
//! Copies are made with `vacuum into`: it reads in one read transaction, so writers neither wait nor make it start again,
//! as they do with SQLite's backup API; and since it reads rows instead of pages, damage fails here instead of in the
//! copy. The copy is one file, without a log beside it.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use tempfile::TempDir;
use vitrine_model::revision::Revision;

use super::{during, open};
use crate::assortment::{self, View};
use crate::audit::AuditContext;
use crate::check::{self, AUDIT_RULE, Severity};
use crate::db::{self, Tx};
use crate::fail_point::FailPoint;
use crate::keys;
use crate::record::Moment;
use crate::values::random_id;
use crate::webhooks::place::{self, read_backup, restore_file};
use crate::{StoreError, moments, restore};

const BACKING_UP: &str = "backing up the store";
const READING: &str = "reading the backup";

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
    let copied = open::private(partial.path())?;
    let ended = copied.execute_batch("delete from main.operator_session");
    ended.map_err(during(BACKING_UP))?;
    place::write_backup(store, &place::id(&copied, "state")?, &copied)?;
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
    FailPoint::FileCopied.pass()
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
    let copy = VerifiedCopy::beside(path, backup)?;
    let endpoints = read_backup(&copy.connection)?;
    let partial = Partial::create_beside(path)?;
    let mut connection = open::private(partial.path())?;
    let committed = Some(FailPoint::CreateCommitted);
    let revision = db::write(&mut connection, committed, "restoring the store", |tx| {
        restore::fill(tx, &copy, backup, context)
    })?;
    let store_id = place::id(&connection, "state")?;
    drop(connection);
    partial.place()?;
    restore_file(path, &store_id, &endpoints)?;
    Ok(revision)
}

/// Returns the keys and the live assortments of a backup, for
/// [`plan_restore`](crate::Store::plan_restore).
pub(crate) fn view(backup: &Path) -> Result<View, StoreError> {
    let unusable = |error| unusable(backup, error);
    let mut connection = open::backup(backup).map_err(unusable)?;
    let transaction = connection.transaction().map_err(during(READING))?;
    let tx = &mut Tx::sqlite(&transaction, READING);
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
    _file: Partial,
    /// Removed at last.
    _directory: Option<TempDir>,
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
        copy._directory = Some(directory);
        Ok(copy)
    }

    /// Copies the backup to a new file beside `path`.
    pub(crate) fn beside(path: &Path, backup: &Path) -> Result<Self, StoreError> {
        let unusable = |error| unusable(backup, error);
        let source = open::backup(backup).map_err(unusable)?;
        let file = Partial::create_beside(path)?;
        copy(&source, &file, "copying the backup").map_err(unusable)?;
        let mut connection = open::private(file.path()).map_err(unusable)?;
        let mut problems = check::check_file(&mut connection).map_err(unusable)?;
        problems
            .retain(|problem| problem.severity == Severity::Fault && problem.rule != AUDIT_RULE);
        match problems.first() {
            None => {
                FailPoint::RestoreCopyChecked.pass()?;
                Ok(Self {
                    connection,
                    _file: file,
                    _directory: None,
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

/// An incomplete database file: beside its final name, readable only by its owner, and removed unless it is put in
/// place.
pub(crate) struct Partial {
    path: PathBuf,
    /// Final path.
    target: PathBuf,
}

impl Partial {
    /// Creates an empty file beside `target`.
    pub(crate) fn create_beside(target: &Path) -> Result<Self, StoreError> {
        // Absolute: SQLite takes a name that begins with `file:` for a URI.
        let target = std::path::absolute(target).map_err(failed("find", target))?;
        let random = random_id()?;
        let path = with_ending(&target, &format!(".partial-{}", &random[..8]));
        OpenOptions::new()
            .create_new(true)
            .write(true)
            .mode(0o600)
            .open(&path)
            .map_err(failed("create", &path))?;
        let partial = Self { path, target };
        FailPoint::FileMade.pass()?;
        Ok(partial)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path for SQL.
    fn path_text(&self) -> Result<&str, StoreError> {
        self.path.to_str().ok_or_else(|| {
            let reason = io::Error::new(io::ErrorKind::InvalidInput, "its path isn't UTF-8");
            failed("write", &self.path)(reason)
        })
    }

    /// Syncs the file and gives it its final name. Fails if a file of that name exists.
    pub(crate) fn place(self) -> Result<(), StoreError> {
        let written = File::open(&self.path).and_then(|file| file.sync_all());
        written.map_err(failed("write", &self.path))?;
        FailPoint::FileSynced.pass()?;
        // A link, since a rename would replace an existing file.
        match fs::hard_link(&self.path, &self.target) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(exists(&self.target));
            }
            // Some file systems have no links.
            Err(_) if self.target.symlink_metadata().is_err() => {
                fs::rename(&self.path, &self.target).map_err(failed("create", &self.target))?;
            }
            outcome => outcome.map_err(failed("create", &self.target))?,
        }
        // If the name may not be synced, this fails, and the file must be gone.
        self.sync_name().inspect_err(|_| {
            let _ = fs::remove_file(&self.target);
        })
    }

    /// Syncs the name to disk.
    fn sync_name(&self) -> Result<(), StoreError> {
        FailPoint::FileNamed.pass()?;
        let folder = self.target.parent().unwrap_or(Path::new("/"));
        File::open(folder)
            .and_then(|folder| folder.sync_all())
            .map_err(failed("write", folder))?;
        FailPoint::FileFolderSynced.pass()
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        for ending in ["", "-journal", "-wal", "-shm"] {
            // Mostly missing, and harmless if it can't be removed.
            let _ = fs::remove_file(with_ending(&self.path, ending));
        }
    }
}

/// Appends `ending` to the path's file name.
pub(crate) fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(ending);
    PathBuf::from(name)
}

fn exists(path: &Path) -> StoreError {
    StoreError::Exists {
        path: path.to_owned(),
    }
}

/// Converts errors of the system, adding the failed operation and the file.
fn failed(doing: &'static str, path: &Path) -> impl Fn(io::Error) -> StoreError {
    move |source| match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => StoreError::Full,
        _ => StoreError::File {
            doing,
            path: path.to_owned(),
            source,
        },
    }
}
