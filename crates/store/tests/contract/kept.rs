//! Stores of both kinds with their SQL, for tests that look at rows.

use std::path::Path;
use std::sync::Arc;

use vitrine_store::{IfMissing, Store, open};

use crate::database::Database;
use crate::packed::connect;

/// A store of either kind.
pub struct Kept<'a> {
    /// Directory for files.
    pub directory: &'a Path,
    pub url: String,
    /// Runs SQL.
    pub run: &'a dyn Fn(&str),
}

impl Kept<'_> {
    pub fn open(&self) -> Arc<Store> {
        open(&self.url, IfMissing::Create).unwrap()
    }

    pub fn is_sqlite(&self) -> bool {
        self.url.starts_with("sqlite:")
    }
}

/// Runs `test` with an empty SQLite store and, if there is a PostgreSQL, with an empty database.
pub fn on_both(test: impl Fn(&Kept<'_>)) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    test(&Kept {
        directory: directory.path(),
        url: format!("sqlite:{}", path.display()),
        run: &|sql| connect(&path).execute_batch(sql).unwrap(),
    });
    let directory = tempfile::tempdir().unwrap();
    if let Some(database) = Database::create() {
        test(&Kept {
            directory: directory.path(),
            url: database.url.clone(),
            run: &|sql| drop(database.run(&format!("set search_path = vitrine; {sql}"))),
        });
    }
}
