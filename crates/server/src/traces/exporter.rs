//! Spans' exporter: OTLP as protobuf over HTTP, in batches, by a thread of the SDK's own.
//!
//! The client is a blocking one: in the SDK's thread there is no runtime for another. When the collector
//! doesn't keep up, spans are dropped; requests never wait.

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

/// Time that the server waits at its end for the last batch: that of any batch.
const LAST_BATCH: Duration = TIMEOUT;

/// The longest `tracestate` that is passed on, in characters: what the recommendation asks for.
const MAX_TRACE_STATE_CHARS: usize = 512;

/// Makes spans and sends them.
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

    /// Makes the span of a request that was answered just now.
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

/// The client's span, as the SDK knows spans.
fn remote(parent: TraceParent<'_>, headers: &HeaderMap) -> Option<SpanContext> {
    let flags = match parent.is_sampled {
        true => TraceFlags::SAMPLED,
        false => TraceFlags::default(),
    };
    let states = headers.get_all("tracestate").iter();
    let states: Option<Vec<&str>> = states.map(|value| value.to_str().ok()).collect();
    let state = states.map(|states| states.join(",")).unwrap_or_default();
    let state = match state.len() <= MAX_TRACE_STATE_CHARS {
        // One that can't be read is left out; the trace goes on all the same.
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

/// Returns the method if it is a known one: a client may send any word.
fn method(method: &http::Method) -> &'static str {
    const KNOWN: [&str; 9] = [
        "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE",
    ];
    let known = KNOWN.into_iter().find(|known| *known == method.as_str());
    known.unwrap_or("_OTHER")
}

/// The collector. That it fails is told once, and so is that it takes spans again.
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
                // Not its own words: they have the address in them.
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
