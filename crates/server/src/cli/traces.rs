//! Settings of traces.

use clap::Args;
use vitrine_model::url::WebUrl;

use crate::traces::{ARE_BUILT_IN, TraceSettings, Traces};

/// Collector of requests' spans, and sampling.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Traces")]
pub(super) struct TraceArgs {
    /// Address of an OpenTelemetry collector that gets a span for each sampled request, by OTLP over HTTP. Headers for
    /// it are in OTEL_EXPORTER_OTLP_HEADERS. Only programs built with the feature `traces` support this.
    #[arg(
        long,
        env = "VITRINE_TRACES_ENDPOINT",
        value_name = "URL",
        value_parser = endpoint
    )]
    traces_endpoint: Option<String>,
    /// Share of the requests that is sampled, from 0 to 1. Applies to requests without a `traceparent`, which otherwise
    /// decides.
    #[arg(
        long,
        env = "VITRINE_TRACES_SAMPLE_RATIO",
        value_name = "RATIO",
        default_value = "0.1",
        value_parser = ratio
    )]
    traces_sample_ratio: f64,
    /// Name of the service in traces.
    #[arg(
        long,
        env = "VITRINE_TRACES_SERVICE_NAME",
        value_name = "NAME",
        default_value = "vitrine"
    )]
    traces_service_name: String,
}

fn endpoint(text: &str) -> Result<String, String> {
    let checked: Result<WebUrl, _> = text.parse();
    checked
        .map(|_| text.to_owned())
        .map_err(|invalid| format!("expected {invalid}"))
}

fn ratio(text: &str) -> Result<f64, String> {
    let ratio = text
        .parse()
        .ok()
        .filter(|ratio| (0.0..=1.0).contains(ratio));
    ratio.ok_or_else(|| "expected a number from 0 to 1".to_owned())
}

impl TraceArgs {
    /// Refuses incompatible settings; returns the setting and the fault.
    pub(super) fn check(&self) -> Result<(), (&'static str, String)> {
        match self.traces_endpoint {
            Some(_) if !ARE_BUILT_IN => Err((
                "traces_endpoint",
                "--traces-endpoint is set, but this program was built without traces; remove it, or build with `cargo \
                 build --release --features traces`"
                    .to_owned(),
            )),
            _ => Ok(()),
        }
    }

    /// Starts the exporter, if a collector is set.
    pub(super) fn start(&self) -> anyhow::Result<Traces> {
        match &self.traces_endpoint {
            None => Ok(Traces::default()),
            Some(endpoint) => Traces::start(&TraceSettings {
                endpoint: endpoint.clone(),
                sample_ratio: self.traces_sample_ratio,
                service_name: self.traces_service_name.clone(),
            }),
        }
    }
}
