//! The contract of the store on both databases: [`suite`] gets a function that opens an empty store.
//!
//! - `products.rs`: products to put, and collecting what a store returns
//! - `publishes.rs`: revisions; `changes.rs`: differences; `history.rs`: the history; `change_history.rs`: the history of changes; `prune.rs`: pruning; `texts.rs`: texts; `fetched.rs`: fetched texts; `keys.rs`: API keys, and their requests by day; `assortments.rs`: assortments; `audit.rs`: the audit log
//! - `assigned_keys.rs`: keys with an assortment, in backups and damaged; `assortment_crashes.rs`: crashes while they are written; `kept.rs`: stores with their SQL
//! - `operators.rs`: operators of the console and their sessions; `webhooks.rs`: webhook endpoints; `overrides.rs`: overrides, and bases beside products
//! - `format.rs`: stores of other formats; `support/packed.rs`: SQL functions for packed documents
//! - `sqlite_file.rs`: file and log of the embedded store
//! - `support/database.rs`, `support/cluster.rs`: databases and servers of PostgreSQL for tests

#![expect(
    unreachable_pub,
    reason = "a test binary exports nothing; `pub` marks what rooms offer each other"
)]
#![expect(
    clippy::unwrap_used,
    reason = "these are tests, though not every function is marked as one"
)]

mod assigned_keys;
#[cfg(feature = "fail-points")]
mod assortment_crashes;
mod assortments;
mod audit;
#[path = "../support/audited.rs"]
mod audited;
mod change_history;
mod changes;
#[path = "../support/cluster.rs"]
#[expect(dead_code, reason = "another test starts servers with it")]
mod cluster;
#[path = "../support/database.rs"]
mod database;
mod fetched;
mod format;
mod history;
mod kept;
mod keys;
mod operators;
mod overrides;
#[path = "../support/packed.rs"]
mod packed;
mod products;
mod prune;
mod publishes;
mod sqlite_file;
mod texts;
mod webhooks;

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cluster::Bouncer;
use database::Database;
use vitrine_store::{IfMissing, Store, open};

/// Runs the whole contract; `fresh` opens an empty store.
fn suite(fresh: impl Fn() -> Arc<Store>) {
    let fresh: &dyn Fn() -> Arc<Store> = &fresh;
    for (name, part) in [
        &publishes::ALL[..],
        &changes::ALL,
        &history::ALL,
        change_history::ALL,
        prune::ALL,
        &texts::ALL,
        &fetched::ALL,
        keys::ALL,
        assortments::ALL,
        audit::ALL,
        webhooks::ALL,
        operators::ALL,
        &overrides::ALL,
    ]
    .concat()
    {
        println!("contract: {name}");
        part(&fresh());
    }
}

/// One rule of the contract: its name or its sentence, and its check on an empty store.
type Rule = (&'static str, fn(&Store));

/// Makes the list of a module's rules, which are named like their checks.
macro_rules! rules {
    ($($rule:ident,)*) => {
        pub const ALL: &[crate::Rule] = &[$((stringify!($rule), $rule)),*];
    };
}
pub(crate) use rules;

#[test]
fn sqlite_store_keeps_the_contract() {
    let directory = tempfile::tempdir().unwrap();
    let count = AtomicU64::new(0);
    suite(|| {
        let number = count.fetch_add(1, Ordering::Relaxed);
        let path = directory.path().join(format!("{number}.db"));
        open(&format!("sqlite:{}", path.display()), IfMissing::Create).unwrap()
    });
}

#[test]
fn postgres_store_keeps_the_contract() {
    let Some(first) = Database::create() else {
        return;
    };
    let databases = RefCell::new(vec![first]);
    suite(|| {
        let database = Database::create().unwrap();
        let store = open(&database.url, IfMissing::Create).unwrap();
        databases.borrow_mut().push(database);
        store
    });
}

/// Each transaction uses any free connection: nothing may rely on a session.
#[test]
fn postgres_store_keeps_the_contract_through_pgbouncer() {
    let Some(first) = Database::create() else {
        return;
    };
    let bouncer = Bouncer::start(first.port(), 4);
    let databases = RefCell::new(vec![first]);
    suite(|| {
        let database = Database::create().unwrap();
        let store = open(&bouncer.url(&database.url), IfMissing::Create).unwrap();
        databases.borrow_mut().push(database);
        store
    });
}
