//! How the file is made, recognised, set up and migrated.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use super::{during, keys};
use crate::fail_point::FailPoint;
use crate::{IfMissing, StoreError};

/// Marks the file as ours in its header ("Vitr").
const APPLICATION_ID: u32 = 0x5669_7472;

/// Every migration in order; the file's `user_version` says how many it has had.
const MIGRATIONS: [&str; 2] = [
    include_str!("migrations/0001.sql"),
    include_str!("migrations/0002.sql"),
];

/// Opens the file, makes it where that is wanted, and migrates it.
///
/// `patience` is how long it waits for another writer, now and later.
pub(super) fn open(
    path: &Path,
    if_missing: IfMissing,
    patience: Duration,
) -> Result<Connection, StoreError> {
    if !path.exists() {
        match if_missing {
            IfMissing::Create => {
                create(path)?;
                FailPoint::StoreCreated.pass()?;
            }
            IfMissing::Refuse => {
                return Err(StoreError::Missing {
                    place: path.display().to_string(),
                });
            }
        }
    }
    let mut connection = plain_connection(path, patience)?;
    // Before anything is set up: that would write into another program's database.
    recognise_as_of_one_moment(&mut connection, path)?;
    set_up(&connection, path, patience)?;
    migrate(&mut connection, path)?;
    Ok(connection)
}

/// Makes an empty file that only its owner can read: it will hold the hashes of keys.
fn create(path: &Path) -> Result<(), StoreError> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(path)
        .map(drop)
        .map_err(|source| StoreError::Open {
            path: path.to_owned(),
            source,
        })
}

/// A connection to a file that is there, set up as all of ours are.
pub(super) fn connect(path: &Path, patience: Duration) -> Result<Connection, StoreError> {
    let connection = plain_connection(path, patience)?;
    set_up(&connection, path, patience)?;
    Ok(connection)
}

/// A backup, to be read only: one of ours that has a schema.
pub(super) fn backup(path: &Path) -> Result<Connection, StoreError> {
    // SQLite's word for a directory is an I/O error, and it would wait for a pipe.
    if path.exists() && !path.is_file() {
        return Err(StoreError::NotAStore {
            place: path.display().to_string(),
            reason: "it isn't even a file".to_owned(),
        });
    }
    let connection = read_only(path)?;
    match recognise(&connection, path)? {
        0 => Err(StoreError::NotAStore {
            place: path.display().to_string(),
            reason: "it is empty".to_owned(),
        }),
        _ => Ok(connection),
    }
}

/// A connection that can't write, not even side files where none are needed.
pub(super) fn read_only(path: &Path) -> Result<Connection, StoreError> {
    // Absolute: SQLite takes a name that begins with `file:` for an address.
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Connection::open_with_flags(&path, flags).map_err(cannot_open(&path))
}

/// A copy of a backup, brought up to date and left in one file.
pub(super) fn migrated(path: &Path) -> Result<Connection, StoreError> {
    // Nobody else knows of it.
    let mut connection = plain_connection(path, Duration::ZERO)?;
    migrate(&mut connection, path)?;
    Ok(connection)
}

fn plain_connection(path: &Path, patience: Duration) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(cannot_open(path))?;
    let is_readonly = connection.is_readonly(rusqlite::MAIN_DB);
    if is_readonly.map_err(cannot_open(path))? && is_writable(path) {
        // SQLite makes do with reading where writing fails at this moment, out of descriptors for one; and what was
        // opened so could never write again.
        return Err(StoreError::Open {
            path: path.to_owned(),
            source: std::io::Error::other("it could be opened for reading only"),
        });
    }
    connection
        .busy_timeout(patience)
        .map_err(cannot_open(path))?;
    Ok(connection)
}

/// Whether this process may write to a file. The file isn't opened for that: when it is closed, the system forgets the
/// locks of all connections to it.
fn is_writable(path: &Path) -> bool {
    rustix::fs::access(path, rustix::fs::Access::WRITE_OK).is_ok()
}

/// Why a file can't be opened, as far as that can be found out without opening it, for the same reason.
fn why_not(path: &Path) -> Option<std::io::Error> {
    let access = rustix::fs::Access::READ_OK | rustix::fs::Access::WRITE_OK;
    let refused = rustix::fs::access(path, access).err();
    // Are there descriptors?
    refused
        .map(Into::into)
        .or_else(|| std::fs::File::open("/dev/null").err())
}

fn set_up(connection: &Connection, path: &Path, patience: Duration) -> Result<(), StoreError> {
    let patient_until = Instant::now() + patience;
    loop {
        // The last one: a log that was started anew is cut to the size that `wal` leaves alone.
        // 16 kB pages made a catalog's file 42 % smaller; the size counts only for a new file.
        let done = connection.execute_batch(
            "pragma page_size = 16384;
             pragma journal_mode = wal;
             pragma synchronous = full;
             pragma foreign_keys = on;
             pragma journal_size_limit = 33554432;",
        );
        match done.map_err(cannot_open(path)) {
            // While another process makes the store, SQLite refuses the change of the journal's mode
            // at once, whatever its busy timeout.
            Err(StoreError::Busy { .. }) if Instant::now() < patient_until => {
                std::thread::sleep(Duration::from_millis(5));
            }
            outcome => return outcome,
        }
    }
}

/// Turns SQLite's error into the store's, where it came from opening the file.
fn cannot_open(path: &Path) -> impl Fn(rusqlite::Error) -> StoreError {
    move |source| match source.sqlite_error_code() {
        Some(rusqlite::ErrorCode::NotADatabase) => StoreError::NotAStore {
            place: path.display().to_string(),
            reason: "it isn't even an SQLite database".to_owned(),
        },
        Some(rusqlite::ErrorCode::CannotOpen) => StoreError::Open {
            path: path.to_owned(),
            source: why_not(path).unwrap_or_else(|| std::io::Error::other(source)),
        },
        _ => during("opening the store")(source),
    }
}

/// Applies the migrations that the file hasn't had, in one transaction.
fn migrate(connection: &mut Connection, path: &Path) -> Result<(), StoreError> {
    let known = u32::try_from(MIGRATIONS.len()).unwrap_or(u32::MAX);
    if recognise_as_of_one_moment(connection, path)? == known {
        return Ok(());
    }
    let failed = during("migrating the store");
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(&failed)?;
    // Looked at again inside the transaction: two processes may have come this far.
    let found = recognise(&transaction, path)?;
    for migration in MIGRATIONS.iter().skip(found as usize) {
        transaction.execute_batch(migration).map_err(&failed)?;
    }
    keys::write_digests(&transaction)?;
    transaction
        .pragma_update(None, "application_id", APPLICATION_ID)
        .map_err(&failed)?;
    transaction
        .pragma_update(None, "user_version", known)
        .map_err(&failed)?;
    FailPoint::StoreMigrated.pass()?;
    // Whether or not a failed commit is found later: what the store holds is the same.
    transaction.commit().map_err(&failed)?;
    FailPoint::StoreMigrationCommitted.pass()?;
    Ok(())
}

/// [`recognise`] in a transaction: another process may be making the store at this moment, and half of
/// what it has written looks like somebody else's.
fn recognise_as_of_one_moment(connection: &mut Connection, path: &Path) -> Result<u32, StoreError> {
    let transaction = connection.transaction().map_err(cannot_open(path))?;
    recognise(&transaction, path)
}

/// The file's schema version: 0 for an empty file. Anybody else's database is refused.
fn recognise(connection: &Connection, path: &Path) -> Result<u32, StoreError> {
    let number = |sql: &str| {
        connection
            .query_row(sql, [], |row| row.get::<_, u32>(0))
            .map_err(cannot_open(path))
    };
    let application_id = number("pragma application_id")?;
    let found = number("pragma user_version")?;
    let tables = number("select count(*) from sqlite_schema")?;
    let known = u32::try_from(MIGRATIONS.len()).unwrap_or(u32::MAX);
    match (application_id, found) {
        (0, 0) if tables == 0 => Ok(0),
        (APPLICATION_ID, found) if found <= known => Ok(found),
        (APPLICATION_ID, found) => Err(StoreError::NewerSchema {
            place: path.display().to_string(),
            found,
            known,
        }),
        _ => Err(StoreError::NotAStore {
            place: path.display().to_string(),
            reason: "it is another program's SQLite database".to_owned(),
        }),
    }
}
