//! Retries: retried failures, number of attempts, pauses.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

use crate::Result;
use crate::error::Error;

/// Number of retries, and the pauses between attempts.
///
/// Transient failures are retried: failed or broken connections, timeouts, truncated responses, and the statuses 408, 425,
/// 429, 500, 502, 503 and 504. All other statuses, untrusted certificates and unreadable responses are final. All requests
/// of this crate are reads, so retries are safe.
///
/// Pauses double, with full jitter: each is a random fraction of its maximum, so that clients that failed together don't
/// return together. `Retry-After` is waited for in full before the pause; if it is longer than the rest of
/// `longest_total`, there is no further attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Retries {
    /// Maximum number of retries after the first attempt. Default: 4.
    pub most: u32,
    /// Maximum of the first pause; it doubles with each further one. Default: 200 ms.
    pub first_pause: Duration,
    /// Maximum of all pauses. Default: 10 s.
    pub longest_pause: Duration,
    /// Maximum duration of all attempts and pauses together. Default: 60 s.
    pub longest_total: Duration,
    /// Maximum `Retry-After` that a sync waits for. Default: an hour.
    pub longest_requested: Duration,
}

/// Callback with the failure of an attempt, and the pause before the next one.
pub type OnRetry = fn(&Error, Duration);

/// Ignores that an attempt failed.
pub(crate) fn ignore(_: &Error, _: Duration) {}

impl Default for Retries {
    fn default() -> Self {
        Self {
            most: 4,
            first_pause: Duration::from_millis(200),
            longest_pause: Duration::from_secs(10),
            longest_total: Duration::from_secs(60),
            longest_requested: Duration::from_secs(60 * 60),
        }
    }
}

impl Retries {
    /// Returns settings without retries.
    #[must_use]
    pub fn none() -> Self {
        Self {
            most: 0,
            ..Self::default()
        }
    }

    /// Returns the pause after `tries` attempts, the last of which failed with `failure`; `None` if there is no further one.
    fn delay_before_retry(
        &self,
        tries: u32,
        elapsed: Duration,
        failure: &Error,
    ) -> Option<Duration> {
        if tries > self.most || !failure.is_transient() {
            return None;
        }
        let asked = failure.retry_after().unwrap_or_default();
        let pause = asked.saturating_add(self.pause(tries));
        (pause < self.longest_total.saturating_sub(elapsed)).then_some(pause)
    }

    /// Returns a random pause after that many failures, from 1.
    pub(crate) fn pause(&self, failures: u32) -> Duration {
        let doubled = 1_u32.checked_shl(failures.saturating_sub(1));
        let longest = self.first_pause.saturating_mul(doubled.unwrap_or(u32::MAX));
        let longest = longest.min(self.longest_pause);
        // Without random numbers the maximum is used.
        let random = getrandom::u32().unwrap_or(u32::MAX);
        longest.mul_f64(f64::from(random) / f64::from(u32::MAX))
    }
}

/// Calls `attempt` until it succeeds, fails permanently, or was the last attempt. `on_retry` is called before each pause.
///
/// # Errors
///
/// The error of a permanent failure, or [`Error::GaveUp`] after the last of several attempts.
pub async fn with_retries<T, F>(
    retries: &Retries,
    on_retry: OnRetry,
    mut attempt: impl FnMut() -> F,
) -> Result<T>
where
    F: Future<Output = Result<T>>,
{
    let started = Instant::now();
    let mut tries = 0;
    loop {
        let left = retries.longest_total.saturating_sub(started.elapsed());
        let outcome = timeout(left, attempt()).await;
        let failure = match outcome.unwrap_or(Err(Error::Timeout)) {
            Ok(found) => return Ok(found),
            Err(failure) => failure,
        };
        tries += 1;
        match retries.delay_before_retry(tries, started.elapsed(), &failure) {
            Some(pause) => {
                on_retry(&failure, pause);
                sleep(pause).await;
            }
            // A permanent failure is returned as itself, even after transient ones.
            None if tries == 1 || !failure.is_transient() => return Err(failure),
            None => {
                let last = Box::new(failure);
                return Err(Error::GaveUp { tries, last });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn failure(status: u16, retry_after: Option<u64>) -> Error {
        Error::Unexpected {
            status,
            what: String::new(),
            retry_after: retry_after.map(Duration::from_secs),
        }
    }

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn only_transient_failures_are_retried() {
        let default = Retries::default();
        for (failure, expected) in [
            (failure(408, None), true),
            (failure(425, None), true),
            (failure(429, None), true),
            (failure(500, None), true),
            (failure(502, None), true),
            (failure(503, None), true),
            (failure(504, None), true),
            (Error::Timeout, true),
            (failure(400, None), false),
            (failure(401, Some(0)), false),
            (failure(403, None), false),
            (failure(404, None), false),
            (failure(410, None), false),
            (failure(501, None), false),
            (Error::TooLong { most_bytes: 1 }, false),
            (Error::Request(String::new()), false),
        ] {
            let pause = default.delay_before_retry(1, Duration::ZERO, &failure);
            assert_eq!(pause.is_some(), expected, "{failure:?}");
            assert!(default.delay_before_retry(4, SECOND, &failure).is_some() == expected);
            assert_eq!(default.delay_before_retry(5, SECOND, &failure), None);
            let none = Retries::none().delay_before_retry(1, Duration::ZERO, &failure);
            assert_eq!(none, None);
        }
    }

    #[test]
    fn retry_after_is_waited_for_or_ends_the_retries() {
        let default = Retries::default();
        let pause = default
            .delay_before_retry(1, SECOND, &failure(429, Some(20)))
            .unwrap();
        assert!(
            pause >= 20 * SECOND && pause <= 20 * SECOND + default.first_pause,
            "{pause:?}"
        );
        // `Retry-After` exceeds the remaining time: no further attempt.
        assert_eq!(
            default.delay_before_retry(1, SECOND, &failure(429, Some(59))),
            None
        );
        assert_eq!(
            default.delay_before_retry(1, 45 * SECOND, &failure(503, Some(20))),
            None
        );
        assert_eq!(
            default.delay_before_retry(1, SECOND, &failure(503, Some(u64::MAX))),
            None
        );
        let late = default.delay_before_retry(1, 61 * SECOND, &Error::Timeout);
        assert_eq!(late, None);
    }

    #[tokio::test]
    async fn attempts_end_with_success_or_the_last_retry() {
        let retries = Retries {
            first_pause: Duration::ZERO,
            ..Retries::default()
        };
        for (failures, expected) in [(0, 1), (1, 2), (4, 5), (5, 5), (99, 5)] {
            let tries = Cell::new(0);
            let came = with_retries(&retries, ignore, || async {
                tries.set(tries.get() + 1);
                match tries.get() > failures {
                    true => Ok(7),
                    false => Err(failure(503, Some(0))),
                }
            })
            .await;
            assert_eq!(tries.get(), expected);
            match came {
                Ok(came) => assert_eq!(came, 7),
                Err(Error::GaveUp { tries: 5, last }) => {
                    assert_eq!(last.status(), Some(503));
                }
                Err(other) => panic!("{other}"),
            }
        }
        // The total timeout ends a running attempt.
        let retries = Retries {
            longest_total: Duration::ZERO,
            ..Retries::default()
        };
        let came: Result<u8> = with_retries(&retries, ignore, std::future::pending).await;
        assert!(matches!(came, Err(Error::Timeout)), "{came:?}");
    }

    #[test]
    fn pauses_have_full_jitter_and_a_maximum() {
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
}
