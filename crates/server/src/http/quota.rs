//! What a key with a quota is told about it (IETF draft "RateLimit header fields for HTTP").

use std::fmt;
use std::io::Write as _;
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
    let policy = format_args!(
        "\"default\";q={};w={}",
        quota.requests(),
        quota.window_seconds()
    );
    headers.insert(POLICY, header(policy));
    let reset = seconds_up(left.reset_after);
    let limit = format_args!("\"default\";r={};t={reset}", left.requests);
    headers.insert(LIMIT, header(limit));
}

/// A header's value of a few dozen visible characters, made without memory of its own but the value's.
fn header(text: fmt::Arguments<'_>) -> HeaderValue {
    let mut buffer = [0; 64];
    let mut rest = &mut buffer[..];
    // Two numbers of 32 and 64 bits and what stands around them take less than the buffer.
    let _ = rest.write_fmt(text);
    let left = rest.len();
    let written = &buffer[..buffer.len() - left];
    HeaderValue::from_bytes(written).unwrap_or_else(|_| HeaderValue::from_static(""))
}

/// Whole seconds, rounded up: waiting that long is enough.
pub(super) fn seconds_up(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_numbers_fit_a_header() {
        let (number, seconds) = (u32::MAX, u64::MAX);
        let value = header(format_args!("\"default\";r={number};t={seconds}"));
        assert_eq!(value, "\"default\";r=4294967295;t=18446744073709551615");
    }
}
