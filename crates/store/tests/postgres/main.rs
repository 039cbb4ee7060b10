//! Tests of the PostgreSQL store alone: creating it concurrently, connecting to the database, outages of the database, and
//! hiding its password.
//!
//! - `support/database.rs`, `support/cluster.rs`: databases and servers for tests
//! - `outage.rs`: an unreachable database; `connection.rs`: TLS, passwords, a replica; `schema.rs`: schema, roles, check, restore, hints

#![expect(
    unreachable_pub,
    reason = "a test binary exports nothing; `pub` marks what rooms offer each other"
)]
#![expect(
    clippy::unwrap_used,
    reason = "these are tests, though not every function is marked as one"
)]

#[path = "../support/audited.rs"]
#[expect(dead_code, reason = "other tests use the rest")]
mod audited;
#[path = "../support/cluster.rs"]
mod cluster;
mod connection;
#[path = "../support/database.rs"]
mod database;
mod outage;
mod schema;

/// Creates a database, or ends the test without a PostgreSQL for tests.
macro_rules! new_database {
    () => {
        match crate::database::Database::create() {
            Some(database) => database,
            None => return,
        }
    };
}
pub(crate) use new_database;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use vitrine_model::revision::Revision;
use vitrine_store::Publication as _;
use vitrine_store::history::HistoryStart;
use vitrine_store::record::{CatalogItem, RevisionNote, StoredProduct};
use vitrine_store::{IfMissing, Store, StoreAddress, StoreError};

fn address(url: &str) -> StoreAddress {
    let Ok(address) = url.parse();
    address
}

fn open(url: &str, if_missing: IfMissing) -> Result<Arc<Store>, StoreError> {
    address(url).open(if_missing, Duration::from_secs(30))
}

/// A product whose document is `document`.
fn product(code: &str, document: &str) -> StoredProduct {
    StoredProduct {
        code: code.parse().unwrap(),
        document: document.to_owned(),
        content: None,
        discount_multiplier: "0.050".to_owned(),
        is_orderable: true,
        countries: vec!["DE".parse().unwrap()],
        categories: vec!["food".to_owned()],
        own_texts: Vec::new(),
    }
}

/// Publishes `products` as the whole catalog.
fn publish(store: &Store, products: &[StoredProduct]) -> Option<Revision> {
    let mut publication = store.publish().unwrap();
    for product in products {
        publication.put(product).unwrap();
    }
    publication.retire_others().unwrap();
    let note = RevisionNote::default();
    let published = publication.commit(Timestamp::now(), &note).unwrap();
    published.map(|(revision, _)| revision)
}

/// Returns the codes of the live catalog.
fn codes(store: &Store) -> Vec<String> {
    let mut codes = Vec::new();
    let read = store.read_catalog(Timestamp::MIN, &mut |item| {
        if let CatalogItem::Product(product) = item {
            codes.push(product.code.to_owned());
        }
        Ok(())
    });
    read.unwrap();
    codes
}

/// Returns the numbers of revisions and of items of the history of changes.
fn history(store: &Store) -> (usize, usize) {
    let everything = HistoryStart {
        revision: 0,
        texts: None,
        since: Timestamp::MIN,
        max_changes: u64::MAX,
    };
    let mut items = 0;
    let read = store.read_history(&everything, &mut |_| {
        items += 1;
        Ok(())
    });
    (read.unwrap().revisions.len(), items)
}

/// Returns all messages of an error, and its `Debug`.
fn told(error: &StoreError) -> String {
    let mut told = format!("{error} {error:?}");
    let mut next = std::error::Error::source(error);
    while let Some(error) = next {
        told.push_str(&format!(": {error}"));
        next = error.source();
    }
    told
}

/// Waits until `look` finds something.
fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    for _ in 0..12_000 {
        if let Some(found) = look() {
            return found;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("waited in vain for {what}");
}
