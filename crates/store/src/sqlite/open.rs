//! Creating, recognising, configuring and migrating the file.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use super::during;
use crate::fail_point::FailPoint;
use crate::{IfMissing, StoreError};

/// Marks the file as Vitrine's in its header ("Vtrn").
const APPLICATION_ID: u32 = 0x5674_726e;

/// The mark of files from before the first release ("Vitr"), whose formats are called 0.1 to 0.10 here.
const FORMER_APPLICATION_ID: u32 = 0x5669_7472;

/// All migrations in order; `user_version` of the file is the number that were applied.
pub(super) const MIGRATIONS: &[&str] = &[include_str!("schema.sql")];

/// Opens the file, creates it if `if_missing` says so, and migrates it. `lock_wait` is the maximum time that it waits for
/// another writer, now and later.
pub(super) fn open(
    path: &Path,
    if_missing: IfMissing,
    lock_wait: Duration,
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
    let mut connection = plain_connection(path, lock_wait)?;
    // First: configuring writes, and this may be another program's database.
    recognise_in_transaction(&mut connection, path, MIGRATIONS)?;
    set_up(&connection, path, lock_wait)?;
    migrate(&mut connection, path, MIGRATIONS)?;
    Ok(connection)
}

/// Creates an empty file that only its owner can read: it will have the hashes of keys.
fn create(path: &Path) -> Result<(), StoreError> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(path)
        .map(drop)
        .map_err(|source| unopened(path, source))
}

/// Opens a configured connection to an existing file.
pub(crate) fn connect(path: &Path, lock_wait: Duration) -> Result<Connection, StoreError> {
    let connection = plain_connection(path, lock_wait)?;
    set_up(&connection, path, lock_wait)?;
    Ok(connection)
}

/// Opens a backup read-only. Refuses files that aren't stores, and empty ones.
pub(super) fn backup(path: &Path) -> Result<Connection, StoreError> {
    // SQLite reports a directory as an I/O error, and would wait for a pipe.
    if path.exists() && !path.is_file() {
        return Err(not_a_store(path, "it isn't a regular file"));
    }
    let connection = read_only(path)?;
    match recognise(&connection, path, MIGRATIONS)? {
        0 => Err(not_a_store(path, "it is empty")),
        _ => Ok(connection),
    }
}

/// Opens a read-only connection, which writes no files beside it, either, if none are needed.
pub(super) fn read_only(path: &Path) -> Result<Connection, StoreError> {
    open_file(path, OpenFlags::SQLITE_OPEN_READ_ONLY)
}

/// Opens an existing file. All connections to files are opened here.
fn open_file(path: &Path, access: OpenFlags) -> Result<Connection, StoreError> {
    // Absolute: SQLite takes a name that begins with `file:` for a URI, and `:memory:` for no file.
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let flags = access | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Connection::open_with_flags(absolute, flags).map_err(cannot_open(path))
}

/// Opens and migrates an empty file or a copy of a backup, which stays a single file: no other process knows it.
pub(super) fn private(path: &Path) -> Result<Connection, StoreError> {
    let mut connection = plain_connection(path, Duration::ZERO)?;
    let sized = connection.execute_batch(PAGE_SIZE);
    sized.map_err(cannot_open(path))?;
    migrate(&mut connection, path, MIGRATIONS)?;
    Ok(connection)
}

/// Makes the plan of a statement depend on its text alone. Otherwise SQLite plans each join with a parameter anew whenever it is
/// executed, which takes twice as long as to read a product by its code.
fn plan_once(connection: &Connection) -> rusqlite::Result<()> {
    let stable_plans = DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG;
    connection.set_db_config(stable_plans, true).map(drop)
}

pub(crate) fn plain_connection(path: &Path, lock_wait: Duration) -> Result<Connection, StoreError> {
    let connection = open_file(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    let is_readonly = connection.is_readonly(rusqlite::MAIN_DB);
    if is_readonly.map_err(cannot_open(path))? && is_writable(path) {
        // SQLite falls back to reading if it can't open for writing now, out of descriptors for one. Such a connection
        // could never write.
        return Err(unopened(
            path,
            std::io::Error::other("it could be opened only for reading"),
        ));
    }
    plan_once(&connection).map_err(cannot_open(path))?;
    connection
        .busy_timeout(lock_wait)
        .map_err(cannot_open(path))?;
    Ok(connection)
}

/// Returns whether this process may write to a file, without opening it: closing it would release the locks of all
/// connections to it.
fn is_writable(path: &Path) -> bool {
    rustix::fs::access(path, rustix::fs::Access::WRITE_OK).is_ok()
}

/// Returns the reason that a file can't be opened, if it can be found without opening it (see [`is_writable`]).
fn open_failure(path: &Path) -> Option<std::io::Error> {
    let access = rustix::fs::Access::READ_OK | rustix::fs::Access::WRITE_OK;
    let refused = rustix::fs::access(path, access).err();
    // Are there descriptors?
    refused
        .map(Into::into)
        .or_else(|| std::fs::File::open("/dev/null").err())
}

/// 16 kB made a catalog's file 42 % smaller; it takes effect only in a new file.
const PAGE_SIZE: &str = "pragma page_size = 16384;";

fn set_up(connection: &Connection, path: &Path, lock_wait: Duration) -> Result<(), StoreError> {
    let patient_until = Instant::now() + lock_wait;
    loop {
        // `journal_size_limit`: a log that starts again is cut to the size that `wal` leaves alone.
        let done = connection.execute_batch(&format!(
            "{PAGE_SIZE}
             pragma journal_mode = wal;
             pragma synchronous = full;
             pragma foreign_keys = on;
             pragma journal_size_limit = 33554432;"
        ));
        match done.map_err(cannot_open(path)) {
            // While another process creates the store, SQLite refuses to change the journal mode at once, whatever its
            // busy timeout.
            Err(StoreError::Busy { .. }) if Instant::now() < patient_until => {
                std::thread::sleep(Duration::from_millis(5));
            }
            outcome => return outcome,
        }
    }
}

fn not_a_store(path: &Path, reason: &str) -> StoreError {
    StoreError::NotAStore {
        place: path.display().to_string(),
        reason: reason.to_owned(),
    }
}

fn unopened(path: &Path, source: std::io::Error) -> StoreError {
    StoreError::File {
        doing: "open",
        path: path.to_owned(),
        source,
    }
}

/// Converts SQLite's errors from opening the file.
fn cannot_open(path: &Path) -> impl Fn(rusqlite::Error) -> StoreError {
    move |source| match source.sqlite_error_code() {
        Some(rusqlite::ErrorCode::NotADatabase) => not_a_store(path, "it isn't an SQLite database"),
        Some(rusqlite::ErrorCode::CannotOpen) => unopened(
            path,
            open_failure(path).unwrap_or_else(|| std::io::Error::other(source)),
        ),
        _ => during("opening the store")(source),
    }
}

/// Applies all missing migrations in one transaction.
fn migrate(
    connection: &mut Connection,
    path: &Path,
    migrations: &[&str],
) -> Result<(), StoreError> {
    if recognise_in_transaction(connection, path, migrations)? == migrations.len() {
        return Ok(());
    }
    let failed = during("migrating the store");
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(&failed)?;
    // Again inside the transaction: two processes may have come this far.
    let applied = recognise(&transaction, path, migrations)?;
    for migration in migrations.iter().skip(applied) {
        transaction.execute_batch(migration).map_err(&failed)?;
    }
    transaction
        .pragma_update(None, "application_id", APPLICATION_ID)
        .map_err(&failed)?;
    transaction
        .pragma_update(None, "user_version", migrations.len())
        .map_err(&failed)?;
    FailPoint::StoreMigrated.pass()?;
    // No special error at the commit: the data is the same whether it took effect or not.
    transaction.commit().map_err(&failed)?;
    FailPoint::StoreMigrationCommitted.pass()
}

/// Runs [`recognise`] in a transaction: another process may be creating the store, and a half-created one would look like
/// another program's.
fn recognise_in_transaction(
    connection: &mut Connection,
    path: &Path,
    migrations: &[&str],
) -> Result<usize, StoreError> {
    let transaction = connection.transaction().map_err(cannot_open(path))?;
    recognise(&transaction, path, migrations)
}

/// Returns the number of migrations that were applied, 0 for an empty file. Refuses other programs' databases, and stores of
/// other formats.
fn recognise(
    connection: &Connection,
    path: &Path,
    migrations: &[&str],
) -> Result<usize, StoreError> {
    let number = |sql: &str| {
        connection
            .query_row(sql, [], |row| row.get::<_, u32>(0))
            .map_err(cannot_open(path))
    };
    let application_id = number("pragma application_id")?;
    let found = number("pragma user_version")?;
    let tables = number("select count(*) from sqlite_schema")?;
    let other_format = |found| StoreError::OtherFormat {
        place: path.display().to_string(),
        found,
        known: migrations.len(),
    };
    match (application_id, found) {
        (0, 0) if tables == 0 => Ok(0),
        (APPLICATION_ID, found) => match found as usize {
            applied if (1..=migrations.len()).contains(&applied) => Ok(applied),
            _ => Err(other_format(found.to_string())),
        },
        (FORMER_APPLICATION_ID, found) => Err(other_format(format!("0.{found}"))),
        _ => Err(not_a_store(path, "it is another program's SQLite database")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn second_migration_is_applied_to_a_store_with_data() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store.db");
        let now = Duration::ZERO;
        let mut connection = open(&path, IfMissing::Create, now).unwrap();
        let id = |connection: &Connection| -> String {
            let sql = "select store_id from state";
            connection.query_row(sql, [], |row| row.get(0)).unwrap()
        };
        let before = id(&connection);
        let second = "alter table state add column colour text not null default 'red'";
        let migrations = [MIGRATIONS[0], second];
        // One that fails changes nothing.
        let spoilt = [MIGRATIONS[0], second, "no SQL"];
        migrate(&mut connection, &path, &spoilt).unwrap_err();
        for _ in 0..2 {
            migrate(&mut connection, &path, &migrations).unwrap();
        }
        let sql = "select colour from state";
        let colour: String = connection.query_row(sql, [], |row| row.get(0)).unwrap();
        assert_eq!((colour.as_str(), id(&connection)), ("red", before));
        drop(connection);
        let refused = open(&path, IfMissing::Create, now).unwrap_err();
        let is_newer =
            matches!(&refused, StoreError::OtherFormat { found, known: 1, .. } if found == "2");
        assert!(is_newer, "{refused}");
    }
}
