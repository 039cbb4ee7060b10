//! Stores of both kinds with their SQL, for tests that look behind the trait.

use std::path::Path;
use std::sync::Arc;

use rusqlite::Connection;
use vitrine_store::{IfMissing, Store, open};

use crate::database::Database;
use crate::packed::connect;

/// SQL that takes away what schema 8 of SQLite added, but for the number of the schema; bases are dropped.
const BEFORE_SCHEMA_8: &str = "pragma foreign_keys = off; \
     alter table product_version add column document text not null default ''; \
     update product_version set document = unpack_document( \
        (select document from product_document where product_version_id = product_version.id)); \
     drop table product_document;";

/// SQL that takes away what schemas 4 to 7 added, after [`BEFORE_SCHEMA_8`], but for the number of the schema.
const BEFORE_SCHEMA_4: &str = "drop table base_text; drop table base_version; drop table catalog_override; drop table webhook_state; drop table webhook_endpoint; \
     drop table webhook_attempt; drop table audit_entry; drop table api_key_day; \
     drop table assortment_version; drop table assigned_key; \
     alter table state drop column assortments_counter; \
     alter table state drop column assortments_accepted;";

/// Takes away from a backup what schemas 4 to 8 added, but for the number of the schema.
pub fn take_back_to_schema_3(backup: &Path) -> Connection {
    let older = connect(backup);
    older.execute_batch(BEFORE_SCHEMA_8).unwrap();
    older.execute_batch(BEFORE_SCHEMA_4).unwrap();
    older
}

/// A store of either kind.
pub struct Kept<'a> {
    /// Directory for files.
    pub directory: &'a Path,
    pub url: String,
    /// Runs SQL.
    pub run: &'a dyn Fn(&str),
    /// Runs a query. Returns the first column of the result, as text.
    pub query: &'a dyn Fn(&str) -> Vec<String>,
}

impl Kept<'_> {
    pub fn open(&self) -> Arc<dyn Store> {
        open(&self.url, IfMissing::Create).unwrap()
    }

    pub fn is_sqlite(&self) -> bool {
        self.url.starts_with("sqlite:")
    }

    /// Takes away what schemas 4 to 8 added, but for the number of the schema.
    pub fn take_back_to_schema_3(&self) {
        if self.is_sqlite() {
            (self.run)(BEFORE_SCHEMA_8);
        }
        (self.run)(BEFORE_SCHEMA_4);
    }
}

/// Runs `test` with an empty SQLite store and, if there is a PostgreSQL, with an empty database.
pub fn on_both(test: impl Fn(&Kept<'_>)) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let query = |sql: &str| {
        let connection = Connection::open(&path).unwrap();
        let mut statement = connection.prepare(sql).unwrap();
        let rows = statement.query_map([], |row| row.get(0)).unwrap();
        rows.map(Result::unwrap).collect()
    };
    test(&Kept {
        directory: directory.path(),
        url: format!("sqlite:{}", path.display()),
        run: &|sql| connect(&path).execute_batch(sql).unwrap(),
        query: &query,
    });
    let directory = tempfile::tempdir().unwrap();
    if let Some(database) = Database::create() {
        test(&Kept {
            directory: directory.path(),
            url: database.url.clone(),
            run: &|sql| drop(database.run(&format!("set search_path = vitrine; {sql}"))),
            query: &|sql| database.run(&format!("set search_path = vitrine; {sql}")),
        });
    }
}
