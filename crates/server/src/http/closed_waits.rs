//! Waits whose clients have closed their side. Such a client may still read, but mostly it is gone: these waits end first
//! for new ones.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;
use vitrine_model::key::KeyUsage;

/// Waits of closed connections. The lock is taken when a client closes its side, and at a limit of waits.
#[derive(Debug, Default)]
pub(super) struct ClosedWaits(Mutex<Queue>);

#[derive(Debug, Default)]
struct Queue {
    next: u64,
    /// Signals that end the waits, by key and age.
    ends: BTreeMap<Place, oneshot::Sender<()>>,
}

/// Address of the key's usage, which its waits share, and a number.
type Place = (usize, u64);

fn key_of(usage: &KeyUsage) -> usize {
    std::ptr::from_ref(usage).addr()
}

impl ClosedWaits {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a wait of this key has to end: after its client has closed its side, for another wait or with its connection.
    pub(super) async fn ended_early(
        &self,
        usage: &KeyUsage,
        closed: impl Future<Output = ()>,
        evicted: impl Future<Output = ()>,
    ) {
        closed.await;
        tokio::select! {
            () = self.displaced(usage) => {}
            () = evicted => {}
        }
    }

    async fn displaced(&self, usage: &KeyUsage) {
        let (end, ended) = oneshot::channel();
        let place = {
            let mut queue = self.lock();
            queue.next += 1;
            let place = (key_of(usage), queue.next);
            queue.ends.insert(place, end);
            place
        };
        let _entry = Entry { waits: self, place };
        // The sender isn't dropped unused.
        let _ = ended.await;
    }

    /// Ends one wait of a key, or one of any. Returns false if there is none.
    pub(super) fn end_one(&self, of: Option<&KeyUsage>) -> bool {
        let mut queue = self.lock();
        let place = match of.map(key_of) {
            Some(key) => queue.ends.range((key, 0)..=(key, u64::MAX)).next(),
            None => queue.ends.first_key_value(),
        };
        let place = place.map(|(place, _)| *place);
        let end = place.and_then(|place| queue.ends.remove(&place));
        end.is_some_and(|end| end.send(()).is_ok())
    }
}

/// Entry of a wait, removed when this is dropped.
struct Entry<'w> {
    waits: &'w ClosedWaits,
    place: Place,
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        self.waits.lock().ends.remove(&self.place);
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;

    #[test]
    fn closed_wait_ends_for_its_key_or_any() {
        let waits = ClosedWaits::default();
        let [one, other] = [KeyUsage::default(), KeyUsage::default()];
        let mut context = Context::from_waker(Waker::noop());
        let mut first = pin!(waits.displaced(&one));
        assert!(!waits.end_one(None), "nobody waits");
        assert!(first.as_mut().poll(&mut context).is_pending());
        assert!(!waits.end_one(Some(&other)), "none of that key");
        assert!(waits.end_one(Some(&one)));
        assert!(first.as_mut().poll(&mut context).is_ready());
        {
            let mut gone = pin!(waits.displaced(&other));
            assert!(gone.as_mut().poll(&mut context).is_pending());
        }
        assert!(!waits.end_one(None), "it ended by itself");
    }
}
