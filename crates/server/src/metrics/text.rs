//! Prometheus's text format, version 0.0.4.

use std::fmt::{Display, Write as _};

use super::histogram::{Buckets, Histogram, HistogramCounts};
use super::values::{By, Counter, Gauge, Label, Level, Pair};

/// Content type of the format.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Text of metrics under construction.
#[derive(Debug, Default)]
pub struct Exposition(String);

impl Exposition {
    /// Adds a metric with its samples; nothing if it has no samples.
    pub fn add<V: Value>(&mut self, name: &str, help: &str, value: &V) {
        let mut samples = Samples {
            name,
            text: String::new(),
            labels: Vec::new(),
        };
        value.write(&mut samples);
        let samples = samples.text;
        if !samples.is_empty() {
            self.head(name, V::TYPE, help);
            self.0 += &samples;
        }
    }

    /// Adds the lines that precede the samples of a metric.
    pub fn head(&mut self, name: &str, kind: &str, help: &str) {
        self.line(format_args!("# HELP {name} {}", help.trim_start()));
        self.line(format_args!("# TYPE {name} {kind}"));
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

/// Samples of a metric under construction.
#[derive(Debug)]
pub struct Samples<'m> {
    name: &'m str,
    text: String,
    /// Labels of the samples that are added next.
    labels: Vec<Pair>,
}

impl Samples<'_> {
    /// Adds samples with further labels.
    fn labelled(&mut self, labels: &[Pair], value: &impl Value) {
        let before = self.labels.len();
        self.labels.extend_from_slice(labels);
        value.write(self);
        self.labels.truncate(before);
    }

    /// Adds a sample. `part` is `_bucket`, `_sum` or `_count` of a histogram; `end` is that of a bucket.
    fn sample(&mut self, part: &str, end: Option<&str>, value: impl Display) {
        let labels = self.labels.iter().copied();
        let labels: Vec<String> = labels
            .chain(end.map(|end| ("le", end)))
            .map(|(label, of)| format!("{label}=\"{of}\""))
            .collect();
        let labels = match &labels[..] {
            [] => String::new(),
            labels => format!("{{{}}}", labels.join(",")),
        };
        let _ = writeln!(self.text, "{}{part}{labels} {value}", self.name);
    }
}

/// Value of a metric, which may have many samples.
pub trait Value {
    /// Type of the metric.
    const TYPE: &'static str;

    /// Adds the samples.
    fn write(&self, samples: &mut Samples<'_>);
}

/// Defines values with one sample.
macro_rules! values {
    ($($kind:literal: $value:ty = |$of:ident| $sample:expr;)+) => {$(
        impl Value for $value {
            const TYPE: &'static str = $kind;

            fn write(&self, samples: &mut Samples<'_>) {
                let $of = self;
                samples.sample("", None, $sample);
            }
        }
    )+};
}

values! {
    "counter": Counter = |counter| counter.get();
    "gauge": Level = |level| level.get();
    "gauge": Gauge = |gauge| gauge.get();
    "gauge": bool = |is_so| u8::from(*is_so);
    "gauge": u64 = |number| number;
    "gauge": usize = |number| number;
    "gauge": f64 = |number| number;
    "counter": Counted<u64> = |count| count.0;
    "counter": Counted<f64> = |count| count.0;
}

/// Count that is kept elsewhere.
#[derive(Debug)]
pub struct Counted<T>(pub T);

impl<V: Value> Value for &V {
    const TYPE: &'static str = V::TYPE;

    fn write(&self, samples: &mut Samples<'_>) {
        (*self).write(samples);
    }
}

/// A value that may be unknown: then it has no sample.
impl<V: Value> Value for Option<V> {
    const TYPE: &'static str = V::TYPE;

    fn write(&self, samples: &mut Samples<'_>) {
        if let Some(value) = self {
            value.write(samples);
        }
    }
}

impl<L: Label, V: Value> Value for By<L, V> {
    const TYPE: &'static str = V::TYPE;

    fn write(&self, samples: &mut Samples<'_>) {
        for label in L::all() {
            samples.labelled(&label.pairs(), self.of(label));
        }
    }
}

/// Values by labels.
pub type Series<const LABELS: usize, V> = Vec<([Pair; LABELS], V)>;

impl<const LABELS: usize, V: Value> Value for Series<LABELS, V> {
    const TYPE: &'static str = V::TYPE;

    fn write(&self, samples: &mut Samples<'_>) {
        for (labels, value) in self {
            samples.labelled(labels, value);
        }
    }
}

impl Value for HistogramCounts {
    const TYPE: &'static str = "histogram";

    fn write(&self, samples: &mut Samples<'_>) {
        for (end, count) in &self.at_most {
            let end = match end {
                Some(end) => end.as_secs_f64().to_string(),
                None => "+Inf".to_owned(),
            };
            samples.sample("_bucket", Some(&end), count);
        }
        let all = self.at_most.last().map_or(0, |(_, count)| *count);
        samples.sample("_sum", None, self.total.as_secs_f64());
        samples.sample("_count", None, all);
    }
}

impl<B: Buckets<N>, const N: usize> Value for Histogram<B, N> {
    const TYPE: &'static str = HistogramCounts::TYPE;

    fn write(&self, samples: &mut Samples<'_>) {
        self.times().write(samples);
    }
}
