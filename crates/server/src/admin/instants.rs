//! Metrics of overrides that begin and end at a time.

use crate::metrics::InstantMetrics;
use crate::metrics::text::Exposition;

/// Adds the metrics of a process.
pub(crate) fn describe(metrics: &InstantMetrics, into: &mut Exposition) {
    into.gauge(
        "vitrine_overrides_overdue_seconds",
        "Time by which the earliest beginning or end of an override is overdue, in seconds.",
        metrics.overdue_seconds.get(),
    );
    into.counter(
        "vitrine_override_instants_total",
        "Beginnings and ends of overrides that this server applied.",
        metrics.applied.get(),
    );
    into.counter(
        "vitrine_override_instants_exceeding_total",
        "Beginnings and ends of overrides that exceeded a limit of the guard.",
        metrics.exceeding.get(),
    );
}
