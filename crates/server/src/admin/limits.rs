//! Samples of limits for `/metrics`.

use crate::http::App;
use crate::limits::SharedLimits;
use crate::metrics::limits::{Breaker, Decision, LimitMetrics, QuotaScope};
use crate::metrics::text::{Exposition, MetricType};

const DECISIONS: [(Decision, &str); 2] = [
    (Decision::Granted, "granted"),
    (Decision::Refused, "refused"),
];

pub(super) fn describe(app: &App, into: &mut Exposition) {
    decisions(&app.metrics.limits, into);
    if let Some(shared) = &app.access.shared {
        self::shared(shared, into);
    }
}

fn decisions(limits: &LimitMetrics, into: &mut Exposition) {
    let mut metric = into.metric(
        "vitrine_quota_decisions_total",
        MetricType::Counter,
        "Requests of keys with a quota that would cost of it, by where that was decided and how.",
    );
    for (scope, scope_name) in [(QuotaScope::Shared, "shared"), (QuotaScope::Local, "local")] {
        for (decision, name) in DECISIONS {
            let labels = [("decided", scope_name), ("outcome", name)];
            metric.sample(&labels, limits.quotas(scope).of(decision).get());
        }
    }
    let mut metric = into.metric(
        "vitrine_failed_keys_total",
        MetricType::Counter,
        "Requests with keys that are wrong, expired or revoked: answered with 401, or limited with 429.",
    );
    for (decision, name) in [(Decision::Granted, "401"), (Decision::Refused, "429")] {
        metric.sample(&[("status", name)], limits.failed_keys.of(decision).get());
    }
}

fn shared(shared: &SharedLimits, into: &mut Exposition) {
    into.gauge(
        "vitrine_limits_breaker_open",
        "Whether this server limits alone, since the shared limits can't be asked: 1 or 0.",
        u8::from(!shared.are_reachable()),
    );
    let metrics = &shared.metrics;
    let mut metric = into.metric(
        "vitrine_limits_breaker_transitions_total",
        MetricType::Counter,
        "How often the breaker opened and closed.",
    );
    for (to, name) in [(Breaker::Open, "open"), (Breaker::Closed, "closed")] {
        metric.sample(&[("to", name)], metrics.transitions(to).get());
    }
    let mut metric = into.metric(
        "vitrine_limits_failures_total",
        MetricType::Counter,
        "Requests for which the shared limits were asked in vain.",
    );
    for (cause, count) in [("timeout", &metrics.timeouts), ("error", &metrics.failures)] {
        metric.sample(&[("cause", cause)], count.get());
    }
    into.metric(
        "vitrine_limits_round_trip_duration_seconds",
        MetricType::Histogram,
        "How long requests waited for the shared limits.",
    )
    .histogram(&[], &metrics.round_trips.times());
}
