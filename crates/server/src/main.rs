//! The `vitrine` program: calls [`vitrine::cli`].

use std::process::ExitCode;

/// Faster than the C library's allocator, for SQLite and other C code, too: decision 27. `.cargo/config.toml` has its settings.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    vitrine::cli::main()
}
