//! `vitrine audit`: prints the audit log; and the author and note of commands that add to it.

use clap::Args;
use serde_json::{Value, json};
use vitrine_ingest::escape::single_line;
use vitrine_ingest::load::report::shown;
use vitrine_store::IfMissing;
use vitrine_store::audit::{AuditAction, AuditContext, AuditEntry, FieldChange};

use super::keys::prefix_of;
use super::load::operator;
use super::plain_text::PlainText;
use super::time::to_second;
use super::{Outcome, OutputArgs, StoreArgs, output, print, print_json, texts};

const EXAMPLES: &str = "\
Examples:
  vitrine audit
  vitrine audit --key vitrine_KVakkOwmM7g
  vitrine audit --limit 1000 --json";

/// List the changes of keys, assortments, webhooks, overrides, operators and texts taken down or put back, rollbacks and restores, the
/// newest first.
///
/// The author of a change in the console is its operator; of a command, the `SUDO_USER`, `USER` or `LOGNAME` that it ran with,
/// `unknown` if none was set. Secrets of keys aren't part of the log.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Audit {
    #[command(flatten)]
    output: OutputArgs,
    /// Maximum number of entries.
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: u32,
    /// List only changes of the key with this prefix.
    #[arg(long, value_name = "PREFIX")]
    key: Option<String>,
    /// List only changes of this text: its digest, or its address.
    #[arg(long, value_name = "TEXT", conflicts_with = "key")]
    text: Option<String>,
    /// List only changes of the assortment of this name.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["key", "text"])]
    assortment: Option<String>,
}

/// Note for the audit log.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct NoteArgs {
    /// Note for the audit log.
    #[arg(long, value_name = "TEXT", value_parser = PlainText)]
    note: Option<String>,
}

impl NoteArgs {
    /// Returns the context of a change by the user who runs the program.
    pub(super) fn context(&self, action: AuditAction) -> AuditContext {
        AuditContext {
            by: operator(),
            note: self.note.clone(),
            action,
            confirmation: None,
        }
    }
}

impl Audit {
    pub(super) fn run(&self, store: &StoreArgs) -> anyhow::Result<Outcome> {
        let subject = match (&self.key, &self.text) {
            (Some(key), _) => Some(prefix_of(key).to_owned()),
            (None, Some(text)) => Some(texts::digest(text)?.to_string()),
            (None, None) => self.assortment.clone(),
        };
        let store = store.open(IfMissing::Refuse)?;
        let entries = store.audit(subject.as_deref(), self.limit)?;
        if self.output.json {
            print_json(&entries.iter().map(entry_json).collect())?;
            return Ok(Outcome::Done);
        }
        let mut table = output::table([
            "ENTRY", "TIME", "BY", "ACTION", "SUBJECT", "CHANGES", "NOTE",
        ]);
        for entry in &entries {
            let changes: Vec<String> = entry.changes.iter().map(described).collect();
            let cells = [
                entry.number.to_string(),
                to_second(entry.at).to_string(),
                entry.by.clone(),
                entry.action.clone(),
                format!("{} {}", entry.subject_kind, entry.subject),
                changes.join(", "),
                shown(entry.note.as_deref().unwrap_or_default()),
            ];
            table.add_row(cells.map(|cell| single_line(&cell).into_owned()));
        }
        print(&format!("{}\n", output::fitted(table)))?;
        Ok(Outcome::Done)
    }
}

fn entry_json(entry: &AuditEntry) -> Value {
    let AuditEntry {
        number,
        at,
        by,
        note,
        action,
        subject_kind,
        subject,
        changes,
    } = entry;
    let change = |change: &FieldChange| {
        let FieldChange {
            field,
            before,
            after,
        } = change;
        json!({"field": field, "before": before, "after": after})
    };
    json!({
        "number": number,
        "at": at,
        "by": by,
        "note": note,
        "action": action,
        "subject_kind": subject_kind,
        "subject": subject,
        "changes": changes.iter().map(change).collect::<Value>(),
    })
}

/// Describes a change of a field, for people.
fn described(change: &FieldChange) -> String {
    let FieldChange {
        field,
        before,
        after,
    } = change;
    let after = after.as_deref().unwrap_or("none");
    match before {
        Some(before) => format!("{field} {before} → {after}"),
        None if ["secret", "password"].contains(&field.as_str()) => format!("{field} replaced"),
        None => format!("{field} {after}"),
    }
}
