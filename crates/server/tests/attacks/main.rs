//! Attacks on a server: it survives, and healthy clients are answered meanwhile.
//!
//!     cargo test --test attacks -- --nocapture
//!
//! Each attack prints what healthy clients saw (statuses, 99th percentile of the time), and the server's resident memory
//! before, at its peak and ten seconds after. Those on memory run one at a time, against a server that has no more of it
//! than docs/deploy.md says it needs.
//!
//! - `memory`: the limit on memory: a cgroup, or a limit of the shell where none can be made
//! - `healthy`: clients that do as they should, beside an attack
//! - `world`: a server under such a limit, and the table of an attack
//! - `stuck_streams`, `unread_answers`, `huge_products`, `greedy_key`, `keyless_connections`, `stalled_log`: the attacks

#![expect(
    unreachable_pub,
    reason = "a test binary exports nothing; `pub` marks what rooms offer each other"
)]

mod greedy_key;
#[expect(dead_code, unused_imports, reason = "the other tests use all of it")]
#[path = "../it/harness/mod.rs"]
mod harness;
mod healthy;
mod huge_products;
mod keyless_connections;
mod memory;
mod stalled_log;
mod stuck_streams;
mod unread_answers;
mod world;
