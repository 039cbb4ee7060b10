//! The `vitrine` program: calls [`vitrine::cli`].

use std::process::ExitCode;

/// Faster than the C library's allocator (docs/decisions/0004-attempts-at-speed.md). `.cargo/config.toml` has its
/// settings.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    vitrine::cli::main()
}
