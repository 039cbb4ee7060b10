//! `vitrine texts`: loads, fetches, takes down and puts back texts.

mod fetch;
mod load;

use anyhow::bail;
use clap::Subcommand;
use vitrine_model::content::TextDigest;
use vitrine_store::audit::AuditAction;
use vitrine_store::{IfMissing, TextStatus};

use super::audit::NoteArgs;
use super::{Outcome, StoreArgs, print};

const EXAMPLES: &str = "\
Examples:
  vitrine texts load texts/
  vitrine texts fetch
  vitrine texts take-down https://catalog.example/v2/texts/e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855.md
  vitrine texts put-back e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

const TAKE_DOWN_EXAMPLES: &str = "\
Examples:
  vitrine texts take-down https://catalog.example/v2/texts/e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855.md";

const PUT_BACK_EXAMPLES: &str = "\
Examples:
  vitrine texts put-back e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// Load texts, fetch them, take them down, or put them back.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(super) enum Texts {
    Load(load::Load),
    Fetch(fetch::Fetch),
    /// Stop serving a text at once, for all products that use it.
    ///
    /// Within a second its address returns 404, and products that use it show null in its place. It stays down if it is
    /// loaded again.
    #[command(after_help = TAKE_DOWN_EXAMPLES)]
    TakeDown {
        #[command(flatten)]
        note: NoteArgs,
        /// The text: its digest, or its address.
        text: String,
    },
    /// Serve a text that was taken down again.
    #[command(after_help = PUT_BACK_EXAMPLES)]
    PutBack {
        #[command(flatten)]
        note: NoteArgs,
        /// The text: its digest, or its address.
        text: String,
    },
}

impl Texts {
    pub(super) fn run(&self, store: &StoreArgs) -> anyhow::Result<Outcome> {
        let (text, served, context) = match self {
            Self::Load(load) => return load.run(store),
            Self::Fetch(fetch) => return fetch.run(store),
            Self::TakeDown { text, note } => {
                let context = note.context(AuditAction::TakeDownText);
                (text, TextStatus::TakenDown, context)
            }
            Self::PutBack { text, note } => {
                let context = note.context(AuditAction::PutBackText);
                (text, TextStatus::Served, context)
            }
        };
        let digest = digest(text)?;
        let store = store.open(IfMissing::Refuse)?;
        if !store.set_text_status(&digest, served, &context)? {
            bail!("the store has no text {digest}");
        }
        print(match served {
            TextStatus::TakenDown => "taken down\n",
            TextStatus::Served => "put back\n",
        })?;
        Ok(Outcome::Done)
    }
}

/// Returns the digest in `…/v2/texts/DIGEST.md`, or the digest itself.
pub(super) fn digest(text: &str) -> anyhow::Result<TextDigest> {
    let name = text.rsplit('/').next().unwrap_or(text);
    match name.strip_suffix(".md").unwrap_or(name).parse() {
        Ok(digest) => Ok(digest),
        Err(_) => {
            bail!("`{text}` isn't a text; use its address, or its digest of 64 hexadecimal digits")
        }
    }
}
