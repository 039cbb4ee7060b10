//! The `vitrine` program: hands over to [`vitrine::cli`].

use std::process::ExitCode;

fn main() -> ExitCode {
    vitrine::cli::main()
}
