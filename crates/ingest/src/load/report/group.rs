//! Findings grouped by rule: number, lines, and the first of them.

use std::fmt::{self, Write as _};
use std::sync::Arc;

use serde::Serialize;

use super::finding::{Finding, Place};
use crate::escape::single_line;

/// Maximum number of ranges kept for each rule.
const MAX_RANGES: usize = 1_000;

/// Maximum number of ranges shown in the text.
const SHOWN_RANGES: usize = 8;

/// Findings of one rule.
#[derive(Debug, Default, Serialize)]
pub struct Group {
    /// Number of findings.
    pub count: u64,
    /// Positions in the order found; at most 1,000 ranges.
    pub ranges: Vec<Range>,
    /// True if ranges were left out.
    pub has_more_ranges: bool,
    /// First findings.
    pub examples: Vec<Finding>,
}

/// Unit of a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// Lines of a file, from 1.
    Line,
    /// Items of an array, from 0.
    Item,
}

/// Neighbouring records with the same finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Range {
    /// Name of the input.
    pub file: Arc<str>,
    /// Unit of `first` and `last`.
    pub unit: Unit,
    /// First line or item.
    pub first: u64,
    /// Last line or item.
    pub last: u64,
}

impl Group {
    /// Adds a finding; keeps up to `most_examples` as examples.
    pub fn add(&mut self, finding: Finding, most_examples: usize) {
        self.count += 1;
        self.add_place(&finding.place);
        if self.examples.len() < most_examples {
            self.examples.push(finding);
        }
    }

    fn add_place(&mut self, place: &Place) {
        let (unit, position) = match (place.line, place.index) {
            (Some(line), _) => (Unit::Line, line),
            (None, Some(index)) => (Unit::Item, index),
            (None, None) => return,
        };
        if let Some(range) = self.ranges.last_mut()
            && range.unit == unit
            && range.file == place.file
            && (range.last..=range.last + 1).contains(&position)
        {
            range.last = position;
        } else if self.ranges.len() < MAX_RANGES {
            self.ranges.push(Range {
                file: Arc::clone(&place.file),
                unit,
                first: position,
                last: position,
            });
        } else {
            self.has_more_ranges = true;
        }
    }

    /// Appends the group for people, under a heading such as `fault: amount`.
    ///
    /// # Errors
    ///
    /// If `out` can't be written.
    pub fn write_text(&self, heading: &str, out: &mut String) -> fmt::Result {
        let times = if self.count == 1 { "time" } else { "times" };
        write!(out, "{heading}, {} {times}", self.count)?;
        self.write_ranges(out)?;
        out.push('\n');
        // Each message is written once, above its findings.
        let mut messages: Vec<&str> = Vec::new();
        for Finding { message, .. } in &self.examples {
            if !messages.contains(&message.as_str()) {
                messages.push(message);
            }
        }
        for message in messages {
            writeln!(out, "  {}", single_line(message))?;
            let with_it = self
                .examples
                .iter()
                .filter(|found| found.message == message);
            for example in with_it {
                writeln!(out, "      {example}")?;
            }
        }
        match self.count - self.examples.len() as u64 {
            0 => Ok(()),
            more => writeln!(out, "  … and {more} more"),
        }
    }

    fn write_ranges(&self, out: &mut String) -> fmt::Result {
        let mut of: Option<(&str, Unit)> = None;
        for Range {
            file,
            unit,
            first,
            last,
        } in self.ranges.iter().take(SHOWN_RANGES)
        {
            if of == Some((file, *unit)) {
                out.push_str(", ");
            } else {
                let separator = if of.is_some() { "; " } else { ": " };
                let unit = match unit {
                    Unit::Line => "line",
                    Unit::Item => "item",
                };
                write!(out, "{separator}{} {unit} ", single_line(file))?;
            }
            of = Some((file, *unit));
            match first == last {
                true => write!(out, "{first}")?,
                false => write!(out, "{first}–{last}")?,
            }
        }
        if self.has_more_ranges || self.ranges.len() > SHOWN_RANGES {
            out.push_str(" …");
        }
        Ok(())
    }
}
