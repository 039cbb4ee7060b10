//! The state that the changes feed answers from, and reads of the store that a request asks for.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use tokio::sync::watch;
use vitrine_model::changes::{Journal, Point, Position};
use vitrine_model::content_hash::ContentHash;
use vitrine_model::snapshot::Snapshot;
use vitrine_store::Hint;

/// Limits of the journal of changes.
#[derive(Debug, Clone, Copy)]
pub struct JournalLimits {
    /// Time for which a replaced state is remembered.
    pub keep: Duration,
    /// Maximum memory, in bytes.
    pub max_bytes: usize,
}

impl Default for JournalLimits {
    fn default() -> Self {
        Self {
            keep: Duration::from_secs(30 * 24 * 60 * 60),
            max_bytes: 64 << 20,
        }
    }
}

/// A snapshot with its position, and the journal that leads to it. Swapped as a whole.
#[derive(Debug)]
pub struct Feed {
    /// The snapshot, at times a moment older than the one of other requests.
    pub snapshot: Arc<Snapshot>,
    /// Position of the snapshot.
    pub position: Position,
    /// The journal; none until the store's history was read.
    pub journal: Option<Arc<Journal>>,
    /// Hash of the codes of damaged products, which are left out or shown as they were last good.
    pub damaged: ContentHash,
    /// Time for which a replaced state is remembered.
    pub keep: Duration,
    /// Random id of the store, which clients don't know.
    pub store_id: Box<str>,
}

impl Feed {
    /// Returns the point of a position; `None` if it is unknown, was replaced too long ago, or is after the snapshot.
    #[must_use]
    pub fn locate(&self, position: &Position, now: Timestamp) -> Option<Point> {
        let journal = self.journal.as_ref()?;
        let point = journal.locate(position)?;
        let kept_since = now.saturating_sub(self.keep).unwrap_or(Timestamp::MIN);
        let is_kept = journal
            .replaced_at(point)
            .is_none_or(|replaced| replaced > kept_since);
        (is_kept && point.is_reached_by(journal.locate(&self.position)?)).then_some(point)
    }

    /// Returns the time since which tokens are continued; `None` without a journal.
    #[must_use]
    pub fn oldest(&self, now: Timestamp) -> Option<Timestamp> {
        let kept_since = now.saturating_sub(self.keep).unwrap_or(Timestamp::MIN);
        self.journal.as_ref()?.known_since(kept_since)
    }
}

/// A successful read of the store that was asked for.
#[derive(Debug, Clone, Copy)]
pub struct StoreRead {
    /// Its beginning.
    pub began: Instant,
    /// True if the store is known to be current: a replica may lag.
    pub is_current: bool,
}

/// Minimum interval between reads of the store that requests cause.
const MIN_INTERVAL: Duration = Duration::from_millis(20);

/// Reads of the store that requests ask for, beside the regular ones.
pub struct StoreReads {
    wanted: AtomicBool,
    wake: Mutex<Wake>,
    done: watch::Sender<Option<StoreRead>>,
}

#[derive(Default)]
struct Wake {
    hint: Option<Hint>,
    last: Option<Instant>,
}

impl Default for StoreReads {
    fn default() -> Self {
        Self {
            wanted: AtomicBool::new(false),
            wake: Mutex::default(),
            done: watch::Sender::new(None),
        }
    }
}

impl fmt::Debug for StoreReads {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("StoreReads").finish_non_exhaustive()
    }
}

impl StoreReads {
    /// Sets the hint by which the following thread is woken.
    pub(super) fn connect(&self, hint: Hint) {
        self.wake
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .hint = Some(hint);
    }

    /// Asks for a read. Returns the receiver of its result, and of others'.
    pub fn ask(&self) -> watch::Receiver<Option<StoreRead>> {
        let done = self.done.subscribe();
        self.wanted.store(true, Ordering::Release);
        let mut wake = self.wake.lock().unwrap_or_else(PoisonError::into_inner);
        // Otherwise the next regular read counts, which is soon.
        if wake.last.is_none_or(|last| last.elapsed() >= MIN_INTERVAL) {
            wake.last = Some(Instant::now());
            if let Some(hint) = &wake.hint {
                hint();
            }
        }
        done
    }

    /// Returns true if a read is wanted, and resets that.
    pub(super) fn take_wanted(&self) -> bool {
        self.wanted.swap(false, Ordering::AcqRel)
    }

    /// Leaves a wanted read to the next poll.
    pub(super) fn put_off(&self) {
        self.wanted.store(true, Ordering::Release);
    }

    /// Reports a read that was wanted.
    pub(super) fn report(&self, read: StoreRead) {
        self.done.send_replace(Some(read));
    }
}
