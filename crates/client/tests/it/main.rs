//! The client against recorded responses and a mock server. `crates/server/tests/it/client.rs` tests it against the real
//! server.

mod mock_server;
mod stand_in;

mod answers;
mod cache;
mod changes;
mod failures;
mod hostile;
mod picker;
mod sync;
mod sync_failures;
mod walks;
