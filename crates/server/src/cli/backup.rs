//! `vitrine backup`: copies the store into a file while it is in use.

use std::path::PathBuf;

use clap::Args;
use vitrine_store::IfMissing;

use super::{Outcome, StoreArgs, print};

const EXAMPLES: &str = "\
Examples:
  vitrine backup /backups/vitrine-$(date +%F).db
  vitrine check --store sqlite:/backups/vitrine-2026-01-31.db";

/// Back up the store to a new file, while servers and loads run.
///
/// The file is a whole store as of one moment: catalog, history, texts and keys (as hashes). Only its owner can
/// read it, and it gets its name once all of it is on disk. An existing file is never overwritten.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Backup {
    /// The file to make.
    file: PathBuf,
}

impl Backup {
    pub(super) fn run(&self, store: &StoreArgs) -> anyhow::Result<Outcome> {
        let store = store.open(IfMissing::Refuse)?;
        let file = self.file.display();
        print(&match store.backup(&self.file)? {
            Some(revision) => format!(
                "backed up to {file}: revision {} of {}\n",
                revision.number, revision.created_at
            ),
            None => format!("backed up to {file}; the store has no catalog yet\n"),
        })?;
        Ok(Outcome::Done)
    }
}
