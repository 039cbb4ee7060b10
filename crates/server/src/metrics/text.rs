//! Prometheus's text format, version 0.0.4.

use std::fmt::{Display, Write as _};

use super::histogram::HistogramCounts;

/// Content type of the format.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Type of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricType {
    /// A count that only grows.
    Counter,
    /// A value that goes up and down.
    Gauge,
    /// Counts by bucket.
    Histogram,
}

impl MetricType {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// Text of metrics under construction.
#[derive(Debug, Default)]
pub struct Exposition(String);

impl Exposition {
    /// Begins a metric; its samples follow.
    pub fn metric<'e>(&'e mut self, name: &'e str, kind: MetricType, help: &str) -> Metric<'e> {
        let kind = kind.as_str();
        self.line(format_args!("# HELP {name} {help}"));
        self.line(format_args!("# TYPE {name} {kind}"));
        Metric { into: self, name }
    }

    /// Adds a gauge without labels.
    pub fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.metric(name, MetricType::Gauge, help)
            .sample(&[], value);
    }

    /// Adds a counter without labels.
    pub fn counter(&mut self, name: &str, help: &str, value: impl Display) {
        self.metric(name, MetricType::Counter, help)
            .sample(&[], value);
    }

    /// Adds a line as it is.
    pub fn line(&mut self, line: impl Display) {
        // Writing to a string can't fail.
        let _ = writeln!(self.0, "{line}");
    }

    /// Returns the text.
    #[must_use]
    pub fn into_text(self) -> String {
        self.0
    }
}

/// A metric to which samples are added.
#[derive(Debug)]
pub struct Metric<'e> {
    into: &'e mut Exposition,
    name: &'e str,
}

/// Labels with their values, which come from tables of the program: nothing in them needs escaping.
type Labels<'l> = &'l [(&'l str, &'l str)];

impl Metric<'_> {
    /// Adds a sample.
    pub fn sample(&mut self, labels: Labels<'_>, value: impl Display) {
        self.sample_of("", labels, value);
    }

    /// Adds the samples of a histogram.
    pub fn histogram(&mut self, labels: Labels<'_>, times: &HistogramCounts) {
        for &(end, count) in &times.at_most {
            let labels = [labels, &[("le", end)]].concat();
            self.sample_of("_bucket", &labels, count);
        }
        let all = times.at_most.last().map_or(0, |(_, count)| *count);
        self.sample_of("_sum", labels, times.total.as_secs_f64());
        self.sample_of("_count", labels, all);
    }

    /// Adds a sample of a part of a metric: `_bucket`, `_sum` or `_count` of a histogram.
    fn sample_of(&mut self, part: &str, labels: Labels<'_>, value: impl Display) {
        let text = &mut self.into.0;
        text.push_str(self.name);
        text.push_str(part);
        for (place, (label, of)) in labels.iter().enumerate() {
            debug_assert!(!of.contains(['"', '\\', '\n']), "{of:?} isn't of a table");
            let before = if place == 0 { '{' } else { ',' };
            let _ = write!(text, "{before}{label}=\"{of}\"");
        }
        let end = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(text, "{end} {value}");
    }
}
