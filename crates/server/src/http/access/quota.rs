//! The quota step: takes a request off its key's quota, here or together with other servers, and tells what is left
//! (IETF draft "RateLimit header fields for HTTP").

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use vitrine_model::key::{KeyUsage, KnownKey};
use vitrine_model::quota::{Admission, Quota, Remaining, Taken};
use vitrine_wire::error::ErrorType;

use crate::http::App;
use crate::http::error::{ApiError, RETRY_SOON};
use crate::metrics::limits::{Decision, Place};

const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const LIMIT: HeaderName = HeaderName::from_static("ratelimit");

/// A request that is about to be answered, at the cost of a quota that servers share. Who judges doesn't wait: the
/// service asks, and lets judge again with what came of it.
#[derive(Debug)]
pub(crate) struct Cost<'r> {
    prefix: &'r str,
    quota: Quota,
    usage: Arc<KeyUsage>,
}

/// What the quota step comes to.
#[derive(Debug)]
pub(crate) enum Step<'r> {
    /// The request may be answered.
    Granted,
    /// It may not.
    Refused(ApiError),
    /// Others have to be asked.
    Elsewhere(Cost<'r>),
}

/// The quota of one request's key.
#[derive(Debug)]
pub(crate) struct Account<'k> {
    key: &'k KnownKey,
    /// The key's quota, or the example of a simulated error.
    quota: Option<Quota>,
    now: Duration,
    /// What was said elsewhere of this request.
    settled: Option<Taken>,
    /// What is left, once it is known better than by what lies here.
    left: Option<Remaining>,
}

impl<'k> Account<'k> {
    /// The account of a key at this moment.
    pub(crate) fn new(key: &'k KnownKey, now: Duration, settled: Option<Taken>) -> Self {
        Self {
            key,
            quota: key.record.quota,
            now,
            settled,
            left: None,
        }
    }

    /// Whether others were asked already, who may have taken the request off the quota.
    pub(crate) fn is_settled(&self) -> bool {
        self.settled.is_some()
    }

    /// Takes one request off the quota, if the key has one.
    pub(crate) fn take<'r>(&mut self, app: &App, prefix: &'r str) -> Step<'r> {
        let Some(quota) = self.key.record.quota else {
            return Step::Granted;
        };
        let taken = match (self.settled, &app.access.shared) {
            (Some(settled), _) => settled,
            (None, Some(shared)) if shared.are_reachable() => {
                return Step::Elsewhere(Cost {
                    prefix,
                    quota,
                    usage: Arc::clone(&self.key.usage),
                });
            }
            (None, _) => take_here(app, quota, &self.key.usage, self.now),
        };
        self.left = Some(taken.left);
        match taken.admission {
            Admission::Granted => Step::Granted,
            Admission::Refused { retry_after } => {
                Step::Refused(ApiError::rate_limited(retry_after))
            }
        }
    }

    /// Describes a quota that is used up if a simulated error says so; a key without a quota gets an example.
    pub(crate) fn simulate(&mut self, kind: ErrorType) {
        if kind == ErrorType::RateLimited {
            self.quota = self.quota.or_else(|| Quota::new(600, 60).ok());
            self.left = Some(Remaining {
                requests: 0,
                reset_after: RETRY_SOON,
            });
        }
    }

    /// Adds the headers that say how much of the key's quota is left, if it has one. What costs nothing is told
    /// what this server knows: where servers share quotas, what it last heard.
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

impl Cost<'_> {
    /// Asks where quotas are shared. Where that says nothing in time, this server decides alone, by what it
    /// last heard of others and what it granted itself since.
    pub(crate) async fn settle(self, app: &App) -> Taken {
        let asked = match &app.access.shared {
            Some(shared) => shared.take(self.prefix, self.quota).await,
            None => None,
        };
        let now = app.started.elapsed();
        let Some(taken) = asked else {
            return take_here(app, self.quota, &self.usage, now);
        };
        self.usage.quota.learn(taken.left.reset_after, now);
        count(app, Place::Shared, taken);
        taken
    }
}

fn take_here(app: &App, quota: Quota, usage: &KeyUsage, now: Duration) -> Taken {
    let taken = usage.quota.take(quota, now);
    count(app, Place::Local, taken);
    taken
}

fn count(app: &App, place: Place, taken: Taken) {
    let decision = match taken.admission {
        Admission::Granted => Decision::Granted,
        Admission::Refused { .. } => Decision::Refused,
    };
    app.metrics.limits.quotas(place).of(decision).increment();
}

/// A header's value: the policy's name, a number of requests and one of seconds. Formatting would take longer.
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

/// Whole seconds, rounded up: waiting that long is enough.
pub(crate) fn seconds_up(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_rounded_up() {
        for (milliseconds, seconds) in [(0, 0), (1, 1), (1_000, 1), (2_001, 3), (2_999, 3)] {
            assert_eq!(seconds_up(Duration::from_millis(milliseconds)), seconds);
        }
    }
}
