//! Stores of other formats: refused with what to do, and left as they are.

use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;
use vitrine_store::{IfMissing, Store, StoreAddress, StoreError, open};

use crate::audited::restore;
use crate::database::Database;

/// Calls everything that opens the store, and asserts that it is refused as one of the format `found`.
fn assert_refused(url: &str, found: &str) {
    let Ok(address) = url.parse::<StoreAddress>();
    let wait = Duration::ZERO;
    // A handle for a check or a server may be there; what it does is refused.
    let used = |store: std::sync::Arc<Store>| store.check().map(drop);
    for outcome in [
        address.open(IfMissing::Create, wait).map(drop),
        address.open_to_check(wait).and_then(used),
        (address.open_to_follow(IfMissing::Create, wait)).and_then(used),
    ] {
        assert_told(&outcome.unwrap_err(), found);
    }
}

fn assert_told(error: &StoreError, found: &str) {
    assert!(matches!(error, StoreError::OtherFormat { .. }), "{error:?}");
    assert!(!error.may_come_back());
    let expected = format!(
        " has the format {found} of another version of Vitrine; this one reads format 1. To move the data: \
         `vitrine export` with that version, then `vitrine load` with this one; create new keys"
    );
    assert!(error.to_string().ends_with(&expected), "{error}");
}

/// Makes a file with the mark of stores from before the first release.
fn make_former(path: &Path, schema: u32) {
    let file = Connection::open(path).unwrap();
    file.execute_batch(&format!(
        "pragma journal_mode = wal; pragma application_id = 0x56697472; pragma user_version = {schema}; \
         create table state (only_row integer primary key, store_id text); insert into state values (1, 'id')"
    ))
    .unwrap();
}

#[test]
fn sqlite_file_of_a_former_format_is_refused_unchanged() {
    let directory = tempfile::tempdir().unwrap();
    let url = |path: &Path| format!("sqlite:{}", path.display());
    let store = open(&url(&directory.path().join("new.db")), IfMissing::Create).unwrap();
    for schema in 1..=10 {
        let path = directory.path().join(format!("{schema}.db"));
        make_former(&path, schema);
        let before = std::fs::read(&path).unwrap();
        let found = format!("0.{schema}");
        assert_refused(&url(&path), &found);
        // As a backup it is refused, too.
        assert_told(&store.restore(&path, &restore()).unwrap_err(), &found);
        assert_told(&store.plan_restore(&path).unwrap_err(), &found);
        let Ok(created) = url(&directory.path().join("created.db")).parse::<StoreAddress>();
        let error = created.create_from(&path, &restore()).unwrap_err();
        assert_told(&error, &found);
        let after = std::fs::read(&path).unwrap();
        assert!(after == before, "{schema}: it was written to");
    }
}

#[test]
fn newer_sqlite_file_is_refused_unchanged() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("newer.db");
    let url = format!("sqlite:{}", path.display());
    drop(open(&url, IfMissing::Create).unwrap());
    let file = Connection::open(&path).unwrap();
    file.pragma_update(None, "user_version", 99).unwrap();
    drop(file);
    let before = std::fs::read(&path).unwrap();
    assert_refused(&url, "99");
    let after = std::fs::read(&path).unwrap();
    assert!(after == before, "it was written to");
}

/// Returns all tables and columns of the schema, and what it says of its version.
fn described(database: &Database) -> [Vec<String>; 2] {
    let columns = "select a.attrelid::regclass || '.' || a.attname from pg_attribute a \
                   join pg_class c on c.oid = a.attrelid where c.relnamespace = 'vitrine'::regnamespace order by 1";
    let version = "select v::text from vitrine.schema_version v";
    [columns, version].map(|sql| database.run(sql))
}

#[test]
fn postgres_schema_of_a_former_format_is_refused_unchanged() {
    let Some(database) = Database::create() else {
        return;
    };
    database.run(
        "create schema vitrine; create table vitrine.schema_version ( \
            only_row boolean primary key default true check (only_row), \
            version integer not null, oldest_release integer not null); \
         create table vitrine.state (store_id text)",
    );
    for version in [1, 9] {
        database.run(&format!(
            "delete from vitrine.schema_version; \
             insert into vitrine.schema_version (version, oldest_release) values ({version}, 1)"
        ));
        let before = described(&database);
        assert_refused(&database.url, &format!("0.{version}"));
        assert_eq!(described(&database), before);
    }
}

#[test]
fn newer_postgres_schema_is_refused_unchanged() {
    let Some(database) = Database::create() else {
        return;
    };
    drop(open(&database.url, IfMissing::Create).unwrap());
    database.run("update vitrine.schema_version set version = 99");
    let before = described(&database);
    assert_refused(&database.url, "99");
    assert_eq!(described(&database), before);
}
