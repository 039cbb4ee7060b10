//! `vitrine tick`: lets overrides begin and end when their time comes, where servers may not publish.

use std::sync::Arc;

use anyhow::Context as _;
use clap::Args;
use vitrine_ingest::overrides::instants::apply_next;
use vitrine_store::IfMissing;

use super::logging::LogArgs;
use super::overrides::instant_json;
use super::shutdown::wait_for_signal;
use super::{Outcome, StoreArgs, print};
use crate::instants::{AtInstant, InstantThread};

const EXAMPLES: &str = "\
Examples:
  vitrine tick
  vitrine tick --follow";

/// Let overrides begin and end whose time has come.
///
/// `vitrine serve` does this on an SQLite store. On PostgreSQL its role may not publish: run `vitrine tick --follow` under the
/// role that loads, on one machine or on several, which share the work.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Tick {
    /// Go on until SIGTERM or Ctrl-C; by default apply what is due, and end.
    #[arg(long)]
    follow: bool,
    #[command(flatten)]
    logs: LogArgs,
}

impl Tick {
    pub(super) fn run(&self, store: &StoreArgs) -> anyhow::Result<Outcome> {
        self.logs.start()?;
        if !self.follow {
            let store = store.open(IfMissing::Refuse)?;
            while let Some(applied) = apply_next(&*store)? {
                let line = instant_json(&applied);
                print(&format!("{line}\n"))?;
            }
            return Ok(Outcome::Done);
        }
        let store = store.open_to_follow(IfMissing::Refuse)?;
        let thread = InstantThread::start(store, AtInstant::Apply, Arc::default())
            .context("can't start the thread that applies instants")?;
        wait_for_signal("waiting for overrides to begin or end")?;
        drop(thread);
        Ok(Outcome::Done)
    }
}
