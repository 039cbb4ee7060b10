//! The rounds in which a server follows the keys.

use std::sync::Arc;
use std::time::Instant;

use jiff::Timestamp;
use vitrine_model::key::KeyTable;
use vitrine_store::StoreError;
use vitrine_store::record::StoreState;

use super::StateDirectory;
use super::follow::{Followed, Rounds};
use super::keys_file::{self, KeysKeeper};
use crate::error_chain::ErrorChain;
use crate::metrics::Following;
use crate::panic_point::PanicPoint;

/// The rounds of the thread that follows the keys.
pub(super) struct KeyRounds {
    followed: Followed,
    /// The store's id and its counter.
    seen: Option<(String, u64)>,
    file: Option<(StateDirectory, KeysKeeper)>,
}

impl KeyRounds {
    /// # Errors
    ///
    /// Where the system gives no thread.
    pub(super) fn new(followed: Followed) -> Result<Self, StoreError> {
        let live = Arc::clone(&followed.live);
        Ok(Self {
            file: followed.kept(|directory| KeysKeeper::start(directory, live))?,
            followed,
            seen: None,
        })
    }

    fn follow_keys(&mut self) -> Result<(), StoreError> {
        let Followed { store, live, .. } = &self.followed;
        // Before the store is asked: it may take its time to answer.
        let asked = Instant::now();
        let changes = store.state()?;
        self.followed.refuse_emptied(&changes)?;
        let is_new = self.seen.as_ref() != Some(&counter(changes));
        if is_new {
            PanicPoint::FollowKeys.pass();
            // Another moment, perhaps of another machine: what was read is what was seen.
            let (read, records) = store.read_keys()?;
            self.followed.refuse_emptied(&read)?;
            live.set_keys(KeyTable::new(records, &live.keys()));
            self.seen = Some(counter(read));
        }
        live.contact.note(asked);
        if let (true, Some((_, keeper))) = (is_new, &self.file) {
            keeper.write();
        }
        Ok(())
    }
}

/// What tells one state of the keys from another: the store's id and its counter.
fn counter(changes: StoreState) -> (String, u64) {
    (changes.store_id, changes.keys)
}

impl Rounds for KeyRounds {
    fn round(&mut self) -> Result<(), StoreError> {
        self.follow_keys()
    }

    fn metrics(&self) -> &Following {
        &self.followed.live.metrics.follow_keys
    }

    fn start_while_away(&mut self) -> bool {
        let Some((directory, _)) = &self.file else {
            return false;
        };
        let live = &self.followed.live;
        match keys_file::read(directory) {
            Ok((records, contact)) => {
                live.set_keys(KeyTable::new(records, &KeyTable::default()));
                if let Err(error) = live.contact.resume(contact, Timestamp::now()) {
                    let error = ErrorChain(&error);
                    tracing::warn!(%error, "the kept keys open nothing until the store is back");
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
