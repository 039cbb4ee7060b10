//! Following the changes: the journal is made from the store's history, or from its file, and extended by each revision.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use jiff::Timestamp;
use vitrine_ingest::view::facts;
use vitrine_model::changes::{Journal, JournalUpdate, Position, StateId};
use vitrine_model::content_hash::ContentHash;
use vitrine_model::facts::Facts;
use vitrine_model::snapshot::Snapshot;
use vitrine_store::StoreError;
use vitrine_store::history::{History, HistoryItem, HistoryStart, Version};
use vitrine_store::record::StoreState;

use super::build::BUILD_STEP_LIMIT;
use super::feed::{Feed, JournalLimits};
use super::follow::FollowContext;
use super::state_file::{State, StateFile};
use crate::error_chain::ErrorChain;
use crate::metrics::heartbeat::Heartbeat;
use crate::metrics::state_files::StateFileKind;

/// Minimum memory of a change, in bytes: bounds what is read from the store.
const MIN_CHANGE_BYTES: usize = 40;

/// The journal, and its file.
pub(super) struct ChangesFollower {
    limits: JournalLimits,
    journal: Option<Arc<Journal>>,
    file: Option<StateFile<SavedJournal>>,
    is_file_read: bool,
    /// Position that the store's history doesn't lead to; it isn't read again until there is another one.
    unknown: Option<Position>,
    /// Time of the last failed read of the history.
    failed: Option<Instant>,
    /// Time since which the feed isn't that of the live snapshot.
    behind_since: Option<Instant>,
}

/// Pause after a failed read of the history. The catalog is followed all the same.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(2);

/// Maximum time for which the feed stays behind the live snapshot.
const MAX_BEHIND: Duration = Duration::from_secs(5);

impl ChangesFollower {
    /// # Errors
    ///
    /// If no thread can be started.
    pub(super) fn new(followed: &FollowContext, limits: JournalLimits) -> Result<Self, StoreError> {
        Ok(Self {
            limits,
            journal: None,
            file: followed.state_file()?,
            is_file_read: false,
            unknown: None,
            failed: None,
            behind_since: None,
        })
    }

    /// Publishes the state that the feed answers from, if the snapshot isn't its own yet, from what is known without the
    /// store. Returns the position if the store has to be read for it.
    pub(super) fn publish_known(
        &mut self,
        followed: &FollowContext,
        seen: &StoreState,
    ) -> Option<Position> {
        let snapshot = followed.live.snapshot()?;
        let position = position(&snapshot, seen);
        if let Some(feed) = followed.live.feed()
            && feed.position == position
            && (feed.journal.is_some() || self.unknown == Some(position))
        {
            if !Arc::ptr_eq(&feed.snapshot, &snapshot) {
                self.publish(followed, seen, snapshot, feed.journal.clone());
            }
            return None;
        }
        self.read_file(&seen.store_id);
        let known = self.journal.clone();
        if let Some(journal) = known.filter(|journal| journal.ends_at(&position)) {
            self.publish(followed, seen, snapshot, Some(journal));
            return None;
        }
        // Tokens of a state that was lost are gone at servers that know: no client may get one any more.
        let is_former_left = |feed: Arc<Feed>| position.may_follow(&feed.position);
        if !followed.live.feed().is_some_and(is_former_left) {
            self.publish(followed, seen, snapshot, None);
        }
        Some(position)
    }

    /// Brings the journal up to the live snapshot, which was made from the store at the state `seen`. If the history can't
    /// be read, the feed answers from the snapshot without a journal until it can. If the history is that of a later state, the
    /// former feed stays for a while.
    pub(super) fn follow(
        &mut self,
        followed: &FollowContext,
        seen: &StoreState,
        heartbeat: &Heartbeat,
    ) {
        let Some(position) = self.publish_known(followed, seen) else {
            return;
        };
        let pauses = |failed: &Instant| failed.elapsed() < PAUSE_AFTER_FAILURE;
        let Some(snapshot) = followed.live.snapshot() else {
            return;
        };
        if self.failed.as_ref().is_some_and(pauses) {
            return;
        }
        match self.read_changes(followed, seen, position, heartbeat) {
            Ok(journal) => {
                self.failed = None;
                match journal {
                    Some(journal) if !journal.ends_at(&position) => {
                        self.stay_behind(followed, seen, &journal, snapshot);
                    }
                    journal => self.publish(followed, seen, snapshot, journal),
                }
            }
            Err(error) => {
                let error = ErrorChain(&error);
                tracing::warn!(%error, "can't read the history of changes; `since` gets 503");
                self.failed = Some(Instant::now());
                self.publish(followed, seen, snapshot, None);
            }
        }
    }

    /// Keeps the former feed for a while, so that waits and its tokens go on; not if the store's journal doesn't know its
    /// state.
    fn stay_behind(
        &mut self,
        followed: &FollowContext,
        seen: &StoreState,
        journal: &Journal,
        snapshot: Arc<Snapshot>,
    ) {
        let behind_since = *self.behind_since.get_or_insert_with(Instant::now);
        let Some(feed) = followed.live.feed() else {
            return;
        };
        let is_kept = feed.journal.is_some()
            && journal.locate(&feed.position).is_some()
            && behind_since.elapsed() < MAX_BEHIND;
        if !is_kept && !Arc::ptr_eq(&feed.snapshot, &snapshot) {
            self.publish(followed, seen, snapshot, None);
        }
    }

    /// Returns true if the feed answers from the live snapshot, which was made from the store at the state `seen`.
    pub(super) fn is_current(followed: &FollowContext, seen: &StoreState) -> bool {
        match (followed.live.feed(), followed.live.snapshot()) {
            (Some(feed), Some(snapshot)) => feed.position == position(&snapshot, seen),
            _ => false,
        }
    }

    /// Reads the history up to a position. Returns the journal if it leads there; it may lead further.
    fn read_changes(
        &mut self,
        followed: &FollowContext,
        seen: &StoreState,
        position: Position,
        heartbeat: &Heartbeat,
    ) -> Result<Option<Arc<Journal>>, StoreError> {
        let now = Timestamp::now();
        let since = now
            .saturating_sub(self.limits.keep)
            .unwrap_or(Timestamp::MIN);
        let extended = match &self.journal {
            None => None,
            Some(journal) => {
                let (revision, texts) = journal.newest();
                let (history, update) =
                    self.read(followed, revision, Some(texts), since, heartbeat)?;
                update.extend(journal, StateId::of_texts(history.state.texts))
            }
        };
        let journal = match extended {
            Some(journal) => Some(journal),
            None => {
                let (history, update) = self.read(followed, 0, None, since, heartbeat)?;
                update.into_journal(StateId::of_texts(history.state.texts))
            }
        };
        let journal =
            journal.map(|journal| Arc::new(journal.trimmed(self.limits.max_bytes, since)));
        let reaches = |journal: &Arc<Journal>| journal.locate(&position).is_some();
        let is_known = journal.as_ref().is_some_and(reaches);
        self.unknown = (!is_known).then_some(position);
        self.journal = journal;
        let known = self.journal.clone().filter(|_| is_known);
        if let (Some(file), Some(journal)) = (&self.file, &known) {
            file.write(SavedJournal {
                store_id: seen.store_id.clone(),
                journal: Arc::clone(journal),
            });
        }
        Ok(known)
    }

    fn read(
        &self,
        followed: &FollowContext,
        revision: u64,
        texts: Option<StateId>,
        since: Timestamp,
        heartbeat: &Heartbeat,
    ) -> Result<(History, JournalUpdate), StoreError> {
        heartbeat.beat(BUILD_STEP_LIMIT);
        let start = HistoryStart {
            revision,
            texts: texts.map(StateId::as_texts),
            since,
            max_changes: (self.limits.max_bytes / MIN_CHANGE_BYTES) as u64,
        };
        let mut update = JournalUpdate::default();
        let history = followed.store.read_history(&start, &mut |item| {
            heartbeat.beat(BUILD_STEP_LIMIT);
            add(&mut update, item);
            Ok(())
        })?;
        for revision in &history.revisions {
            update.revision(&revision.revision, revision.former_id.as_deref());
        }
        for state in &history.text_states {
            let [before, after] = [state.before, state.after].map(StateId::of_texts);
            update.texts_state(before, after, state.changed_at);
        }
        if let Some(at) = history.texts_since {
            update.texts_since(at);
        }
        Ok((history, update))
    }

    fn publish(
        &mut self,
        followed: &FollowContext,
        seen: &StoreState,
        snapshot: Arc<Snapshot>,
        journal: Option<Arc<Journal>>,
    ) {
        self.behind_since = None;
        followed.live.set_feed(Feed {
            store_id: seen.store_id.as_str().into(),
            damaged: damaged(&snapshot),
            position: position(&snapshot, seen),
            snapshot,
            journal,
            keep: self.limits.keep,
        });
    }

    /// Takes the journal of the file, once.
    fn read_file(&mut self, store_id: &str) {
        let Some(file) = &self.file else {
            return;
        };
        if self.journal.is_some() || std::mem::replace(&mut self.is_file_read, true) {
            return;
        }
        match file.read(|id, is_same_address| is_same_address && id == store_id) {
            Ok(saved) => self.journal = Some(saved.journal),
            Err(error) if error.is_missing() => {}
            Err(error) => {
                let error = ErrorChain(&error);
                tracing::info!(%error, "the file of changes isn't used");
            }
        }
    }
}

/// The journal of a store, in its file: a start needn't read the store's history, and can answer while the store is
/// unreachable.
#[derive(Debug)]
struct SavedJournal {
    store_id: String,
    journal: Arc<Journal>,
}

impl State for SavedJournal {
    const KIND: StateFileKind = StateFileKind::Changes;
    const FORMAT: u64 = 4;
    /// Id of the store.
    type Header = String;

    fn to_parts(&self) -> (String, Vec<Bytes>) {
        let journal = self.journal.to_bytes();
        (self.store_id.clone(), vec![journal.into()])
    }

    fn from_parts(store_id: String, parts: Vec<Bytes>) -> Option<Self> {
        let journal = Arc::new(Journal::from_bytes(parts.first()?).ok()?);
        Some(Self { store_id, journal })
    }
}

fn add(update: &mut JournalUpdate, item: HistoryItem<'_>) {
    match item {
        HistoryItem::Ended(version) => match facts_of(&version) {
            Some(facts) => update.ended(version.revision, version.code, &facts),
            None => update.unknown(version.revision),
        },
        HistoryItem::Began(version) => match facts_of(&version) {
            Some(facts) => update.began(version.revision, version.code, &facts),
            None => update.unknown(version.revision),
        },
        HistoryItem::Text { texts, code } => update.text(StateId::of_texts(texts), code),
        HistoryItem::Damaged { revision } => update.unknown(revision),
    }
}

/// Returns the facts of a version; `None` if its document is damaged.
fn facts_of<'a>(version: &Version<'a>) -> Option<Facts<'a>> {
    let (countries, categories) = (version.countries, version.categories);
    facts(
        version.document,
        version.is_orderable,
        countries,
        categories,
    )
}

/// Returns the position of a snapshot that was made from the store at the state `seen`.
fn position(snapshot: &Snapshot, seen: &StoreState) -> Position {
    let revision = snapshot.revision();
    Position {
        number: revision.number,
        revision: StateId::of_revision(&revision.id),
        texts: StateId::of_texts(seen.texts),
        // Each key's own: see `VisibleFeed`.
        assortment: StateId::default(),
    }
}

/// Returns the hash of the snapshot's damaged products: changes of those that are shown as they were last good are unknown,
/// too.
fn damaged(snapshot: &Snapshot) -> ContentHash {
    let mut codes = String::new();
    for code in &snapshot.damage().products {
        codes.push_str(code);
        codes.push('\n');
    }
    match codes.is_empty() {
        true => ContentHash::default(),
        false => ContentHash::of(codes.as_bytes()),
    }
}
