//! History of a product: its versions, read from the store.

use vitrine_ingest::load::difference::difference;
use vitrine_model::code::ProductCode;
use vitrine_store::record::{ChangeKind, Moment, PublishedRevision, StoredProduct, VersionSpan};
use vitrine_store::{Store, StoreError};

use super::changes::{ChangeView, view};

/// Maximum number of versions of a product that are shown.
const MAX_VERSIONS: u32 = 20;

/// Change of a product.
#[derive(Debug)]
pub(super) struct Event {
    pub(super) revision: u64,
    /// Revision with time and author, if known.
    pub(super) published: Option<PublishedRevision>,
    pub(super) touch: ChangeKind,
    pub(super) changes: Vec<ChangeView>,
    /// True if an older version may have been pruned.
    pub(super) is_oldest_kept: bool,
}

/// Returns the changes of a product, the newest first.
pub(super) fn events(store: &dyn Store, code: &ProductCode) -> Result<Vec<Event>, StoreError> {
    let lives = store.version_spans(code, MAX_VERSIONS + 1)?;
    let versions: Vec<Option<StoredProduct>> = lives
        .iter()
        .map(|life| version(store, code, *life))
        .collect::<Result<_, _>>()?;
    let event = |revision: u64, touch: ChangeKind, changes: Vec<ChangeView>| {
        Ok::<_, StoreError>(Event {
            revision,
            published: store.revision(revision)?,
            touch,
            changes,
            is_oldest_kept: false,
        })
    };
    let mut events = Vec::new();
    let mut newer: Option<VersionSpan> = None;
    for (at, life) in lives.iter().enumerate().take(MAX_VERSIONS as usize) {
        if let Some(until) = life
            .until
            .filter(|until| newer.is_none_or(|newer| newer.from != *until))
        {
            events.push(event(until, ChangeKind::Retired, Vec::new())?);
        }
        newer = Some(*life);
        let older = lives
            .get(at + 1)
            .filter(|older| older.until == Some(life.from));
        let pair = versions[at]
            .as_ref()
            .zip(versions.get(at + 1).and_then(Option::as_ref));
        events.push(match (older, pair) {
            (Some(_), Some((new, old))) => {
                let changes = difference(old, new).iter().map(view).collect();
                event(life.from, ChangeKind::Changed, changes)?
            }
            (Some(_), None) => event(life.from, ChangeKind::Changed, Vec::new())?,
            (None, _) => Event {
                is_oldest_kept: at + 1 == lives.len() && life.from > 1,
                ..event(life.from, ChangeKind::Created, Vec::new())?
            },
        });
    }
    Ok(events)
}

/// Reads a version at its last live revision, which wasn't pruned, since the version exists.
fn version(
    store: &dyn Store,
    code: &ProductCode,
    life: VersionSpan,
) -> Result<Option<StoredProduct>, StoreError> {
    let moment = match life.until {
        None => Moment::Live,
        Some(until) => Moment::Revision(until.saturating_sub(1)),
    };
    product(store, code, moment)
}

/// Reads a product at a revision; `None` if it was pruned meanwhile.
pub(super) fn product(
    store: &dyn Store,
    code: &ProductCode,
    moment: Moment,
) -> Result<Option<StoredProduct>, StoreError> {
    match store.product(code, moment) {
        Err(StoreError::Pruned { .. }) => Ok(None),
        read => read,
    }
}

/// Returns the word for a change.
pub(super) fn word(touch: ChangeKind) -> &'static str {
    match touch {
        ChangeKind::Created => "Created",
        ChangeKind::Changed => "Changed",
        ChangeKind::Retired => "Retired",
    }
}
