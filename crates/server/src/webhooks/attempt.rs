//! An attempt: the lease of the endpoint, the event, which is stored before it is sent, and the outcome.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::task::JoinError;
use tokio::time::Instant;
use vitrine_store::webhooks::{
    Attempt, DeliveryUpdate, Endpoint, EndpointStatus, EventFormat, LEASE, Lease, PendingEvent,
    Progress,
};

use super::entry::Phase;
use super::event::{self, News};
use super::schedule::{self, ATTEMPT_TIMEOUT};
use super::sender::{Outgoing, Sent};
use super::updates::{self, Wanted};
use super::work::{LOOK_AGAIN, Work};

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
        let mut missing: std::collections::HashSet<String> = ids.into_iter().collect();
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
                false => {
                    self.unsaved
                        .push(release(attempt.lease.clone(), attempt.progress));
                    self.put_back(&attempt.lease.endpoint);
                }
            }
        }
    }

    /// Gives up the turn of an endpoint, which is looked at again later.
    fn put_back(&mut self, id: &str) {
        if let Some(entry) = self.entries.get_mut(id) {
            entry.phase = Phase::Idle;
            self.hosts.done(&entry.host, None);
            self.set_timer(id, LOOK_AGAIN);
        }
    }

    /// Looks in the store for the next events of the format `product.update`.
    async fn find_updates(&mut self, taken: &[(Lease, Endpoint)]) -> HashMap<String, News> {
        let Some(source) = &self.source else {
            return HashMap::new();
        };
        let (feed, keys) = (Arc::clone(&source.feed), Arc::clone(&source.keys));
        let wanted = taken.iter().filter_map(|(_, endpoint)| {
            let entry = self.entries.get(&endpoint.id)?;
            let request = entry.request.as_ref()?;
            let since = match entry.is_lost {
                true => event::UNKNOWN,
                false => &endpoint.progress.position,
            };
            let is_wanted = endpoint.format == EventFormat::ProductUpdate
                && endpoint.test.is_none()
                && endpoint.progress.pending.is_none();
            is_wanted.then(|| Wanted {
                endpoint: endpoint.clone(),
                since: since.to_owned(),
                filter: request.query.filter.clone(),
                gives_up_ahead: entry.gives_up(),
            })
        });
        let wanted: Vec<Wanted> = wanted.collect();
        if wanted.is_empty() {
            return HashMap::new();
        }
        let ids: Vec<String> = (wanted.iter())
            .map(|wanted| wanted.endpoint.id.clone())
            .collect();
        let found = self.on_store(move |store| {
            let next = |wanted: &Wanted| updates::next(store, (&feed, &keys), wanted);
            wanted.iter().map(next).collect::<Result<Vec<News>, _>>()
        });
        match found.await {
            Some(found) => ids.into_iter().zip(found).collect(),
            None => {
                for id in ids {
                    if let Some(entry) = self.entries.get_mut(&id) {
                        entry.not_before = Some(Instant::now() + LOOK_AGAIN);
                    }
                    self.set_timer(&id, LOOK_AGAIN + LOOK_AGAIN);
                }
                HashMap::new()
            }
        }
    }

    /// Returns the attempt for a leased endpoint; without one, it is released. `update` is its next event, if it is of the format
    /// `product.update`.
    fn plan(&mut self, lease: Lease, endpoint: Endpoint, update: Option<News>) -> Option<Planned> {
        let public_url = self.shared.settings.public_url.clone();
        let (Some(entry), Some(source)) =
            (self.entries.get_mut(&lease.endpoint), self.source.as_mut())
        else {
            self.unsaved.push(release(lease, endpoint.progress));
            return None;
        };
        entry.phase = Phase::Leased;
        entry.renew(endpoint);
        let endpoint = &entry.endpoint;
        let mut progress = endpoint.progress.clone();
        let kind = endpoint.format.as_str();
        let now = Timestamp::now();
        let is_told =
            endpoint.status == EndpointStatus::Active && source.is_key_active(endpoint, now);
        let (event, kind, is_new) = if let Some(test) = &endpoint.test {
            let event = PendingEvent {
                id: test.clone(),
                body: event::test_body(now),
                end: progress.position.clone(),
                failures: 0,
            };
            (Some(event), event::TEST, false)
        } else if let Some(pending) = progress.pending.as_ref().filter(|_| is_told) {
            let is_due = entry.due == Some(pending.failures)
                || schedule::time_left(&progress, now).is_zero();
            (is_due.then(|| pending.clone()), kind, false)
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
                    progress.pending = Some((*event).clone());
                    (Some(*event), kind, true)
                }
                Some(News::None(position)) => {
                    progress.position = position;
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
                self.hosts.done(&host, None);
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
        let (Some(entry), Some(key)) = (self.entries.get_mut(&lease.endpoint), &self.key) else {
            self.unsaved.push(release(lease, progress));
            return;
        };
        // It is stored now that it begins anew.
        entry.is_lost &= !is_new;
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
        let left = (LEASE - MARGIN).saturating_sub(leased_at.elapsed());
        self.attempts.spawn(async move {
            let began = Instant::now();
            let sent = sender.send(outgoing, ATTEMPT_TIMEOUT.min(left)).await;
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
        // A task that panicked has left its lease, which ends by itself; the loop begins anew.
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
        metrics.count(status);
        if let Some(entry) = self.entries.get_mut(&lease.endpoint) {
            entry.due = None;
            self.hosts.done(&entry.host, status);
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
                metrics.observe(took.unwrap_or_default());
            }
        } else if !is_test {
            disable = schedule::record_failure(&mut progress, retry_after, now);
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
            if !is_written {
                // An operator changed it, or its lease was over.
                self.set_timer(&id, LOOK_AGAIN);
                continue;
            }
            let mut endpoint = entry.endpoint.clone();
            endpoint.progress = update.progress;
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
