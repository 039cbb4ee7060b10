//! The task that follows the catalog. It builds the snapshot from the store, from the previous snapshot and the changes
//! since, or at a start from the snapshot file.

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use vitrine_ingest::view::TextAddresses;
use vitrine_model::snapshot::Snapshot;
use vitrine_store::StoreError;
use vitrine_store::record::StoreState;

use super::build::{BUILD_STEP_LIMIT, apply_changes, build, grace_end};
use super::feed::StoreRead;
use super::follow::{FollowContext, PollTask};
use super::follow_assortments::warn_of_excesses;
use super::follow_changes::ChangesFollower;
use super::replica;
use super::snapshot_file::{Identity, SavedSnapshot};
use super::state_file::{ReadError, StateFile};
use crate::error_chain::ErrorChain;
use crate::metrics::Following;
use crate::metrics::table::Rebuild;
use crate::panic_point::PanicPoint;

/// Time that clients have to finish a page of a snapshot that was replaced. Then their connections are cut, so that slow
/// ones don't keep old catalogs in memory.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(60);

/// Interval between removals of texts that are no longer served.
const TEXT_EXPIRY_INTERVAL: Duration = Duration::from_secs(3600);

/// Interval between checkpoints of the store's log.
const CHECKPOINT_INTERVAL: Duration = Duration::from_secs(5);
/// Maximum number of damaged products and texts that are logged by name.
const MAX_LOGGED: usize = 10;

/// Task of the thread that follows the catalog.
pub(super) struct CatalogPoll {
    followed: FollowContext,
    addresses: TextAddresses,
    /// State of the store of which the live snapshot was made.
    seen: Option<StoreState>,
    texts_expired: Instant,
    checkpointed: Instant,
    file: Option<StateFile<SavedSnapshot>>,
    changes: ChangesFollower,
    /// False until the thread polls: a start doesn't wait for the changes.
    is_started: bool,
    /// Replaced snapshots that requests may still use, with the time; they are freed on this thread, not on a request's.
    replaced: Vec<(Instant, Arc<Snapshot>)>,
}

impl CatalogPoll {
    /// # Errors
    ///
    /// If no thread can be started.
    pub(super) fn new(
        followed: FollowContext,
        addresses: &TextAddresses,
    ) -> Result<Self, StoreError> {
        Ok(Self {
            file: followed.state_file()?,
            changes: ChangesFollower::new(&followed, followed.live.journal_limits())?,
            is_started: false,
            followed,
            addresses: addresses.clone(),
            seen: None,
            texts_expired: Instant::now(),
            checkpointed: Instant::now(),
            replaced: Vec::new(),
        })
    }

    fn follow_catalog(&mut self) -> Result<(), StoreError> {
        self.replaced
            .retain(|(_, snapshot)| Arc::strong_count(snapshot) > 1);
        for (replaced, snapshot) in &self.replaced {
            if replaced.elapsed() >= DRAIN_TIMEOUT {
                snapshot.withdraw();
            }
        }
        // Keys are followed by the other thread.
        let found = self.followed.store.state()?.of_catalog();
        self.followed.refuse_emptied(&found)?;
        let started = Instant::now();
        if self.seen.is_none() && self.followed.live.snapshot().is_none() {
            self.start_from_file(Some(&found));
        }
        if self.seen.as_ref() == Some(&found) {
            self.expire_texts();
            return Ok(());
        }
        PanicPoint::FollowCatalog.pass();
        // The state of this read, which may be newer than `found` or, after a failover, another database's.
        let (rebuild, read, snapshot) = self.next_snapshot(&found)?;
        self.followed.refuse_emptied(&read)?;
        if snapshot.is_some() {
            let took = started.elapsed();
            self.followed.live.metrics.swaps.record(rebuild, took);
        }
        if let (Some(snapshot), Some(_)) = (&snapshot, self.followed.live.snapshot()) {
            let published = snapshot.revision().created_at;
            let lag = Timestamp::now().duration_since(published).as_secs_f64();
            self.followed.live.metrics.swaps.last_lag.set(lag.max(0.0));
        }
        let made_from = match rebuild {
            Rebuild::Full => "store",
            Rebuild::Changes => "changes",
        };
        self.log_damage(snapshot.as_ref());
        self.swap(snapshot.map(Arc::new), started, made_from);
        if let Some(snapshot) = self.followed.live.snapshot() {
            warn_of_excesses(self.followed.live.keys().assortments(), &snapshot);
        }
        if let (Some(file), Some(snapshot)) = (&self.file, self.followed.live.snapshot())
            // The previous file has the last good version of damaged products.
            && snapshot.damage().is_empty()
        {
            let identity = self.identity(&read);
            file.write(SavedSnapshot { identity, snapshot });
        }
        self.seen = Some(read.of_catalog());
        Ok(())
    }

    fn replace(&mut self, snapshot: Option<Arc<Snapshot>>) {
        let before = self.followed.live.set_snapshot(snapshot);
        self.replaced
            .extend(before.map(|one| (Instant::now(), one)));
    }

    fn swap(&mut self, snapshot: Option<Arc<Snapshot>>, started: Instant, made_from: &str) {
        let facts = snapshot
            .as_ref()
            .map(|snapshot| (snapshot.revision().number, snapshot.len()));
        // Set first: readers of the snapshot may read this metric.
        let now = Timestamp::now();
        self.followed.live.metrics.live_since.set_moment(now);
        self.replace(snapshot);
        // Logged last: readers of the log may send requests at once.
        if let Some((revision, products)) = facts {
            let took_milliseconds = u64::try_from(started.elapsed().as_millis()).unwrap_or(0);
            tracing::info!(
                revision,
                products,
                took_milliseconds,
                made_from,
                "catalog is live"
            );
        }
    }

    /// Logs damage in the store if it changed.
    fn log_damage(&self, snapshot: Option<&Snapshot>) {
        let Some(damage) = snapshot.map(Snapshot::damage) else {
            return;
        };
        let live = self.followed.live.snapshot();
        let before = live.as_deref().map(Snapshot::damage);
        if damage.is_empty() || before == Some(damage) {
            return;
        }
        let codes: Vec<&str> = damage.products.iter().map(String::as_str).collect();
        let digests: Vec<String> = damage.texts.iter().map(ToString::to_string).collect();
        let codes = codes[..codes.len().min(MAX_LOGGED)].join(", ");
        let digests = digests[..digests.len().min(MAX_LOGGED)].join(", ");
        tracing::error!(
            products = damage.products.len(),
            texts = damage.texts.len(),
            codes,
            digests,
            "the store is damaged: serving the last good versions of these, or nothing; run `vitrine check`"
        );
    }

    /// Swaps in the snapshot of the file, if there is one and it matches the state `found` of the store. Later changes are
    /// still to be applied. Without a state, the store wasn't asked: then its address must match, and the file has its state.
    /// Returns whether that succeeded.
    fn start_from_file(&mut self, found: Option<&StoreState>) -> bool {
        let Some(file) = &self.file else {
            return false;
        };
        let started = Instant::now();
        // All of the file is checked.
        self.metrics().heartbeat.beat(BUILD_STEP_LIMIT);
        let (expected, addresses) = (
            found.map(|found| self.identity(found)),
            self.addresses.prefix(),
        );
        let saved = file.read(|header, is_same_address| match &expected {
            Some(expected) => header.identity == *expected,
            None => is_same_address && header.identity.text_addresses == addresses,
        });
        match saved {
            Ok(saved) => {
                self.seen = Some(saved.store_state());
                let made_from = match found {
                    Some(_) => "snapshot file",
                    None => "last good file",
                };
                self.swap(Some(saved.snapshot), started, made_from);
                return true;
            }
            // While the store can't be read, nothing else can be served.
            Err(error) if error.is_missing() && found.is_some() => {}
            Err(error) => self.log_unused_file(&error),
        }
        false
    }

    fn log_unused_file(&self, error: &ReadError) {
        let is_damaged = matches!(error, ReadError::Damaged);
        let error = ErrorChain(error);
        if is_damaged {
            let files = &self.followed.live.metrics.swaps.damaged_files;
            files.increment();
            tracing::error!(%error, "the snapshot file isn't used");
        } else {
            tracing::info!(%error, "the snapshot file isn't used");
        }
    }

    fn identity(&self, found: &StoreState) -> Identity {
        Identity {
            store_id: found.store_id.clone(),
            texts: found.texts,
            text_addresses: self.addresses.prefix().to_owned(),
        }
    }

    /// Returns the current snapshot, made from the live one if possible, and the state of the store of which it was made.
    fn next_snapshot(
        &self,
        found: &StoreState,
    ) -> Result<(Rebuild, StoreState, Option<Snapshot>), StoreError> {
        let now = Timestamp::now();
        let (store, addresses) = (&*self.followed.store, &self.addresses);
        let heartbeat = &self.metrics().heartbeat;
        // Any product may name a text that was taken down.
        let differs_only_in_revision = |found: &StoreState| {
            let seen = self.seen.as_ref();
            seen.is_some_and(|seen| seen.store_id == found.store_id && seen.texts == found.texts)
        };
        if differs_only_in_revision(found)
            && let Some(live) = self.followed.live.snapshot()
            && let Some((read, changed)) = apply_changes(store, &live, addresses, now, heartbeat)?
            && differs_only_in_revision(&read)
        {
            return Ok((Rebuild::Changes, read, Some(changed)));
        }
        let live = self.followed.live.snapshot();
        let (read, snapshot) = build(store, live.as_deref(), addresses, now, heartbeat)?;
        let snapshot = match (snapshot, &live) {
            // Missing texts were retired, however long ago by the publisher's clock; none was taken down.
            (Some(snapshot), Some(live)) if differs_only_in_revision(&read) => {
                Some(snapshot.keeping_texts_of(live, now, grace_end(now)))
            }
            (snapshot, _) => snapshot,
        };
        Ok((Rebuild::Full, read, snapshot))
    }

    /// Removes texts that are no longer served from the live snapshot.
    fn expire_texts(&mut self) {
        if self.texts_expired.elapsed() < TEXT_EXPIRY_INTERVAL {
            return;
        }
        self.texts_expired = Instant::now();
        let without_expired = self
            .followed
            .live
            .snapshot()
            .and_then(|live| live.without_ended_texts(Timestamp::now()));
        if let Some(snapshot) = without_expired {
            self.replace(Some(Arc::new(snapshot)));
        }
    }

    /// Keeps the store's log small: reading a catalog at length is what lets it grow.
    fn checkpoint_log(&mut self) {
        if self.checkpointed.elapsed() < CHECKPOINT_INTERVAL {
            return;
        }
        self.checkpointed = Instant::now();
        // Emptying it may mean to copy a gigabyte.
        self.metrics().heartbeat.beat(BUILD_STEP_LIMIT);
        match self.followed.store.checkpoint_log() {
            Ok(bytes) => {
                let metric = &self.followed.live.metrics.swaps.store_log_bytes;
                metric.set(bytes.unwrap_or(0) as f64);
            }
            Err(error) => {
                let error = ErrorChain(&error);
                tracing::debug!(%error, "can't empty the store's write-ahead log");
            }
        }
    }

    /// Follows the changes, which aren't needed for a start.
    fn follow_changes(&mut self) {
        let is_started = std::mem::replace(&mut self.is_started, true);
        let Some(seen) = &self.seen else {
            return;
        };
        match is_started {
            false => drop(self.changes.publish_known(&self.followed, seen)),
            true => {
                let heartbeat = &self.followed.live.metrics.follow_catalog.heartbeat;
                self.changes.follow(&self.followed, seen, heartbeat);
            }
        }
    }

    /// Reports a read of the store that a request asked for, once the feed answers from what was read.
    fn report_read(&self, began: Instant) -> Result<(), StoreError> {
        let is_current = |seen: &&StoreState| ChangesFollower::is_current(&self.followed, seen);
        let Some(seen) = self.seen.as_ref().filter(is_current) else {
            self.followed.live.store_reads.put_off();
            return Ok(());
        };
        match self.followed.store.is_replica()? {
            false => self.followed.live.store_reads.report(StoreRead {
                began,
                is_current: true,
            }),
            true => replica::confirm(&self.followed, seen.clone(), began),
        }
        Ok(())
    }
}

impl PollTask for CatalogPoll {
    fn poll(&mut self) -> Result<(), StoreError> {
        let is_wanted = self.followed.live.store_reads.take_wanted();
        let began = Instant::now();
        self.follow_catalog()?;
        self.follow_changes();
        if is_wanted {
            self.report_read(began)?;
        }
        self.checkpoint_log();
        Ok(())
    }

    fn metrics(&self) -> &Following {
        &self.followed.live.metrics.follow_catalog
    }

    fn start_offline(&mut self) -> bool {
        let is_started = self.start_from_file(None);
        self.is_started = true;
        if let Some(seen) = &self.seen {
            self.changes.publish_known(&self.followed, seen);
        }
        is_started
    }
}
