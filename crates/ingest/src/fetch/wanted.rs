//! Addresses that live products name for their texts, with the results of earlier fetches.

use std::collections::BTreeMap;

use vitrine_model::content::{Text, TextDigest};
use vitrine_store::record::{FetchedText, Moment};
use vitrine_store::{Store, TextStatus};

use super::answer::Failed;
use crate::load::stored_texts;

/// Maximum number of products listed for an address that fails; the others are counted.
const MAX_NAMED: usize = 20;

/// Address to request.
#[derive(Debug, Default)]
pub(super) struct Address {
    /// Text of the last fetch.
    pub(super) before: Option<FetchedText>,
    /// Result of the request, once it was made.
    pub(super) outcome: Option<Result<Fetched, Failed>>,
    /// Codes of the first products that name it.
    pub(super) codes: Vec<String>,
    /// Number of texts of products that name it.
    pub(super) products: u64,
}

/// Usable response of an address, with its text stored in the spool.
#[derive(Debug)]
pub(super) enum Fetched {
    /// Unchanged since the last fetch.
    Unmodified,
    /// A text.
    Text(FetchedText),
}

impl Address {
    /// Returns true if `text` came from this address in the last fetch, or is known only by its address. A loaded text,
    /// with or without an address, isn't replaced by a fetch.
    pub(super) fn gave(before: Option<&FetchedText>, text: &Text) -> bool {
        match text {
            Text::None => false,
            Text::Outside(_) => true,
            Text::Own { digest, .. } => before.is_some_and(|before| before.digest == *digest),
        }
    }

    /// Returns the digest of its current text.
    pub(super) fn digest(&self) -> Option<TextDigest> {
        match self.outcome.as_ref()?.as_ref().ok()? {
            Fetched::Unmodified => self.before.as_ref().map(|before| before.digest),
            Fetched::Text(fetched) => Some(fetched.digest),
        }
    }
}

/// All addresses to request.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    /// Addresses by URL, as products have it.
    pub(super) addresses: BTreeMap<String, Address>,
    /// Number of texts not requested, because an earlier text of their address was taken down.
    pub(super) taken_down: u64,
    /// Hosts that gave no answer, with the number of their addresses that weren't asked.
    pub(super) given_up: BTreeMap<String, u64>,
}

impl Wanted {
    pub(super) fn has_successes(&self) -> bool {
        let mut outcomes = self.addresses.values().map(|address| &address.outcome);
        outcomes.any(|outcome| matches!(outcome, Some(Ok(_))))
    }
}

/// Collects the addresses in the live catalog.
pub(super) fn wanted(store: &Store) -> anyhow::Result<Wanted> {
    let mut wanted = Wanted::default();
    store.read_base(Moment::Live, &mut |live| {
        let content = stored_texts::stored_content(&live)?;
        for (_, text) in content.texts.iter() {
            let Some(url) = text.address() else { continue };
            let url = url.as_str();
            let (before, served) = match wanted.addresses.get(url) {
                Some(known) => (known.before.clone(), TextStatus::Served),
                None => match store.fetched_text(url)? {
                    Some((before, served)) => (Some(before), served),
                    None => (None, TextStatus::Served),
                },
            };
            if !Address::gave(before.as_ref(), text) {
                continue;
            }
            // A text that was taken down mustn't return because a word of it changed at its address.
            if served == TextStatus::TakenDown {
                wanted.taken_down += 1;
                continue;
            }
            let address = wanted.addresses.entry(url.to_owned()).or_default();
            address.before = before;
            address.products += 1;
            if address.codes.len() < MAX_NAMED {
                address.codes.push(live.code.to_string());
            }
        }
        Ok(())
    })?;
    Ok(wanted)
}
