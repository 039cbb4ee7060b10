//! Gauges of a deliverer: endpoints by state, and the age of the oldest change that isn't acknowledged.

use jiff::Timestamp;
use vitrine_store::webhooks::{Endpoint, EndpointStatus};

use super::entry::Entry;
use super::work::Work;
use crate::metrics::table::EndpointState;
use crate::metrics::values::Label;

impl Work {
    /// Sets the gauges.
    pub(super) fn measure(&self) {
        let metrics = &self.shared.metrics;
        let now = Timestamp::now();
        let is_ended = |endpoint: &Endpoint| {
            let source = self.source.as_ref();
            source.is_some_and(|source| !source.is_key_active(endpoint, now))
        };
        let mut counts = [0.0; EndpointState::COUNT];
        let mut oldest: Option<Timestamp> = None;
        for Entry {
            endpoint,
            behind_since,
            ..
        } in self.entries.values()
        {
            let state = match endpoint.status {
                _ if is_ended(endpoint) => EndpointState::Ended,
                EndpointStatus::Active => EndpointState::Active,
                EndpointStatus::Paused => EndpointState::Paused,
                EndpointStatus::Disabled => EndpointState::Disabled,
            };
            counts[state.place()] += 1.0;
            if state == EndpointState::Active {
                let since = endpoint
                    .progress
                    .failing_since
                    .into_iter()
                    .chain(*behind_since)
                    .min();
                oldest = oldest.into_iter().chain(since).min();
            }
        }
        let age = oldest.map_or(0.0, |since| {
            now.duration_since(since).as_secs_f64().max(0.0)
        });
        for (gauge, count) in metrics.endpoints.values().zip(counts) {
            gauge.set(count);
        }
        metrics.oldest_seconds.set(age);
    }
}
