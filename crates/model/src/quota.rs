//! Quotas: rate limits of keys by the generic cell rate algorithm (GCRA).

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::Invalid;

/// Maximum number of requests in a window of seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    requests: u32,
    window_seconds: u32,
}

impl Quota {
    /// Returns the quota of `requests` in `window_seconds`.
    ///
    /// # Errors
    ///
    /// If either is zero, or the window is longer than a day.
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

    /// Returns the requests of a full window.
    #[must_use]
    pub fn requests(self) -> u32 {
        self.requests
    }

    /// Returns the window's length in seconds.
    #[must_use]
    pub fn window_seconds(self) -> u32 {
        self.window_seconds
    }

    /// Returns the time that one request costs: its share of the window, in whole nanoseconds.
    #[must_use]
    pub fn cost(self) -> Duration {
        Duration::from_nanos(self.cost_nanos())
    }

    /// Returns the maximum time that can be owed: the cost of a full window's requests. It is less than the window by
    /// less than a nanosecond a request, so no burst exceeds the quota's requests.
    #[must_use]
    pub fn most_owed(self) -> Duration {
        Duration::from_nanos(self.most_owed_nanos())
    }

    /// Returns the remaining quota when this time is owed.
    #[must_use]
    pub fn remaining(self, owed: Duration) -> Remaining {
        let owed = nanos(owed).min(self.most_owed_nanos());
        let left = (self.most_owed_nanos() - owed) / self.cost_nanos();
        Remaining {
            requests: u32::try_from(left).unwrap_or(u32::MAX),
            reset_after: Duration::from_nanos(owed),
        }
    }

    /// Returns the refusal of a request when this time is owed.
    #[must_use]
    pub fn refusal(self, owed: Duration) -> Admission {
        let free_at = nanos(owed) + self.cost_nanos();
        Admission::Refused {
            retry_after: Duration::from_nanos(free_at.saturating_sub(self.most_owed_nanos())),
        }
    }

    fn cost_nanos(self) -> u64 {
        let window = u64::from(self.window_seconds) * 1_000_000_000;
        (window / u64::from(self.requests)).max(1)
    }

    fn most_owed_nanos(self) -> u64 {
        self.cost_nanos() * u64::from(self.requests)
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

/// Decision on one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// The request is within the quota.
    Granted,
    /// The request exceeds the quota.
    Refused {
        /// Time after which a request will be granted.
        retry_after: Duration,
    },
}

/// Remaining quota at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Remaining {
    /// Number of requests that would be granted now.
    pub requests: u32,
    /// Time until the quota is full again: the time owed.
    pub reset_after: Duration,
}

/// Decision on one request, and the remaining quota after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken {
    /// Decision.
    pub admission: Admission,
    /// Remaining quota.
    pub left: Remaining,
}

/// State of one key's quota: the theoretical arrival time of the next request, in nanoseconds of the caller's
/// monotonic clock. The time from now until then is owed; each granted request adds its cost.
#[derive(Debug, Default)]
pub struct QuotaState {
    arrival_nanos: AtomicU64,
}

impl QuotaState {
    /// Decides on one request at `now`, and charges it if it is granted. If more is owed than the quota allows, because
    /// the quota was larger before, the quota's maximum is owed: changes of a quota take effect at once.
    pub fn take(&self, quota: Quota, now: Duration) -> Taken {
        let now = nanos(now);
        let latest = now + quota.most_owed_nanos();
        let before = |arrival: u64| arrival.clamp(now, latest);
        let after = |arrival: u64| {
            Some(before(arrival) + quota.cost_nanos()).filter(|next| *next <= latest)
        };
        let update = |arrival: u64| {
            // Who is refused owes no more than that from now on, so that it is paid off.
            let next = after(arrival).unwrap_or(before(arrival));
            (next != arrival).then_some(next)
        };
        let outcome = self
            .arrival_nanos
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, update);
        let (Ok(arrival) | Err(arrival)) = outcome;
        let (admission, owed) = match after(arrival) {
            Some(next) => (Admission::Granted, Duration::from_nanos(next - now)),
            None => {
                let owed = Duration::from_nanos(before(arrival) - now);
                (quota.refusal(owed), owed)
            }
        };
        Taken {
            admission,
            left: quota.remaining(owed),
        }
    }

    /// Returns the remaining quota at `now` without charging anything.
    #[must_use]
    pub fn remaining(&self, quota: Quota, now: Duration) -> Remaining {
        let arrival = self.arrival_nanos.load(Ordering::Relaxed);
        quota.remaining(Duration::from_nanos(arrival.saturating_sub(nanos(now))))
    }

    /// Raises the time owed at `now` to at least `owed`, which a server with more requests of the key reported.
    pub fn learn(&self, owed: Duration, now: Duration) {
        let arrival = nanos(now).saturating_add(nanos(owed));
        self.arrival_nanos.fetch_max(arrival, Ordering::Relaxed);
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_beyond_a_burst_are_granted_at_the_rate() {
        let quota: Quota = "3/60".parse().unwrap();
        let state = QuotaState::default();
        let start = Duration::from_secs(1_000);
        for left in [2, 1, 0] {
            let taken = state.take(quota, start);
            assert_eq!(taken.admission, Admission::Granted);
            assert_eq!(taken.left.requests, left);
            assert_eq!(state.remaining(quota, start), taken.left);
        }
        let refused = Admission::Refused {
            retry_after: Duration::from_secs(20),
        };
        assert_eq!(state.take(quota, start).admission, refused);
        assert_eq!(state.remaining(quota, start).reset_after.as_secs(), 60);
        let later = start + Duration::from_secs(20);
        assert_eq!(state.take(quota, later).admission, Admission::Granted);
        assert_ne!(state.take(quota, later).admission, Admission::Granted);
        let whole = start + Duration::from_secs(200);
        assert_eq!(state.remaining(quota, whole).requests, 3);
    }

    #[test]
    fn changed_quotas_take_effect_at_once() {
        let state = QuotaState::default();
        let now = Duration::from_secs(1_000);
        let (before, after): (Quota, Quota) = ("2/3600".parse().unwrap(), "60/60".parse().unwrap());
        for _ in 0..3 {
            state.take(before, now);
        }
        // An hour is owed; of the new quota a minute is owed at most.
        assert_eq!(state.remaining(after, now).reset_after.as_secs(), 60);
        let refused = Admission::Refused {
            retry_after: Duration::from_secs(1),
        };
        assert_eq!(state.take(after, now).admission, refused);
        let later = now + Duration::from_secs(1);
        assert_eq!(state.take(after, later).admission, Admission::Granted);
    }

    #[test]
    fn time_owed_elsewhere_is_owed_here_too() {
        let quota: Quota = "3/60".parse().unwrap();
        let state = QuotaState::default();
        let now = Duration::from_secs(1_000);
        state.learn(Duration::from_secs(40), now);
        state.learn(Duration::from_secs(20), now);
        assert_eq!(state.remaining(quota, now).requests, 1);
        assert_eq!(state.take(quota, now).admission, Admission::Granted);
        assert_ne!(state.take(quota, now).admission, Admission::Granted);
    }

    #[test]
    fn quotas_other_than_two_whole_numbers_are_refused() {
        let quota: Quota = "600/60".parse().unwrap();
        assert_eq!(quota.to_string(), "600/60");
        assert_eq!((quota.requests(), quota.window_seconds()), (600, 60));
        assert_eq!(quota.cost(), Duration::from_millis(100));
        assert_eq!(quota.most_owed(), Duration::from_secs(60));
        // A part of a nanosecond isn't granted.
        let odd: Quota = "7/1".parse().unwrap();
        assert_eq!(odd.most_owed(), Duration::from_nanos(999_999_994));
        for wrong in ["", "600", "0/60", "600/0", "a/b", "1/86401", "-1/5"] {
            assert!(wrong.parse::<Quota>().is_err(), "{wrong}");
        }
    }
}
