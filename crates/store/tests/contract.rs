//! The contract of the store on both databases: [`suite`] gets a function that opens an empty store.
//!
//! - `contract/products.rs`: products to put, and collecting what a store returns
//! - `contract/publishes.rs`: revisions; `contract/loaded_versions.rs`: versions known by the records they were loaded from; `contract/changes.rs`: differences; `contract/history.rs`: the history; `contract/change_history.rs`, `contract/change_bounds.rs`, `contract/change_gaps.rs`: the history of changes, its bounds and its gaps; `contract/prune.rs`: pruning; `contract/texts.rs`: texts; `contract/fetched.rs`: fetched texts; `contract/keys.rs`: API keys; `contract/key_days.rs`: their requests by day; `contract/assortments.rs`: assortments; `contract/audit.rs`: the audit log, `contract/audit_log.rs`: it after restores and changes by hand
//! - `contract/assigned_keys.rs`: keys with an assortment, in backups and damaged; `contract/assortment_crashes.rs`: crashes while they are written; `contract/kept.rs`: stores with their SQL
//! - `contract/operators.rs`: operators of the console and their sessions; `contract/webhooks.rs`: webhook endpoints; `contract/overrides.rs`: overrides, and bases beside products
//! - `contract/format.rs`: stores of other formats; `support/packed.rs`: SQL functions for packed documents
//! - `contract/sqlite_file.rs`, `contract/sqlite_log.rs`: file and log of the embedded store
//! - `support/database.rs`, `support/cluster.rs`: databases and servers of PostgreSQL for tests

#![expect(
    unreachable_pub,
    reason = "a test binary exports nothing; `pub` marks what rooms offer each other"
)]
#![expect(
    clippy::unwrap_used,
    reason = "these are tests, though not every function is marked as one"
)]

#[path = "contract/assigned_keys.rs"]
mod assigned_keys;
#[cfg(feature = "fail-points")]
#[path = "contract/assortment_crashes.rs"]
mod assortment_crashes;
#[path = "contract/assortments.rs"]
mod assortments;
#[path = "contract/audit.rs"]
mod audit;
#[path = "contract/audit_log.rs"]
mod audit_log;
#[path = "support/audited.rs"]
mod audited;
#[path = "contract/change_bounds.rs"]
mod change_bounds;
#[path = "contract/change_gaps.rs"]
mod change_gaps;
#[path = "contract/change_history.rs"]
mod change_history;
#[path = "contract/changes.rs"]
mod changes;
#[path = "support/cluster.rs"]
#[expect(dead_code, reason = "another test starts servers with it")]
mod cluster;
#[path = "support/database.rs"]
mod database;
#[path = "contract/fetched.rs"]
mod fetched;
#[path = "contract/format.rs"]
mod format;
#[path = "contract/history.rs"]
mod history;
#[path = "contract/kept.rs"]
mod kept;
#[path = "contract/key_days.rs"]
mod key_days;
#[path = "contract/keys.rs"]
mod keys;
#[path = "contract/loaded_versions.rs"]
mod loaded_versions;
#[path = "contract/operators.rs"]
mod operators;
#[path = "contract/overrides.rs"]
mod overrides;
#[path = "support/packed.rs"]
mod packed;
#[path = "contract/products.rs"]
mod products;
#[path = "contract/prune.rs"]
mod prune;
#[path = "contract/publishes.rs"]
mod publishes;
#[path = "contract/sqlite_file.rs"]
mod sqlite_file;
#[path = "contract/sqlite_log.rs"]
mod sqlite_log;
#[path = "contract/texts.rs"]
mod texts;
#[path = "contract/webhooks.rs"]
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
        &loaded_versions::ALL[..],
        &changes::ALL,
        &history::ALL,
        &change_bounds::ALL,
        &change_history::ALL,
        &prune::ALL,
        &texts::ALL,
        &fetched::ALL,
        &keys::ALL,
        &assortments::ALL,
        &key_days::ALL,
        &audit::ALL,
        &webhooks::ALL,
        &operators::ALL,
        &overrides::ALL,
    ]
    .concat()
    {
        println!("contract: {name}");
        part(&fresh());
    }
}

/// One rule of the contract: its sentence, and its check on an empty store.
type Rule = (&'static str, fn(&Store));

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
