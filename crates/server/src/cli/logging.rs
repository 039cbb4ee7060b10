//! The messages of a server: where they go, and how they read.

use std::io::{self, IsTerminal};

/// Messages go to standard error: as JSON, or as plain lines where a person reads along.
pub(super) fn start() {
    let builder = tracing_subscriber::fmt()
        .with_writer(io::stderr)
        .with_target(false);
    if io::stderr().is_terminal() {
        builder.compact().init();
    } else {
        builder.json().init();
    }
    // A panic is a message like any other; it goes on as it would have.
    std::panic::set_hook(Box::new(|panic| {
        let backtrace = std::backtrace::Backtrace::force_capture();
        tracing::error!(%panic, %backtrace, "a bug: the program panicked");
    }));
}
