//! Metrics of a mirror: a file in Prometheus's text format, for node_exporter's textfile collector.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};
use jiff::Timestamp;
use vitrine_ingest::mirror::RoundOutcome;

use super::text::Exposition;
use super::text_file;

/// Prefix of all metrics of mirrors, including those of other releases.
const FAMILY: &str = "vitrine_mirror_";
const LAST_SUCCESS: &str = "vitrine_mirror_last_success_timestamp_seconds";
const LAST_ATTEMPT: &str = "vitrine_mirror_last_attempt_timestamp_seconds";
const ROUNDS: &str = "vitrine_mirror_rounds_total";
const PRODUCTS: &str = "vitrine_mirror_products";
const DURATION: &str = "vitrine_mirror_duration_seconds";
const FOLLOWING: &str = "vitrine_mirror_following";
const LAG: &str = "vitrine_mirror_lag_seconds";

/// Metrics in the file's order: name, type, help.
const METRICS: [(&str, &str, &str); 7] = [
    (
        LAST_SUCCESS,
        "gauge",
        "Time at which the store was last known to have the source's catalog, in seconds since 1970.",
    ),
    (
        LAST_ATTEMPT,
        "gauge",
        "Time at which the last round ended, successful or not, in seconds since 1970.",
    ),
    (ROUNDS, "counter", "Rounds by outcome."),
    (
        PRODUCTS,
        "gauge",
        "Products of the source's catalog when it was last mirrored.",
    ),
    (DURATION, "gauge", "Duration of the last round."),
    (
        FOLLOWING,
        "gauge",
        "1 if the source's changes are followed, 0 if the source is polled.",
    ),
    (
        LAG,
        "gauge",
        "Time from the arrival of the changes that were published last to the end of their publish.",
    ),
];

/// A round that ended.
#[derive(Debug)]
pub struct Round {
    /// Outcome.
    pub outcome: RoundOutcome,
    /// Number of products of the source's catalog, if it is known.
    pub products: Option<u64>,
    /// Duration, without the time of waiting for changes.
    pub took: Duration,
    /// True if the round followed the source's changes.
    pub is_following: bool,
}

/// Metrics of all rounds that wrote to one file. A new run continues with the values in the file.
#[derive(Debug)]
pub struct Metrics {
    path: PathBuf,
    /// Values by name and labels.
    values: BTreeMap<String, f64>,
}

impl Metrics {
    /// Reads the values in the file, if it exists, and writes it back, so that a path that can't be written is reported
    /// before the first round.
    ///
    /// # Errors
    ///
    /// If the file can't be read or written, or isn't a file of a mirror's metrics.
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        let text = match std::fs::read_to_string(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
            read => read,
        };
        let text = text.with_context(|| format!("can't read {}", path.display()))?;
        let mut values = BTreeMap::new();
        for (line, number) in text.lines().zip(1_u64..) {
            match sample(line) {
                Some((name, value)) if is_known(name) => {
                    values.insert(name.to_owned(), value);
                }
                Some(_) => {}
                None if is_head(line) => {}
                None => bail!(
                    "{}:{number} isn't of a mirror's metrics, so that file isn't replaced; give --metrics-file one of its own",
                    path.display()
                ),
            }
        }
        for outcome in RoundOutcome::ALL {
            values.entry(rounds(outcome)).or_default();
        }
        let path = path.to_owned();
        let metrics = Self { path, values };
        metrics.write()?;
        Ok(metrics)
    }

    /// Adds a round, and writes the file atomically.
    ///
    /// # Errors
    ///
    /// If the file can't be written.
    pub fn record(&mut self, round: &Round, now: Timestamp) -> anyhow::Result<()> {
        let Round {
            outcome,
            products,
            took,
            is_following,
        } = *round;
        let now = now.as_duration().as_secs_f64();
        *self.values.entry(rounds(outcome)).or_default() += 1.0;
        self.set(LAST_ATTEMPT, now);
        self.set(DURATION, took.as_secs_f64());
        self.set(FOLLOWING, f64::from(u8::from(is_following)));
        if is_following && outcome == RoundOutcome::Published {
            self.set(LAG, took.as_secs_f64());
        }
        if outcome.is_success() {
            self.set(LAST_SUCCESS, now);
            if let Some(products) = products {
                self.set(PRODUCTS, products as f64);
            }
        }
        self.write()
    }

    fn set(&mut self, name: &str, value: f64) {
        self.values.insert(name.to_owned(), value);
    }

    fn write(&self) -> anyhow::Result<()> {
        text_file::write(&self.path, &self.text())
    }

    fn text(&self) -> String {
        let mut text = Exposition::default();
        for (metric, kind, help) in METRICS {
            text.head(metric, kind, help);
            let of_metric = |name: &&String| name.split('{').next() == Some(metric);
            for name in self.values.keys().filter(of_metric) {
                text.line(format_args!("{name} {}", self.values[name]));
            }
        }
        text.into_text()
    }
}

/// Returns the name with labels and the value of a line that is a sample of a mirror.
fn sample(line: &str) -> Option<(&str, f64)> {
    let (name, value) = line.rsplit_once(' ')?;
    let value = value.parse().ok()?;
    name.starts_with(FAMILY).then_some((name, value))
}

/// Returns true if a line without a value belongs to a mirror's file: blank, or the help or type of a metric.
fn is_head(line: &str) -> bool {
    let mut heads = ["# HELP ", "# TYPE "].into_iter();
    let metric = heads.find_map(|head| line.strip_prefix(head));
    line.trim().is_empty() || metric.is_some_and(|metric| metric.starts_with(FAMILY))
}

/// Returns true if a name with labels is a metric of this release.
fn is_known(name: &str) -> bool {
    METRICS.iter().any(|(metric, ..)| {
        let labels = name.strip_prefix(metric);
        labels.is_some_and(|labels| labels.is_empty() || labels.starts_with('{'))
    })
}

fn rounds(outcome: RoundOutcome) -> String {
    format!("{ROUNDS}{{outcome=\"{}\"}}", outcome.as_str())
}
