//! Response of `/metrics`: all metrics in one text. `metrics/table` has their names and what they mean.

use std::time::Instant;

use jiff::Timestamp;
use vitrine_model::snapshot::Snapshot;

use super::pages::{is_store_readable, not_ready};
use crate::boot_time::BootTime;
use crate::http::App;
use crate::metrics::state_files::StateFiles;
use crate::metrics::table::{
    BodyMetrics, BreakerMetrics, CatalogMetrics, ChangesMetrics, FollowMetrics, KeyMetrics,
    ProgramMetrics, StateFileMetrics,
};
use crate::metrics::text::{Counted, Exposition};
use crate::metrics::{ACCESS_LOG_DROPPED, LiveMetrics, MESSAGES_DROPPED, PANICS, process};

/// Returns all metrics as of now.
pub(super) fn text(app: &App) -> String {
    let mut into = Exposition::default();
    let (metrics, live) = (&*app.metrics, &app.live.metrics);
    metrics.requests.metrics().describe(&mut into);
    metrics.errors.describe(&mut into);
    metrics.limits.describe(&mut into);
    if let Some(shared) = &app.access.shared {
        let is_open = !shared.are_reachable();
        BreakerMetrics { is_open }.describe(&mut into);
        shared.metrics.describe(&mut into);
    }
    metrics.connections.describe(&mut into);
    bodies(app).describe(&mut into);
    if let Some(tls) = &metrics.tls {
        tls.describe(&mut into);
    }
    catalog(app).describe(&mut into);
    live.swaps.describe(&mut into);
    keys(app).describe(&mut into);
    changes(app).describe(&mut into);
    metrics.webhooks.describe(&mut into);
    metrics.instants.describe(&mut into);
    following(live, is_store_readable(app)).describe(&mut into);
    state_files(&live.state_files).describe(&mut into);
    let program = ProgramMetrics {
        build: vec![([("version", env!("CARGO_PKG_VERSION"))], 1)],
        started: metrics.started.as_duration().as_secs_f64(),
        panics: &PANICS,
        access_log_dropped: &ACCESS_LOG_DROPPED,
        messages_dropped: &MESSAGES_DROPPED,
    };
    program.describe(&mut into);
    process::metrics().describe(&mut into);
    into.into_text()
}

fn bodies(app: &App) -> BodyMetrics {
    let caches = app.caches();
    let shed = app.requests_shed().into_iter();
    let lookups = caches.iter().flat_map(|(cache, state)| {
        let cache = ("cache", *cache);
        [
            ([cache, ("found", "true")], Counted(state.hits)),
            ([cache, ("found", "false")], Counted(state.misses)),
        ]
    });
    let bytes = caches
        .iter()
        .map(|(cache, state)| ([("cache", *cache)], state.bytes));
    BodyMetrics {
        shed: shed
            .map(|(cause, count)| ([("cause", cause)], Counted(count)))
            .collect(),
        sending_bytes: app.sending_bytes(),
        cache_requests: lookups.collect(),
        cache_bytes: bytes.collect(),
    }
}

fn catalog(app: &App) -> CatalogMetrics<'_> {
    let snapshot = app.live.snapshot();
    let snapshot = snapshot.as_deref();
    let revision = snapshot.map(Snapshot::revision);
    let damage = snapshot.map(Snapshot::damage);
    let damage = damage.into_iter().flat_map(|damage| {
        [
            ([("of", "products")], damage.products.len()),
            ([("of", "texts")], damage.texts.len()),
        ]
    });
    CatalogMetrics {
        is_ready: not_ready(app).is_none(),
        revision: revision.map(|revision| revision.number),
        created_at: revision.map(|revision| revision.created_at.as_duration().as_secs_f64()),
        live_since: snapshot.map(|_| &app.live.metrics.live_since),
        products: snapshot.map(Snapshot::len),
        bytes: snapshot.map(Snapshot::size_bytes),
        damaged: damage.collect(),
    }
}

fn keys(app: &App) -> KeyMetrics {
    let (keys, contact) = (app.live.keys(), &app.live.contact);
    let expiries: Vec<Timestamp> = keys.expiring(Timestamp::now()).collect();
    let earliest = expiries.iter().min();
    KeyMetrics {
        known: keys.count(),
        expiring: expiries.len(),
        earliest_expiry: earliest.map_or(0, |expiry| expiry.as_second()) as f64,
        unavailable: keys.unavailable(Timestamp::now()),
        assortments: keys.assortments().len(),
        age: contact.age(BootTime::now()).map(|age| age.as_secs_f64()),
        max_age: contact.max_stale().as_secs(),
    }
}

fn changes(app: &App) -> ChangesMetrics<'_> {
    let feed = app.live.feed();
    let oldest = feed.as_ref().and_then(|feed| feed.oldest(Timestamp::now()));
    let journal = feed.as_ref().map(|feed| feed.journal.as_ref());
    ChangesMetrics {
        waiting: app.waits.count(),
        refused: &app.waits.refused,
        oldest: oldest.map(|oldest| oldest.as_duration().as_secs_f64()),
        entries: journal.map(|journal| journal.map_or(0, |journal| journal.len())),
        bytes: journal.map(|journal| journal.map_or(0, |journal| journal.bytes())),
    }
}

fn following(metrics: &LiveMetrics, is_readable: bool) -> FollowMetrics<'_> {
    let followed = || {
        [
            ([("of", "catalog")], &metrics.follow_catalog),
            ([("of", "keys")], &metrics.follow_keys),
        ]
        .into_iter()
    };
    let now = Instant::now();
    FollowMetrics {
        is_readable,
        failures: followed()
            .map(|(of, following)| (of, &following.failures))
            .collect(),
        last_success: followed()
            .map(|(of, following)| (of, &following.last_success))
            .collect(),
        is_stuck: followed()
            .map(|(of, following)| (of, following.heartbeat.is_late(now)))
            .collect(),
    }
}

fn state_files(files: &StateFiles) -> StateFileMetrics<'_> {
    let files = files.all();
    let files = || {
        let files = files.iter().flatten();
        files.map(|(file, writes)| ([("file", file.name())], *writes))
    };
    StateFileMetrics {
        failures: files()
            .map(|(file, writes)| (file, &writes.failures))
            .collect(),
        written: files()
            .map(|(file, writes)| (file, writes.written()))
            .collect(),
    }
}
