//! Several servers over one PostgreSQL: that they agree, that changes reach all of them in time, and that nothing that
//! happens to the database takes the reads down.
//!
//!     cargo test --test fleet
//!
//! Each test starts a PostgreSQL of its own, since it kills or stops it. `VITRINE_FAULT_SECONDS` says how long a fault
//! lasts (5), `VITRINE_SOAK_SECONDS` how long the soak takes (20), `VITRINE_CHANGES_ROUNDS` how often all happens that copies
//! are to survive (1).
//!
//! - `database`: a PostgreSQL that can be killed, stopped and cut off
//! - `proxy`: a proxy that stalls
//! - `clients`: constant load, which notices every failed answer
//! - `world`: three servers over a database
//! - `faketime`: clocks that are wrong
//! - `followers`: clients that keep copies by the changes feed, each time from another server
//! - `receiver`: a receiver of webhooks that can be killed
//! - `agreement`, `assortments`, `changes`, `promptness`, `faults`, `limits`, `replica`, `starts`, `soak`, `webhooks`: the tests

#![expect(
    unreachable_pub,
    reason = "a test binary exports nothing; `pub` marks what rooms offer each other"
)]

mod agreement;
mod assortments;
mod changes;
mod clients;
#[expect(dead_code, reason = "tests of the store use all of it")]
#[path = "../../../store/tests/support/cluster.rs"]
mod cluster;
mod database;
#[path = "../faults/faketime.rs"]
mod faketime;
mod faults;
mod followers;
#[expect(dead_code, unused_imports, reason = "the other tests use all of it")]
#[path = "../it/harness/mod.rs"]
mod harness;
mod instants;
mod limits;
mod promptness;
mod proxy;
#[path = "../faults/random.rs"]
mod random;
mod receiver;
mod replica;
mod soak;
mod starts;
mod webhooks;
mod world;
