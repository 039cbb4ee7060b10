//! Quotas: how often a key may ask, by the generic cell rate algorithm (GCRA).

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::Invalid;

/// So many requests in so many seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    requests: u32,
    window_seconds: u32,
}

impl Quota {
    /// A quota; neither number may be zero.
    ///
    /// # Errors
    ///
    /// Where one is zero, or the window is longer than a day.
    pub fn new(requests: u32, window_seconds: u32) -> Result<Self, Invalid> {
        if requests == 0 || window_seconds == 0 || window_seconds > 86_400 {
            return Err(Invalid::new(
                "quota",
                "REQUESTS/SECONDS, both at least 1 and at most 86400 seconds, such as `600/60`",
            ));
        }
        Ok(Self {
            requests,
            window_seconds,
        })
    }

    /// The requests of a full window.
    #[must_use]
    pub fn requests(self) -> u32 {
        self.requests
    }

    /// The window's length in seconds.
    #[must_use]
    pub fn window_seconds(self) -> u32 {
        self.window_seconds
    }

    fn window_nanos(self) -> u64 {
        u64::from(self.window_seconds) * 1_000_000_000
    }

    /// The time that one request costs.
    fn interval_nanos(self) -> u64 {
        (self.window_nanos() / u64::from(self.requests)).max(1)
    }
}

impl FromStr for Quota {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let parse = |part: &str| part.parse::<u32>().unwrap_or(0);
        let (requests, seconds) = text.split_once('/').unwrap_or(("", ""));
        Self::new(parse(requests), parse(seconds))
    }
}

impl fmt::Display for Quota {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.requests, self.window_seconds)
    }
}

/// What became of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// It may be answered.
    Granted,
    /// It may not; trying again makes sense after this time.
    Refused {
        /// How long to wait.
        retry_after: Duration,
    },
}

/// What is left of a quota at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Remaining {
    /// Requests that would be granted now.
    pub requests: u32,
    /// How long until the quota is whole again.
    pub reset_after: Duration,
}

/// The state of one key's quota: the theoretical arrival time of the next request, in nanoseconds
/// of a clock that the caller reads and that never goes back.
#[derive(Debug, Default)]
pub struct QuotaState {
    arrival_nanos: AtomicU64,
}

impl QuotaState {
    /// Takes one request at `now`.
    pub fn take(&self, quota: Quota, now: Duration) -> Admission {
        let now = nanos(now);
        let outcome =
            self.arrival_nanos
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |arrival| {
                    let next = arrival.max(now) + quota.interval_nanos();
                    (next <= now + quota.window_nanos()).then_some(next)
                });
        match outcome {
            Ok(_) => Admission::Granted,
            Err(arrival) => {
                let free_at = arrival + quota.interval_nanos() - quota.window_nanos();
                Admission::Refused {
                    retry_after: Duration::from_nanos(free_at.saturating_sub(now)),
                }
            }
        }
    }

    /// What is left at `now`, without taking any.
    #[must_use]
    pub fn remaining(&self, quota: Quota, now: Duration) -> Remaining {
        let owed = self
            .arrival_nanos
            .load(Ordering::Relaxed)
            .saturating_sub(nanos(now));
        let left = quota.window_nanos().saturating_sub(owed) / quota.interval_nanos();
        Remaining {
            requests: u32::try_from(left).unwrap_or(u32::MAX).min(quota.requests),
            reset_after: Duration::from_nanos(owed),
        }
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_granted_at_once_and_then_drips() {
        let quota: Quota = "3/60".parse().unwrap();
        let state = QuotaState::default();
        let start = Duration::from_secs(1_000);
        for left in [2, 1, 0] {
            assert_eq!(state.take(quota, start), Admission::Granted);
            assert_eq!(state.remaining(quota, start).requests, left);
        }
        let refused = Admission::Refused {
            retry_after: Duration::from_secs(20),
        };
        assert_eq!(state.take(quota, start), refused);
        assert_eq!(state.remaining(quota, start).reset_after.as_secs(), 60);
        let later = start + Duration::from_secs(20);
        assert_eq!(state.take(quota, later), Admission::Granted);
        assert!(matches!(
            state.take(quota, later),
            Admission::Refused { .. }
        ));
        let whole = start + Duration::from_secs(200);
        assert_eq!(state.remaining(quota, whole).requests, 3);
    }

    #[test]
    fn a_quota_is_two_whole_numbers() {
        assert_eq!("600/60".parse::<Quota>().unwrap().to_string(), "600/60");
        for wrong in ["", "600", "0/60", "600/0", "a/b", "1/86401", "-1/5"] {
            assert!(wrong.parse::<Quota>().is_err(), "{wrong}");
        }
    }
}
