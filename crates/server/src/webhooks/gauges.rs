//! Gauges of a deliverer: endpoints by state, and the age of the oldest change that isn't acknowledged.

use jiff::Timestamp;
use vitrine_store::webhooks::{Endpoint, EndpointStatus};

use super::entry::Entry;
use super::work::Work;

impl Work {
    /// Sets the gauges.
    pub(super) fn measure(&self) {
        let metrics = &self.shared.metrics;
        let now = Timestamp::now();
        let is_ended = |endpoint: &Endpoint| {
            let source = self.source.as_ref();
            source.is_some_and(|source| !source.is_key_active(endpoint, now))
        };
        let mut states = [0; 4];
        let mut oldest: Option<Timestamp> = None;
        for Entry {
            endpoint,
            behind_since,
            ..
        } in self.entries.values()
        {
            let state = match endpoint.status {
                _ if is_ended(endpoint) => 3,
                EndpointStatus::Active => 0,
                EndpointStatus::Paused => 1,
                EndpointStatus::Disabled => 2,
            };
            states[state] += 1;
            if state == 0 {
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
        metrics.set(states, age);
    }
}
