//! Strict parser of `/metrics`: a line that Prometheus's text format doesn't allow fails the test.

use std::collections::{BTreeMap, BTreeSet};

use super::{Server, text};

/// Scrapes a server's `/metrics`.
pub fn scrape(server: &Server) -> Scrape {
    let reply = server.ask_admin("GET", "/metrics");
    assert_eq!(reply.status, 200);
    Scrape::parse(&text(&reply.body))
}

/// All samples by name and labels, as they are written.
#[derive(Debug)]
pub struct Scrape(BTreeMap<String, f64>);

impl Scrape {
    /// Reads an exposition.
    pub fn parse(text: &str) -> Self {
        assert!(text.ends_with('\n'), "the last line is whole");
        let mut samples = BTreeMap::new();
        let mut seen = BTreeSet::new();
        // The metric that is being described, and its type.
        let (mut name, mut kind) = ("", "");
        for line in text.lines() {
            if let Some(help) = line.strip_prefix("# HELP ") {
                let (described, help) = help.split_once(' ').expect("a name and a text");
                assert!(is_name(described) && !help.is_empty(), "{line}");
                assert!(seen.insert(described.to_owned()), "twice: {line}");
                (name, kind) = (described, "");
            } else if let Some(typed) = line.strip_prefix("# TYPE ") {
                let (typed, found) = typed.split_once(' ').expect("a name and a type");
                assert!(typed == name && kind.is_empty(), "out of place: {line}");
                assert!(["counter", "gauge", "histogram"].contains(&found), "{line}");
                kind = found;
            } else {
                let (series, value) = line.rsplit_once(' ').expect("a series and a value");
                assert_series(series, name, kind);
                let value: f64 = value.parse().expect("a number");
                assert!(
                    value.is_finite() && (value >= 0.0 || kind == "gauge"),
                    "{line}"
                );
                assert!(
                    samples.insert(series.to_owned(), value).is_none(),
                    "twice: {line}"
                );
            }
        }
        let scrape = Self(samples);
        scrape.assert_histograms();
        scrape
    }

    /// The value of a series, which must be there.
    pub fn value(&self, series: &str) -> f64 {
        let value = self.0.get(series).copied();
        value.unwrap_or_else(|| panic!("no {series} in {self:#?}"))
    }

    /// The sum of all series that begin so.
    pub fn sum(&self, start: &str) -> f64 {
        let series = self
            .0
            .iter()
            .filter(|(series, _)| series.starts_with(start));
        series.map(|(_, value)| value).sum()
    }

    /// Fails where anything that only grows is smaller than it was.
    pub fn assert_grown_since(&self, before: &Self) {
        for (series, value) in &self.0 {
            let name = series.split('{').next().unwrap_or_default();
            if ["_total", "_bucket", "_count", "_sum"]
                .iter()
                .any(|end| name.ends_with(end))
            {
                assert!(*value >= before.value(series), "{series} has shrunk");
            }
        }
    }

    /// Buckets add up, and the last is the count.
    fn assert_histograms(&self) {
        let mut ends: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
        for (series, value) in &self.0 {
            if let Some((before, end)) = series.split_once("le=\"")
                && before.ends_with(['{', ','])
            {
                let end = end.trim_end_matches("\"}").replace("+Inf", "inf");
                let end = end.parse().expect("the end of a bucket");
                ends.entry(before.to_owned())
                    .or_default()
                    .push((end, *value));
            }
        }
        for (series, mut buckets) in ends {
            buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
            assert!(
                buckets.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1),
                "{series}: {buckets:?}"
            );
            let last = buckets.last().expect("a bucket");
            assert!(last.0.is_infinite(), "{series} has no last bucket");
            let labels = series.trim_end_matches(',').replace("_bucket{", "_count{") + "}";
            let labels = labels.replace("{}", "");
            assert_eq!(self.value(&labels), last.1, "{labels}");
        }
    }
}

fn is_name(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(is_part)
}

/// The series belongs to the metric that was described, and its labels are well formed.
fn assert_series(series: &str, metric: &str, kind: &str) {
    let (name, labels) = match series.split_once('{') {
        None => (series, ""),
        Some((name, labels)) => (name, labels.strip_suffix('}').expect("a closing brace")),
    };
    let part = name
        .strip_prefix(metric)
        .expect("the metric described before");
    match kind {
        "histogram" => assert!(["_bucket", "_sum", "_count"].contains(&part), "{series}"),
        "counter" => assert!(part.is_empty() && name.ends_with("_total"), "{series}"),
        _ => assert!(part.is_empty() && !name.ends_with("_total"), "{series}"),
    }
    for label in labels.split_terminator(',') {
        let (label, value) = label.split_once('=').expect("a label and its value");
        let value = value
            .strip_prefix('"')
            .and_then(|value| value.strip_suffix('"'));
        let value = value.expect("a quoted value");
        assert!(is_name(label) && !value.contains(['"', '\\']), "{series}");
    }
}
