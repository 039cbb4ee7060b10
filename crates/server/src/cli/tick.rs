//! `vitrine tick`: lets overrides begin and end when their time comes, where servers may not publish.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use clap::{Args, ValueHint};
use vitrine_ingest::overrides::instants::{apply_next, held_up};
use vitrine_store::IfMissing;

use super::logging::LogArgs;
use super::overrides::instant_json;
use super::shutdown::wait_for_signal;
use super::{Outcome, StoreArgs, print};
use crate::instants::{AtInstant, InstantThread};
use crate::metrics::table::InstantMetrics;
use crate::metrics::text::Exposition;
use crate::metrics::text_file;

const EXAMPLES: &str = "\
Examples:
  vitrine tick
  vitrine tick --follow --metrics-file /var/lib/node_exporter/vitrine-tick.prom";

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
    /// Write metrics for node_exporter's textfile collector here: how late the next instant is, how many were applied, and how many
    /// of them exceeded the guard.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "follow")]
    metrics_file: Option<PathBuf>,
    #[command(flatten)]
    logs: LogArgs,
}

impl Tick {
    pub(super) fn run(&self, store: &StoreArgs) -> anyhow::Result<Outcome> {
        self.logs.start()?;
        if !self.follow {
            let store = store.open(IfMissing::Refuse)?;
            while let Some(applied) = apply_next(&store)? {
                let line = instant_json(&applied);
                print(&format!("{line}\n"))?;
            }
            return match held_up(&store)?.first() {
                Some(one) => Err(one.error().into()),
                None => Ok(Outcome::Done),
            };
        }
        let store = store.open_to_follow(IfMissing::Refuse)?;
        let metrics = Arc::new(InstantMetrics::default());
        let mut file = self.metrics_file.clone().map(MetricsFile::new);
        if let Some(file) = &mut file {
            // A path that can't be written is reported at once.
            file.write(&metrics)?;
        }
        let looked = move |metrics: &InstantMetrics| {
            if let Some(Err(error)) = file.as_mut().map(|file| file.write(metrics)) {
                tracing::warn!(error = format!("{error:#}"), "the metrics can't be written");
            }
        };
        let thread = InstantThread::start(store, AtInstant::Apply, metrics, looked)
            .context("can't start the thread that applies instants")?;
        wait_for_signal("waiting for overrides to begin or end")?;
        drop(thread);
        Ok(Outcome::Done)
    }
}

/// File of metrics, written when they change.
struct MetricsFile {
    path: PathBuf,
    written: String,
}

impl MetricsFile {
    fn new(path: PathBuf) -> Self {
        let written = String::new();
        Self { path, written }
    }

    fn write(&mut self, metrics: &InstantMetrics) -> anyhow::Result<()> {
        let mut text = Exposition::default();
        metrics.describe(&mut text);
        let text = text.into_text();
        if text != self.written {
            text_file::write(&self.path, &text)?;
            self.written = text;
        }
        Ok(())
    }
}
