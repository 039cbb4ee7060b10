//! Attacks on a server: it survives, and healthy clients are answered meanwhile.
//!
//!     cargo test --test attacks -- --nocapture
//!
//! Each attack prints what healthy clients saw (statuses, 99th percentile of the time), and the server's resident memory
//! before, at its peak and ten seconds after.
//!
//! - `memory`: the limit on memory, and how much a server has
//! - `healthy`: clients that do as they should, beside an attack
//! - `stalled_log`: the attacks

#![expect(
    unreachable_pub,
    reason = "a test binary exports nothing; `pub` marks what rooms offer each other"
)]

#[expect(dead_code, unused_imports, reason = "the other tests use all of it")]
#[path = "../it/harness/mod.rs"]
mod harness;
mod healthy;
#[expect(dead_code, reason = "not all attacks need a limit")]
mod memory;
mod stalled_log;
