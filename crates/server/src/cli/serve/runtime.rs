//! The runtime of a server.

use std::io;
use std::panic;
use std::process;
use std::sync::Arc;
use std::thread;

use tokio::runtime::{Builder, Runtime};

use crate::cli::logging::FinishOnDrop;

/// Exit status of a process that panicked, as the standard library has it.
const PANICKED: i32 = 101;

/// Builds the runtime of a server, with a thread for each core.
///
/// If the system gives no thread, the runtime panics, and while it unwinds it waits forever for those it has: so the
/// process ends once the panic is logged.
///
/// # Errors
///
/// If the system gives no descriptors.
pub(super) fn build() -> io::Result<Runtime> {
    let caller = thread::current().id();
    let hook = Arc::new(panic::take_hook());
    let log = Arc::clone(&hook);
    panic::set_hook(Box::new(move |panic| {
        log(panic);
        if thread::current().id() == caller {
            drop(FinishOnDrop);
            process::exit(PANICKED);
        }
    }));
    let runtime = Builder::new_multi_thread().enable_all().build();
    panic::set_hook(Box::new(move |panic| hook(panic)));
    runtime
}
