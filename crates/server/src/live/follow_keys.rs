//! The task that follows the keys.

use std::sync::Arc;
use std::time::Instant;

use jiff::Timestamp;
use vitrine_model::key::KeyTable;
use vitrine_store::StoreError;
use vitrine_store::record::StoreState;

use super::StateDirectory;
use super::follow::{FollowContext, PollTask};
use super::keys_file::{self, KeysFileWriter};
use crate::error_chain::ErrorChain;
use crate::metrics::Following;
use crate::panic_point::PanicPoint;

/// Task of the thread that follows the keys.
pub(super) struct KeyPoll {
    followed: FollowContext,
    /// Id of the store and its counter of keys, as last read.
    seen: Option<(String, u64)>,
    file: Option<(StateDirectory, KeysFileWriter)>,
}

impl KeyPoll {
    /// # Errors
    ///
    /// If no thread can be started.
    pub(super) fn new(followed: FollowContext) -> Result<Self, StoreError> {
        let live = Arc::clone(&followed.live);
        Ok(Self {
            file: followed.start_writer(|directory| KeysFileWriter::start(directory, live))?,
            followed,
            seen: None,
        })
    }

    fn follow_keys(&mut self) -> Result<(), StoreError> {
        let FollowContext { store, live, .. } = &self.followed;
        // Before the query, which may take long.
        let asked = Instant::now();
        let state = store.state()?;
        self.followed.refuse_emptied(&state)?;
        let is_new = self.seen.as_ref() != Some(&key_state(state));
        if is_new {
            PanicPoint::FollowKeys.pass();
            // The state of this read, which may be newer or, after a failover, another database's.
            let (read, records) = store.read_keys()?;
            self.followed.refuse_emptied(&read)?;
            live.set_keys(KeyTable::new(records, &live.keys()));
            self.seen = Some(key_state(read));
        }
        live.contact.record(asked);
        if let (true, Some((_, writer))) = (is_new, &self.file) {
            writer.write();
        }
        Ok(())
    }
}

/// Returns the values that identify a state of the keys: the id of the store and its counter of keys.
fn key_state(state: StoreState) -> (String, u64) {
    (state.store_id, state.keys)
}

impl PollTask for KeyPoll {
    fn poll(&mut self) -> Result<(), StoreError> {
        self.follow_keys()
    }

    fn metrics(&self) -> &Following {
        &self.followed.live.metrics.follow_keys
    }

    fn start_offline(&mut self) -> bool {
        let Some((directory, _)) = &self.file else {
            return false;
        };
        let live = &self.followed.live;
        match keys_file::read(directory) {
            Ok((records, contact)) => {
                live.set_keys(KeyTable::new(records, &KeyTable::default()));
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
