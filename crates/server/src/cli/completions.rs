//! `vitrine completions`: prints completion scripts for shells.

use clap::Args;
use clap_complete::{Shell, generate};

use super::program::program;
use super::{Outcome, print};

const EXAMPLES: &str = "\
Examples:
  vitrine completions bash > ~/.local/share/bash-completion/completions/vitrine
  vitrine completions zsh > ~/.zfunc/_vitrine
  vitrine completions fish > ~/.config/fish/completions/vitrine.fish";

/// Print a script that completes command lines in a shell.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Completions {
    /// The shell.
    shell: Shell,
}

impl Completions {
    pub(super) fn run(&self) -> anyhow::Result<Outcome> {
        let mut script = Vec::new();
        generate(self.shell, &mut program(), "vitrine", &mut script);
        print(&String::from_utf8(script)?)?;
        Ok(Outcome::Done)
    }
}
