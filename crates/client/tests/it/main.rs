//! The client against answers as they are, and against a server that does everything wrong. Against the true program it is
//! tested in `crates/server/tests/it/client.rs`.

mod odd;
mod stand_in;

mod answers;
mod cache;
mod failures;
mod hostile;
mod picker;
mod walks;
