//! Stores of earlier schemas: a migration adds digests to keys, and a check distinguishes writes by an earlier release from changes
//! by something other than Vitrine; another one packs documents.

use std::path::Path;

use rusqlite::Connection;
use vitrine_store::problem::{Problem, Severity};
use vitrine_store::record::Moment;
use vitrine_store::{IfMissing, Store, StoreAddress, open};

use crate::database::Database;

const SQLITE_FIRST: &str = include_str!("../../src/sqlite/migrations/0001.sql");
const POSTGRES_FIRST: &str = include_str!("../../src/postgres/migrations/0001.sql");

/// Columns of a key in the first schema, as the release of that schema wrote them.
const COLUMNS: &str = "prefix, label, secret_hash, is_test, api_version, \
                       quota_requests, quota_seconds, created_at, expires_at, revoked_at, rotated_at";

/// Prefixes that keys can have.
const PREFIXES: [&str; 2] = ["vitrine_00000000001", "vitrine_00000000002"];

/// Returns the values of a revoked key; `hash` and `no` are SQL for a hash and for "no test key".
fn values(prefix: &str, revoked_at: &str, hash: &str, no: &str) -> String {
    format!("('{prefix}', 'partner', {hash}, {no}, null, 60, 60, 1, null, {revoked_at}, null)")
}

/// Rules that `store` breaks, with severity and place.
fn broken(store: &dyn Store) -> Vec<(&'static str, Severity, String)> {
    let problems = store.check().unwrap();
    let facts = |problem: Problem| (problem.rule, problem.severity, problem.place);
    problems.into_iter().map(facts).collect()
}

/// Checks the digests after the migration; `run` runs SQL, `write` writes a key as the previous release does.
fn assert_migrated(store: &dyn Store, run: &dyn Fn(&str), write: &dyn Fn(&str, &str)) {
    assert_eq!(broken(store), []);
    assert_eq!(store.keys().unwrap().len(), 2);
    let place = |prefix: &str| format!("key {prefix}");
    let changed = |prefix| ("api_key_digest", Severity::Fault, place(prefix));
    let undigested = |prefix| ("api_key_undigested", Severity::Warning, place(prefix));
    let [first, second] = PREFIXES;
    run(&format!(
        "update api_key set revoked_at = null where prefix = '{first}'"
    ));
    assert_eq!(broken(store), [changed(first)]);
    // The previous release, which knows no digests, changes both.
    write(first, "8");
    write(second, "8");
    assert_eq!(broken(store), [undigested(first), undigested(second)]);
    // This release changes one.
    store
        .change_keys(&crate::audited::set_key(), &mut |keys| {
            vec![keys[0].clone()]
        })
        .unwrap();
    assert_eq!(broken(store), [undigested(second)]);
}

#[test]
fn previous_sqlite_schema_is_migrated_with_digests() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("old.db");
    let url = format!("sqlite:{}", path.display());
    let run = |sql: &str| Connection::open(&path).unwrap().execute_batch(sql).unwrap();
    let write = |prefix: &str, revoked_at: &str| {
        let values = values(prefix, revoked_at, "zeroblob(32)", "0");
        run(&format!(
            "insert or replace into api_key ({COLUMNS}) values {values}"
        ));
    };
    run(SQLITE_FIRST);
    run("pragma application_id = 0x56697472; pragma user_version = 1");
    PREFIXES.iter().for_each(|prefix| write(prefix, "7"));

    // A check doesn't change the file, and accepts the missing digests.
    let before = std::fs::read(&path).unwrap();
    let Ok(address) = url.parse::<StoreAddress>();
    let checked = address.open_to_check(std::time::Duration::ZERO).unwrap();
    assert_eq!(broken(&*checked), []);
    assert!(std::fs::read(&path).unwrap() == before, "it was written to");
    let backup = directory.path().join("backup.db");
    std::fs::copy(&path, &backup).unwrap();

    let store = open(&url, IfMissing::Refuse).unwrap();
    assert_migrated(&*store, &run, &write);
    // A backup of the previous schema is migrated, too; keys that were revoked here stay so.
    store.restore(&backup, &crate::audited::restore()).unwrap();
    assert_eq!(broken(&*store), []);
    run("update api_key set revoked_at = null");
    assert_eq!(broken(&*store).len(), 2);
}

#[test]
fn previous_postgres_schema_is_migrated_with_digests() {
    let Some(database) = Database::create() else {
        return;
    };
    let run = |sql: &str| {
        database.run(&format!("set search_path = vitrine; {sql}"));
    };
    let write = |prefix: &str, revoked_at: &str| {
        let values = values(
            prefix,
            revoked_at,
            "decode(repeat('00', 32), 'hex')",
            "false",
        );
        let all: Vec<String> = COLUMNS
            .split(", ")
            .skip(1)
            .map(|column| format!("{column} = excluded.{column}"))
            .collect();
        run(&format!(
            "insert into vitrine.api_key ({COLUMNS}) values {values} \
             on conflict (prefix) do update set {}",
            all.join(", ")
        ));
    };
    run("create schema vitrine");
    run(POSTGRES_FIRST);
    run("insert into schema_version (version, oldest_release) values (1, 1)");
    PREFIXES.iter().for_each(|prefix| write(prefix, "7"));
    let store = open(&database.url, IfMissing::Refuse).unwrap();
    assert_migrated(&*store, &run, &write);
    let versions = "select version || ' ' || oldest_release from vitrine.schema_version";
    assert_eq!(
        database.run(versions),
        ["10 10"],
        "older releases would read documents elsewhere"
    );
}

/// A store that a release of schema 7 wrote, dumped by sqlite3: products of which some have texts, one is disabled by an override
/// and another one is hidden, one is retired.
const SQLITE_SEVENTH: &str = include_str!("../support/schema_7.sql");

/// Makes a store of schema 7. Returns code, first revision and document of its versions, then those of its bases.
fn make_seventh(path: &Path) -> [Vec<(String, u64, String)>; 2] {
    let store = Connection::open(path).unwrap();
    store.execute_batch(SQLITE_SEVENTH).unwrap();
    let header = "pragma application_id = 0x56697472; pragma user_version = 7";
    store.execute_batch(header).unwrap();
    let versions = "select code, from_revision, document from product_version order by id";
    let bases = "select code, from_revision, json_extract(product, '$.document') from base_version order by id";
    [versions, bases].map(|sql| {
        let mut statement = store.prepare(sql).unwrap();
        let columns = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
        let rows = statement.query_map([], columns).unwrap();
        rows.map(Result::unwrap).collect()
    })
}

fn assert_seventh(store: &dyn Store, [versions, bases]: &[Vec<(String, u64, String)>; 2]) {
    assert_eq!(broken(store), []);
    assert_eq!((versions.len(), bases.len()), (7, 3));
    for (code, from, document) in versions {
        let (code, moment) = (code.parse().unwrap(), Moment::Revision(*from));
        let product = store.product(&code, moment).unwrap().unwrap();
        assert_eq!(product.document, *document);
    }
    for (code, from, document) in bases {
        let (code, moment) = (code.parse().unwrap(), Moment::Revision(*from));
        let base = store.base_product(&code, moment).unwrap().unwrap();
        assert_eq!(base.document, *document);
        assert!(!base.own_texts.is_empty() && !base.countries.is_empty());
    }
}

#[test]
fn documents_and_bases_of_schema_7_are_packed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("seventh.db");
    let expected = make_seventh(&path);
    let backup = directory.path().join("backup.db");
    std::fs::copy(&path, &backup).unwrap();
    let before = std::fs::read(&backup).unwrap();

    let url = format!("sqlite:{}", path.display());
    // A check of the file as it is neither migrates nor changes it.
    let Ok(address) = format!("sqlite:{}", backup.display()).parse::<StoreAddress>();
    let checked = address.open_to_check(std::time::Duration::ZERO).unwrap();
    assert_eq!(broken(&*checked), []);
    assert!(
        std::fs::read(&backup).unwrap() == before,
        "it was written to"
    );

    let store = open(&url, IfMissing::Refuse).unwrap();
    assert_seventh(&*store, &expected);
    store.restore(&backup, &crate::audited::restore()).unwrap();
    assert_seventh(&*store, &expected);
    if let Some(database) = Database::create() {
        let store = open(&database.url, IfMissing::Create).unwrap();
        store.restore(&backup, &crate::audited::restore()).unwrap();
        assert_seventh(&*store, &expected);
    }
}

#[test]
fn damage_of_schema_7_is_found_after_the_migration() {
    for (damage, rule) in [
        (
            "update product_version set document = document || ' ' where id = 1",
            "version_digest",
        ),
        (
            "update product_version set document = cast(x'ff' as text) where id = 1",
            "document",
        ),
        (
            "update product_version set digest = zeroblob(32) where id = 1",
            "version_digest",
        ),
        (
            "update base_version set product = replace(product, 'LIVE', 'DEAD') where id = 1",
            "base",
        ),
        ("update base_version set product = '{' where id = 1", "base"),
        (
            "update base_version set product = cast(x'ff' as text) where id = 1",
            "base",
        ),
        (
            "update base_version set digest = zeroblob(32) where id = 1",
            "base",
        ),
        ("update base_version set code = 'A B' where id = 1", "base"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("damaged.db");
        make_seventh(&path);
        Connection::open(&path)
            .unwrap()
            .execute_batch(damage)
            .unwrap();
        let store = open(&format!("sqlite:{}", path.display()), IfMissing::Refuse).unwrap();
        let rules: Vec<&str> = broken(&*store).iter().map(|found| found.0).collect();
        assert!(rules.contains(&rule), "{damage}: {rules:?}");
    }
}
