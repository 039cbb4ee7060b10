//! Puts fetched texts on live products, as one revision.

use std::collections::{BTreeSet, HashSet};

use anyhow::Context as _;
use vitrine_model::content::{Content, Text, TextDigest, TextName};
use vitrine_store::record::{FetchedText, Moment, RevisionNote};
use vitrine_store::{Publication, Store};

use super::FetchSettings;
use super::wanted::{Address, Fetched, Wanted};
use crate::load::plan::Plan;
use crate::load::report::Applied;
use crate::load::texts::put_content;
use crate::load::{apply, stored_texts};
use crate::overrides;
use crate::text_spool::TextSpool;

/// Publishes the fetched texts.
///
/// # Errors
///
/// If the store can't be written. Then nothing has changed.
pub(super) fn publish(
    store: &Store,
    settings: &FetchSettings,
    wanted: &Wanted,
    spool: &mut TextSpool,
) -> anyhow::Result<Applied> {
    // No other writer from here on: products read below stay live.
    let mut publication = overrides::publish(store)?;
    let mut plan = Plan::new(settings.intent.detail());
    let mut kept = HashSet::new();
    let mut used = BTreeSet::new();
    store.read_base(Moment::Live, &mut |live| {
        let mut content = stored_texts::stored_content(&live)?;
        let replaced = replace(&mut content, wanted);
        for (url, digest) in &replaced {
            put_text(&mut *publication, digest, spool, &mut kept)?;
            used.insert(*url);
        }
        if !replaced.is_empty() {
            put_content(&mut *publication, &live, &content, &mut plan)?;
        }
        Ok(())
    })?;
    // In the same transaction as the texts: a fetched text that isn't recorded as such would count as loaded, and never
    // be fetched again.
    for url in used {
        if let Some(news) = wanted.addresses.get(url).and_then(news) {
            publication.put_fetched(news)?;
        }
    }
    let note = RevisionNote {
        by: settings.by.clone(),
        note: settings.note.clone(),
        source_digest: None,
    };
    apply::finish(publication, plan, Vec::new(), settings.intent, &note)
}

/// Replaces the texts of a product whose address is still the same. Returns the addresses used, with their texts.
fn replace<'w>(content: &mut Content, wanted: &'w Wanted) -> Vec<(&'w str, TextDigest)> {
    let mut replaced = Vec::new();
    for name in TextName::ALL {
        let text = content.texts.get_mut(name);
        let Some(source) = text.address().cloned() else {
            continue;
        };
        let asked = wanted.addresses.get_key_value(source.as_str());
        let Some((url, address)) = asked.filter(|(_, a)| Address::gave(a.before.as_ref(), text))
        else {
            continue;
        };
        if let Some(digest) = address.digest() {
            *text = Text::Own {
                digest,
                source: Some(source),
            };
            replaced.push((url.as_str(), digest));
        }
    }
    replaced
}

/// Stores a text of this fetch; one of an earlier fetch is stored already.
fn put_text(
    publication: &mut dyn Publication,
    digest: &TextDigest,
    spool: &mut TextSpool,
    kept: &mut HashSet<TextDigest>,
) -> anyhow::Result<()> {
    if kept.contains(digest) {
        return Ok(());
    }
    let markdown = spool
        .get(digest)
        .context("can't read the fetched texts back")?;
    if let Some(markdown) = markdown {
        stored_texts::put_text(publication, &markdown, kept)?;
    }
    Ok(())
}

/// Returns the text of an address, if it or its validators differ from the last fetch.
fn news(address: &Address) -> Option<&FetchedText> {
    let Some(Ok(Fetched::Text(fetched))) = &address.outcome else {
        return None;
    };
    let is_known = address.before.as_ref().is_some_and(|before| {
        (before.digest, &before.etag, &before.last_modified)
            == (fetched.digest, &fetched.etag, &fetched.last_modified)
    });
    (!is_known).then_some(fetched)
}
