//! State of a store after the program dies or the disk fails, at every step that writes.
//!
//!     cargo test --features fail-points --test faults
//!
//! - `world`: a store with a past, a server over it, and what must be true of them after a fault
//! - `points`: death and errors at every fail point
//! - `kills`: `kill -9` at many moments of a load
//! - `random`: numbers for both, by a seed
//! - `disk`: a disk that fails, by a library (`io_faults.c`) between the program and the system; `io_errors`: commands
//!   on it; `serving`: a running server; `starting`: a server that starts
//! - `descriptors`, `memory`: too few of them
//! - `clocks`: a clock that jumps under a server; `faketime`: how
//! - `panics`: bugs in a running server
//! - `changes`: copies kept by the changes feed through all that
//!
//! By default a random part of the failing calls is tested; `VITRINE_FAULTS=all` tests all, as `ci/long` does. A new step that
//! writes needs a fail point (`crates/store/src/fail_point.rs`), and a new command that writes a scenario in `world`.

#![expect(
    unreachable_pub,
    reason = "a test binary exports nothing; `pub` marks what rooms offer each other"
)]

mod changes;
mod clocks;
mod descriptors;
mod disk;
mod faketime;
#[expect(dead_code, unused_imports, reason = "the other tests use all of it")]
#[path = "../it/harness/mod.rs"]
mod harness;
mod io_errors;
mod kills;
mod memory;
mod panics;
mod points;
mod random;
mod serving;
mod starting;
mod state;
mod world;
