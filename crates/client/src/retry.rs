//! Another try: after which failures, how often, and how long the pauses are.

use std::time::{Duration, SystemTime};

use reqwest::header::{HeaderMap, RETRY_AFTER};
use tokio::time::{Instant, sleep, timeout};

use crate::Result;
use crate::error::Error;

/// How often a request is sent, and how long the pauses in between are.
///
/// Tried again is what may pass: a connection that can't be made or breaks, a timeout, an answer that is cut off, and the
/// statuses 408, 425, 429, 500, 502, 503 and 504. All other statuses, a certificate that isn't trusted and an answer that can't
/// be read are final. All requests of this crate are reads, so another try changes nothing.
///
/// Pauses double, with full jitter: each is a random part of its longest, so that many who failed at once don't come back at
/// once. `Retry-After` is waited for in full, and the pause comes on top; where it is longer than what is left of
/// `longest_total`, there is no further try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Retries {
    /// How many tries follow the first one. Usually 4.
    pub most: u32,
    /// How long the first pause is at most; each further one may be twice as long. Usually 200 ms.
    pub first_pause: Duration,
    /// How long a pause is at most. Usually 10 s.
    pub longest_pause: Duration,
    /// How long all tries and pauses may take together. Usually 60 s.
    pub longest_total: Duration,
}

impl Default for Retries {
    fn default() -> Self {
        Self {
            most: 4,
            first_pause: Duration::from_millis(200),
            longest_pause: Duration::from_secs(10),
            longest_total: Duration::from_secs(60),
        }
    }
}

/// Why a try gave nothing. Not every [`Error`] has room for how long the server asks to be left alone, so that stands
/// beside it.
#[derive(Debug)]
pub(crate) struct Failure {
    /// What callers get to see of it.
    pub(crate) error: Error,
    /// How long the server asks to be left alone.
    pub(crate) retry_after: Option<Duration>,
}

impl From<Error> for Failure {
    /// A failure of which no server said anything.
    fn from(error: Error) -> Self {
        Self {
            error,
            retry_after: None,
        }
    }
}

impl Retries {
    /// One try, and no other.
    #[must_use]
    pub fn none() -> Self {
        Self {
            most: 0,
            ..Self::default()
        }
    }

    /// How long to wait after so many tries, of which the last one failed so; `None` where it was the last.
    fn before_next(&self, tries: u32, elapsed: Duration, failure: &Failure) -> Option<Duration> {
        if tries > self.most || !failure.error.is_passing() {
            return None;
        }
        let asked = failure.retry_after.unwrap_or_default();
        let pause = asked.saturating_add(self.pause(tries));
        (pause < self.longest_total.saturating_sub(elapsed)).then_some(pause)
    }

    /// The pause after so many failures, from 1.
    fn pause(&self, failures: u32) -> Duration {
        let doubled = 1_u32.checked_shl(failures.saturating_sub(1));
        let longest = self.first_pause.saturating_mul(doubled.unwrap_or(u32::MAX));
        let longest = longest.min(self.longest_pause);
        // Without random numbers the longest pause is right too.
        let random = getrandom::u32().unwrap_or(u32::MAX);
        longest.mul_f64(f64::from(random) / f64::from(u32::MAX))
    }
}

/// Makes tries until one succeeds, fails for good, or was the last.
pub(crate) async fn retrying<T, F>(retries: &Retries, mut attempt: impl FnMut() -> F) -> Result<T>
where
    F: Future<Output = std::result::Result<T, Failure>>,
{
    let started = Instant::now();
    let mut tries = 0;
    loop {
        let left = retries.longest_total.saturating_sub(started.elapsed());
        let outcome = timeout(left, attempt()).await;
        let failure = match outcome.unwrap_or_else(|_| Err(Error::Timeout.into())) {
            Ok(found) => return Ok(found),
            Err(failure) => failure,
        };
        tries += 1;
        match retries.before_next(tries, started.elapsed(), &failure) {
            Some(pause) => sleep(pause).await,
            // What is final is told as itself, whatever passed before it.
            None if tries == 1 || !failure.error.is_passing() => return Err(failure.error),
            None => {
                let last = Box::new(failure.error);
                return Err(Error::GaveUp { tries, last });
            }
        }
    }
}

/// How long the server asks to be left alone (RFC 9110, 10.2.3): seconds, or a date.
pub(crate) fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.parse().ok().map(Duration::from_secs);
    }
    let until = httpdate::parse_http_date(text).ok()?;
    Some(until.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use reqwest::header::HeaderValue;

    use super::*;
    use crate::error::{ApiError, ErrorType};

    fn failure(status: u16, retry_after: Option<u64>) -> Failure {
        let retry_after = retry_after.map(Duration::from_secs);
        let error = Error::Api(Box::new(ApiError {
            status,
            error_type: ErrorType::from("some"),
            message: String::new(),
            help: None,
            details: Vec::new(),
            request_id: None,
            retry_after,
        }));
        Failure { error, retry_after }
    }

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn what_passes_is_tried_again_and_what_stays_is_not() {
        let usual = Retries::default();
        for (failure, expected) in [
            (failure(408, None), true),
            (failure(425, None), true),
            (failure(429, None), true),
            (failure(500, None), true),
            (failure(502, None), true),
            (failure(503, None), true),
            (failure(504, None), true),
            (Error::Timeout.into(), true),
            (failure(400, None), false),
            (failure(401, Some(0)), false),
            (failure(403, None), false),
            (failure(404, None), false),
            (failure(410, None), false),
            (failure(501, None), false),
            (Error::TooLong { most_bytes: 1 }.into(), false),
            (Error::Request(String::new()).into(), false),
        ] {
            let pause = usual.before_next(1, Duration::ZERO, &failure);
            assert_eq!(pause.is_some(), expected, "{failure:?}");
            assert!(usual.before_next(4, SECOND, &failure).is_some() == expected);
            assert_eq!(usual.before_next(5, SECOND, &failure), None);
            let none = Retries::none().before_next(1, Duration::ZERO, &failure);
            assert_eq!(none, None);
        }
    }

    #[test]
    fn a_server_is_left_alone_for_as_long_as_it_asks_or_for_good() {
        let usual = Retries::default();
        let pause = usual
            .before_next(1, SECOND, &failure(429, Some(20)))
            .unwrap();
        assert!(
            pause >= 20 * SECOND && pause <= 20 * SECOND + usual.first_pause,
            "{pause:?}"
        );
        // It asks for more time than is left: nobody waits, and nobody comes too early.
        assert_eq!(usual.before_next(1, SECOND, &failure(429, Some(59))), None);
        assert_eq!(
            usual.before_next(1, 45 * SECOND, &failure(503, Some(20))),
            None
        );
        assert_eq!(
            usual.before_next(1, SECOND, &failure(503, Some(u64::MAX))),
            None
        );
        let late = usual.before_next(1, 61 * SECOND, &Error::Timeout.into());
        assert_eq!(late, None);
    }

    #[tokio::test]
    async fn tries_are_made_until_one_succeeds_or_was_the_last() {
        let retries = Retries {
            first_pause: Duration::ZERO,
            ..Retries::default()
        };
        for (failures, expected) in [(0, 1), (1, 2), (4, 5), (5, 5), (99, 5)] {
            let tries = Cell::new(0);
            let came = retrying(&retries, || {
                tries.set(tries.get() + 1);
                let outcome = if tries.get() > failures {
                    Ok(7)
                } else {
                    Err(failure(503, Some(0)))
                };
                async move { outcome }
            })
            .await;
            assert_eq!(tries.get(), expected);
            match came {
                Ok(came) => assert_eq!(came, 7),
                Err(Error::GaveUp { tries: 5, last }) => {
                    assert_eq!(last.api().unwrap().status, 503);
                }
                Err(other) => panic!("{other}"),
            }
        }
        // The end of all tries ends the one that is being made.
        let retries = Retries {
            longest_total: Duration::ZERO,
            ..Retries::default()
        };
        let came: Result<u8> = retrying(&retries, std::future::pending).await;
        assert!(matches!(came, Err(Error::Timeout)), "{came:?}");
    }

    #[test]
    fn pauses_have_full_jitter_and_a_bound() {
        let retries = Retries::default();
        for failures in [1, 3, 7, 40, u32::MAX] {
            let longest = Duration::from_millis(200).saturating_mul(1 << (failures - 1).min(6));
            let longest = longest.min(Duration::from_secs(10));
            let pauses: Vec<Duration> = (0..200).map(|_| retries.pause(failures)).collect();
            assert!(pauses.iter().all(|pause| *pause <= longest), "{failures}");
            assert!(pauses.iter().any(|pause| *pause < longest / 2));
            assert!(pauses.iter().any(|pause| *pause > longest / 2));
        }
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now = httpdate::parse_http_date("Sat, 21 Nov 2026 10:00:00 GMT").unwrap();
        for (value, expected) in [
            ("0", Some(0)),
            (" 7 ", Some(7)),
            ("86400", Some(86_400)),
            ("Sat, 21 Nov 2026 10:00:09 GMT", Some(9)),
            ("Sat, 21 Nov 2026 09:00:00 GMT", Some(0)),
            ("99999999999999999999", None),
            ("soon", None),
            ("-1", None),
            ("+1", None),
            ("", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, HeaderValue::from_str(value).unwrap());
            let expected = expected.map(Duration::from_secs);
            assert_eq!(retry_after(&headers, now), expected, "{value}");
        }
        assert_eq!(retry_after(&HeaderMap::new(), now), None);
    }
}
