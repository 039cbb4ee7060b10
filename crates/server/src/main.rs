//! The `vitrine` program: calls [`vitrine::cli`].

use std::process::ExitCode;

fn main() -> ExitCode {
    vitrine::cli::main()
}
