//! `vitrine mirror`: replaces the store's catalog by that of another server, once, repeatedly, or as it changes.

use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Args;
use jiff::Timestamp;
use tokio::signal::unix::{SignalKind, signal};
use vitrine_ingest::escape::single_line;
use vitrine_ingest::jitter;
use vitrine_ingest::load::LoadSettings;
use vitrine_ingest::load::guard::Allowance;
use vitrine_ingest::load::plan::Listing;
use vitrine_ingest::load::report::Report;
use vitrine_ingest::mirror::source::{
    DEFAULT_RETRIES, Insecure, KEY_VARIABLE, Source, requested_pause,
};
use vitrine_ingest::mirror::state::StateFile;
use vitrine_ingest::mirror::{Mirror, News, RoundOutcome, TextForm, Wait, outcome};
use vitrine_store::{IfMissing, Store};

use super::load::{operator, print_report};
use super::logging::LogArgs;
use super::plain_text::PlainText;
use super::{
    Outcome, OutputArgs, PlanArgs, StoreArgs, nothing_was_changed, print_error, print_json, time,
    variable,
};
use crate::metrics::mirror::{Metrics, Round};

const EXAMPLES: &str = "\
Examples:
  VITRINE_MIRROR_KEY=PREFIX.SECRET vitrine mirror --from https://catalog.example
  vitrine mirror --from https://catalog.example --texts --every 10m \\
      --metrics-file /var/lib/node_exporter/vitrine.prom
  vitrine mirror --from https://catalog.example --texts --follow \\
      --state-file /var/lib/vitrine/mirror.json

Environment:
  VITRINE_MIRROR_KEY  The key of the other server. No option takes it, because others on the machine can read command lines.
  HTTPS_PROXY         Proxy for https.
  NO_PROXY            Hosts that are reached without it.
  SSL_CERT_FILE       Certificate authorities to trust, not the system's.
  TMPDIR              Directory of the temporary files.";

/// Mirror another server of this API: its whole catalog replaces the store's, in one transaction.
///
/// The catalog is read as of one moment, with retries, and nothing is changed before all of it was read. Products that the source doesn't have are retired. The copy has what its key sees: under an assortment a part of
/// the catalog, at the discounts of that key.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct MirrorCommand {
    #[command(flatten)]
    output: OutputArgs,
    /// Address of the other server, with or without `/v2`.
    #[arg(long, value_name = "URL")]
    from: String,
    /// Mirror the Markdown of its texts too, so that this catalog doesn't depend on the source's addresses.
    #[arg(long)]
    texts: bool,
    /// Mirror repeatedly, with this pause in between (30s, 10m, 1h), until SIGTERM or Ctrl-C.
    #[arg(long, value_name = "SPAN", value_parser = time::parse_pause)]
    every: Option<Duration>,
    /// Follow the source's changes, which arrive within a second, until SIGTERM or Ctrl-C. A source without a feed of
    /// changes is mirrored repeatedly instead, with the pause of `--every` (by default 1m).
    #[arg(long)]
    follow: bool,
    /// Keep the position in the source's changes here, so that a restart goes on from there. Without it, a restart reads
    /// the whole catalog.
    #[arg(long, value_name = "FILE", requires = "follow")]
    state_file: Option<PathBuf>,
    /// Number of retries of a request that fails, with growing pauses.
    #[arg(long, value_name = "N", default_value_t = DEFAULT_RETRIES)]
    retries: u32,
    /// Send the key over plain http to another machine, although others on the network can read it.
    #[arg(long)]
    allow_insecure: bool,
    /// Raise a limit of the guard, as for `vitrine load`. Give it once for each name.
    #[arg(long, value_name = "NAME=PERCENT%")]
    allow: Vec<Allowance>,
    /// Write metrics for node_exporter's textfile collector here after each round.
    #[arg(long, value_name = "FILE")]
    metrics_file: Option<PathBuf>,
    /// Note for the history. By default `mirror of URL`.
    #[arg(long, value_name = "TEXT", value_parser = PlainText)]
    note: Option<String>,
    #[command(flatten)]
    logs: LogArgs,
}

/// Default pause between two rounds with a source without a feed of changes.
const DEFAULT_PAUSE: Duration = Duration::from_secs(60);

/// Maximum pause after a failure to follow.
const MAX_FAILURE_PAUSE: Duration = Duration::from_secs(30);

/// Future that ends when the process gets SIGTERM or SIGINT.
type ShutdownSignal = Pin<Box<dyn Future<Output = ()>>>;

impl MirrorCommand {
    pub(super) fn run(&self, store: &StoreArgs) -> anyhow::Result<Outcome> {
        match self.every.is_some() || self.follow {
            true => self.logs.start()?,
            false => self.logs.start_for_command()?,
        }
        let source = self.source()?;
        let by_default = || format!("mirror of {}", source.base());
        let settings = LoadSettings {
            allowances: self.allow.clone(),
            note: Some(self.note.clone().unwrap_or_else(by_default)),
            ..LoadSettings::replace(operator())
        };
        let texts = match self.texts {
            true => TextForm::Markdown,
            false => TextForm::Addresses,
        };
        let metrics = self
            .metrics_file
            .as_deref()
            .map(Metrics::open)
            .transpose()?;
        let state = self.state_file.as_deref().map(StateFile::open);
        let state = state.transpose()?;
        let store = store.open(IfMissing::Create)?;
        let wait = match self.follow {
            true => Wait::Yes,
            false => Wait::No,
        };
        let mut run = MirrorRun {
            store: &store,
            mirror: Mirror::new(source, texts, wait, state, &store)?,
            settings,
            output: self.output,
            metrics,
            follows: self.follow,
        };
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build()?;
        runtime.block_on(async {
            match self.every.or(self.follow.then_some(DEFAULT_PAUSE)) {
                Some(pause) => run.run_every(pause, shutdown_signal()?).await,
                None => run.run_once().await,
            }
        })
    }

    fn source(&self) -> anyhow::Result<Source> {
        let key = variable(KEY_VARIABLE).with_context(|| {
            format!("{KEY_VARIABLE} isn't set; put a key of the other server into that environment variable")
        })?;
        let insecure = match self.allow_insecure {
            true => Insecure::Allow,
            false => Insecure::Refuse,
        };
        Source::new(&self.from, &key, insecure, self.retries)
    }
}

fn shutdown_signal() -> anyhow::Result<ShutdownSignal> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(Box::pin(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    }))
}

/// Result of a round.
struct RoundResult {
    ended: anyhow::Result<Report>,
    /// True if the source had no news for a mirror that follows it.
    is_silent: bool,
    /// Result of writing the metrics.
    recorded: anyhow::Result<()>,
}

/// Rounds of one run.
struct MirrorRun<'s> {
    store: &'s Store,
    mirror: Mirror,
    /// Settings of each round's load.
    settings: LoadSettings,
    output: OutputArgs,
    metrics: Option<Metrics>,
    /// True with `--follow`.
    follows: bool,
}

impl MirrorRun<'_> {
    async fn run_once(&mut self) -> anyhow::Result<Outcome> {
        let RoundResult {
            ended, recorded, ..
        } = self.round().await;
        // The round's own error comes first, since it matters more.
        let report = ended?;
        let outcome = print_report(&report, self.output, PlanArgs::default())?;
        let Err(error) = recorded else {
            return Ok(outcome);
        };
        let error = error.context(report.describe_outcome());
        if outcome != Outcome::Refused {
            return Err(error);
        }
        print_error(&error)?;
        Ok(outcome)
    }

    async fn run_every(
        &mut self,
        pause: Duration,
        mut shutdown: ShutdownSignal,
    ) -> anyhow::Result<Outcome> {
        loop {
            let round = tokio::select! {
                // A load isn't interrupted: its transaction ends before this is polled again.
                round = self.round() => round,
                () = &mut shutdown => return Ok(Outcome::Done),
            };
            let pause = self.pause_after(&round.ended, pause);
            self.log(round)?;
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = &mut shutdown => return Ok(Outcome::Done),
            }
        }
    }

    /// Returns the pause after a round: `every`, or the longer one that the source asked for. While the source is followed,
    /// its requests have pauses of their own.
    fn pause_after(&self, ended: &anyhow::Result<Report>, every: Duration) -> Duration {
        match ended {
            Ok(report) if outcome(report).is_success() && self.mirror.is_following() => {
                Duration::ZERO
            }
            Ok(_) => every,
            Err(error) => {
                let pause = match self.follows {
                    true => jitter::slight(every.min(MAX_FAILURE_PAUSE)),
                    false => every,
                };
                requested_pause(error).map_or(pause, |requested| requested.max(pause))
            }
        }
    }

    fn record(&mut self, round: &Round) -> anyhow::Result<()> {
        let metrics = self.metrics.as_mut();
        metrics.map_or(Ok(()), |metrics| metrics.record(round, Timestamp::now()))
    }

    /// Runs one round: fetches, loads, and records both.
    async fn round(&mut self) -> RoundResult {
        let mut started = Instant::now();
        let (ended, is_silent) = loop {
            match self.mirror.fetch(self.store).await {
                Ok(News::Unchanged) => break (Ok(self.mirror.unchanged()), self.follows),
                Ok(News::Changes(changes)) => {
                    if self.mirror.is_following() {
                        started = changes.arrived();
                    }
                    let ended = self.mirror.load(self.store, changes, self.settings.clone());
                    // If another command has published meanwhile, the whole catalog is fetched.
                    if let Some(ended) = ended.transpose() {
                        break (ended, false);
                    }
                }
                Err(error) => break (Err(error), false),
            }
        };
        let is_following = self.mirror.is_following();
        let recorded = self.record(&Round {
            outcome: ended.as_ref().map_or(RoundOutcome::Failed, outcome),
            products: self.mirror.products(),
            took: match is_following && (is_silent || ended.is_err()) {
                true => Duration::ZERO,
                false => started.elapsed(),
            },
            is_following,
        });
        RoundResult {
            ended,
            is_silent,
            recorded,
        }
    }

    /// Logs the result of a round: in full if the source's catalog was refused; a failure to write its metrics,
    /// separately.
    fn log(&self, round: RoundResult) -> io::Result<()> {
        let report = match round.ended {
            Ok(report) => report,
            Err(error) => {
                let error = format!("{:#}", nothing_was_changed(error));
                tracing::error!("failed: {}", single_line(&error));
                return Ok(());
            }
        };
        if let Err(error) = round.recorded {
            let error = format!("{:#}", error.context(report.describe_outcome()));
            tracing::error!("{}", single_line(&error));
        }
        if round.is_silent {
            return Ok(());
        }
        let (word, text) = (outcome(&report), report.to_text(Listing::Complete));
        let summary = text.lines().last().unwrap_or_default();
        match word {
            RoundOutcome::Refused => tracing::error!(report = text, "refused: {summary}"),
            word => tracing::info!("{}: {summary}", word.as_str()),
        }
        if self.output.json {
            print_json(&report.to_json())?;
        }
        Ok(())
    }
}
