//! Retries: which failures, how often, after which pauses.

use std::time::{Duration, SystemTime};

use http::HeaderMap;
use http::header::RETRY_AFTER;
use reqwest::RequestBuilder;

use super::{Answer, Failure, send};
use crate::jitter;

/// Maximum `Retry-After` that is obeyed.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(120);
/// Transient statuses: timeouts, limits, unavailable servers.
const PASSING_STATUSES: [u16; 7] = [408, 425, 429, 500, 502, 503, 504];

/// Retry policy: exponential backoff with full jitter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retries {
    /// Maximum number of retries.
    pub most: u32,
    /// Maximum length of the first pause; each further one may be twice as long.
    pub first_pause: Duration,
    /// Maximum length of a pause.
    pub longest_pause: Duration,
}

impl Default for Retries {
    fn default() -> Self {
        Self {
            most: 5,
            first_pause: Duration::from_millis(200),
            longest_pause: Duration::from_secs(30),
        }
    }
}

impl Retries {
    /// Returns the pause after this number of failures, from 1; `None` if there is no further retry.
    #[must_use]
    pub fn pause(&self, failures: u32) -> Option<Duration> {
        if failures > self.most {
            return None;
        }
        let doubled = 1_u32.checked_shl(failures.saturating_sub(1));
        let longest = self.first_pause.saturating_mul(doubled.unwrap_or(u32::MAX));
        let longest = longest.min(self.longest_pause);
        Some(jitter::full(longest))
    }
}

/// Sends a request with retries. Returns the first result that isn't a transient failure, else the last one. `request`
/// creates the request of each attempt.
///
/// # Errors
///
/// Those of [`send`], of the last attempt.
pub async fn send_retrying(
    request: impl Fn() -> RequestBuilder,
    max_bytes: usize,
    retries: &Retries,
) -> Result<Answer, Failure> {
    let mut failures = 0;
    loop {
        let outcome = send(request(), max_bytes).await;
        let (is_passing, asked) = match &outcome {
            Ok(answer) => (
                PASSING_STATUSES.contains(&answer.status),
                retry_after(&answer.headers, SystemTime::now()),
            ),
            Err(failure) => (failure.is_passing(), None),
        };
        failures += 1;
        let Some(pause) = retries.pause(failures).filter(|_| is_passing) else {
            return outcome;
        };
        let pause = pause.max(asked.unwrap_or_default());
        let reason = match &outcome {
            Ok(answer) => format!("status {}", answer.status),
            Err(failure) => failure.to_string(),
        };
        tracing::info!(reason, ?pause, "a request failed and is sent again");
        tokio::time::sleep(pause).await;
    }
}

/// Returns the time in `Retry-After` (RFC 9110, section 10.2.3), up to the maximum.
#[must_use]
pub fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    // Digits only: `parse` would accept `+1`, too.
    let asked = match text.bytes().all(|byte| byte.is_ascii_digit()) {
        true => Duration::from_secs(text.parse().ok()?),
        false => {
            let until = httpdate::parse_http_date(text).ok()?;
            until.duration_since(now).unwrap_or_default()
        }
    };
    Some(asked.min(LONGEST_RETRY_AFTER))
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::*;

    fn asked(value: &str) -> Option<u64> {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, value.parse().unwrap());
        let now = httpdate::parse_http_date("Sat, 21 Nov 2026 10:00:00 GMT").unwrap();
        retry_after(&headers, now).map(|pause| pause.as_secs())
    }

    #[test]
    fn retry_after_is_obeyed_up_to_a_maximum() {
        for (value, expected) in [
            ("0", Some(0)),
            ("7", Some(7)),
            ("86400", Some(120)),
            ("Sat, 21 Nov 2026 10:00:09 GMT", Some(9)),
            ("Sat, 21 Nov 2026 09:00:00 GMT", Some(0)),
            ("Sat, 21 Nov 2037 10:00:00 GMT", Some(120)),
            ("soon", None),
            ("-1", None),
            ("+1", None),
            ("99999999999999999999", None),
            ("", None),
        ] {
            assert_eq!(asked(value), expected, "{value}");
        }
        assert_eq!(retry_after(&HeaderMap::new(), SystemTime::now()), None);
    }

    #[test]
    fn pauses_grow_to_a_maximum_and_end() {
        let retries = Retries {
            most: 40,
            first_pause: Duration::from_millis(100),
            longest_pause: Duration::from_secs(1),
        };
        for failures in 1..=40_u32 {
            let longest = Duration::from_millis(100 * (1 << (failures - 1).min(4)));
            let pauses: Vec<Duration> =
                (0..200).map(|_| retries.pause(failures).unwrap()).collect();
            let longest = longest.min(Duration::from_secs(1));
            assert!(pauses.iter().all(|pause| *pause <= longest), "{failures}");
            // With jitter, pauses differ and cover the whole range.
            assert!(pauses.iter().any(|pause| *pause < longest / 2));
            assert!(pauses.iter().any(|pause| *pause > longest / 2));
        }
        assert_eq!(retries.pause(41), None);
        let none = Retries { most: 0, ..retries };
        assert_eq!(none.pause(1), None);
    }
}
