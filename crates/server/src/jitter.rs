//! Chance in pauses: many who lost something at once don't all come back to it at once.

use std::time::Duration;

/// By chance something between nothing and a whole pause.
pub(crate) fn full(pause: Duration) -> Duration {
    pause.mul_f64(chance())
}

/// By chance something between three quarters of a pause and the whole.
pub(crate) fn slight(pause: Duration) -> Duration {
    pause.mul_f64(0.75 + chance() / 4.0)
}

/// A number from 0 to 1. Without random numbers all pauses are whole.
fn chance() -> f64 {
    let random = getrandom::u32().unwrap_or(u32::MAX);
    f64::from(random) / f64::from(u32::MAX)
}
