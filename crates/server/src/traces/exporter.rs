//! Exporter of spans: OTLP as protobuf over HTTP, in batches, on a thread of the SDK.
//!
//! The HTTP client is a blocking one, because the SDK's thread has no async runtime. If the collector doesn't keep up,
//! spans are dropped; requests never wait.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use anyhow::Context as _;
use http::{HeaderMap, Request, Response};
use opentelemetry::trace::{
    Span as _, SpanContext, SpanId, SpanKind, Status, TraceContextExt as _, TraceFlags, TraceId,
    TraceState, Tracer as _, TracerProvider as _,
};
use opentelemetry::{Context, KeyValue};
use opentelemetry_http::{Bytes, HttpClient, HttpError};
use opentelemetry_otlp::{SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{Sampler, SdkTracer, SdkTracerProvider};
use vitrine_ingest::outside;

use super::{RequestSpan, TraceParent, TraceSettings};

/// Timeout of a batch.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Time limit of the last batch at shutdown.
const LAST_BATCH: Duration = TIMEOUT;

/// Maximum length of a `tracestate` that is passed on, in characters, as W3C Trace Context recommends.
const MAX_TRACE_STATE_CHARS: usize = 512;

/// Creates spans and sends them.
#[derive(Debug, Clone)]
pub(super) struct Exporter {
    tracer: SdkTracer,
    provider: SdkTracerProvider,
}

impl Exporter {
    pub(super) fn start(settings: &TraceSettings) -> anyhow::Result<Self> {
        let client = Collector {
            client: outside::blocking_client(TIMEOUT)?,
            is_failing: AtomicBool::new(false),
        };
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(client)
            .with_endpoint(&settings.endpoint)
            .with_timeout(TIMEOUT)
            .build()
            .context("can't set up the trace exporter")?;
        let resource = Resource::builder()
            .with_service_name(settings.service_name.clone())
            .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
            .build();
        let ratio = Sampler::TraceIdRatioBased(settings.sample_ratio);
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter)
            .with_resource(resource)
            .with_sampler(Sampler::ParentBased(Box::new(ratio)))
            .build();
        Ok(Self {
            tracer: provider.tracer("vitrine"),
            provider,
        })
    }

    /// Records the span of an answered request.
    pub(super) fn record(&self, request: &RequestSpan<'_>) -> Option<String> {
        let end = SystemTime::now();
        let parent = request
            .parent
            .and_then(|parent| remote(parent, request.headers));
        let context = match parent {
            Some(parent) => Context::new().with_remote_span_context(parent),
            None => Context::new(),
        };
        let method = method(request.method);
        let name = match request.route {
            Some(route) => format!("{method} {route}"),
            None => method.to_owned(),
        };
        let mut span = self
            .tracer
            .span_builder(name)
            .with_kind(SpanKind::Server)
            .with_start_time(end.checked_sub(request.took).unwrap_or(end))
            .start_with_context(&self.tracer, &context);
        if !span.is_recording() {
            return None;
        }
        span.set_attribute(KeyValue::new("http.request.method", method));
        span.set_attribute(KeyValue::new(
            "http.response.status_code",
            i64::from(request.status),
        ));
        span.set_attribute(KeyValue::new(
            "vitrine.request_id",
            request.request_id.to_owned(),
        ));
        if let Some(route) = request.route {
            span.set_attribute(KeyValue::new("http.route", route));
        }
        if let Some(revision) = request
            .revision
            .and_then(|number| i64::try_from(number).ok())
        {
            span.set_attribute(KeyValue::new("vitrine.revision", revision));
        }
        if request.status >= 500 {
            span.set_attribute(KeyValue::new("error.type", request.status.to_string()));
            span.set_status(Status::error(""));
        }
        let trace = span.span_context().trace_id().to_string();
        span.end_with_timestamp(end);
        Some(trace)
    }

    pub(super) fn finish(&self) {
        if let Err(error) = self.provider.shutdown_with_timeout(LAST_BATCH) {
            tracing::warn!(%error, "can't send the last traces");
        }
    }
}

/// Returns the client's span context.
fn remote(parent: TraceParent<'_>, headers: &HeaderMap) -> Option<SpanContext> {
    let flags = match parent.is_sampled {
        true => TraceFlags::SAMPLED,
        false => TraceFlags::default(),
    };
    let states = headers.get_all("tracestate").iter();
    let states: Option<Vec<&str>> = states.map(|value| value.to_str().ok()).collect();
    let state = states.map(|states| states.join(",")).unwrap_or_default();
    let state = match state.len() <= MAX_TRACE_STATE_CHARS {
        // A malformed `tracestate` is left out; the trace continues without it.
        true => state.parse().unwrap_or_default(),
        false => TraceState::default(),
    };
    Some(SpanContext::new(
        TraceId::from_hex(parent.trace_id).ok()?,
        SpanId::from_hex(parent.span_id).ok()?,
        flags,
        true,
        state,
    ))
}

/// Returns the method if it is a standard one: a client may send any word.
fn method(method: &http::Method) -> &'static str {
    const KNOWN: [&str; 9] = [
        "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE",
    ];
    let known = KNOWN.into_iter().find(|known| *known == method.as_str());
    known.unwrap_or("_OTHER")
}

/// Client of the collector. Logs the first failure, and the first success after it.
#[derive(Debug)]
struct Collector {
    client: reqwest::blocking::Client,
    is_failing: AtomicBool,
}

type Sent<'c> = Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'c>>;

impl HttpClient for Collector {
    fn send_bytes<'c, 'sent>(&'c self, request: Request<Bytes>) -> Sent<'sent>
    where
        'c: 'sent,
        Self: 'sent,
    {
        Box::pin(async move {
            let answer = self.client.send_bytes(request).await;
            let failure = match &answer {
                Ok(answer) if answer.status().is_success() => None,
                Ok(answer) => Some(format!("it answered with {}", answer.status().as_u16())),
                // Not the library's message, which contains the address.
                Err(_) => Some("it can't be reached, or timed out".to_owned()),
            };
            let was_failing = self.is_failing.swap(failure.is_some(), Ordering::Relaxed);
            match (was_failing, failure) {
                (false, Some(reason)) => {
                    tracing::warn!(reason, "the collector refuses traces; dropping them");
                }
                (true, None) => tracing::info!("the collector accepts traces again"),
                _ => {}
            }
            answer
        })
    }
}
