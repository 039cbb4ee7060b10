//! `vitrine assortments`: the rules by which keys see a part of the catalog, at discounts of their own.

mod change;
mod edit;
mod export;

use std::path::PathBuf;

use clap::Subcommand;
use serde_json::{Value, json};
use vitrine_ingest::escape::single_line;
use vitrine_ingest::load::report::shown;
use vitrine_store::assortment::AssortmentVersion;
use vitrine_store::audit::AuditAction;
use vitrine_store::{IfMissing, Store};

use self::edit::{Remove, Rollback, SetRules};
use super::audit::NoteArgs;
use super::confirm::ConfirmArgs;
use super::time::to_second;
use super::{Outcome, OutputArgs, StoreArgs, output, print, print_json};
use crate::assortments::{rules_at, unknown};

const EXAMPLES: &str = "\
Examples:
  vitrine assortments set nordic nordic.json --dry-run
  vitrine assortments set nordic nordic.json --note 'contract of 2026'
  vitrine keys set vitrine_KVakkOwmM7g --assortment nordic
  vitrine assortments history nordic
  vitrine assortments rollback nordic 3";

const LIST_EXAMPLES: &str = "\
Examples:
  vitrine assortments list
  vitrine assortments list --json";

const SHOW_EXAMPLES: &str = "\
Examples:
  vitrine assortments show nordic > nordic.json
  vitrine assortments show nordic --at 3";

const HISTORY_EXAMPLES: &str = "\
Examples:
  vitrine assortments history nordic
  vitrine assortments history nordic --json";

const EXPORT_EXAMPLES: &str = "\
Examples:
  vitrine assortments export assortments/";

const ACCEPT_EXAMPLES: &str = "\
Examples:
  vitrine assortments accept --yes";

/// Give keys a part of the catalog, at discounts of their own.
///
/// An assortment is a named set of rules, in JSON: `allow` and `deny` select products by `codes`, `categories`,
/// `countries`, `currencies` and `payout_types`, `discounts` changes their discounts. Keys without one see everything.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(super) enum Assortments {
    Set(SetRules),
    /// List the assortments.
    #[command(after_help = LIST_EXAMPLES)]
    List {
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Print the rules of an assortment, as JSON.
    #[command(after_help = SHOW_EXAMPLES)]
    Show {
        /// The assortment.
        name: String,
        /// Number of the version; by default the live one.
        #[arg(long, value_name = "VERSION")]
        at: Option<u32>,
    },
    /// The same as `set --dry-run`.
    #[command(hide = true)]
    Diff(SetRules),
    /// List the versions of an assortment, the newest first.
    #[command(after_help = HISTORY_EXAMPLES)]
    History {
        #[command(flatten)]
        output: OutputArgs,
        /// Maximum number of versions.
        #[arg(long, value_name = "N", default_value_t = 20)]
        limit: u32,
        /// The assortment.
        name: String,
    },
    Rollback(Rollback),
    /// Write the rules of all assortments to a directory, a file each.
    #[command(after_help = EXPORT_EXAMPLES)]
    Export {
        /// The directory; it is created if it is missing. Files of the same names are replaced.
        directory: PathBuf,
    },
    Remove(Remove),
    /// Accept the assortments of a database that was put back by its own tools.
    ///
    /// Servers that had seen other ones answer the keys concerned with 503 until then.
    #[command(after_help = ACCEPT_EXAMPLES)]
    Accept {
        #[command(flatten)]
        confirm: ConfirmArgs,
        #[command(flatten)]
        note: NoteArgs,
    },
}

impl Assortments {
    /// Returns true if the command changes assortments.
    pub(super) fn writes(&self) -> bool {
        matches!(
            self,
            Self::Set(_) | Self::Rollback(_) | Self::Remove(_) | Self::Accept { .. }
        )
    }

    pub(super) fn run(&self, store: &StoreArgs) -> anyhow::Result<Outcome> {
        let opened = || store.open(IfMissing::Refuse);
        match self {
            Self::Set(set) => set.run(store),
            Self::Diff(diff) => diff.plan(store),
            Self::Rollback(rollback) => rollback.run(store),
            Self::Remove(remove) => remove.run(store),
            Self::List { output } => list(&*opened()?, *output),
            Self::Show { name, at } => {
                let rules = rules_at(&*opened()?, name, *at)?;
                print(&format!("{rules}\n"))?;
                Ok(Outcome::Done)
            }
            Self::History {
                output,
                limit,
                name,
            } => history(&*opened()?, *output, *limit, name),
            Self::Export { directory } => export::export(&*opened()?, directory),
            Self::Accept { confirm, note } => {
                confirm.confirm(
                    "this lets servers show keys what the assortments of this store say, even if that is more than before",
                )?;
                let context = note.context(AuditAction::AcceptAssortments);
                opened()?.accept_assortments(&context)?;
                print("accepted\n")?;
                Ok(Outcome::Done)
            }
        }
    }
}

/// Returns the versions of an assortment, the newest first.
///
/// # Errors
///
/// If there never was one of this name.
fn versions(store: &Store, name: &str, limit: u32) -> anyhow::Result<Vec<AssortmentVersion>> {
    let versions = store.assortment_versions(name, limit)?;
    match versions.is_empty() {
        true => Err(unknown(name)),
        false => Ok(versions),
    }
}

fn list(store: &Store, output: OutputArgs) -> anyhow::Result<Outcome> {
    let keys = store.keys()?;
    let live = store.assortments()?;
    let count = |name: &str| {
        let uses = |key: &&vitrine_model::key::KeyRecord| {
            key.revoked_at.is_none() && key.assortment.as_deref() == Some(name)
        };
        keys.iter().filter(uses).count()
    };
    if output.json {
        let versions = live.iter().map(|version| {
            let mut json = to_json(version);
            json["keys"] = count(&version.name).into();
            json
        });
        print_json(&Value::Array(versions.collect()))?;
        return Ok(Outcome::Done);
    }
    let mut table = output::table(["NAME", "VERSION", "KEYS", "CHANGED", "BY", "NOTE"]);
    for version in &live {
        table.add_row([
            version.name.clone(),
            version.number.to_string(),
            count(&version.name).to_string(),
            to_second(version.created_at).to_string(),
            single_line(version.by.as_deref().unwrap_or("–")).into_owned(),
            single_line(&shown(version.note.as_deref().unwrap_or_default())).into_owned(),
        ]);
    }
    print(&format!("{}\n", output::fitted(table)))?;
    Ok(Outcome::Done)
}

fn history(store: &Store, output: OutputArgs, limit: u32, name: &str) -> anyhow::Result<Outcome> {
    let versions = versions(store, name, limit)?;
    if output.json {
        print_json(&versions.iter().map(to_json).collect())?;
        return Ok(Outcome::Done);
    }
    let mut table = output::table(["VERSION", "STATE", "TIME", "BY", "NOTE"]);
    for (index, version) in versions.iter().enumerate() {
        let state = match (index, &version.rules) {
            (_, None) => "removed",
            (0, Some(_)) => "live",
            (_, Some(_)) => "replaced",
        };
        table.add_row([
            version.number.to_string(),
            state.to_owned(),
            to_second(version.created_at).to_string(),
            single_line(version.by.as_deref().unwrap_or("–")).into_owned(),
            single_line(&shown(version.note.as_deref().unwrap_or_default())).into_owned(),
        ]);
    }
    print(&format!("{}\n", output::fitted(table)))?;
    Ok(Outcome::Done)
}

fn to_json(version: &AssortmentVersion) -> Value {
    json!({
        "name": version.name,
        "version": version.number,
        "id": version.id,
        "created_at": version.created_at,
        "by": version.by,
        "note": version.note,
        "removed": version.rules.is_none(),
    })
}
