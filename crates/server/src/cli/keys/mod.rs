//! `vitrine keys`: creates, lists, changes, rotates and revokes API keys, and shows their usage.

mod create;
mod rotate;
mod set;
mod usage;

use clap::Subcommand;
use jiff::Timestamp;
use serde_json::{Value, json};
use vitrine_model::key::{KeyKind, KeyRecord};
use vitrine_store::audit::{AuditAction, AuditContext};
use vitrine_store::{IfMissing, Store};

use self::create::Create;
use self::rotate::rotate;
use self::set::Set;
use self::usage::Usage;
use super::audit::NoteArgs;
use super::confirm::ConfirmArgs;
use super::time::to_second;
use super::{Outcome, OutputArgs, StoreArgs, output, print, print_json};

pub(super) use self::create::{NewKeySettings, checked_version, create};
use crate::keys;
pub(super) use crate::keys::prefix_of;

const EXAMPLES: &str = "\
Examples:
  vitrine keys create --label partner
  vitrine keys list
  vitrine keys usage partner --days 90
  vitrine keys set partner --quota 1200/60
  vitrine keys set partner --assortment nordic
  vitrine keys rotate partner --overlap 30d
  vitrine keys revoke vitrine_KVakkOwmM7g";

const LIST_EXAMPLES: &str = "\
Examples:
  vitrine keys list
  vitrine keys list --json";

const ROTATE_EXAMPLES: &str = "\
Examples:
  vitrine keys rotate partner
  vitrine keys rotate partner --overlap 30d";

const REVOKE_EXAMPLES: &str = "\
Examples:
  vitrine keys revoke vitrine_KVakkOwmM7g   # one key, by its prefix
  vitrine keys revoke partner               # every key of that label, successors too";

/// Create, list, change, rotate and revoke API keys, and show their usage.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(super) enum Keys {
    /// Create a key and print it. It is shown only this once.
    Create(Create),
    /// List the keys. Secrets aren't stored, so they can't be shown.
    ///
    /// Servers store the last use of a key once a minute.
    #[command(after_help = LIST_EXAMPLES)]
    List {
        #[command(flatten)]
        output: OutputArgs,
    },
    Usage(Usage),
    #[command(alias = "assign")]
    Set(Set),
    /// Create a successor of a key under the same label; the old key stays valid for the overlap.
    #[command(after_help = ROTATE_EXAMPLES)]
    Rotate {
        #[command(flatten)]
        output: OutputArgs,
        /// The label of the key, or its prefix.
        label: String,
        /// Time for which the old key stays valid.
        #[arg(long, value_name = "SPAN", default_value = "7d")]
        overlap: String,
        #[command(flatten)]
        note: NoteArgs,
    },
    /// Revoke keys for good. Servers refuse them within a second.
    #[command(after_help = REVOKE_EXAMPLES)]
    Revoke {
        #[command(flatten)]
        output: OutputArgs,
        #[command(flatten)]
        confirm: ConfirmArgs,
        #[command(flatten)]
        note: NoteArgs,
        /// Prefixes or labels; a label means all its keys.
        #[arg(required = true, value_name = "KEY")]
        names: Vec<String>,
    },
}

impl Keys {
    /// Returns true if the command changes keys.
    pub(super) fn writes(&self) -> bool {
        !matches!(self, Self::List { .. } | Self::Usage(_))
    }

    pub(super) fn run(&self, store: &StoreArgs) -> anyhow::Result<Outcome> {
        match self {
            Self::Create(create) => create.run(store),
            Self::Usage(usage) => usage.run(store),
            Self::Set(set) => set.run(store),
            Self::List { output } => list(&*store.open(IfMissing::Refuse)?, *output),
            Self::Rotate {
                output,
                label,
                overlap,
                note,
            } => {
                let context = note.context(AuditAction::RotateKey);
                let store = store.open(IfMissing::Refuse)?;
                rotate(&store, &context, *output, label, overlap)
            }
            Self::Revoke {
                output,
                confirm,
                note,
                names,
            } => {
                let names_listed: Vec<&str> = names.iter().map(|name| prefix_of(name)).collect();
                let names_listed = names_listed.join(", ");
                confirm.confirm_at_terminal(&format!(
                    "this revokes all keys with the label {names_listed} for good"
                ))?;
                let context = note.context(AuditAction::RevokeKey);
                revoke(&*store.open(IfMissing::Refuse)?, &context, *output, names)
            }
        }
    }
}

fn kind(record: &KeyRecord) -> &'static str {
    match record.kind {
        KeyKind::Live => "live",
        KeyKind::Test => "test",
    }
}

fn list(store: &Store, output: OutputArgs) -> anyhow::Result<Outcome> {
    let records = store.keys()?;
    let now = Timestamp::now();
    if output.json {
        let keys: Vec<Value> = records.iter().map(|record| to_json(record, now)).collect();
        print_json(&Value::Array(keys))?;
        return Ok(Outcome::Done);
    }
    let mut table = output::table([
        "PREFIX",
        "LABEL",
        "STATE",
        "KIND",
        "VERSION",
        "ASSORTMENT",
        "QUOTA",
        "CREATED",
        "EXPIRES",
        "LAST USED",
    ]);
    let time = |moment: Option<Timestamp>| {
        moment.map_or_else(|| "–".to_owned(), |moment| to_second(moment).to_string())
    };
    for record in &records {
        table.add_row([
            record.prefix.clone(),
            record.label.clone(),
            record.status(now).as_str().to_owned(),
            kind(record).to_owned(),
            record.api_version.clone().unwrap_or_else(|| "–".to_owned()),
            record.assortment.clone().unwrap_or_else(|| "–".to_owned()),
            record
                .quota
                .map_or_else(|| "–".to_owned(), |quota| quota.to_string()),
            time(Some(record.created_at)),
            time(record.expires_at),
            time(record.last_used_at),
        ]);
    }
    print(&format!("{}\n", output::fitted(table)))?;
    Ok(Outcome::Done)
}

fn to_json(record: &KeyRecord, now: Timestamp) -> Value {
    json!({
        "prefix": record.prefix,
        "label": record.label,
        "state": record.status(now).as_str(),
        "kind": kind(record),
        "api_version": record.api_version,
        "assortment": record.assortment,
        "quota": record.quota.map(|quota| quota.to_string()),
        "created_at": record.created_at,
        "expires_at": record.expires_at,
        "revoked_at": record.revoked_at,
        "rotated_at": record.rotated_at,
        "last_used_at": record.last_used_at,
    })
}

fn revoke(
    store: &Store,
    context: &AuditContext,
    output: OutputArgs,
    names: &[String],
) -> anyhow::Result<Outcome> {
    let now = to_second(Timestamp::now());
    let revoked = keys::revoke(store, names, now, context)?;
    if output.json {
        print_json(&json!({"revoked": revoked}))?;
    } else if revoked.is_empty() {
        print("revoked already\n")?;
    } else {
        print(&format!("revoked {}\n", revoked.join(", ")))?;
        // It is revoked, whether this can be read or not.
        let endpoints = store.endpoints().unwrap_or_default();
        let ended = (endpoints.iter())
            .filter(|endpoint| revoked.contains(&endpoint.key))
            .count();
        if ended > 0 {
            print(&format!(
                "webhook endpoints that ended with it: {ended}; see `vitrine webhooks list`\n"
            ))?;
        }
    }
    Ok(Outcome::Done)
}
