//! The results as Markdown and as JSON.

use std::fmt::Write as _;

use serde::Serialize;

use crate::contender::{self, Kind};
use crate::measure::{Effort, Sample, median};
use crate::work::Work;

/// Everything that was found out.
#[derive(Serialize)]
pub struct Results {
    /// Setting: machine, versions, commit.
    pub setting: Vec<String>,
    /// Number of products.
    pub products: u64,
    /// Duration and repetitions.
    pub effort: Effort,
    /// The closed loop.
    pub closed: Vec<Sample>,
    /// The open loop.
    pub open: Vec<Sample>,
    /// Memory of each server after all, MiB.
    pub memory: Vec<(&'static str, f64)>,
    /// Facts of Vitrine alone.
    pub own: Vec<Fact>,
}

/// One figure of Vitrine alone.
#[derive(Serialize)]
pub struct Fact {
    /// Name of the fact.
    pub what: String,
    /// Its value in each repetition.
    pub values: Vec<f64>,
    /// In what.
    pub unit: &'static str,
}

/// A figure of one server beside Vitrine's.
pub struct Row {
    /// The server.
    pub kind: &'static Kind,
    /// The median of CPU time, µs a request.
    pub cpu: f64,
    /// Multiple of Vitrine's value in the same repetition: median, least, greatest.
    pub ratio: (f64, f64, f64),
}

impl Results {
    /// The servers that did this work, in the order of the table.
    pub fn rows(&self, work: Work) -> Vec<Row> {
        let of = |name: &str| -> Vec<&Sample> {
            let own = |sample: &&Sample| sample.work == work.name() && sample.server == name;
            self.closed.iter().filter(own).collect()
        };
        let first = of(contender::ALL[0].name);
        let row = |kind: &'static Kind| {
            let samples = of(kind.name);
            let ratios = samples.iter().filter_map(|sample| {
                let same = |base: &&&Sample| base.repetition == sample.repetition;
                let base = first.iter().find(same)?;
                Some(sample.cpu_microseconds / base.cpu_microseconds)
            });
            let ratios: Vec<f64> = ratios.collect();
            let least = ratios.iter().copied().fold(f64::NAN, f64::min);
            let greatest = ratios.iter().copied().fold(f64::NAN, f64::max);
            (!samples.is_empty()).then(|| Row {
                kind,
                cpu: median(samples.iter().map(|sample| sample.cpu_microseconds)),
                ratio: (median(ratios), least, greatest),
            })
        };
        contender::ALL.iter().filter_map(row).collect()
    }

    /// The tables.
    pub fn markdown(&self) -> String {
        let mut out = String::new();
        for line in &self.setting {
            let _ = writeln!(out, "{line}  ");
        }
        for work in Work::ALL {
            self.work(&mut out, work);
        }
        self.open_loop(&mut out);
        out.push_str("\n### Memory after all this\n\n| Server | MiB |\n| --- | --- |\n");
        for (name, mebibytes) in &self.memory {
            let _ = writeln!(out, "| {name} | {mebibytes:.0} |");
        }
        if !self.own.is_empty() {
            out.push_str("\n### Vitrine alone\n\n| What | median | least | greatest |\n| --- | --- | --- | --- |\n");
        }
        for Fact { what, values, unit } in &self.own {
            let least = values.iter().copied().fold(f64::NAN, f64::min);
            let greatest = values.iter().copied().fold(f64::NAN, f64::max);
            let shown = |value| format!("{} {unit}", number(value));
            let middle = shown(median(values.iter().copied()));
            let _ = writeln!(
                out,
                "| {what} | {middle} | {} | {} |",
                shown(least),
                shown(greatest)
            );
        }
        out
    }

    fn work(&self, out: &mut String, work: Work) {
        let rows = self.rows(work);
        if rows.is_empty() {
            return;
        }
        let _ = writeln!(out, "\n### {}\n", work.title());
        out.push_str(
            "| Server | CPU µs a request | times Vitrine's | requests/s | p50 µs | p99 µs |\n",
        );
        out.push_str("| --- | --- | --- | --- | --- | --- |\n");
        for Row { kind, cpu, ratio } in rows {
            let own = |sample: &&Sample| sample.work == work.name() && sample.server == kind.name;
            let middle =
                |get: fn(&Sample) -> f64| number(median(self.closed.iter().filter(own).map(get)));
            let _ = writeln!(
                out,
                "| {} | {} | {} | {} | {} | {} |",
                kind.title,
                number(cpu),
                spread(ratio),
                middle(|sample| sample.per_second),
                middle(|sample| sample.p50_microseconds),
                middle(|sample| sample.p99_microseconds),
            );
        }
    }

    fn open_loop(&self, out: &mut String) {
        out.push_str(
            "\n### Open loop: requests at fixed times, latency from when they were due\n\n",
        );
        out.push_str(
            "| Work | Server | requests/s of those due | p50 µs | p99 µs | CPU µs a request |\n",
        );
        out.push_str("| --- | --- | --- | --- | --- | --- |\n");
        for (work, rate) in self.effort.open_loop() {
            for kind in &contender::ALL {
                let own =
                    |sample: &&Sample| sample.work == work.name() && sample.server == kind.name;
                let middle =
                    |get: fn(&Sample) -> f64| median(self.open.iter().filter(own).map(get));
                if self.open.iter().any(|sample| own(&sample)) {
                    // Fewer than were due: the server couldn't keep up, and latency tells no more.
                    let achieved = number(middle(|sample| sample.per_second));
                    let achieved = format!("{achieved} of {}", number(rate));
                    let _ = writeln!(
                        out,
                        "| {} | {} | {} | {} | {} | {} |",
                        work.title(),
                        kind.title,
                        achieved,
                        number(middle(|sample| sample.p50_microseconds)),
                        number(middle(|sample| sample.p99_microseconds)),
                        number(middle(|sample| sample.cpu_microseconds)),
                    );
                }
            }
        }
    }
}

/// A ratio with the least and the greatest.
pub fn spread((middle, least, greatest): (f64, f64, f64)) -> String {
    format!(
        "{} ({} to {})",
        ratio(middle),
        ratio(least),
        ratio(greatest)
    )
}

/// A ratio, as exact as it is worth.
pub fn ratio(value: f64) -> String {
    match value {
        value if value.is_nan() => "–".to_owned(),
        value if value >= 100.0 => format!("{value:.0}×"),
        value if value >= 10.0 => format!("{value:.1}×"),
        value => format!("{value:.2}×"),
    }
}

/// A number, as exact as it is worth, with commas between thousands.
pub fn number(value: f64) -> String {
    if value.abs() < 10.0 {
        return format!("{value:.2}");
    }
    if value.abs() < 100.0 {
        return format!("{value:.1}");
    }
    let digits = format!("{value:.0}");
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_by_people() {
        assert_eq!(number(7.123), "7.12");
        assert_eq!(number(1_234_567.8), "1,234,568");
        assert_eq!(number(999.0), "999");
        assert_eq!(spread((1.5, 1.234, 40.0)), "1.50× (1.23× to 40.0×)");
    }
}
