//! An attempt: the lease of the endpoint, the event, which is stored before it is sent, and the outcome.

use std::collections::HashSet;
use std::time::Duration;

use jiff::Timestamp;
use tokio::task::JoinError;
use tokio::time::Instant;
use vitrine_store::webhooks::{
    Attempt, DeliveryUpdate, Endpoint, EndpointStatus, EventFormat, LEASE, Lease, PendingEvent,
    Progress,
};

use super::entry::{self, Phase};
use super::event::{self, News};
use super::schedule::{self, ATTEMPT_TIMEOUT};
use super::sender::{Outgoing, Sent};
use super::work::{LOOK_AGAIN, Work};
use crate::metrics::table::AttemptOutcome;

/// Time of a lease that is left when the longest attempt ends, for writing its outcome.
const MARGIN: Duration = Duration::from_secs(5);

/// An attempt to make.
struct Planned {
    lease: Lease,
    progress: Progress,
    event: PendingEvent,
    kind: &'static str,
    /// True if the event has to be stored first.
    is_new: bool,
}

/// An attempt that was made.
pub(super) struct Finished {
    lease: Lease,
    progress: Progress,
    event: PendingEvent,
    kind: &'static str,
    at: Timestamp,
    took: Duration,
    sent: Sent,
    /// Publication of the revision of a new event.
    published_at: Option<Timestamp>,
}

fn release(lease: Lease, progress: Progress) -> DeliveryUpdate {
    DeliveryUpdate {
        lease,
        progress,
        attempt: None,
        disable: None,
        tested: None,
        release: true,
    }
}

impl Work {
    /// Leases the endpoints whose turn it is, and begins their attempts.
    pub(super) async fn begin(&mut self) {
        let ids = self.turns();
        if ids.is_empty() {
            return;
        }
        let began = Instant::now();
        let wanted = ids.clone();
        let taken = self
            .on_store(move |store| store.take_endpoints(&wanted))
            .await;
        let mut planned = Vec::new();
        let mut missing: HashSet<String> = ids.into_iter().collect();
        let taken = taken.unwrap_or_default();
        let mut updates = self.find_updates(&taken).await;
        for (lease, endpoint) in taken {
            missing.remove(&lease.endpoint);
            let update = updates.remove(&lease.endpoint);
            planned.extend(self.plan(lease, endpoint, update));
        }
        for id in missing {
            self.put_back(&id);
        }
        let new: Vec<DeliveryUpdate> = (planned.iter().filter(|planned| planned.is_new))
            .map(|planned| DeliveryUpdate {
                release: false,
                ..release(planned.lease.clone(), planned.progress.clone())
            })
            .collect();
        let mut stored = Vec::new();
        if !new.is_empty() {
            let written = self
                .on_store(move |store| store.update_deliveries(&new))
                .await;
            stored = written.unwrap_or_default();
        }
        let mut stored = stored.into_iter();
        for attempt in planned {
            // Nothing is sent that isn't stored.
            match !attempt.is_new || stored.next().unwrap_or(false) {
                true => self.start(attempt, began),
                false => self.give_up(attempt.lease, attempt.progress),
            }
        }
    }

    /// Gives up the turn of an endpoint and its lease. It can't be queued again before the release is written.
    fn give_up(&mut self, lease: Lease, progress: Progress) {
        if let Some(entry) = self.entries.get_mut(&lease.endpoint) {
            entry.phase = Phase::Leased;
            self.hosts.done(&entry.host, &lease.endpoint, None);
        }
        self.unsaved.push(release(lease, progress));
    }

    /// Gives up the turn of an endpoint that somebody else leases; it is looked at again later.
    fn put_back(&mut self, id: &str) {
        let Some(entry) = self.entries.get_mut(id) else {
            return;
        };
        entry.phase = Phase::Idle;
        self.hosts.done(&entry.host, id, None);
        match entry.is_deleted {
            true => drop(self.entries.remove(id)),
            false => self.set_timer(id, LOOK_AGAIN),
        }
    }

    /// Returns the attempt for a leased endpoint; without one, it is released. `update` is its next event, if it is of the format
    /// `product.update`.
    fn plan(&mut self, lease: Lease, endpoint: Endpoint, update: Option<News>) -> Option<Planned> {
        let public_url = self.shared.settings.public_url.clone();
        let (Some(entry), Some(source)) =
            (self.entries.get_mut(&lease.endpoint), self.source.as_mut())
        else {
            self.give_up(lease, endpoint.progress);
            return None;
        };
        entry.phase = Phase::Leased;
        entry.renew(endpoint);
        let endpoint = &entry.endpoint;
        let mut progress = endpoint.progress.clone();
        let kind = endpoint.format.as_str();
        let now = Timestamp::now();
        let is_key_active = source.is_key_active(endpoint, now);
        let is_told = endpoint.status == EndpointStatus::Active && is_key_active;
        let test = endpoint.test.as_ref().filter(|_| is_key_active);
        let (event, kind, is_new) = if let Some(test) = test {
            let event = PendingEvent {
                id: test.clone(),
                body: event::test_body(now),
                end: progress.position.clone(),
                failures: 0,
            };
            (Some(event), event::TEST, false)
        } else if let Some(pending) = entry.pending().cloned().filter(|_| is_told) {
            let is_due = entry.time_left(now).is_zero();
            (is_due.then_some(pending), kind, false)
        } else {
            let (since, gives_up) = (entry.since(), entry.gives_up());
            let request = entry.request.as_ref().filter(|_| is_told);
            let news = match endpoint.format {
                EventFormat::CatalogChanged => request
                    .map(|request| source.news(endpoint, request, since, &public_url, gives_up)),
                EventFormat::ProductUpdate => update.filter(|_| is_told),
            };
            match news {
                Some(News::Event(event)) => {
                    (progress.pending, progress.next_attempt_at) = (Some((*event).clone()), None);
                    (Some(*event), kind, true)
                }
                Some(News::None(position)) => {
                    (progress.pending, progress.position) = (None, position);
                    entry.is_lost = false;
                    (None, kind, false)
                }
                _ => (None, kind, false),
            }
        };
        match event {
            Some(event) => Some(Planned {
                lease,
                progress,
                event,
                kind,
                is_new,
            }),
            None => {
                let host = entry.host.clone();
                self.hosts.done(&host, &lease.endpoint, None);
                self.unsaved.push(release(lease, progress));
                None
            }
        }
    }

    /// Begins an attempt, which ends before the lease does.
    fn start(&mut self, planned: Planned, leased_at: Instant) {
        let Planned {
            lease,
            progress,
            event,
            kind,
            is_new,
        } = planned;
        let has_time = leased_at.elapsed() + ATTEMPT_TIMEOUT + MARGIN <= LEASE;
        let entry = self.entries.get_mut(&lease.endpoint).filter(|_| has_time);
        let (Some(entry), Some(key)) = (entry, &self.key) else {
            // The key file went away meanwhile, or the store took so long that the lease could end before the attempt.
            self.give_up(lease, progress);
            return;
        };
        // It is stored now that its copy restarts.
        if is_new {
            (entry.is_lost, entry.ahead_since) = (false, None);
        }
        let at = Timestamp::now();
        let secrets = entry.endpoint.secrets.iter();
        let valid = secrets.filter(|secret| secret.ends_at.is_none_or(|end| end > at));
        let signatures: Vec<String> = valid
            .map(|secret| {
                let secret = key.secret(&lease.endpoint, &secret.salt);
                secret.sign(&event.id, at.as_second(), &event.body)
            })
            .collect();
        let outgoing = Outgoing {
            url: entry.endpoint.url.clone(),
            id: event.id.clone(),
            timestamp: at.as_second(),
            signatures: signatures.join(" "),
            body: event.body.clone(),
            has_older_names: entry.endpoint.format == EventFormat::ProductUpdate,
        };
        let revision = self
            .source
            .as_ref()
            .map(|source| source.feed.snapshot.revision().created_at);
        let published_at = revision.filter(|_| is_new);
        let sender = self.shared.sender.clone();
        self.attempts.spawn(async move {
            let began = Instant::now();
            let sent = sender.send(outgoing, ATTEMPT_TIMEOUT).await;
            Finished {
                lease,
                progress,
                event,
                kind,
                at,
                took: began.elapsed(),
                sent,
                published_at,
            }
        });
    }

    /// Takes the outcome of an attempt.
    pub(super) fn finish(&mut self, done: Result<Finished, JoinError>) {
        // A task that panicked has left its lease, which ends by itself; the loop restarts.
        let Ok(done) = done else {
            std::panic::resume_unwind(Box::new("an attempt panicked"));
        };
        let Finished {
            lease,
            mut progress,
            event,
            kind,
            at,
            took,
            sent,
            published_at,
        } = done;
        let metrics = &self.shared.metrics;
        let (status, retry_after) = match &sent {
            Sent::Status {
                status,
                retry_after,
            } => (Some(*status), *retry_after),
            Sent::Failed(_) => (None, None),
        };
        let is_taken = status.is_some_and(|status| (200..300).contains(&status));
        metrics.attempts.of(outcome(status)).increment();
        if let Some(entry) = self.entries.get_mut(&lease.endpoint) {
            self.hosts.done(&entry.host, &lease.endpoint, status);
        }
        let now = Timestamp::now();
        let is_test = kind == event::TEST;
        let mut disable = None;
        if is_taken && !is_test {
            progress = Progress {
                position: event.end.clone(),
                ..Progress::default()
            };
            if let Some(published) = published_at {
                let took = Duration::try_from(now.duration_since(published));
                metrics.told.observe(took.unwrap_or_default());
            }
        } else if !is_test {
            disable = schedule::record_failure(&mut progress, retry_after, now);
            // At once, by the reading of the clock that the stored time is of.
            if let Some(entry) = self.entries.get_mut(&lease.endpoint) {
                entry.retry_at = entry::retry_at(&progress, now);
            }
            if status == Some(410) {
                disable = Some("its receiver answered 410".to_owned());
            }
        }
        let outcome = match sent {
            Sent::Status { status, .. } => status.to_string(),
            Sent::Failed(reason) => reason,
        };
        self.unsaved.push(DeliveryUpdate {
            lease,
            progress,
            attempt: Some(Attempt {
                at,
                event: event.id.clone(),
                event_type: kind.to_owned(),
                outcome,
                is_taken,
                milliseconds: u32::try_from(took.as_millis()).unwrap_or(u32::MAX),
            }),
            disable,
            tested: is_test.then_some(event.id),
            release: true,
        });
    }

    /// Writes the outcomes that gathered. Where the store can't be written they wait, as their endpoints do.
    pub(super) async fn save(&mut self) {
        if self.unsaved.is_empty() {
            return;
        }
        let updates = std::mem::take(&mut self.unsaved);
        let given = updates.clone();
        let written = self
            .on_store(move |store| store.update_deliveries(&given))
            .await;
        let Some(written) = written else {
            self.unsaved = updates;
            return;
        };
        for (update, is_written) in updates.into_iter().zip(written) {
            let id = update.lease.endpoint;
            let Some(entry) = self.entries.get_mut(&id) else {
                continue;
            };
            entry.phase = Phase::Idle;
            if entry.is_deleted {
                self.entries.remove(&id);
                continue;
            }
            if !is_written {
                // An operator changed it, or its lease was over.
                self.set_timer(&id, LOOK_AGAIN);
                continue;
            }
            let mut endpoint = entry.endpoint.clone();
            if update.tested.is_none() {
                endpoint.progress = update.progress;
            }
            if let (Some(reason), EndpointStatus::Active) = (update.disable, endpoint.status) {
                tracing::warn!(endpoint = id, reason, "a webhook endpoint is disabled");
                (endpoint.status, endpoint.status_reason) =
                    (EndpointStatus::Disabled, Some(reason));
            }
            if update.tested.is_some() {
                endpoint.test = None;
            }
            entry.renew(endpoint);
            self.consider(&id);
        }
    }
}

/// Returns the outcome of an attempt by its status, if there was a response.
fn outcome(status: Option<u16>) -> AttemptOutcome {
    match status {
        Some(200..300) => AttemptOutcome::Taken,
        Some(_) => AttemptOutcome::Refused,
        None => AttemptOutcome::Failed,
    }
}
