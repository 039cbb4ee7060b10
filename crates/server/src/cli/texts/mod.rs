//! `vitrine texts`: loads texts by themselves, fetches them, takes one down at once or puts it back.

mod fetch;
mod load;

use anyhow::bail;
use clap::Subcommand;
use vitrine_model::content::TextDigest;
use vitrine_store::{IfMissing, TextServed};

use super::{Outcome, StoreArgs, print};

/// Load texts, fetch them, take them down, or put them back.
#[derive(Debug, Subcommand)]
pub(super) enum Texts {
    Load(load::Load),
    Fetch(fetch::Fetch),
    /// Stop serving a text at once, wherever a product names it.
    ///
    /// Its address answers 404, and the products that name it show null in its place, within a
    /// second. It stays down when it is loaded again.
    TakeDown {
        /// The text: its digest, or its address.
        text: String,
    },
    /// Serve a text again that was taken down.
    PutBack {
        /// The text: its digest, or its address.
        text: String,
    },
}

impl Texts {
    pub(super) fn run(&self, store: &StoreArgs) -> anyhow::Result<Outcome> {
        let (text, served) = match self {
            Self::Load(load) => return load.run(store),
            Self::Fetch(fetch) => return fetch.run(store),
            Self::TakeDown { text } => (text, TextServed::No),
            Self::PutBack { text } => (text, TextServed::Yes),
        };
        let digest = digest(text)?;
        if !store
            .open(IfMissing::Refuse)?
            .set_text_served(&digest, served)?
        {
            bail!("the store has no text {digest}");
        }
        print(match served {
            TextServed::No => "taken down\n",
            TextServed::Yes => "put back\n",
        })?;
        Ok(Outcome::Done)
    }
}

/// The digest in `…/v2/texts/DIGEST.md`, or the digest itself.
fn digest(text: &str) -> anyhow::Result<TextDigest> {
    let name = text.rsplit('/').next().unwrap_or(text);
    match name.strip_suffix(".md").unwrap_or(name).parse() {
        Ok(digest) => Ok(digest),
        Err(_) => {
            bail!("`{text}` is no text; give its address, or its digest of 64 hexadecimal digits")
        }
    }
}
