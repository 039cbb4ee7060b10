//! The rounds in which a server follows the keys.

use std::sync::Arc;
use std::time::Instant;

use jiff::Timestamp;
use vitrine_model::key::KeyTable;
use vitrine_store::record::Changes;
use vitrine_store::{Store, StoreError};

use super::follow::{Rounds, refuse_emptied};
use super::keys_file::{self, KeysKeeper};
use super::{Live, StateDirectory};
use crate::metrics::Following;
use crate::panic_point::PanicPoint;

/// The rounds of the thread that follows the keys.
pub(super) struct KeyRounds {
    store: Arc<dyn Store>,
    live: Arc<Live>,
    /// The store's id and its counter.
    seen: Option<(String, u64)>,
    /// Whether the store held a catalog when an earlier run kept it.
    was_full: bool,
    file: Option<(StateDirectory, KeysKeeper)>,
}

impl KeyRounds {
    /// # Errors
    ///
    /// Where the system gives no thread.
    pub(super) fn new(
        store: &Arc<dyn Store>,
        live: &Arc<Live>,
        state: Option<&StateDirectory>,
    ) -> Result<Self, StoreError> {
        let keeper = |directory: &StateDirectory| {
            let keeper = KeysKeeper::start(directory.clone(), Arc::clone(live));
            keeper.map(|keeper| (directory.clone(), keeper))
        };
        let file = state.map(keeper).transpose();
        Ok(Self {
            store: Arc::clone(store),
            live: Arc::clone(live),
            seen: None,
            was_full: state.is_some_and(StateDirectory::holds_catalog),
            file: file.map_err(|error| StoreError::Visitor(error.into()))?,
        })
    }

    fn follow_keys(&mut self) -> Result<(), StoreError> {
        // Before the store is asked: it may take its time to answer.
        let asked = Instant::now();
        let changes = self.store.changes()?;
        refuse_emptied(&changes, &self.live, self.was_full)?;
        let is_new = self.seen.as_ref() != Some(&counter(changes));
        if is_new {
            PanicPoint::FollowKeys.pass();
            // Another moment, perhaps of another machine: what was read is what was seen.
            let (read, records) = self.store.read_keys()?;
            refuse_emptied(&read, &self.live, self.was_full)?;
            self.live
                .set_keys(KeyTable::new(records, &self.live.keys()));
            self.seen = Some(counter(read));
        }
        self.live.contact.note(asked);
        if let (true, Some((_, keeper))) = (is_new, &self.file) {
            keeper.write();
        }
        Ok(())
    }
}

/// What tells one state of the keys from another: the store's id and its counter.
fn counter(changes: Changes) -> (String, u64) {
    (changes.store_id, changes.keys)
}

impl Rounds for KeyRounds {
    fn round(&mut self) -> Result<(), StoreError> {
        self.follow_keys()
    }

    fn metrics(&self) -> &Following {
        &self.live.metrics.follow_keys
    }

    fn start_while_away(&mut self) -> bool {
        let Some((directory, _)) = &self.file else {
            return false;
        };
        match keys_file::read(directory) {
            Ok((records, contact)) => {
                self.live
                    .set_keys(KeyTable::new(records, &KeyTable::default()));
                if let Err(error) = self.live.contact.resume(contact, Timestamp::now()) {
                    let error: &dyn std::error::Error = &error;
                    tracing::warn!(error, "the kept keys open nothing until the store is back");
                }
                true
            }
            Err(error) => {
                let error: &dyn std::error::Error = &error;
                tracing::warn!(error, "the keys file isn't used");
                false
            }
        }
    }
}
