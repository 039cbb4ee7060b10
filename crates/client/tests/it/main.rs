//! The client against recorded responses and a mock server. `crates/server/tests/it/client.rs` tests it against the real
//! server.

mod mock_server;
mod stand_in;

mod answers;
mod cache;
mod failures;
mod hostile;
mod picker;
mod walks;
