//! An endpoint in a deliverer's memory.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;
use vitrine_store::webhooks::{Endpoint, PendingEvent, Progress};

use super::event::UNKNOWN;
use super::schedule;
use crate::http::request::parameters::{self, ChangesRequest};

/// Time for which an endpoint's position may be newer than the catalog here; then it is taken for one that was lost.
pub(super) const MAX_AHEAD: Duration = Duration::from_secs(30);

/// An endpoint, as it was last read.
pub(super) struct Entry {
    pub(super) endpoint: Endpoint,
    pub(super) host: String,
    /// Its filters; none if this release doesn't know them.
    pub(super) request: Option<ChangesRequest>,
    pub(super) phase: Phase,
    /// Time of the next attempt as it is stored, and by this machine's monotonic clock, which nobody sets.
    pub(super) retry_at: Option<(Timestamp, Instant)>,
    /// Time at which it is looked at again.
    pub(super) timer_at: Option<Instant>,
    /// Position since which nothing visible changed.
    pub(super) moved: Option<String>,
    /// True after the store lost changes that the endpoint may have been sent: its copy has to restart.
    pub(super) is_lost: bool,
    /// True once an operator deleted it; it goes when it is idle.
    pub(super) is_deleted: bool,
    /// End of the pause after the store couldn't be read for it.
    pub(super) not_before: Option<Instant>,
    pub(super) ahead_since: Option<Instant>,
    /// Publication of what it wasn't sent yet.
    pub(super) behind_since: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Idle,
    /// It waits for its turn.
    Queued,
    /// It is leased.
    Leased,
}

impl Entry {
    pub(super) fn new(endpoint: Endpoint) -> Self {
        let filters = Some(endpoint.filters.as_str()).filter(|filters| !filters.is_empty());
        let url: Option<reqwest::Url> = endpoint.url.parse().ok();
        let host = url.and_then(|url| Some(url.host_str()?.to_owned()));
        Self {
            host: host.unwrap_or_default(),
            request: parameters::changes(filters).ok(),
            endpoint,
            phase: Phase::Idle,
            retry_at: None,
            timer_at: None,
            moved: None,
            is_lost: false,
            is_deleted: false,
            not_before: None,
            ahead_since: None,
            behind_since: None,
        }
    }

    /// Returns the position since which it is sent changes; an unknown one after changes were lost.
    pub(super) fn since(&self) -> &str {
        match (self.is_lost, &self.moved) {
            (true, _) => UNKNOWN,
            (false, Some(moved)) => moved,
            (false, None) => &self.endpoint.progress.position,
        }
    }

    /// Returns the event that the next attempt repeats. After changes were lost there is none: its token may be of these.
    pub(super) fn pending(&self) -> Option<&PendingEvent> {
        let pending = self.endpoint.progress.pending.as_ref();
        pending.filter(|_| !self.is_lost)
    }

    /// Returns true if its last attempt failed.
    pub(super) fn is_failing(&self) -> bool {
        self.endpoint.progress.failing_since.is_some()
    }

    /// Returns true if a position that is newer than the catalog here is taken for one that was lost.
    pub(super) fn gives_up(&self) -> bool {
        let since = self.ahead_since;
        since.is_some_and(|since| since.elapsed() >= MAX_AHEAD)
    }

    /// Returns the time until the next attempt of the pending event. The wall clock is asked once for each stored time.
    pub(super) fn time_left(&mut self, now: Timestamp) -> Duration {
        let next = self.endpoint.progress.next_attempt_at;
        if next != self.retry_at.map(|(stored, _)| stored) {
            self.retry_at = retry_at(&self.endpoint.progress, now);
        }
        self.retry_at.map_or(Duration::ZERO, |(_, at)| {
            at.saturating_duration_since(Instant::now())
        })
    }

    /// Takes the endpoint as it is now.
    pub(super) fn renew(&mut self, endpoint: Endpoint) {
        if endpoint.progress.position != self.endpoint.progress.position {
            (self.moved, self.behind_since) = (None, None);
        }
        self.endpoint = endpoint;
    }
}

/// Returns the time of the next attempt as it is stored, and by this machine's monotonic clock.
pub(super) fn retry_at(progress: &Progress, now: Timestamp) -> Option<(Timestamp, Instant)> {
    let left = schedule::time_left(progress, now);
    Some((progress.next_attempt_at?, Instant::now() + left))
}
