//! `vitrine man`: the manual pages, made of what `--help` says.

use std::fs;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, CommandFactory as _};

use super::{Cli, Outcome, print};

const EXAMPLES: &str = "\
Examples:
  vitrine man ~/.local/share/man/man1
  vitrine man | man -l -";

/// Write the manual pages, one for each command; or print the main one.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Man {
    /// The directory to write them into; it is made where it is missing. Without it, the main page
    /// is printed.
    directory: Option<PathBuf>,
}

impl Man {
    pub(super) fn run(&self) -> anyhow::Result<Outcome> {
        let Some(directory) = &self.directory else {
            let mut page = Vec::new();
            clap_mangen::Man::new(Cli::command()).render(&mut page)?;
            print(&String::from_utf8(page)?)?;
            return Ok(Outcome::Done);
        };
        fs::create_dir_all(directory)
            .and_then(|()| clap_mangen::generate_to(Cli::command(), directory))
            .with_context(|| format!("can't write manual pages into {}", directory.display()))?;
        Ok(Outcome::Done)
    }
}
