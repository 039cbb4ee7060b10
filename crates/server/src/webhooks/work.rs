//! The deliverer's loop: notices which endpoints have events to send, takes turns at hosts, writes outcomes.
//!
//! Calls of the store are made on other threads, one at a time; whatever gathers meanwhile is one transaction.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;
use vitrine_store::webhooks::{
    DeliveryUpdate, Endpoint, EndpointStatus, EventFormat, WebhookState,
};
use vitrine_store::{Store, StoreError};

use super::attempt::Finished;
use super::entry::{Entry, MAX_AHEAD, Phase};
use super::event::{EventSource, News};
use super::hosts::Hosts;
use super::secret::KeyFile;
use super::seen::Seen;
use super::{Shared, updates};
use crate::error_chain::ErrorChain;
use crate::panic_point::PanicPoint;

/// Minimum time between the starts of attempts in a server: bursts would make its clients wait
/// (docs/decisions/0004-attempts-at-speed.md).
const PACE: Duration = Duration::from_millis(1);

/// Minimum interval of polls of the store.
const MIN_POLL: Duration = Duration::from_millis(200);

/// Pause before an endpoint that somebody else leases, or that changed meanwhile, is looked at again.
pub(super) const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Interval at which positions are stored of endpoints that saw nothing change: the journal has a revision for days only.
const KEEP_INTERVAL: Duration = Duration::from_secs(600);

/// Time that attempts in flight get at the end.
const END_TIMEOUT: Duration = Duration::from_secs(2);

/// State of the loop.
pub(super) struct Work {
    pub(super) shared: Arc<Shared>,
    pub(super) key: Option<KeyFile>,
    state: WebhookState,
    pub(super) entries: HashMap<String, Entry>,
    pub(super) hosts: Hosts,
    /// In a server, time at which the next attempt may begin, after one that just began.
    next_turn: Option<Instant>,
    timers: BinaryHeap<Reverse<(Instant, String)>>,
    pub(super) attempts: JoinSet<Finished>,
    /// Outcomes to be written.
    pub(super) unsaved: Vec<DeliveryUpdate>,
    pub(super) source: Option<EventSource>,
    seen: Seen,
    /// Failure that was logged last.
    failure: Option<String>,
    kept_at: Instant,
}

impl Work {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self {
            hosts: Hosts::new(shared.settings.max_failing()),
            shared,
            key: None,
            state: WebhookState::default(),
            entries: HashMap::new(),
            next_turn: None,
            timers: BinaryHeap::new(),
            attempts: JoinSet::new(),
            unsaved: Vec::new(),
            source: None,
            seen: Seen::default(),
            failure: None,
            kept_at: Instant::now(),
        }
    }

    /// Delivers until it is stopped.
    pub(super) async fn run(&mut self, mut stopped: watch::Receiver<bool>) {
        let mut feeds = self.shared.live.subscribe_feed();
        feeds.mark_changed();
        let mut poll =
            tokio::time::interval(self.shared.settings.store.poll_interval().max(MIN_POLL));
        poll.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            let next_timer = self.timers.peek().map(|Reverse((at, _))| *at);
            let next = next_timer.into_iter().chain(self.next_turn).min();
            let far = Instant::now() + Duration::from_secs(60);
            tokio::select! {
                _ = stopped.changed() => break,
                changed = feeds.changed() => match changed {
                    Ok(()) => self.scan(),
                    Err(_) => break,
                },
                _ = poll.tick() => self.refresh().await,
                () = tokio::time::sleep_until(next.unwrap_or(far)) => self.fire_timers(),
                Some(done) = self.attempts.join_next(), if !self.attempts.is_empty() => self.finish(done),
            }
            while let Some(done) = self.attempts.try_join_next() {
                self.finish(done);
            }
            self.save().await;
            self.begin().await;
        }
        self.end().await;
    }

    /// Calls the store on another thread. A failure is logged once, and returns `None`.
    pub(super) async fn on_store<T: Send + 'static>(
        &mut self,
        call: impl FnOnce(&Store) -> Result<T, StoreError> + Send + 'static,
    ) -> Option<T> {
        let store = Arc::clone(&self.shared.settings.store);
        let calls = &self.shared.store_calls;
        let outcome = calls.spawn_blocking(move || call(&store)).await;
        match outcome {
            Ok(Ok(done)) => Some(done),
            Ok(Err(error)) => {
                self.report(ErrorChain(&error).to_string());
                None
            }
            Err(_) => None,
        }
    }

    /// Logs why nothing is delivered, once.
    fn report(&mut self, failure: String) {
        if self.failure.as_ref() != Some(&failure) {
            tracing::error!(failure, "webhooks aren't delivered");
            self.failure = Some(failure);
        }
    }

    /// Reads the endpoints if an operator changed one, and the key file until it is the right one.
    async fn refresh(&mut self) {
        let Some(state) = self.on_store(Store::webhook_state).await else {
            return;
        };
        if self.state != state {
            let Some(endpoints) = self.on_store(Store::endpoints).await else {
                return;
            };
            self.state = state;
            self.key = None;
            self.replace(endpoints);
        }
        if let (Some(fingerprint), None) = (self.state.key_fingerprint.clone(), &self.key) {
            let path = self.shared.settings.key_file.clone();
            match KeyFile::read(&path) {
                Ok(key) if key.fingerprint() == fingerprint => {
                    self.key = Some(key);
                    self.scan();
                }
                Ok(_) => self.report(format!(
                    "{} isn't the file from which the endpoints' secrets are derived",
                    path.display()
                )),
                Err(error) => self.report(ErrorChain(&error).to_string()),
            }
        }
        let keys = self.shared.live.keys();
        if (self.source.as_ref()).is_some_and(|source| !Arc::ptr_eq(&source.keys, &keys)) {
            self.scan();
        }
        if self.kept_at.elapsed() >= KEEP_INTERVAL {
            self.kept_at = Instant::now();
            self.keep_positions();
        }
        if self.key.is_some() && self.failure.take().is_some() {
            tracing::info!("webhooks are delivered");
        }
        self.measure();
    }

    /// Takes the endpoints as they were read. Those that are leased go on.
    fn replace(&mut self, endpoints: Vec<Endpoint>) {
        let mut before = std::mem::take(&mut self.entries);
        for endpoint in endpoints {
            let id = endpoint.id.clone();
            let kept = before.remove(&id);
            let entry = match kept {
                Some(mut kept) if kept.phase != Phase::Idle => {
                    kept.renew(endpoint);
                    kept
                }
                Some(kept) => Entry {
                    is_lost: kept.is_lost,
                    retry_at: kept.retry_at,
                    timer_at: kept.timer_at,
                    ..Entry::new(endpoint)
                },
                None => Entry::new(endpoint),
            };
            self.entries.insert(id, entry);
        }
        // Deleted ones stay until they are released.
        before.retain(|_, entry| {
            entry.is_deleted = true;
            entry.phase != Phase::Idle
        });
        self.entries.extend(before);
    }

    /// Looks at all endpoints, since the catalog, the keys or the endpoints changed.
    fn scan(&mut self) {
        let live = &self.shared.live;
        let feed = live.feed();
        if let Some(feed) = &feed
            && self.seen.add(feed)
        {
            tracing::warn!(
                "the store lost changes: webhook endpoints get the event that restarts their copies"
            );
            (self.entries.values_mut()).for_each(|entry| entry.is_lost = true);
        }
        let anchor = self.seen.anchor();
        let before = self.source.take();
        self.source = feed.map(|feed| EventSource::new(feed, live.keys(), anchor, before));
        let ids: Vec<String> = self.entries.keys().cloned().collect();
        for id in ids {
            self.consider(&id);
        }
    }

    /// Queues an endpoint if it has something to send now.
    pub(super) fn consider(&mut self, id: &str) {
        let (Some(entry), Some(source)) = (self.entries.get_mut(id), self.source.as_mut()) else {
            return;
        };
        let is_paused = entry.not_before.is_some_and(|end| end > Instant::now());
        if entry.phase != Phase::Idle || is_paused {
            return;
        }
        PanicPoint::Webhooks.pass();
        let endpoint = &entry.endpoint;
        let now = Timestamp::now();
        let is_told =
            endpoint.status == EndpointStatus::Active && source.is_key_active(endpoint, now);
        let mut again = None;
        let is_due = if endpoint.test.is_some() {
            source.is_key_active(endpoint, now)
        } else if !is_told {
            entry.behind_since = None;
            false
        } else if entry.pending().is_some() {
            let left = entry.time_left(now);
            again = Some(left);
            left.is_zero()
        } else {
            let (since, gives_up) = (entry.since(), entry.gives_up());
            let news = match (&entry.request, endpoint.format) {
                (None, _) => News::Unknown,
                (Some(request), EventFormat::CatalogChanged) => {
                    source.outlook(endpoint, request, since, gives_up)
                }
                (Some(_), EventFormat::ProductUpdate) => {
                    updates::outlook(source, (endpoint, since), gives_up)
                }
            };
            match news {
                News::None(position) => {
                    (entry.moved, entry.behind_since) = (Some(position), None);
                    entry.ahead_since = None;
                    false
                }
                News::Due | News::Event(_) => {
                    let published = source.feed.snapshot.revision().created_at;
                    entry.behind_since.get_or_insert(published);
                    true
                }
                News::Ahead => {
                    entry.ahead_since.get_or_insert_with(Instant::now);
                    again = Some(MAX_AHEAD);
                    false
                }
                News::Later(left) => {
                    again = Some(left);
                    false
                }
                News::Unknown => false,
            }
        };
        match (is_due, &self.key, again) {
            (true, Some(_), _) => {
                entry.phase = Phase::Queued;
                self.hosts
                    .push(&entry.host, id.to_owned(), entry.is_failing());
            }
            // Once there is the key file, all are looked at.
            (true, None, _) | (false, _, None) => {}
            (false, _, Some(left)) => self.set_timer(id, left),
        }
    }

    /// Queues the endpoints whose position is to be stored, since nothing that they see changed.
    fn keep_positions(&mut self) {
        for (id, entry) in &mut self.entries {
            let Entry {
                endpoint, moved, ..
            } = &*entry;
            let is_newer = moved
                .as_ref()
                .is_some_and(|moved| *moved != endpoint.progress.position);
            if is_newer && entry.phase == Phase::Idle {
                entry.phase = Phase::Queued;
                self.hosts.push(&entry.host, id.clone(), entry.is_failing());
            }
        }
    }

    /// Looks at an endpoint again after a time, at the latest.
    pub(super) fn set_timer(&mut self, id: &str, left: Duration) {
        let at = Instant::now() + left;
        let Some(entry) = self.entries.get_mut(id) else {
            return;
        };
        // One at a time: when that fires, it is set again.
        if entry.timer_at.is_none_or(|earlier| at < earlier) {
            entry.timer_at = Some(at);
            self.timers.push(Reverse((at, id.to_owned())));
        }
    }

    fn fire_timers(&mut self) {
        let now = Instant::now();
        if let Some(source) = &mut self.source {
            source.anchor = self.seen.anchor();
        }
        while let Some(Reverse((at, _))) = self.timers.peek()
            && *at <= now
        {
            let Some(Reverse((at, id))) = self.timers.pop() else {
                return;
            };
            let entry = self.entries.get_mut(&id);
            let fired = entry.and_then(|entry| entry.timer_at.take_if(|set| *set == at));
            if fired.is_some() {
                self.consider(&id);
            }
        }
    }

    /// Returns the endpoints whose turn it is.
    pub(super) fn turns(&mut self) -> Vec<String> {
        let mut free = (self.shared.settings.max_in_flight()).saturating_sub(self.attempts.len());
        let now = Instant::now();
        self.next_turn.take_if(|next| *next <= now);
        if self.shared.settings.is_paced {
            free = free.min(usize::from(self.next_turn.is_none()));
        }
        let turns: Vec<String> = std::iter::from_fn(|| self.hosts.next())
            .take(free)
            .collect();
        if self.shared.settings.is_paced && !turns.is_empty() {
            self.next_turn = Some(now + PACE);
        }
        turns
    }

    /// Lets attempts in flight end, for a short time, and ends all leases.
    async fn end(&mut self) {
        let end = Instant::now() + END_TIMEOUT;
        while let Ok(Some(done)) = tokio::time::timeout_at(end, self.attempts.join_next()).await {
            self.finish(done);
        }
        self.save().await;
    }
}
