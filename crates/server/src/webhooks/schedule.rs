//! Pauses between attempts (docs/contract/webhooks.md#retries).

use std::time::Duration;

use jiff::Timestamp;
use vitrine_ingest::jitter;
use vitrine_store::webhooks::Progress;

/// Time limit of an attempt.
pub(super) const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(15);

/// Time of failures in a row after which an endpoint is disabled.
const MAX_FAILING: Duration = Duration::from_secs(5 * 24 * 60 * 60);

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;

/// Pauses after the first failure, the second, and so on, in seconds; after the last it stays. The first attempt is at once.
const PAUSES: [u64; 9] = [
    5,
    5 * MINUTE,
    30 * MINUTE,
    2 * HOUR,
    5 * HOUR,
    10 * HOUR,
    14 * HOUR,
    20 * HOUR,
    24 * HOUR,
];

/// Longest pause that belongs to a number of failures: a receiver may ask for a day.
const MAX_PAUSE: Duration = Duration::from_secs(24 * HOUR * 6 / 5);

/// Returns the pause after so many failures.
fn pause(failures: u32) -> Duration {
    let index = usize::try_from(failures.saturating_sub(1)).unwrap_or(usize::MAX);
    Duration::from_secs(PAUSES[index.min(PAUSES.len() - 1)])
}

/// Counts a failed attempt. Returns the reason for disabling the endpoint, after days of failures.
pub(super) fn record_failure(
    progress: &mut Progress,
    retry_after: Option<Duration>,
    now: Timestamp,
) -> Option<String> {
    let pending = progress.pending.as_mut()?;
    pending.failures = pending.failures.saturating_add(1);
    let pause = jitter::fifth(pause(pending.failures)).max(retry_after.unwrap_or_default());
    progress.next_attempt_at = now.checked_add(pause).ok();
    let since = *progress.failing_since.get_or_insert(now);
    let failing = Duration::try_from(now.duration_since(since)).unwrap_or_default();
    (failing >= MAX_FAILING).then(|| "its receiver failed for five days".to_owned())
}

/// Returns the time until the next attempt. Never longer than a pause may be, since clocks jump.
pub(super) fn time_left(progress: &Progress, now: Timestamp) -> Duration {
    let Some(next) = progress.next_attempt_at else {
        return Duration::ZERO;
    };
    let left = Duration::try_from(next.duration_since(now)).unwrap_or_default();
    left.min(MAX_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use vitrine_store::webhooks::PendingEvent;

    fn failing() -> Progress {
        Progress {
            pending: Some(PendingEvent {
                id: "msg_1".to_owned(),
                body: "{}".to_owned(),
                end: String::new(),
                failures: 0,
            }),
            ..Progress::default()
        }
    }

    #[test]
    fn pauses_grow_until_days_of_failures_disable() {
        let mut now: Timestamp = "2026-11-25T12:00:00Z".parse().unwrap();
        let began = now;
        let mut progress = failing();
        let mut attempts = 0;
        let reason = loop {
            let disabled = record_failure(&mut progress, None, now);
            attempts += 1;
            if let Some(reason) = disabled {
                break reason;
            }
            let left = time_left(&progress, now);
            let expected = pause(attempts).as_secs_f64();
            assert!(
                (left.as_secs_f64() / expected - 1.0).abs() < 0.21,
                "{attempts}: {left:?}"
            );
            now += left;
        };
        assert!(reason.contains("five days"));
        assert!(now.duration_since(began).as_hours() >= 120);
        assert!((10..14).contains(&attempts), "{attempts}");
    }

    #[test]
    fn receiver_may_ask_for_a_longer_pause() {
        let now = Timestamp::now();
        let mut progress = failing();
        record_failure(&mut progress, Some(Duration::from_secs(3_600)), now);
        assert_eq!(time_left(&progress, now).as_secs(), 3_600);
    }

    #[test]
    fn clock_that_jumps_back_delays_at_most_by_a_pause() {
        let now = Timestamp::now();
        let mut progress = failing();
        progress.next_attempt_at = now.checked_add(Duration::from_secs(100 * 24 * HOUR)).ok();
        assert_eq!(time_left(&progress, now), MAX_PAUSE);
    }
}
