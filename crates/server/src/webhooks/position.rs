//! Positions for new endpoints and replays, read from the store.

use anyhow::bail;
use vitrine_model::changes::{Position, StateId};
use vitrine_model::key::KeyTable;
use vitrine_model::revision::Revision;
use vitrine_store::Store;
use vitrine_store::webhooks::Endpoint;

use super::event::{position, position_text, visible};
use super::place::Place;
use crate::live::Feed;

/// Returns the position of what a key sees now: an endpoint with it is sent what follows.
///
/// # Errors
///
/// If the store can't be read, or there is no such key.
pub fn position_now(store: &Store, key: &str) -> anyhow::Result<String> {
    loop {
        let before = store.state()?;
        let newest = store.revisions(1)?.pop();
        let position = match newest {
            Some(newest) => position_of_revision(store, key, &newest.revision)?,
            // Everything is new to it.
            None => String::new(),
        };
        if store.state()? == before {
            return Ok(position);
        }
    }
}

/// Returns the position from which an endpoint is sent everything since a revision again. Rules and texts are those that it was
/// sent: their changes that it wasn't sent are still to come.
///
/// # Errors
///
/// If it has acknowledged an older revision only: going on from a newer one would leave out changes.
pub fn replay_position(endpoint: &Endpoint, revision: &Revision) -> anyhow::Result<String> {
    let Some(acknowledged) = Place::acknowledged(&endpoint.progress.position) else {
        bail!(
            "the endpoint hasn't been sent the whole catalog yet, and will be sent the rest; there is nothing to send again"
        );
    };
    if acknowledged.number < revision.number {
        bail!(
            "the endpoint has acknowledged revision {} only, and will be sent all that follows; there is nothing to send again",
            acknowledged.number
        );
    }
    Ok(position_text(&Position {
        number: revision.number,
        revision: StateId::of_revision(&revision.id),
        ..acknowledged
    }))
}

/// Returns the position of a revision. Rules and texts are the current ones.
fn position_of_revision(store: &Store, key: &str, revision: &Revision) -> anyhow::Result<String> {
    let live = store.read_assortments(&[], None)?;
    let mut records = live.keys.records.iter();
    let Some(record) = records.find(|record| record.prefix == key) else {
        bail!("there is no key {key}; `vitrine keys list` shows all");
    };
    let name = record.assortment.as_ref();
    let version = name.and_then(|name| live.names.iter().find(|(live, _)| live == name));
    let position = Position {
        number: revision.number,
        revision: StateId::of_revision(&revision.id),
        texts: StateId::of_texts(live.keys.state.texts),
        assortment: version.map_or_else(StateId::default, |(_, id)| StateId::of_assortment(id)),
    };
    Ok(position_text(&position))
}

/// Returns true if a feed has the changes that an endpoint sees since a position; if it hasn't read its history yet, or the key of
/// the endpoint has ended, that isn't known, and true.
#[must_use]
pub fn has_changes_since(
    feed: &Feed,
    keys: &KeyTable,
    endpoint: &Endpoint,
    endpoint_position: &str,
) -> bool {
    let since = position(endpoint_position).filter(|_| feed.journal.is_some());
    let (Some(since), Some(seen)) = (since, visible(feed, keys, endpoint)) else {
        return true;
    };
    seen.knows(&since)
}
