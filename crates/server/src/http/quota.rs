//! What a key with a quota is told about it (IETF draft "RateLimit header fields for HTTP").

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use vitrine_model::key::KnownKey;
use vitrine_model::quota::Admission;

use super::error::ApiError;

const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const LIMIT: HeaderName = HeaderName::from_static("ratelimit");

/// Takes one request off the key's quota, if it has one.
pub(super) fn take(key: &KnownKey, now: Duration) -> Result<(), ApiError> {
    let Some(quota) = key.record.quota else {
        return Ok(());
    };
    match key.usage.quota.take(quota, now) {
        Admission::Granted => Ok(()),
        Admission::Refused { retry_after } => Err(ApiError::rate_limited(retry_after)),
    }
}

/// Adds the headers that say how much of the key's quota is left, if it has one.
pub(super) fn describe(key: &KnownKey, now: Duration, headers: &mut HeaderMap) {
    let Some(quota) = key.record.quota else {
        return;
    };
    let left = key.usage.quota.remaining(quota, now);
    let policy = format!(
        "\"default\";q={};w={}",
        quota.requests(),
        quota.window_seconds()
    );
    let limit = format!(
        "\"default\";r={};t={}",
        left.requests,
        seconds_up(left.reset_after)
    );
    for (name, value) in [(POLICY, policy), (LIMIT, limit)] {
        if let Ok(value) = HeaderValue::try_from(value) {
            headers.insert(name, value);
        }
    }
}

/// Whole seconds, rounded up: waiting that long is enough.
pub(super) fn seconds_up(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}
