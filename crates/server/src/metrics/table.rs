//! Every metric of a server: its name, its type by its value, and its help, which is the comment before it.
//!
//! Some parts of the table are what the server counts with. The others are made at a scrape, of what the server knows then.

use vitrine_wire::error::ErrorType;

use super::histogram::{Buckets, Histogram, HistogramCounts, NO_END};
use super::text::{Counted, Exposition, Series};
use super::values::{By, Counter, Gauge, Label, Level, Pair, labels};

labels! {
    /// Cause of an error.
    ErrorOrigin: "simulated" {
        /// The request failed.
        Real = "false",
        /// A test key requested it with `X-Simulate`; not a reason for an alert.
        Simulated = "true",
    }

    /// Place that decided on a quota.
    QuotaScope: "decided" {
        /// The count that all servers share.
        Shared = "shared",
        /// This server's own count.
        Local = "local",
    }

    /// Decision on a request that costs quota.
    Decision: "outcome" {
        /// The request was answered.
        Granted = "granted",
        /// The request was refused with 429.
        Refused = "refused",
    }

    /// Response to an invalid key.
    FailedKey: "status" {
        /// It was refused as such.
        Refused = "401",
        /// Its address sent too many.
        Limited = "429",
    }

    /// State of the circuit breaker in front of shared limits.
    Breaker: "to" {
        /// Redis isn't used: each server limits alone.
        Open = "open",
        /// Redis is used: servers share quotas.
        Closed = "closed",
    }

    /// Cause of a failed request to the shared limits.
    LimitFailure: "cause" {
        /// It took too long.
        Timeout = "timeout",
        /// It failed otherwise.
        Error = "error",
    }

    /// Limit at which a connection is refused.
    Refusal: "limit" {
        /// The limit of all connections.
        Full = "all",
        /// The limit of its address.
        Address = "address",
    }

    /// Kind of caller, by whether a valid key was presented with a request or on a connection.
    Caller: "with_key" {
        /// With a valid key.
        WithKey = "true",
        /// Without one.
        WithoutKey = "false",
    }

    /// Outcome of reloading the certificate.
    Reload: "outcome" {
        /// It is live.
        Done = "ok",
        /// It can't be used.
        Failed = "failed",
    }

    /// Origin of a snapshot.
    Rebuild: "rebuild" {
        /// The whole catalog in the store.
        Full = "full",
        /// The previous snapshot and the changes since.
        Changes = "changes",
    }

    /// State of a webhook endpoint.
    EndpointState: "state" {
        /// It gets events.
        Active = "active",
        /// It is paused.
        Paused = "paused",
        /// It is disabled.
        Disabled = "disabled",
        /// Its key ended.
        Ended = "ended",
    }

    /// Outcome of an attempt to deliver an event.
    AttemptOutcome: "outcome" {
        /// The response was a 2xx.
        Taken = "taken",
        /// The response had another status.
        Refused = "refused",
        /// There was no response.
        Failed = "failed",
    }
}

/// Defines the buckets of histograms by their ends in microseconds.
macro_rules! buckets {
    ($($(#[$meta:meta])* $name:ident[$count:literal] = [$($end:literal),+];)+) => {$(
        $(#[$meta])*
        #[derive(Debug)]
        pub struct $name;

        impl Buckets<$count> for $name {
            const ENDS: &'static [u64; $count] = &[$($end * 1000,)+ NO_END];
        }
    )+};
}

buckets! {
    /// Buckets of a request's duration.
    RequestTimes[17] = [
        50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000,
        5_000_000
    ];
    /// Buckets of a request to the shared limits.
    RoundTrips[9] = [100, 250, 500, 1_000, 2_500, 5_000, 10_000, 20_000];
    /// Buckets of the time until an event is acknowledged.
    Deliveries[9] = [50_000, 100_000, 250_000, 500_000, 1_000_000, 5_000_000, 30_000_000, 300_000_000];
}

/// Defines parts of the table. A field has its help, its value and its name.
macro_rules! metrics {
    ($(
        $(#[$meta:meta])*
        $part:ident $(<$life:lifetime>)? {
            $($(#[doc = $help:literal])+ $field:ident: $value:ty = $name:literal,)+
        }
    )+) => {$(
        $(#[$meta])*
        #[derive(Debug)]
        pub struct $part $(<$life>)? {
            $($(#[doc = $help])+ pub $field: $value,)+
        }

        impl $(<$life>)? $part $(<$life>)? {
            /// Adds the metrics to a text.
            pub fn describe(&self, into: &mut Exposition) {
                $(into.add($name, concat!($($help),+), &self.$field);)+
            }
        }
    )+};
}

metrics! {
    /// Requests, by sums of their counters.
    #[derive(Default)]
    RequestMetrics {
        /// Requests answered, by route and status.
        answered: Series<2, Counted<u64>> = "vitrine_http_requests_total",
        /// Time from a request's head being read to its response being ready to be written.
        times: Series<1, HistogramCounts> = "vitrine_http_request_duration_seconds",
        /// Bodies of responses, in bytes as sent.
        bytes: Series<1, Counted<u64>> = "vitrine_http_response_body_bytes_total",
    }

    /// Errors.
    #[derive(Default)]
    ErrorMetrics {
        /// Error responses by type; simulated ones were requested with test keys.
        by_type: By<(ErrorType, ErrorOrigin), Counter> = "vitrine_http_errors_total",
    }

    /// Limits of a server.
    #[derive(Default)]
    LimitMetrics {
        /// Requests that cost quota, by who decided and the outcome.
        quotas: By<(QuotaScope, Decision), Counter> = "vitrine_quota_decisions_total",
        /// Requests with a wrong, expired or revoked key, refused with 401 or limited with 429.
        failed_keys: By<FailedKey, Counter> = "vitrine_failed_keys_total",
    }

    /// Limits that servers share.
    #[derive(Default)]
    SharedMetrics {
        /// Changes of the breaker to open and closed.
        transitions: By<Breaker, Counter> = "vitrine_limits_breaker_transitions_total",
        /// Requests that got no answer from the shared limits.
        failures: By<LimitFailure, Counter> = "vitrine_limits_failures_total",
        /// Time that requests waited for the shared limits.
        round_trips: Histogram<RoundTrips, 9> = "vitrine_limits_round_trip_duration_seconds",
    }

    /// State of the breaker in front of shared limits.
    BreakerMetrics {
        /// 1 if this server limits by itself because the shared limits fail, else 0.
        is_open: bool = "vitrine_limits_breaker_open",
    }

    /// Connections of clients.
    #[derive(Default)]
    Connections {
        /// Open connections.
        open: Level = "vitrine_http_connections_open",
        /// Connections accepted.
        accepted: Counter = "vitrine_http_connections_accepted_total",
        /// Failures to accept a connection.
        not_accepted: Counter = "vitrine_http_accept_failures_total",
        /// Connections refused, by limit.
        refused: By<Refusal, Counter> = "vitrine_http_connections_refused_total",
        /// Idle connections closed for new ones, by whether they had shown a valid key.
        evicted: By<Caller, Counter> = "vitrine_http_connections_evicted_total",
    }

    /// TLS of clients' connections.
    #[derive(Default)]
    TlsMetrics {
        /// End of the certificate's validity, in seconds since 1970.
        not_after: Gauge = "vitrine_tls_certificate_not_after_seconds",
        /// Reloads of the certificate, by whether it could be used.
        reloads: By<Reload, Counter> = "vitrine_tls_certificate_reloads_total",
        /// TLS handshakes that failed or took too long.
        handshake_failures: Counter = "vitrine_tls_handshake_failures_total",
    }

    /// Bodies of responses.
    BodyMetrics {
        /// Requests refused with 503 because of overload, by cause: bodies waiting for compression, or memory for bodies
        /// not yet sent.
        shed: Series<1, Counted<u64>> = "vitrine_http_requests_shed_total",
        /// Memory reserved for bodies not yet sent, in bytes.
        sending_bytes: u64 = "vitrine_http_sending_bytes",
        /// Lookups in caches, by whether the entry was found.
        cache_requests: Series<2, Counted<u64>> = "vitrine_cache_requests_total",
        /// Bytes held by caches.
        cache_bytes: Series<1, u64> = "vitrine_cache_bytes",
    }

    /// Live catalog.
    CatalogMetrics<'l> {
        /// 1 if /readyz says 200, else 0.
        is_ready: bool = "vitrine_ready",
        /// Number of the live revision.
        revision: Option<u64> = "vitrine_catalog_revision",
        /// Publication of the live revision, in seconds since 1970.
        created_at: Option<f64> = "vitrine_catalog_revision_timestamp_seconds",
        /// Time at which the live snapshot went live, in seconds since 1970.
        live_since: Option<&'l Gauge> = "vitrine_catalog_live_timestamp_seconds",
        /// Products of the live revision.
        products: Option<usize> = "vitrine_catalog_products",
        /// Products, texts and indexes in memory, in bytes.
        bytes: Option<usize> = "vitrine_catalog_bytes",
        /// Products and texts damaged in the store: the last good version is served, or nothing.
        damaged: Series<1, usize> = "vitrine_catalog_damaged",
    }

    /// Snapshots that were swapped in.
    #[derive(Default)]
    SwapMetrics {
        /// Snapshots swapped in: from the whole store, or from what changed.
        swapped: By<Rebuild, Counter> = "vitrine_catalog_swaps_total",
        /// Time from noticing the last change to its being live.
        last_seconds: Gauge = "vitrine_catalog_last_swap_duration_seconds",
        /// Time from the publish of the last followed revision to its being live here, by the clocks of two machines.
        last_lag: Gauge = "vitrine_catalog_follow_lag_seconds",
        /// Damaged snapshot files, which weren't used.
        damaged_files: Counter = "vitrine_snapshot_files_damaged_total",
        /// Size of the write-ahead log beside an SQLite store; 0 for PostgreSQL.
        store_log_bytes: Gauge = "vitrine_sqlite_log_bytes",
    }

    /// Keys and what they see.
    KeyMetrics {
        /// API keys known, expired and revoked ones included.
        known: usize = "vitrine_keys",
        /// API keys used within the last week that expire within a week.
        expiring: usize = "vitrine_keys_expiring",
        /// Earliest expiry of the keys of vitrine_keys_expiring, in seconds since 1970; 0 if there are none.
        earliest_expiry: f64 = "vitrine_keys_earliest_expiry_timestamp_seconds",
        /// API keys that get 503, since what they may see isn't known.
        unavailable: usize = "vitrine_keys_unavailable",
        /// Assortments known.
        assortments: usize = "vitrine_assortments",
        /// Time since keys were last known to be the store's.
        age: Option<f64> = "vitrine_keys_age_seconds",
        /// Age at which keys are no longer trusted.
        max_age: u64 = "vitrine_keys_max_age_seconds",
    }

    /// Changes feed.
    ChangesMetrics<'l> {
        /// Requests that wait for changes.
        waiting: usize = "vitrine_changes_waiting",
        /// Requests that were answered at once because too many waited, or because the server shut down.
        refused: &'l Counter = "vitrine_changes_waits_refused_total",
        /// Time since which tokens of the changes feed are continued, in seconds since 1970; absent while the history isn't
        /// known.
        oldest: Option<f64> = "vitrine_changes_oldest_timestamp_seconds",
        /// Changes of products that are remembered for the changes feed.
        entries: Option<usize> = "vitrine_changes_entries",
        /// Memory for the changes feed, in bytes; its limit is --changes-mib.
        bytes: Option<usize> = "vitrine_changes_bytes",
    }

    /// Deliveries to webhook endpoints.
    #[derive(Default)]
    WebhookMetrics {
        /// Webhook endpoints by state; 0 at servers that don't deliver.
        endpoints: By<EndpointState, Gauge> = "vitrine_webhook_endpoints",
        /// Attempts by outcome: taken (2xx), refused (another status), failed (no response).
        attempts: By<AttemptOutcome, Counter> = "vitrine_webhook_attempts_total",
        /// Age of the oldest change that an active endpoint didn't acknowledge, in seconds.
        oldest_seconds: Gauge = "vitrine_webhook_oldest_change_seconds",
        /// Time from a commit to the 2xx for its event, at the first attempt.
        told: Histogram<Deliveries, 9> = "vitrine_webhook_delivery_seconds",
    }

    /// Overrides that begin and end at a time.
    #[derive(Default)]
    InstantMetrics {
        /// Time by which the earliest beginning or end of an override is overdue, in seconds.
        overdue_seconds: Gauge = "vitrine_overrides_overdue_seconds",
        /// Beginnings and ends of overrides that this server applied.
        applied: Counter = "vitrine_override_instants_total",
        /// Beginnings and ends of overrides that exceeded a limit of the guard.
        exceeding: Counter = "vitrine_override_instants_exceeding_total",
    }

    /// Polls of the store.
    FollowMetrics<'l> {
        /// 1 if the store could be read when last tried, else 0.
        is_readable: bool = "vitrine_follow_store_readable",
        /// Polls in which the store couldn't be read.
        failures: Series<1, &'l Counter> = "vitrine_follow_failures_total",
        /// Time at which the store was last read, in seconds since 1970.
        last_success: Series<1, &'l Gauge> = "vitrine_follow_last_success_timestamp_seconds",
        /// 1 while the thread that follows the catalog or the keys hangs, else 0; /readyz fails meanwhile.
        is_stuck: Series<1, bool> = "vitrine_follow_stuck",
    }

    /// Files of the state directory.
    StateFileMetrics<'l> {
        /// Failed writes of the state directory's files, each of which is tried again.
        failures: Series<1, &'l Counter> = "vitrine_state_file_write_failures_total",
        /// Time at which a file of the state directory was last written, in seconds since 1970.
        written: Series<1, Option<f64>> = "vitrine_state_file_written_timestamp_seconds",
    }

    /// Program and its logs.
    ProgramMetrics {
        /// Version of the program; always 1.
        build: Series<1, u64> = "vitrine_build_info",
        /// Start of the process, in seconds since 1970.
        started: f64 = "process_start_time_seconds",
        /// Panics that were caught: bugs.
        panics: &'static Counter = "vitrine_panics_total",
        /// Lines of the access log dropped because its reader was slow or a write failed.
        access_log_dropped: &'static Counter = "vitrine_access_log_dropped_lines_total",
        /// Lines on standard error dropped because their reader was slow or a write failed.
        messages_dropped: &'static Counter = "vitrine_messages_dropped_lines_total",
    }

    /// Figures of the process, with the names that Prometheus's client libraries use. One that the system doesn't have is
    /// absent.
    ProcessMetrics {
        /// Processor time, user and system, in seconds.
        cpu_seconds: Counted<f64> = "process_cpu_seconds_total",
        /// Resident memory, in bytes.
        resident: Option<u64> = "process_resident_memory_bytes",
        /// Virtual memory, in bytes.
        virtual_memory: Option<u64> = "process_virtual_memory_bytes",
        /// Threads of the process.
        threads: Option<u64> = "process_threads",
        /// Open descriptors.
        open_descriptors: Option<u64> = "process_open_fds",
        /// Maximum number of open descriptors.
        max_descriptors: Option<u64> = "process_max_fds",
    }
}
