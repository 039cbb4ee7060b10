//! Traces: one span for each request that is sampled, sent to an OpenTelemetry collector.
//!
//! Everything that needs a library or takes time is behind the feature `traces`. Without it, only `traceparent` is
//! parsed, so that the access log has the trace of a request.
//!
//! - `parent`: the client's span
//! - `exporter`: creates and sends spans

#[cfg(feature = "traces")]
mod exporter;
mod parent;

use std::time::Duration;

use http::{HeaderMap, Method};

pub use parent::TraceParent;

/// Collector's address, sampling and service name.
#[derive(Debug, Clone)]
pub struct TraceSettings {
    /// URL of the collector's OTLP endpoint, including its path.
    pub endpoint: String,
    /// Share of requests without a trace of their own that are sampled, from 0 to 1.
    pub sample_ratio: f64,
    /// Service name of the server in traces.
    pub service_name: String,
}

/// Exporter of a server's spans, off by default.
#[derive(Debug, Clone, Default)]
pub struct Traces {
    #[cfg(feature = "traces")]
    exporter: Option<exporter::Exporter>,
}

/// True if this program can send spans.
pub const ARE_BUILT_IN: bool = cfg!(feature = "traces");

/// An answered request, for its span. It has no path, query or key.
#[derive(Debug)]
#[cfg_attr(
    not(feature = "traces"),
    expect(dead_code, reason = "only the exporter reads it")
)]
pub(crate) struct RequestSpan<'r> {
    /// The client's span.
    pub(crate) parent: Option<TraceParent<'r>>,
    /// The request's headers, for `tracestate`.
    pub(crate) headers: &'r HeaderMap,
    pub(crate) method: &'r Method,
    /// The route's template.
    pub(crate) route: Option<&'static str>,
    pub(crate) status: u16,
    pub(crate) request_id: &'r str,
    /// Revision of the snapshot.
    pub(crate) revision: Option<u64>,
    pub(crate) took: Duration,
}

#[cfg(feature = "traces")]
impl Traces {
    /// Starts the exporter. Must not be called on a thread of an async runtime.
    ///
    /// # Errors
    ///
    /// If the address is invalid, or TLS can't be set up.
    pub fn start(settings: &TraceSettings) -> anyhow::Result<Self> {
        Ok(Self {
            exporter: Some(exporter::Exporter::start(settings)?),
        })
    }

    /// Records the span of a request if it is sampled; returns its trace id.
    pub(crate) fn record(&self, span: &RequestSpan<'_>) -> Option<String> {
        self.exporter.as_ref()?.record(span)
    }

    /// Sends the remaining spans, within a time limit.
    pub fn finish(&self) {
        if let Some(exporter) = &self.exporter {
            exporter.finish();
        }
    }
}

#[cfg(not(feature = "traces"))]
impl Traces {
    /// Refuses to start.
    ///
    /// # Errors
    ///
    /// Always: the program was built without traces.
    pub fn start(_: &TraceSettings) -> anyhow::Result<Self> {
        anyhow::bail!("this program was built without traces")
    }

    /// Does nothing: this program was built without traces.
    #[expect(clippy::unused_self, reason = "the same with and without the feature")]
    pub(crate) fn record(&self, _: &RequestSpan<'_>) -> Option<String> {
        None
    }

    /// Does nothing: this program was built without traces.
    pub fn finish(&self) {}
}
