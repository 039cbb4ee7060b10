//! Quotas of keys: charges a request, here or together with other servers, and describes the quota left
//! (IETF draft "RateLimit header fields for HTTP").

use std::time::{Duration, Instant};

use http::{HeaderMap, HeaderName, HeaderValue};
use vitrine_model::key::KnownKey;
use vitrine_model::quota::{Admission, Quota, Remaining, Taken};
use vitrine_wire::error::ErrorType;

use crate::http::error::{ApiError, RETRY_SOON};
use crate::http::response::seconds_up;
use crate::limits::SharedLimits;
use crate::metrics::table::{Decision, LimitMetrics, QuotaScope};

const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const LIMIT: HeaderName = HeaderName::from_static("ratelimit");

/// Quota of the key of one request.
#[derive(Debug)]
pub(crate) struct KeyQuota<'k> {
    key: &'k KnownKey,
    prefix: &'k str,
    /// The key's quota, or the example of a simulated error.
    quota: Option<Quota>,
    /// Zero of the clock by which quotas are kept.
    started: Instant,
    /// Arrival of the request on this clock.
    now: Duration,
    /// Quota left after the charge.
    left: Option<Remaining>,
}

impl<'k> KeyQuota<'k> {
    /// Returns the quota of a key, uncharged, for a request that came at `now`.
    pub(crate) fn new(key: &'k KnownKey, prefix: &'k str, started: Instant, now: Instant) -> Self {
        Self {
            key,
            prefix,
            quota: key.record.quota,
            started,
            now: now.saturating_duration_since(started),
            left: None,
        }
    }

    /// Charges one request to the quota, if the key has one: to the shared count, or to this server's alone if there
    /// is none, or if it doesn't answer in time. Counts it for the day of the key, with or without a quota.
    ///
    /// # Errors
    ///
    /// If the quota is used up.
    pub(crate) async fn charge(
        &mut self,
        shared: Option<&SharedLimits>,
        metrics: &LimitMetrics,
    ) -> Result<(), ApiError> {
        let Some(quota) = self.key.record.quota else {
            self.key.usage.counts.count_charged();
            return Ok(());
        };
        let (place, taken) = match shared.filter(|shared| shared.are_reachable()) {
            // Boxed, so that requests that don't wait have small futures.
            Some(shared) => Box::pin(self.charge_shared(shared, quota)).await,
            None => (
                QuotaScope::Local,
                self.key.usage.quota.take(quota, self.now),
            ),
        };
        let (decision, result) = match taken.admission {
            Admission::Granted => {
                self.key.usage.counts.count_charged();
                (Decision::Granted, Ok(()))
            }
            Admission::Refused { retry_after } => {
                (Decision::Refused, Err(ApiError::rate_limited(retry_after)))
            }
        };
        metrics.quotas.of((place, decision)).increment();
        self.left = Some(taken.left);
        result
    }

    /// Returns the error for a quota that is used up, as far as this server knows, without charging it.
    ///
    /// # Errors
    ///
    /// If the quota is used up.
    pub(crate) fn check(&self, metrics: &LimitMetrics) -> Result<(), ApiError> {
        let Some(quota) = self.key.record.quota else {
            return Ok(());
        };
        let left = self.key.usage.quota.remaining(quota, self.now);
        match quota.refusal(left.reset_after) {
            Admission::Refused { retry_after } if left.requests == 0 => {
                let refused = (QuotaScope::Local, Decision::Refused);
                metrics.quotas.of(refused).increment();
                Err(ApiError::rate_limited(retry_after))
            }
            _ => Ok(()),
        }
    }

    /// Charges the shared count. If it doesn't answer in time, this server decides by the last known shared count and
    /// its own grants since.
    async fn charge_shared(&self, shared: &SharedLimits, quota: Quota) -> (QuotaScope, Taken) {
        let usage = &self.key.usage.quota;
        let answer = shared.take(self.prefix, quota).await;
        let now = self.started.elapsed();
        match answer {
            Some(taken) => {
                usage.learn(taken.left.reset_after, now);
                (QuotaScope::Shared, taken)
            }
            None => (QuotaScope::Local, usage.take(quota, now)),
        }
    }

    /// For a simulated `rate_limited`, makes the headers describe a quota that is used up; a key without a quota gets an
    /// example.
    pub(crate) fn simulate(&mut self, kind: ErrorType) {
        if kind == ErrorType::RateLimited {
            self.quota = self.quota.or_else(|| Quota::new(600, 60).ok());
            self.left = Some(Remaining {
                requests: 0,
                reset_after: RETRY_SOON,
            });
        }
    }

    /// Adds the headers with the quota left, if the key has a quota. A response that cost none, such as a 304, has this
    /// server's own count, which may lag behind the shared one.
    pub(crate) fn describe(&self, headers: &mut HeaderMap) {
        let Some(quota) = self.quota else {
            return;
        };
        let left = self
            .left
            .unwrap_or_else(|| self.key.usage.quota.remaining(quota, self.now));
        let window = quota.window_seconds().into();
        headers.insert(POLICY, header(";q=", quota.requests(), ";w=", window));
        let reset = seconds_up(left.reset_after);
        headers.insert(LIMIT, header(";r=", left.requests, ";t=", reset));
    }
}

/// Returns the value of a header: name of the policy, number of requests, seconds. `format!` would take longer.
fn header(before: &str, requests: u32, between: &str, seconds: u64) -> HeaderValue {
    let (mut requests_text, mut seconds_text) = (itoa::Buffer::new(), itoa::Buffer::new());
    let text = [
        "\"default\"",
        before,
        requests_text.format(requests),
        between,
        seconds_text.format(seconds),
    ];
    HeaderValue::try_from(text.concat()).unwrap_or_else(|_| HeaderValue::from_static(""))
}
