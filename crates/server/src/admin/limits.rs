//! Metrics of limits, for `/metrics`.

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
        "Requests that cost quota, by who decided and the outcome.",
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
        "Requests with a wrong, expired or revoked key, refused with 401 or limited with 429.",
    );
    for (decision, name) in [(Decision::Granted, "401"), (Decision::Refused, "429")] {
        metric.sample(&[("status", name)], limits.failed_keys.of(decision).get());
    }
}

fn shared(shared: &SharedLimits, into: &mut Exposition) {
    into.gauge(
        "vitrine_limits_breaker_open",
        "1 if this server limits by itself because the shared limits fail, else 0.",
        u8::from(!shared.are_reachable()),
    );
    let metrics = &shared.metrics;
    let mut metric = into.metric(
        "vitrine_limits_breaker_transitions_total",
        MetricType::Counter,
        "Changes of the breaker to open and closed.",
    );
    for (to, name) in [(Breaker::Open, "open"), (Breaker::Closed, "closed")] {
        metric.sample(&[("to", name)], metrics.transitions(to).get());
    }
    let mut metric = into.metric(
        "vitrine_limits_failures_total",
        MetricType::Counter,
        "Requests that got no answer from the shared limits.",
    );
    for (cause, count) in [("timeout", &metrics.timeouts), ("error", &metrics.failures)] {
        metric.sample(&[("cause", cause)], count.get());
    }
    into.metric(
        "vitrine_limits_round_trip_duration_seconds",
        MetricType::Histogram,
        "Time that requests waited for the shared limits.",
    )
    .histogram(&[], &metrics.round_trips.times());
}
