//! `vitrine keys assign`: gives a key an assortment, or takes it away.

use clap::Args;
use jiff::Timestamp;
use serde_json::json;
use vitrine_store::IfMissing;
use vitrine_store::audit::AuditAction;

use super::to_json;
use crate::cli::audit::NoteArgs;
use crate::cli::confirm::ConfirmArgs;
use crate::cli::time::to_second;
use crate::cli::{Outcome, OutputArgs, StoreArgs, print, print_json};
use crate::keys::{Changes, change, described, prefix_of};

const EXAMPLES: &str = "\
Examples:
  vitrine keys assign vitrine_KVakkOwmM7g nordic
  vitrine keys assign partner --everything --yes";

/// Give a key an assortment: it sees what the rules say, at their discounts. Servers follow within a second.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::cli) struct Assign {
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    confirm: ConfirmArgs,
    #[command(flatten)]
    note: NoteArgs,
    /// Prefix of the key, or its label if no other key in use has it.
    #[arg(value_name = "KEY")]
    key: String,
    /// The assortment.
    #[arg(required_unless_present = "everything", conflicts_with = "everything")]
    name: Option<String>,
    /// Take the assortment away: the key sees the whole catalog, at list discounts.
    #[arg(long)]
    everything: bool,
}

impl Assign {
    pub(super) fn run(&self, store: &StoreArgs) -> anyhow::Result<Outcome> {
        if self.everything {
            let key = prefix_of(&self.key);
            self.confirm
                .confirm(&format!("this shows {key} the whole catalog"))?;
        }
        let now = Timestamp::now();
        let changes = Changes {
            assortment: Some(self.name.clone()),
            ..Changes::default()
        };
        let context = self.note.context(AuditAction::SetKey);
        let store = store.open(IfMissing::Refuse)?;
        let (before, after) = change(&store, &self.key, &changes, to_second(now), &context)?;
        match self.output.json {
            true => print_json(&json!({
                "before": to_json(&before, now),
                "after": to_json(&after, now),
            }))?,
            false => print(&described(&before, &after))?,
        }
        Ok(Outcome::Done)
    }
}
