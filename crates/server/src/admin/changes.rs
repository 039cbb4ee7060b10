//! Metrics of the changes feed.

use jiff::Timestamp;

use crate::http::App;
use crate::metrics::text::Exposition;

/// Adds the metrics of waits and of the journal.
pub(super) fn describe(app: &App, into: &mut Exposition) {
    into.gauge(
        "vitrine_changes_waiting",
        "Requests that wait for changes.",
        app.waits.count() as f64,
    );
    into.counter(
        "vitrine_changes_waits_refused_total",
        "Requests that were answered at once because too many waited, or because the server shut down.",
        app.waits.refused.get(),
    );
    let Some(feed) = app.live.feed() else {
        return;
    };
    if let Some(oldest) = feed.oldest(Timestamp::now()) {
        into.gauge(
            "vitrine_changes_oldest_timestamp_seconds",
            "Time since which tokens of the changes feed are continued, in seconds since 1970; absent while the history isn't \
             known.",
            oldest.as_duration().as_secs_f64(),
        );
    }
    let journal = feed.journal.as_ref();
    into.gauge(
        "vitrine_changes_entries",
        "Changes of products that are remembered for the changes feed.",
        journal.map_or(0, |journal| journal.len()) as f64,
    );
    into.gauge(
        "vitrine_changes_bytes",
        "Memory for the changes feed, in bytes; its limit is --changes-mib.",
        journal.map_or(0, |journal| journal.bytes()) as f64,
    );
}
