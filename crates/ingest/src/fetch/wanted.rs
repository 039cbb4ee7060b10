//! Addresses that live products name for their texts, and what is known of each.

use std::collections::BTreeMap;

use vitrine_model::content::{Text, TextDigest};
use vitrine_store::record::{FetchedText, Moment};
use vitrine_store::{Store, TextStatus};

use super::answer::Failed;
use crate::load::apply;

/// Maximum number of products listed for an address that fails; the others are counted.
const MAX_NAMED: usize = 20;

/// An address that is asked.
#[derive(Debug, Default)]
pub(super) struct Address {
    /// Text of the last fetch.
    pub(super) before: Option<FetchedText>,
    /// Result of the request, once it was made.
    pub(super) outcome: Option<Result<Fetched, Failed>>,
    /// The first products that name it.
    pub(super) codes: Vec<String>,
    /// Number of all products that name it; one that names it for two texts counts twice.
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
    /// Returns true if `text` came from this address in the last fetch, or is known by its address only. A text
    /// that was loaded, with or without its address, isn't replaced by what the address gives.
    pub(super) fn gave(before: Option<&FetchedText>, text: &Text) -> bool {
        match text {
            Text::None => false,
            Text::Outside(_) => true,
            Text::Own { digest, .. } => before.is_some_and(|before| before.digest == *digest),
        }
    }

    /// The text that it gives now.
    pub(super) fn digest(&self) -> Option<TextDigest> {
        match self.outcome.as_ref()?.as_ref().ok()? {
            Fetched::Unmodified => self.before.as_ref().map(|before| before.digest),
            Fetched::Text(fetched) => Some(fetched.digest),
        }
    }
}

/// All addresses that are asked.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    /// By their text, as products have it.
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

/// Looks through the live catalog.
pub(super) fn wanted(store: &dyn Store) -> anyhow::Result<Wanted> {
    let mut wanted = Wanted::default();
    store.read_products(Moment::Live, &mut |live| {
        let content = apply::live_content(&live)?;
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
            // What was taken down mustn't come back because a word of it was changed over there.
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
