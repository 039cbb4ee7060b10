//! Quotas against `governor`, an independent rate limiter: both grant the same requests at the same times.

use std::num::NonZeroU32;
use std::time::Duration;

use governor::clock::FakeRelativeClock;
use governor::{Quota as GovernorQuota, RateLimiter};
use proptest::prelude::*;
use vitrine_model::quota::{Admission, Quota, QuotaState};

/// Generates pauses between requests, as multiples of the cost of one: mostly bursts, sometimes idle times.
fn pauses() -> impl Strategy<Value = Vec<f64>> {
    let pause = prop_oneof![
        3 => Just(0.0),
        3 => 0.0..2.0,
        1 => 0.0..50.0,
    ];
    proptest::collection::vec(pause, 1..300)
}

proptest! {
    #[test]
    fn grants_match_those_of_governor(
        requests in prop_oneof![1..20_u32, 1..2_000_000_u32],
        window_seconds in 1..86_400_u32,
        pauses in pauses(),
    ) {
        let quota = Quota::new(requests, window_seconds).expect("a quota");
        let clock = FakeRelativeClock::default();
        let oracle = GovernorQuota::with_period(quota.cost()).expect("a period");
        let oracle = oracle.allow_burst(NonZeroU32::new(requests).expect("at least one"));
        let oracle = RateLimiter::direct_with_clock(oracle, clock.clone());
        let state = QuotaState::default();
        let mut now = Duration::from_secs(1_000_000);
        for pause in pauses {
            let pause = quota.cost().mul_f64(pause);
            clock.advance(pause);
            now += pause;
            let before = state.remaining(quota, now);
            let taken = state.take(quota, now);
            let granted = taken.admission == Admission::Granted;
            prop_assert_eq!(granted, oracle.check().is_ok());
            prop_assert_eq!(granted, before.requests > 0);
            prop_assert_eq!(taken.left, state.remaining(quota, now));
            prop_assert!(taken.left.requests + u32::from(granted) == before.requests);
            if let Admission::Refused { retry_after } = taken.admission {
                // The shortest wait that suffices.
                prop_assert_eq!(state.remaining(quota, now + retry_after).requests, 1);
                let too_early = now + retry_after.saturating_sub(Duration::from_nanos(1));
                prop_assert_eq!(state.remaining(quota, too_early).requests, 0);
            }
        }
    }

    #[test]
    fn bursts_never_exceed_the_quota(
        requests in 1..5_000_u32,
        window_seconds in 1..100_u32,
    ) {
        let quota = Quota::new(requests, window_seconds).expect("a quota");
        let state = QuotaState::default();
        let now = Duration::from_secs(1);
        let granted = (0..requests + 10).filter(|_| state.take(quota, now).admission == Admission::Granted);
        prop_assert_eq!(granted.count(), requests as usize);
    }
}
