//! What becomes of a store when the program dies or the disk fails, at every step that writes.
//!
//!     cargo test --features fail-points --test faults
//!
//! - `world`: a store with a past, a server over it, and what must be true of them after a fault
//! - `points`: death and errors at every fail point
//! - `kills`: `kill -9` at many moments of a load
//! - `random`: numbers for both, by a seed
//! - `io_errors`: a disk that fails, by a library (`io_faults.c`) between the program and the system

#![expect(
    unreachable_pub,
    reason = "a test binary exports nothing; `pub` marks what rooms offer each other"
)]

#[expect(dead_code, unused_imports, reason = "the other tests use all of it")]
#[path = "../it/harness/mod.rs"]
mod harness;
mod io_errors;
mod kills;
mod points;
mod random;
mod world;
