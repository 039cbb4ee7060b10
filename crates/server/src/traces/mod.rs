//! Traces: one span for each request that is sampled, sent to an OpenTelemetry collector.
//!
//! All that needs a library or time is behind the feature `traces`. Without it, only `traceparent` is read,
//! so that the access log can name the trace of a request.
//!
//! - `parent`: the client's trace
//! - `exporter`: makes and sends spans

#[cfg(feature = "traces")]
mod exporter;
mod parent;

use std::time::Duration;

use http::{HeaderMap, Method};

pub use parent::TraceParent;

/// Collector's address, sampling and service name.
#[derive(Debug, Clone)]
pub struct TraceSettings {
    /// The address that takes OTLP over HTTP, its path included.
    pub endpoint: String,
    /// Share of the requests without a trace of their own that is kept, from 0 to 1.
    pub sample_ratio: f64,
    /// The name that the server has among others.
    pub service_name: String,
}

/// Exporter of a server's spans. By default none.
#[derive(Debug, Clone, Default)]
pub struct Traces {
    #[cfg(feature = "traces")]
    exporter: Option<exporter::Exporter>,
}

/// True if this program can send spans.
pub const ARE_BUILT_IN: bool = cfg!(feature = "traces");

/// An answered request, as its span tells of it: no path, no query, no key.
#[derive(Debug)]
#[cfg_attr(
    not(feature = "traces"),
    expect(dead_code, reason = "only the exporter reads it")
)]
pub(crate) struct RequestSpan<'r> {
    /// The client's trace.
    pub(crate) parent: Option<TraceParent<'r>>,
    /// The request's headers, for `tracestate`.
    pub(crate) headers: &'r HeaderMap,
    pub(crate) method: &'r Method,
    /// The route's template.
    pub(crate) route: Option<&'static str>,
    pub(crate) status: u16,
    pub(crate) request_id: &'r str,
    /// The revision that answered.
    pub(crate) revision: Option<u64>,
    pub(crate) took: Duration,
}

#[cfg(feature = "traces")]
impl Traces {
    /// Starts sending. Must not be called on a thread of an asynchronous runtime.
    ///
    /// # Errors
    ///
    /// If the exporter can't be made: the address isn't one, or TLS can't be set up.
    pub fn start(settings: &TraceSettings) -> anyhow::Result<Self> {
        Ok(Self {
            exporter: Some(exporter::Exporter::start(settings)?),
        })
    }

    /// Makes a span of a request if it is sampled; returns its trace.
    pub(crate) fn record(&self, span: &RequestSpan<'_>) -> Option<String> {
        self.exporter.as_ref()?.record(span)
    }

    /// Sends what is left, and waits for that a moment.
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
    /// If the program was built without traces, as this one was.
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
