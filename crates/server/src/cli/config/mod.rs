//! `vitrine config`: prints the manual of settings, checks a file, shows the values in effect.

mod check;
mod show;

use anyhow::Result;
use clap::{Args, Subcommand};

use super::settings::{self, ConfigArgs};
use super::{Outcome, print};

const EXAMPLES: &str = "\
Examples:
  vitrine config default > vitrine.toml
  vitrine config check vitrine.toml
  vitrine config show --config vitrine.toml";

const DEFAULT_EXAMPLES: &str = "\
Examples:
  vitrine config default > vitrine.toml";

/// Settings of a server: print all with their defaults, check a file, show the values in effect.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(super) enum Config {
    Default(DefaultCommand),
    Check(check::Check),
    Show(show::Show),
}

/// Print a settings file with every setting, its default and its meaning.
#[derive(Debug, Args)]
#[command(after_help = DEFAULT_EXAMPLES)]
pub(super) struct DefaultCommand {}

impl Config {
    pub(super) fn run(&self, config: &ConfigArgs) -> Result<Outcome> {
        match self {
            Self::Default(_) => {
                print(&settings::template())?;
                Ok(Outcome::Done)
            }
            Self::Check(check) => check.run(config),
            Self::Show(show) => show.run(config),
        }
    }
}
