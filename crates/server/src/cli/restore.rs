//! `vitrine restore`: replaces the content of the store by a backup.

use std::io::Write as _;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use vitrine_ingest::escape::single_line;
use vitrine_model::revision::Revision;
use vitrine_model::selector::Selector;
use vitrine_store::assortment::{KeyView, RestorePlan, RestoredKey};
use vitrine_store::audit::AuditAction;
use vitrine_store::overrides::{OverrideStatus, StoredOverride};
use vitrine_store::webhooks::EndpointStatus;
use vitrine_store::{IfMissing, Store, StoreError};

use super::audit::NoteArgs;
use super::confirm::ConfirmArgs;
use super::{Outcome, StoreArgs, output, print};
use crate::assortments::stored_rules;
use crate::error_chain::ErrorChain;

const EXAMPLES: &str = "\
Examples:
  vitrine restore /backups/vitrine-2026-01-31.db
  vitrine restore --yes --store sqlite:/var/lib/vitrine/vitrine.db latest.db

Exit codes:
  0  restored
  1  failed: the store can't be written; nothing was changed
  2  the command line was wrong, such as no --yes without a terminal
  3  refused: not a store, damaged, of another format, or keys might see more; nothing was changed
  4  done in part: the webhook endpoints couldn't be restored, and are paused";

/// Restore a backup into the store, in one transaction. Running servers follow within a second.
///
/// The backup replaces everything in the store but the audit log, the usage of keys and the operators: catalog, history, texts, keys,
/// assortments, overrides and webhook endpoints. All endpoints are paused until `vitrine webhooks enable`. Keys created since the backup are gone; keys revoked and texts taken down since stay so. Keys that might
/// see more than now, such as those that only the backup has, are listed, and need `--allow widen`. The file is checked first
/// and only read. If there is no store, one is created.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Restore {
    #[command(flatten)]
    confirm: ConfirmArgs,
    /// Let keys see more than now: `widen`.
    #[arg(long, value_enum, value_name = "WHAT")]
    allow: Vec<Allow>,
    #[command(flatten)]
    note: NoteArgs,
    /// The backup.
    file: PathBuf,
}

/// A consequence that has to be allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Allow {
    /// Keys see more than now.
    Widen,
}

impl Restore {
    pub(super) fn run(&self, store: &StoreArgs) -> anyhow::Result<Outcome> {
        let (url, file) = (&store.url, self.file.display());
        let context = self.note.context(AuditAction::Restore);
        let mut overrides = 0;
        // Without a store, nothing can be lost, so no confirmation is needed.
        let restored = match store.open(IfMissing::Refuse) {
            Err(StoreError::Missing { .. }) => store.address()?.create_from(&self.file, &context),
            opened => {
                let store = opened?;
                overrides = open_overrides(&store);
                match store.plan_restore(&self.file) {
                    Ok(plan) if !self.may_widen(&plan)? => {
                        return Ok(Outcome::Refused);
                    }
                    Err(error) => return refused(error),
                    Ok(_) => {}
                }
                self.confirm.confirm(&format!(
                    "this replaces the catalog, history, keys, assortments, overrides ({overrides} not ended) and webhook endpoints of {url} with those of {file}, and pauses all endpoints until `vitrine webhooks enable`"
                ))?;
                store.restore(&self.file, &context)
            }
        };
        match restored {
            Ok(revision) => {
                print(&message(&revision))?;
                // It is restored, whether this can be read or not.
                if let Ok(store) = store.open(IfMissing::Refuse) {
                    print(&next_steps(&store, overrides))?;
                }
                Ok(Outcome::Done)
            }
            Err(error) => refused(error),
        }
    }

    /// Prints the keys that might see more after the restore (docs/contract/assortments.md#databases-put-back), to standard
    /// error; one that only the backup has sees nothing now. Returns false if there are any, and that isn't allowed.
    fn may_widen(&self, plan: &RestorePlan) -> anyhow::Result<bool> {
        let keys = plan.keys.iter();
        let widened: Vec<&RestoredKey> = keys.filter(|key| may_see_more(key)).collect();
        let is_allowed = widened.is_empty() || self.allow.contains(&Allow::Widen);
        let mut err = output::stderr();
        for RestoredKey {
            prefix,
            label,
            now,
            then,
        } in widened
        {
            let (label, now, then) = (single_line(label), shown(now), shown(then));
            writeln!(
                err,
                "vitrine: {prefix} ({label}) might see more: {now} now, {then} then"
            )?;
        }
        if !is_allowed {
            writeln!(
                err,
                "vitrine: the restore is refused, since these keys might see more than now; if this is intended: --allow \
                 widen, or first revoke those that this store has; nothing was changed"
            )?;
        }
        Ok(is_allowed)
    }
}

/// Returns what a key sees, for people.
fn shown(view: &KeyView) -> String {
    match view {
        KeyView::Unknown => "nothing".to_owned(),
        KeyView::Everything => "everything".to_owned(),
        KeyView::Assortment { name, .. } => format!("the assortment {name}"),
    }
}

/// Returns false only if no product can become visible, whatever the catalog is: each selector that allows lies in one that allows
/// now, and each that denies now lies in one that denies.
fn may_see_more(key: &RestoredKey) -> bool {
    let (now, then) = match (&key.now, &key.then) {
        (KeyView::Everything, _) | (_, KeyView::Unknown) => return false,
        (KeyView::Assortment { rules: now, .. }, KeyView::Assortment { rules: then, .. }) => {
            (stored_rules(now), stored_rules(then))
        }
        (KeyView::Unknown | KeyView::Assortment { .. }, _) => return true,
    };
    match (now, then) {
        (Ok(now), Ok(then)) => {
            let is_in = |all: &[Selector], some: &[Selector]| {
                (some.iter()).all(|one| all.iter().any(|other| other.includes(one)))
            };
            let allows_no_more = match (&now.allow, &then.allow) {
                (None, _) => true,
                (Some(_), None) => false,
                (Some(now), Some(then)) => is_in(now, then),
            };
            !allows_no_more || !is_in(&then.deny, &now.deny)
        }
        _ => true,
    }
}

/// Returns the outcome of a backup that is refused; other errors stay what they are.
fn refused(error: StoreError) -> anyhow::Result<Outcome> {
    match error {
        StoreError::UnusableBackup { .. }
        | StoreError::NotAStore { .. }
        | StoreError::OtherFormat { .. } => {
            writeln!(output::stderr(), "vitrine: {error}")?;
            Ok(Outcome::Refused)
        }
        error @ StoreError::WebhooksNotRestored(_) => {
            writeln!(output::stderr(), "vitrine: {}", ErrorChain(&error))?;
            Ok(Outcome::Partial)
        }
        error => Err(error.into()),
    }
}

/// Returns the number of overrides that haven't ended; none if they can't be read.
fn open_overrides(store: &Store) -> usize {
    let all = store.overrides().unwrap_or_default();
    let is_open = |one: &&StoredOverride| one.made.status != OverrideStatus::Ended;
    all.iter().filter(is_open).count()
}

/// Returns what else the restore changed, with the commands that go on. `overrides_before` hadn't ended before it.
fn next_steps(store: &Store, overrides_before: usize) -> String {
    let mut out = String::new();
    let overrides = open_overrides(store);
    if overrides_before > 0 || overrides > 0 {
        out += &format!(
            "overrides are those of the backup: {overrides} not ended ({overrides_before} before); see `vitrine overrides list`\n"
        );
    }
    let endpoints = store.endpoints().unwrap_or_default();
    let paused = endpoints
        .iter()
        .filter(|one| one.status == EndpointStatus::Paused);
    let paused: Vec<&str> = paused.map(|one| one.id.as_str()).collect();
    match paused.as_slice() {
        [] => {}
        [one] => {
            out += &format!(
                "1 webhook endpoint is paused; go on with `vitrine webhooks enable {one}`\n"
            );
        }
        [first, ..] => {
            out += &format!(
                "{} webhook endpoints are paused; go on with `vitrine webhooks enable {first}` and so on, see `vitrine webhooks list`\n",
                paused.len()
            );
        }
    }
    out
}

fn message(revision: &Option<Revision>) -> String {
    match revision {
        Some(revision) => format!(
            "restored revision {} of {}\n",
            revision.number, revision.created_at
        ),
        None => "restored; the backup has no catalog\n".to_owned(),
    }
}
