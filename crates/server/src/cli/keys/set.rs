//! `vitrine keys set`: changes a key that is in use.

use std::io::Write as _;

use anyhow::anyhow;
use clap::{ArgGroup, Args};
use jiff::Timestamp;
use serde_json::json;
use vitrine_model::key::{KeyRecord, KeyStatus};
use vitrine_model::quota::Quota;
use vitrine_store::audit::{AuditAction, AuditContext};
use vitrine_store::{IfMissing, Store};

use super::create::{checked_expiry, checked_label, checked_quota, checked_version};
use super::{prefix_of, to_json, warn_of_older_servers};
use crate::cli::audit::NoteArgs;
use crate::cli::time::to_second;
use crate::cli::{Outcome, OutputArgs, StoreArgs, output, print, print_json};

const EXAMPLES: &str = "\
Examples:
  vitrine keys set vitrine_KVakkOwmM7g --quota 1200/60
  vitrine keys set partner --expires 90d --label 'partner, until spring'
  vitrine keys set partner --no-expiry --no-quota";

/// Change a key without replacing it. Servers follow within a second.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
#[command(group = ArgGroup::new("change").required(true).multiple(true))]
pub(in crate::cli) struct Set {
    #[command(flatten)]
    output: OutputArgs,
    /// Prefix of the key, or its label if no other key in use has it.
    #[arg(value_name = "KEY")]
    name: String,
    /// Label for people.
    #[arg(long, group = "change")]
    label: Option<String>,
    /// Expiry: a date, a time, or a span from now such as 90d. An expired key is accepted again.
    #[arg(long, value_name = "WHEN", group = "change")]
    expires: Option<String>,
    /// The key never expires.
    #[arg(long, group = "change", conflicts_with = "expires")]
    no_expiry: bool,
    /// API version of responses to requests that name none.
    #[arg(long, value_name = "DATE", group = "change")]
    api_version: Option<String>,
    /// The key has the default version.
    #[arg(long, group = "change", conflicts_with = "api_version")]
    no_api_version: bool,
    /// Assortment that the key sees; to take it away: `vitrine keys assign KEY --everything`.
    #[arg(long, value_name = "NAME", group = "change")]
    assortment: Option<String>,
    /// Quota: REQUESTS/SECONDS, such as 600/60. What is used up stays so, within the new quota.
    #[arg(long, value_name = "QUOTA", group = "change")]
    quota: Option<String>,
    /// The key has no quota.
    #[arg(long, group = "change", conflicts_with = "quota")]
    no_quota: bool,
    #[command(flatten)]
    note: NoteArgs,
}

/// New values; `None` leaves the old one, `Some(None)` removes it.
#[derive(Default)]
pub(super) struct Changes {
    pub(super) label: Option<String>,
    pub(super) expires_at: Option<Option<Timestamp>>,
    pub(super) api_version: Option<Option<String>>,
    pub(super) assortment: Option<Option<String>>,
    pub(super) quota: Option<Option<Quota>>,
}

impl Set {
    pub(super) fn run(&self, store: &StoreArgs) -> anyhow::Result<Outcome> {
        let now = Timestamp::now();
        let changes = Changes {
            label: self.label.as_deref().map(checked_label),
            expires_at: checked_expiry(self.expires.as_deref(), now)
                .map(|at| Some(to_second(at)))
                .or(self.no_expiry.then_some(None)),
            api_version: checked_version(self.api_version.as_ref())
                .map(|version| Some(version.clone()))
                .or(self.no_api_version.then_some(None)),
            assortment: self.assortment.clone().map(Some),
            quota: checked_quota(self.quota.as_deref())
                .map(Some)
                .or(self.no_quota.then_some(None)),
        };
        let store = store.open(IfMissing::Refuse)?;
        let (before, after) = {
            let context = self.note.context(AuditAction::SetKey);
            change(&*store, &self.name, &changes, to_second(now), &context)?
        };
        warn_of_older_servers(&*store, Some(&before), &after)?;
        if self.no_expiry && after.rotated_at.is_some() && before.expires_at.is_some() {
            let prefix = &after.prefix;
            writeln!(
                output::stderr(),
                "vitrine: warning: the key {prefix} was rotated, and now never expires; its successor doesn't replace it"
            )?;
        }
        if self.output.json {
            print_json(&json!({
                "before": to_json(&before, now),
                "after": to_json(&after, now),
            }))?;
        } else {
            print(&described(&before, &after))?;
        }
        Ok(Outcome::Done)
    }
}

/// Changes the key that a name means; returns it as it was and as it is.
pub(super) fn change(
    store: &dyn Store,
    name: &str,
    changes: &Changes,
    now: Timestamp,
    context: &AuditContext,
) -> anyhow::Result<(KeyRecord, KeyRecord)> {
    let mut outcome = None;
    store.change_keys(context, &mut |records| {
        let found = find(records, name, now).map(|before| {
            let after = changes.applied_to(before);
            (before.clone(), after)
        });
        let changed = match &found {
            Ok((before, after)) if values(before) != values(after) => vec![after.clone()],
            _ => Vec::new(),
        };
        outcome = Some(found);
        changed
    })?;
    outcome.unwrap_or_else(|| Err(anyhow!("the keys weren't read")))
}

impl Changes {
    fn applied_to(&self, record: &KeyRecord) -> KeyRecord {
        let Self {
            label,
            expires_at,
            api_version,
            assortment,
            quota,
        } = self;
        KeyRecord {
            label: label.as_ref().unwrap_or(&record.label).clone(),
            expires_at: expires_at.unwrap_or(record.expires_at),
            api_version: api_version.as_ref().unwrap_or(&record.api_version).clone(),
            assortment: assortment.as_ref().unwrap_or(&record.assortment).clone(),
            quota: quota.unwrap_or(record.quota),
            ..record.clone()
        }
    }
}

/// Returns the key that a name means: that of the prefix, or the only one of the label that is in use, or else the only one
/// that isn't revoked.
fn find<'r>(records: &'r [KeyRecord], name: &str, now: Timestamp) -> anyhow::Result<&'r KeyRecord> {
    let prefix = prefix_of(name);
    let is_revoked = |record: &KeyRecord| record.status(now) == KeyStatus::Revoked;
    if let Some(record) = records.iter().find(|record| record.prefix == prefix) {
        return match is_revoked(record) {
            true => Err(anyhow!(
                "the key {prefix} is revoked for good; create another one"
            )),
            false => Ok(record),
        };
    }
    let labelled = records.iter().filter(|record| record.label == name);
    let labelled: Vec<&KeyRecord> = labelled.filter(|record| !is_revoked(record)).collect();
    let in_use = labelled.iter().filter(|record| record.is_active(now));
    let in_use: Vec<&KeyRecord> = in_use.copied().collect();
    let meant = if in_use.is_empty() { labelled } else { in_use };
    match meant.as_slice() {
        [record] => Ok(record),
        [] => Err(anyhow!(
            "no key has the prefix or label `{prefix}`; nothing was changed, see `vitrine keys list`"
        )),
        several => Err(anyhow!(
            "{} keys have the label `{name}`; change one by its prefix, see `vitrine keys list`",
            several.len()
        )),
    }
}

/// Returns the values that can be changed, with their names, for people; `None` for one that isn't set.
fn values(record: &KeyRecord) -> [(&'static str, Option<String>); 5] {
    [
        ("label", Some(record.label.clone())),
        ("expiry", record.expires_at.map(|at| at.to_string())),
        ("API version", record.api_version.clone()),
        ("assortment", record.assortment.clone()),
        ("quota", record.quota.map(|quota| quota.to_string())),
    ]
}

/// Says what changed, for people.
pub(super) fn described(before: &KeyRecord, after: &KeyRecord) -> String {
    let or_none = |value: Option<String>| value.unwrap_or_else(|| "none".to_owned());
    let changed = values(before).into_iter().zip(values(after));
    let changed: Vec<String> = changed
        .filter(|((_, before), (_, after))| before != after)
        .map(|((name, before), (_, after))| {
            format!("{name} {} → {}", or_none(before), or_none(after))
        })
        .collect();
    match changed.is_empty() {
        true => format!("{}: nothing differs\n", after.prefix),
        false => format!("{}: {}\n", after.prefix, changed.join(", ")),
    }
}
