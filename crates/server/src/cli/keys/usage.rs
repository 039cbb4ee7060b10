//! `vitrine keys usage`: how much each key was used, by day.

use std::collections::HashMap;

use anyhow::bail;
use clap::Args;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};
use serde_json::{Value, json};
use vitrine_ingest::escape::single_line;
use vitrine_store::IfMissing;
use vitrine_store::record::KeyDay;

use super::prefix_of;
use crate::cli::{Outcome, OutputArgs, StoreArgs, output, print, print_json};

const EXAMPLES: &str = "\
Examples:
  vitrine keys usage
  vitrine keys usage partner --days 90
  vitrine keys usage --days 400 --json";

/// Show how many requests were made with each key, by day in UTC, the newest day first.
///
/// Servers store the numbers once a minute and when they end. REQUESTS are all answered requests; CHARGED are those
/// among them that cost quota, or would if the key had one.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::cli) struct Usage {
    #[command(flatten)]
    output: OutputArgs,
    /// Prefix of a key, or a label for all its keys; by default all keys.
    #[arg(value_name = "KEY")]
    name: Option<String>,
    /// Number of days, today included. Older ones than 400 aren't kept.
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u16).range(1..=400))]
    days: u16,
}

impl Usage {
    pub(super) fn run(&self, store: &StoreArgs) -> anyhow::Result<Outcome> {
        let store = store.open(IfMissing::Refuse)?;
        let today = Timestamp::now().to_zoned(TimeZone::UTC).date();
        let since = today.saturating_sub(Span::new().days(i64::from(self.days) - 1));
        let keys = store.keys()?;
        let labels: HashMap<&str, &str> = keys
            .iter()
            .map(|key| (key.prefix.as_str(), key.label.as_str()))
            .collect();
        let mut days = store.key_days(since)?;
        if let Some(name) = &self.name {
            let prefix = prefix_of(name);
            let is_meant =
                |key: &str| key == prefix || labels.get(key).is_some_and(|label| label == name);
            days.retain(|day| is_meant(&day.prefix));
            if days.is_empty() && !labels.keys().any(|key| is_meant(key)) {
                bail!("no key has the prefix or label `{prefix}`; see `vitrine keys list`");
            }
        }
        let label = |day: &KeyDay| labels.get(day.prefix.as_str()).copied();
        if self.output.json {
            let days = days.iter().map(|day| to_json(day, label(day)));
            print_json(&days.collect())?;
            return Ok(Outcome::Done);
        }
        let mut table = output::table(["DAY", "PREFIX", "LABEL", "REQUESTS", "CHARGED"]);
        for day in &days {
            table.add_row([
                day.day.to_string(),
                single_line(&day.prefix).into_owned(),
                single_line(label(day).unwrap_or("–")).into_owned(),
                day.counts.requests.to_string(),
                day.counts.charged.to_string(),
            ]);
        }
        print(&format!("{}\n", output::fitted(table)))?;
        Ok(Outcome::Done)
    }
}

/// Returns a day as JSON; a key that is gone has no label.
fn to_json(day: &KeyDay, label: Option<&str>) -> Value {
    json!({
        "day": day.day,
        "prefix": day.prefix,
        "label": label,
        "requests": day.counts.requests,
        "charged": day.counts.charged,
    })
}
