//! The integration tests: the real program, run as its users run it.
//!
//! - `harness`: starts servers, runs commands, speaks HTTP to the letter
//! - the other modules: one per thing that users rely on

#![expect(
    unreachable_pub,
    reason = "a test binary exports nothing; `pub` marks what rooms offer each other"
)]

mod caching;
mod connections;
mod golden;
mod harness;
mod html;
mod keys;
mod links;
mod openapi;
mod parameters;
mod quotas;
mod request_limits;
mod requests;
mod smoke;
mod texts;
mod versions;
mod walks;
