//! Confirmation of destructive commands.

use std::io::{self, BufRead, IsTerminal, Write};

use anyhow::{Context, bail};
use clap::Args;
use clap::error::ErrorKind;

use super::output;

/// Consent to an irreversible command.
#[derive(Debug, Clone, Copy, Args)]
pub(super) struct ConfirmArgs {
    /// Don't ask for confirmation. Required in scripts, unless the command names what it revokes or changes.
    #[arg(long)]
    yes: bool,
}

impl ConfirmArgs {
    /// Returns true if [`confirm_at_terminal`](Self::confirm_at_terminal) would ask.
    pub(super) fn is_needed(self) -> bool {
        !self.yes && is_at_terminal()
    }

    /// Returns if `--yes` was given, or the person at the terminal types `yes` after `warning`. Without a terminal,
    /// ends the program like a wrong command line.
    pub(super) fn confirm(self, warning: &str) -> anyhow::Result<()> {
        if !self.yes && !is_at_terminal() {
            let message = format!("{warning}; there is no terminal to ask on: add --yes\n");
            clap::Error::raw(ErrorKind::MissingRequiredArgument, message).exit();
        }
        self.confirm_at_terminal(warning)
    }

    /// Like [`confirm`](Self::confirm), but returns without a terminal: for commands that name exactly what they
    /// destroy, and must work at once in an emergency.
    pub(super) fn confirm_at_terminal(self, warning: &str) -> anyhow::Result<()> {
        if self.yes || !is_at_terminal() {
            return Ok(());
        }
        write!(output::stderr(), "{warning}. Type `yes` to continue: ")?;
        let mut answer = String::new();
        let read = io::stdin().lock().read_line(&mut answer);
        read.context("can't read the answer")?;
        if answer.trim() != "yes" {
            bail!("not confirmed; nothing was changed");
        }
        Ok(())
    }
}

fn is_at_terminal() -> bool {
    io::stdin().is_terminal() && output::stderr().is_terminal()
}
