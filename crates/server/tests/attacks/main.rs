//! Attacks on a server: it survives, and healthy clients are answered meanwhile.
//!
//!     cargo test --test attacks -- --nocapture
//!
//! Each attack prints what healthy clients saw (statuses, 99th percentile of the time), and the server's resident memory
//! before, at its peak and after.
//!
//! - `keyless_connections`: connections without a key, as many as the server takes

#![expect(
    unreachable_pub,
    reason = "a test binary exports nothing; `pub` marks what rooms offer each other"
)]

#[expect(dead_code, unused_imports, reason = "the other tests use all of it")]
#[path = "../it/harness/mod.rs"]
mod harness;
mod keyless_connections;
