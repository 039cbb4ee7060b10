//! `vitrine restore`: replaces the content of the store by a backup.

use std::io::Write as _;
use std::path::PathBuf;

use clap::Args;
use vitrine_model::revision::Revision;
use vitrine_store::audit::AuditAction;
use vitrine_store::{IfMissing, StoreError};

use super::audit::NoteArgs;
use super::confirm::ConfirmArgs;
use super::{Outcome, StoreArgs, output, print};

const EXAMPLES: &str = "\
Examples:
  vitrine restore /backups/vitrine-2026-01-31.db
  vitrine restore --yes --store sqlite:/var/lib/vitrine/vitrine.db latest.db

Exit codes:
  0  restored
  1  failed: the store can't be written; nothing was changed
  2  the command line was wrong, such as no --yes without a terminal
  3  the file was refused: not a store, damaged, or of a newer release; nothing was changed";

/// Restore a backup into the store, in one transaction. Running servers follow within a second.
///
/// The backup replaces everything in the store but the audit log and the usage of keys: catalog, history, texts and
/// keys. Keys created since the backup are gone; keys revoked and texts taken down since stay so. The file is checked
/// first and only read. If there is no store, one is created.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Restore {
    #[command(flatten)]
    confirm: ConfirmArgs,
    #[command(flatten)]
    note: NoteArgs,
    /// The backup.
    file: PathBuf,
}

impl Restore {
    pub(super) fn run(&self, store: &StoreArgs) -> anyhow::Result<Outcome> {
        let (url, file) = (&store.url, self.file.display());
        let context = self.note.context(AuditAction::Restore);
        // Without a store, nothing can be lost, so no confirmation is needed.
        let restored = match store.open(IfMissing::Refuse) {
            Err(StoreError::Missing { .. }) => store.address()?.create_from(&self.file, &context),
            opened => {
                let store = opened?;
                self.confirm.confirm(&format!(
                    "this replaces the catalog, history and keys of {url} with those of {file}"
                ))?;
                store.restore(&self.file, &context)
            }
        };
        match restored {
            Ok(revision) => {
                print(&message(&revision))?;
                Ok(Outcome::Done)
            }
            Err(
                error @ (StoreError::UnusableBackup { .. }
                | StoreError::NotAStore { .. }
                | StoreError::NewerSchema { .. }),
            ) => {
                writeln!(output::stderr(), "vitrine: {error}")?;
                Ok(Outcome::Refused)
            }
            Err(error) => Err(error.into()),
        }
    }
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
