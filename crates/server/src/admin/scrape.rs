//! Response of `/metrics`: all counters and gauges in one text. The help of each is its documentation.

use std::time::Instant;

use jiff::Timestamp;
use vitrine_model::snapshot::Damage;
use vitrine_wire::error::ErrorType;

use super::pages::{is_store_readable, not_ready};
use super::{changes, instants, limits, state_files};
use crate::boot_time::BootTime;
use crate::http::App;
use crate::metrics::requests::RouteCounts;
use crate::metrics::text::{Exposition, MetricType};
use crate::metrics::{
    ACCESS_LOG_DROPPED, Caller, ErrorOrigin, MESSAGES_DROPPED, Metrics, PANICS, Rebuild, Refusal,
    TlsMetrics, WebhookMetrics, process,
};

/// Returns all metrics as of now.
pub(super) fn text(app: &App) -> String {
    let mut into = Exposition::default();
    let metrics = &*app.metrics;
    requests(&metrics.requests.counts(), &mut into);
    errors(metrics, &mut into);
    limits::describe(app, &mut into);
    connections(metrics, &mut into);
    let mut metric = into.metric(
        "vitrine_http_requests_shed_total",
        MetricType::Counter,
        "Requests refused with 503 because of overload, by cause: bodies waiting for compression, or memory for bodies \
         not yet sent.",
    );
    for (cause, count) in app.requests_shed() {
        metric.sample(&[("cause", cause)], count);
    }
    into.gauge(
        "vitrine_http_sending_bytes",
        "Memory reserved for bodies not yet sent, in bytes.",
        app.sending_bytes() as f64,
    );
    if let Some(metrics) = &metrics.tls {
        tls(metrics, &mut into);
    }
    catalog(app, &mut into);
    keys(app, &mut into);
    changes::describe(app, &mut into);
    webhooks(&metrics.webhooks, &mut into);
    instants::describe(&metrics.instants, &mut into);
    following(app, &mut into);
    state_files::describe(&app.live.metrics.state_files, &mut into);
    caches(app, &mut into);
    into.metric(
        "vitrine_build_info",
        MetricType::Gauge,
        "Version of the program; always 1.",
    )
    .sample(&[("version", env!("CARGO_PKG_VERSION"))], 1);
    into.gauge(
        "process_start_time_seconds",
        "Start of the process, in seconds since 1970.",
        metrics.started.as_duration().as_secs_f64(),
    );
    into.counter(
        "vitrine_panics_total",
        "Panics that were caught: bugs.",
        PANICS.get(),
    );
    process::describe(&mut into);
    into.into_text()
}

fn requests(counts: &[RouteCounts], into: &mut Exposition) {
    let mut metric = into.metric(
        "vitrine_http_requests_total",
        MetricType::Counter,
        "Requests answered, by route and status.",
    );
    for counts in counts {
        for (status, count) in &counts.by_status {
            metric.sample(&[("route", counts.route), ("status", status)], count);
        }
    }
    let mut metric = into.metric(
        "vitrine_http_request_duration_seconds",
        MetricType::Histogram,
        "Time from a request's head being read to its response being ready to be written.",
    );
    for counts in counts {
        metric.histogram(&[("route", counts.route)], &counts.times);
    }
    let mut metric = into.metric(
        "vitrine_http_response_body_bytes_total",
        MetricType::Counter,
        "Bodies of responses, in bytes as sent.",
    );
    for counts in counts {
        metric.sample(&[("route", counts.route)], counts.bytes);
    }
}

fn errors(metrics: &Metrics, into: &mut Exposition) {
    let mut metric = into.metric(
        "vitrine_http_errors_total",
        MetricType::Counter,
        "Error responses by type; simulated ones were requested with test keys.",
    );
    for kind in ErrorType::ALL {
        for (cause, simulated) in [
            (ErrorOrigin::Real, "false"),
            (ErrorOrigin::Simulated, "true"),
        ] {
            let labels = [("type", kind.as_str()), ("simulated", simulated)];
            metric.sample(&labels, metrics.errors.of(*kind, cause).get());
        }
    }
}

fn webhooks(metrics: &WebhookMetrics, into: &mut Exposition) {
    let mut metric = into.metric(
        "vitrine_webhook_endpoints",
        MetricType::Gauge,
        "Webhook endpoints by state; 0 at servers that don't deliver.",
    );
    for (state, count) in metrics.endpoints() {
        metric.sample(&[("state", state)], count);
    }
    let mut metric = into.metric(
        "vitrine_webhook_attempts_total",
        MetricType::Counter,
        "Attempts by outcome: taken (2xx), refused (another status), failed (no response).",
    );
    for (outcome, count) in metrics.attempts() {
        metric.sample(&[("outcome", outcome)], count);
    }
    into.gauge(
        "vitrine_webhook_oldest_change_seconds",
        "Age of the oldest change that an active endpoint didn't acknowledge, in seconds.",
        metrics.oldest_seconds.get(),
    );
    into.metric(
        "vitrine_webhook_delivery_seconds",
        MetricType::Histogram,
        "Time from a commit to the 2xx for its event, at the first attempt.",
    )
    .histogram(&[], &metrics.told());
}

fn connections(metrics: &Metrics, into: &mut Exposition) {
    let connections = &metrics.connections;
    into.gauge(
        "vitrine_http_connections_open",
        "Open connections.",
        connections.open_now(),
    );
    into.counter(
        "vitrine_http_connections_accepted_total",
        "Connections accepted.",
        connections.accepted.get(),
    );
    into.counter(
        "vitrine_http_accept_failures_total",
        "Failures to accept a connection.",
        connections.not_accepted.get(),
    );
    let mut metric = into.metric(
        "vitrine_http_connections_refused_total",
        MetricType::Counter,
        "Connections refused, by limit.",
    );
    for (refusal, name) in [(Refusal::Full, "all"), (Refusal::Address, "address")] {
        metric.sample(&[("limit", name)], connections.refused(refusal).get());
    }
    let mut metric = into.metric(
        "vitrine_http_connections_evicted_total",
        MetricType::Counter,
        "Idle connections closed for new ones, by whether they had shown a valid key.",
    );
    for (caller, name) in [(Caller::WithKey, "true"), (Caller::WithoutKey, "false")] {
        metric.sample(&[("with_key", name)], connections.evicted(caller).get());
    }
    into.counter(
        "vitrine_access_log_dropped_lines_total",
        "Lines of the access log dropped because its reader was slow or a write failed.",
        ACCESS_LOG_DROPPED.get(),
    );
    into.counter(
        "vitrine_messages_dropped_lines_total",
        "Lines on standard error dropped because their reader was slow or a write failed.",
        MESSAGES_DROPPED.get(),
    );
}

fn tls(tls: &TlsMetrics, into: &mut Exposition) {
    into.gauge(
        "vitrine_tls_certificate_not_after_seconds",
        "End of the certificate's validity, in seconds since 1970.",
        tls.not_after.get(),
    );
    let mut metric = into.metric(
        "vitrine_tls_certificate_reloads_total",
        MetricType::Counter,
        "Reloads of the certificate, by whether it could be used.",
    );
    metric.sample(&[("outcome", "ok")], tls.reloads.get());
    metric.sample(&[("outcome", "failed")], tls.reload_failures.get());
    into.counter(
        "vitrine_tls_handshake_failures_total",
        "TLS handshakes that failed or took too long.",
        tls.handshake_failures.get(),
    );
}

fn damage(damage: &Damage, into: &mut Exposition) {
    let mut metric = into.metric(
        "vitrine_catalog_damaged",
        MetricType::Gauge,
        "Products and texts damaged in the store: the last good version is served, or nothing.",
    );
    for (of, count) in [
        ("products", damage.products.len()),
        ("texts", damage.texts.len()),
    ] {
        metric.sample(&[("of", of)], count);
    }
}

fn catalog(app: &App, into: &mut Exposition) {
    into.gauge(
        "vitrine_ready",
        "1 if /readyz says 200, else 0.",
        u8::from(not_ready(app).is_none()),
    );
    let swaps = &app.live.metrics.swaps;
    if let Some(snapshot) = app.live.snapshot() {
        let revision = snapshot.revision();
        into.gauge(
            "vitrine_catalog_revision",
            "Number of the live revision.",
            revision.number,
        );
        into.gauge(
            "vitrine_catalog_revision_timestamp_seconds",
            "Publication of the live revision, in seconds since 1970.",
            revision.created_at.as_duration().as_secs_f64(),
        );
        into.gauge(
            "vitrine_catalog_live_timestamp_seconds",
            "Time at which the live snapshot went live, in seconds since 1970.",
            swaps.live_since.get(),
        );
        into.gauge(
            "vitrine_catalog_products",
            "Products of the live revision.",
            snapshot.len(),
        );
        into.gauge(
            "vitrine_catalog_bytes",
            "Products, texts and indexes in memory, in bytes.",
            snapshot.size_bytes(),
        );
        damage(snapshot.damage(), into);
    }
    let mut metric = into.metric(
        "vitrine_catalog_swaps_total",
        MetricType::Counter,
        "Snapshots swapped in: from the whole store, or from what changed.",
    );
    for (rebuild, name) in [(Rebuild::Full, "full"), (Rebuild::Changes, "changes")] {
        metric.sample(&[("rebuild", name)], swaps.of(rebuild).get());
    }
    into.gauge(
        "vitrine_catalog_last_swap_duration_seconds",
        "Time from noticing the last change to its being live.",
        swaps.last_seconds.get(),
    );
    into.gauge(
        "vitrine_catalog_follow_lag_seconds",
        "Time from the publish of the last followed revision to its being live here, by the clocks of two machines.",
        swaps.last_lag.get(),
    );
    into.counter(
        "vitrine_snapshot_files_damaged_total",
        "Damaged snapshot files, which weren't used.",
        app.live.metrics.damaged_snapshot_files.get(),
    );
}

fn keys(app: &App, into: &mut Exposition) {
    let keys = app.live.keys();
    into.gauge(
        "vitrine_keys",
        "API keys known, expired and revoked ones included.",
        keys.count(),
    );
    let expiries: Vec<Timestamp> = keys.expiring(Timestamp::now()).collect();
    into.gauge(
        "vitrine_keys_expiring",
        "API keys used within the last week that expire within a week.",
        expiries.len(),
    );
    into.gauge(
        "vitrine_keys_earliest_expiry_timestamp_seconds",
        "Earliest expiry of the keys of vitrine_keys_expiring, in seconds since 1970; 0 if there are none.",
        expiries.into_iter().min().map_or(0, Timestamp::as_second) as f64,
    );
    into.gauge(
        "vitrine_keys_unavailable",
        "API keys that get 503, since what they may see isn't known.",
        keys.unavailable(Timestamp::now()),
    );
    into.gauge(
        "vitrine_assortments",
        "Assortments known.",
        keys.assortments().len(),
    );
}

fn following(app: &App, into: &mut Exposition) {
    let metrics = &app.live.metrics;
    into.gauge(
        "vitrine_follow_store_readable",
        "1 if the store could be read when last tried, else 0.",
        u8::from(is_store_readable(app)),
    );
    if let Some(age) = app.live.contact.age(BootTime::now()) {
        into.gauge(
            "vitrine_keys_age_seconds",
            "Time since keys were last known to be the store's.",
            age.as_secs_f64(),
        );
    }
    into.gauge(
        "vitrine_keys_max_age_seconds",
        "Age at which keys are no longer trusted.",
        app.live.contact.max_stale().as_secs(),
    );
    into.gauge(
        "vitrine_sqlite_log_bytes",
        "Size of the write-ahead log beside an SQLite store; 0 for PostgreSQL.",
        metrics.store_log_bytes.get(),
    );
    let followed = [
        ("catalog", &metrics.follow_catalog),
        ("keys", &metrics.follow_keys),
    ];
    let mut metric = into.metric(
        "vitrine_follow_failures_total",
        MetricType::Counter,
        "Polls in which the store couldn't be read.",
    );
    for (of, following) in followed {
        metric.sample(&[("of", of)], following.failures.get());
    }
    let mut metric = into.metric(
        "vitrine_follow_last_success_timestamp_seconds",
        MetricType::Gauge,
        "Time at which the store was last read, in seconds since 1970.",
    );
    for (of, following) in followed {
        metric.sample(&[("of", of)], following.last_success.get());
    }
    let mut metric = into.metric(
        "vitrine_follow_stuck",
        MetricType::Gauge,
        "1 while the thread that follows the catalog or the keys hangs, else 0; /readyz fails meanwhile.",
    );
    for (of, following) in followed {
        let is_stuck = following.heartbeat.is_late(Instant::now());
        metric.sample(&[("of", of)], u8::from(is_stuck));
    }
}

fn caches(app: &App, into: &mut Exposition) {
    let caches = app.caches();
    let mut metric = into.metric(
        "vitrine_cache_requests_total",
        MetricType::Counter,
        "Lookups in caches, by whether the entry was found.",
    );
    for (cache, state) in &caches {
        metric.sample(&[("cache", cache), ("found", "true")], state.hits);
        metric.sample(&[("cache", cache), ("found", "false")], state.misses);
    }
    let mut metric = into.metric(
        "vitrine_cache_bytes",
        MetricType::Gauge,
        "Bytes held by caches.",
    );
    for (cache, state) in &caches {
        metric.sample(&[("cache", cache)], state.bytes);
    }
}
