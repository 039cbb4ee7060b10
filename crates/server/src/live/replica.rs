//! Proof that a followed replica is current: without it, nothing that it doesn't know can be called gone
//! (docs/contract/changes.md#tokens).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use vitrine_store::record::StoreState;

use super::feed::StoreRead;
use super::follow::FollowContext;
use super::follow_keys::key_state;
use crate::panics::caught;

/// True while the primary is asked: it may take long to answer, or never.
static ASKING: AtomicBool = AtomicBool::new(false);

/// Asks the primary, on a thread of its own, if it is at the state `seen` of a replica, which was read since `began`, and at that
/// of the keys, which another thread reads; reports the read if so.
pub(super) fn confirm(followed: &FollowContext, seen: StoreState, began: Instant) {
    let Some(primary) = followed.primary.clone() else {
        return;
    };
    if ASKING.swap(true, Ordering::AcqRel) {
        followed.live.store_reads.put_off();
        return;
    }
    let live = Arc::clone(&followed.live);
    let ask = move || {
        let state = caught(|| primary.state());
        ASKING.store(false, Ordering::Release);
        let is_seen = |state: &StoreState| {
            let keys = live.subscribe_keys_read().borrow().clone();
            state.clone().of_catalog() == seen
                && keys.is_some_and(|keys| keys.state == key_state(state))
        };
        if state.is_ok_and(|state| state.as_ref().is_ok_and(is_seen)) {
            live.store_reads.report(StoreRead {
                began,
                is_current: true,
            });
        }
    };
    let thread = std::thread::Builder::new().name("ask-primary".to_owned());
    if thread.spawn(ask).is_err() {
        ASKING.store(false, Ordering::Release);
    }
}
