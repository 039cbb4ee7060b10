//! The task that follows the keys, and what they see.

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use vitrine_model::key::{KeyRecord, KeyTable};
use vitrine_store::audit::AuditPosition;
use vitrine_store::record::StoreState;
use vitrine_store::{KeysRead as StoredKeys, StoreError};

use super::follow::{FollowContext, PollTask};
use super::follow_assortments::{former_versions, is_history_of, known_versions, updated};
use super::keys_file::SavedKeys;
use super::state_file::StateFile;
use crate::boot_time::BootTime;
use crate::error_chain::ErrorChain;
use crate::metrics::Following;
use crate::panic_point::PanicPoint;

/// Maximum number of versions of assortments that are read at a start.
const MAX_HISTORY: u32 = 12_000;

/// Interval between writes of the file without changes of keys: its contact is older than the real one by at most this.
const REFRESH_INTERVAL: Duration = Duration::from_secs(10);

/// Task of the thread that follows the keys.
pub(super) struct KeyPoll {
    followed: FollowContext,
    /// State of keys and assortments, as last read.
    seen: Option<KeyState>,
    /// Position of the live keys; none if nothing proves it: then all keys are read.
    position: Option<AuditPosition>,
    /// True once the former versions of assortments were read; until some are missing.
    is_history_read: bool,
    file: Option<StateFile<SavedKeys>>,
    /// Time of the contact that was last queued for the file.
    saved: Option<Instant>,
}

impl KeyPoll {
    /// # Errors
    ///
    /// If no thread can be started.
    pub(super) fn new(followed: FollowContext) -> Result<Self, StoreError> {
        Ok(Self {
            file: followed.state_file()?,
            saved: None,
            followed,
            seen: None,
            position: None,
            is_history_read: false,
        })
    }

    /// Returns the keys as known until now: those of the file at a start, since the store may have been put back meanwhile.
    fn before(&self) -> Arc<KeyTable> {
        let file = self.file.as_ref().filter(|_| self.seen.is_none());
        let saved = file.and_then(|file| file.read(|_, is_same_address| is_same_address).ok());
        saved.map_or_else(|| self.followed.live.keys(), |saved| saved.keys)
    }

    /// Reads the keys that changed, and the assortments if they changed.
    fn read(&mut self) -> Result<(), StoreError> {
        // A read that fails midway leaves keys of which no position is known.
        let since = self.position.take();
        let known = self.followed.live.keys();
        let before = self.before();
        let state = match self.read_keys(&known, since.as_ref())? {
            Some(state) => state,
            None => self.read_assortments(&known, &before, since.as_ref())?,
        };
        self.seen = Some(key_state(&state));
        Ok(())
    }

    /// Reads keys alone; returns the state, or `None` if the assortments have to be read, too. They may take long: until
    /// then, revocations and other changes of known keys take effect, but what a key sees changes only with the rules.
    fn read_keys(
        &mut self,
        known: &KeyTable,
        since: Option<&AuditPosition>,
    ) -> Result<Option<StoreState>, StoreError> {
        let FollowContext { store, live, .. } = &self.followed;
        let Some(seen) = &self.seen else {
            return Ok(None);
        };
        let mut read = store.read_keys(since)?;
        self.followed.refuse_emptied(&read.state)?;
        let has_same_assortments = of_assortments(seen) == of_assortments(&key_state(&read.state));
        if !has_same_assortments {
            let as_before = |record: KeyRecord| {
                let assortment = known.get(&record.prefix)?.record.assortment.clone();
                Some(KeyRecord {
                    assortment,
                    ..record
                })
            };
            read.records = read.records.into_iter().filter_map(as_before).collect();
        }
        live.set_keys(table(known, &mut read));
        if !has_same_assortments {
            return Ok(None);
        }
        self.position = Some(read.position);
        Ok(Some(read.state))
    }

    /// Reads assortments, and keys over those that were known before; returns the state, which may be newer or, after a
    /// failover, another database's.
    fn read_assortments(
        &mut self,
        known: &KeyTable,
        before: &KeyTable,
        since: Option<&AuditPosition>,
    ) -> Result<StoreState, StoreError> {
        let FollowContext { store, live, .. } = &self.followed;
        let mut read = store.read_assortments(&known_versions(before.assortments()), since)?;
        self.followed.refuse_emptied(&read.keys.state)?;
        let keys = table(known, &mut read.keys);
        let (assortments, has_gap) = updated(before, &keys, &read);
        self.is_history_read &= !has_gap;
        live.set_keys(keys.with_assortments(Arc::new(assortments)));
        self.position = Some(read.keys.position);
        Ok(read.keys.state)
    }

    /// Reads the former versions of assortments that aren't known: the changes feed tells what differs since them.
    fn read_history(&mut self) -> Result<(), StoreError> {
        let live = &self.followed.live;
        if self.is_history_read {
            return Ok(());
        }
        let since = Timestamp::now().saturating_sub(live.journal_limits().keep);
        let since = since.unwrap_or(Timestamp::MIN);
        let history = self.followed.store.assortment_history(since, MAX_HISTORY)?;
        let keys = live.keys();
        if !is_history_of(keys.assortments(), &history) {
            // Read again once both are of the same moment.
            return Ok(());
        }
        if !history.is_empty() {
            let assortments = keys.assortments().with_former(former_versions(&history));
            live.set_keys(keys.with_other_assortments(assortments));
        }
        self.is_history_read = true;
        Ok(())
    }

    /// Reads keys and assortments if they changed. Returns when the store was asked.
    fn follow_keys(&mut self) -> Result<Instant, StoreError> {
        // Before the query, which may take long.
        let (asked, asked_at) = (Instant::now(), BootTime::now());
        let state = self.followed.store.state()?;
        self.followed.refuse_emptied(&state)?;
        let is_new = self.seen.as_ref() != Some(&key_state(&state));
        if is_new {
            PanicPoint::FollowKeys.pass();
            self.read()?;
        }
        let live = &self.followed.live;
        live.contact.record(asked_at);
        let is_old = |saved: Instant| asked.duration_since(saved) >= REFRESH_INTERVAL;
        if let (Some(file), Some(age)) = (&self.file, live.contact.age(BootTime::now()))
            && (is_new || self.saved.is_none_or(is_old))
        {
            self.saved = Some(asked);
            file.write(SavedKeys {
                keys: live.keys(),
                contact: Timestamp::now() - age,
            });
        }
        Ok(asked)
    }

    fn follow(&mut self) -> Result<(), StoreError> {
        let is_started = self.seen.is_some();
        let asked = self.follow_keys()?;
        // A start doesn't wait for the history.
        if is_started {
            self.read_history()?;
            if let (true, Some(state)) = (self.is_history_read, self.seen.clone()) {
                self.followed
                    .live
                    .record_keys_read(KeysRead { asked, state });
            }
        }
        Ok(())
    }
}

/// Returns the table after a read, whose records are taken. Assortments, and counts of keys that stay, are those of the
/// table before.
fn table(before: &KeyTable, read: &mut StoredKeys) -> KeyTable {
    let records = std::mem::take(&mut read.records);
    match read.is_whole {
        true => KeyTable::new(records, before).with_assortments(Arc::clone(before.assortments())),
        false => before.with_changed(records),
    }
}

/// A read of the keys, and of what they see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeysRead {
    /// Time at which the store was asked.
    pub asked: Instant,
    /// State that was read.
    pub(super) state: KeyState,
}

/// Values that identify a state of keys and assortments: the id of the store, its counters, and the last acceptance.
type KeyState = (String, [u64; 2], Option<Timestamp>);

pub(super) fn key_state(state: &StoreState) -> KeyState {
    let counters = [state.keys, state.assortments];
    (state.store_id.clone(), counters, state.assortments_accepted)
}

/// Returns the values that identify a state of assortments.
fn of_assortments(
    (store_id, [_, assortments], accepted): &KeyState,
) -> (&str, u64, &Option<Timestamp>) {
    (store_id, *assortments, accepted)
}

impl PollTask for KeyPoll {
    fn poll(&mut self) -> Result<(), StoreError> {
        let live = Arc::clone(&self.followed.live);
        let mut asked = BootTime::now();
        let was_stopped = live.contact.is_overdue(asked);
        live.contact.tick(asked);
        let mut followed = self.follow();
        if was_stopped && followed.is_err() {
            // The connection may have been closed meanwhile; requests wait for this.
            asked = BootTime::now();
            followed = self.follow();
        }
        live.contact.record_answer(asked);
        followed
    }

    fn metrics(&self) -> &Following {
        &self.followed.live.metrics.follow_keys
    }

    fn start_offline(&mut self) -> bool {
        let Some(file) = &self.file else {
            return false;
        };
        let live = &self.followed.live;
        match file.read(|_, is_same_address| is_same_address) {
            Ok(SavedKeys { keys, contact }) => {
                live.set_keys(keys);
                if let Err(error) = live.contact.resume(contact, Timestamp::now()) {
                    let error = ErrorChain(&error);
                    tracing::warn!(%error, "cached keys untrusted (clock moved back); 503 until the store is reachable");
                }
                true
            }
            Err(error) => {
                let error = ErrorChain(&error);
                tracing::warn!(%error, "the keys file isn't used");
                false
            }
        }
    }
}
