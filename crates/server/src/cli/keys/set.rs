//! `vitrine keys set`: changes a key that is in use.

use std::io::Write as _;

use clap::{ArgGroup, Args};
use jiff::Timestamp;
use serde_json::json;
use vitrine_store::IfMissing;
use vitrine_store::audit::AuditAction;

use super::create::{checked_expiry, checked_label, checked_quota, checked_version};
use super::to_json;
use crate::cli::audit::NoteArgs;
use crate::cli::confirm::ConfirmArgs;
use crate::cli::plain_text::PlainText;
use crate::cli::time::to_second;
use crate::cli::{Outcome, OutputArgs, StoreArgs, output, print, print_json};
use crate::keys::{Changes, change, described, prefix_of};

const EXAMPLES: &str = "\
Examples:
  vitrine keys set vitrine_KVakkOwmM7g --quota 1200/60
  vitrine keys set partner --expires 90d --label 'partner, until spring'
  vitrine keys set partner --assortment nordic
  vitrine keys set partner --no-expiry --no-quota";

/// Change a key without replacing it. Servers follow within a second.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
#[command(group = ArgGroup::new("change").required(true).multiple(true))]
pub(in crate::cli) struct Set {
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    confirm: ConfirmArgs,
    /// Prefix of the key, or its label if no other key in use has it.
    #[arg(value_name = "KEY")]
    name: String,
    /// Label for people.
    #[arg(long, group = "change", value_parser = PlainText)]
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
    /// Assortment: the key sees what its rules say, at their discounts.
    #[arg(long, value_name = "NAME", group = "change")]
    assortment: Option<String>,
    /// The key sees the whole catalog, at list discounts. Asks first.
    #[arg(long, group = "change", conflicts_with = "assortment")]
    everything: bool,
    /// The assortment, as `vitrine keys assign KEY NAME` had it.
    #[arg(hide = true, group = "change", conflicts_with_all = ["assortment", "everything"])]
    assigned: Option<String>,
    /// Quota: REQUESTS/SECONDS, such as 600/60. What is used up stays so, within the new quota.
    #[arg(long, value_name = "QUOTA", group = "change")]
    quota: Option<String>,
    /// The key has no quota.
    #[arg(long, group = "change", conflicts_with = "quota")]
    no_quota: bool,
    #[command(flatten)]
    note: NoteArgs,
}

impl Set {
    pub(super) fn run(&self, store: &StoreArgs) -> anyhow::Result<Outcome> {
        if self.everything {
            let key = prefix_of(&self.name);
            let warning = format!("this shows {key} the whole catalog");
            self.confirm.confirm(&warning)?;
        }
        let assortment = self.assortment.as_ref().or(self.assigned.as_ref());
        let now = Timestamp::now();
        let changes = Changes {
            label: self.label.as_deref().map(checked_label),
            expires_at: checked_expiry(self.expires.as_deref(), now)
                .map(|at| Some(to_second(at)))
                .or(self.no_expiry.then_some(None)),
            api_version: checked_version(self.api_version.as_ref())
                .map(|version| Some(version.clone()))
                .or(self.no_api_version.then_some(None)),
            assortment: assortment
                .map(|name| Some(name.clone()))
                .or(self.everything.then_some(None)),
            quota: checked_quota(self.quota.as_deref())
                .map(Some)
                .or(self.no_quota.then_some(None)),
        };
        let store = store.open(IfMissing::Refuse)?;
        let (before, after) = {
            let context = self.note.context(AuditAction::SetKey);
            change(&store, &self.name, &changes, to_second(now), &context)?
        };
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
