//! Positions for new endpoints and replays, read from the store.

use anyhow::{anyhow, bail};
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use vitrine_model::changes::{Position, StateId};
use vitrine_model::revision::Revision;
use vitrine_store::Store;

use super::event::position_text;

/// Number of revisions in which that of a time is looked for.
const MAX_REVISIONS: u32 = 100_000;

/// Returns the position of what a key sees now: an endpoint with it is told of what follows.
///
/// # Errors
///
/// If the store can't be read, or there is no such key.
pub fn position_now(store: &dyn Store, key: &str) -> anyhow::Result<String> {
    loop {
        let before = store.state()?;
        let newest = store.revisions(1)?.pop();
        let position = match newest {
            Some(newest) => of_revision(store, key, &newest.revision)?,
            // Everything is new to it.
            None => String::new(),
        };
        if store.state()? == before {
            return Ok(position);
        }
    }
}

/// Returns the position of a revision, by its number, or of that which was live at a time. Rules and texts are those of now.
///
/// # Errors
///
/// If the store can't be read, or has no such revision or key.
pub fn position_of_revision(store: &dyn Store, key: &str, since: &str) -> anyhow::Result<String> {
    let number: Option<u64> = since.parse().ok();
    let revision = match number {
        Some(number) => {
            let found = store.revision(number)?;
            found.ok_or_else(|| {
                anyhow!("there is no revision {number}; `vitrine history` shows all")
            })?
        }
        None => {
            let at = moment(since)?;
            let revisions = store.revisions(MAX_REVISIONS)?.into_iter();
            let mut before = revisions.filter(|published| published.revision.created_at <= at);
            let found = before.next();
            found.ok_or_else(|| {
                anyhow!("no revision was live at {at}; `vitrine history` shows all")
            })?
        }
    };
    of_revision(store, key, &revision.revision)
}

fn moment(text: &str) -> anyhow::Result<Timestamp> {
    if let (10, Ok(date)) = (text.len(), text.parse::<Date>()) {
        return Ok(date.to_zoned(TimeZone::UTC)?.timestamp());
    }
    let parsed = text.parse();
    parsed.map_err(|_| {
        anyhow!("--since: `{text}` is neither the number of a revision nor a time such as 2026-11-23T18:34:00Z")
    })
}

fn of_revision(store: &dyn Store, key: &str, revision: &Revision) -> anyhow::Result<String> {
    let live = store.read_assortments(&[])?;
    let Some(record) = live.keys.iter().find(|record| record.prefix == key) else {
        bail!("there is no key {key}; `vitrine keys list` shows all");
    };
    let name = record.assortment.as_ref();
    let version = name.and_then(|name| live.names.iter().find(|(live, _)| live == name));
    let position = Position {
        number: revision.number,
        revision: StateId::of_revision(&revision.id),
        texts: StateId::of_texts(live.state.texts),
        assortment: version.map_or_else(StateId::default, |(_, id)| StateId::of_assortment(id)),
    };
    Ok(position_text(&position))
}
