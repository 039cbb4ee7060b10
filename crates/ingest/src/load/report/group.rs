//! Findings grouped by rule: number, lines, and the first of them.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::sync::Arc;

use serde::Serialize;

use super::finding::{Finding, Place};
use crate::escape::single_line;
use crate::load::plan::ProductCount;

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
    /// Number of records or files by field; at most 1,000 fields.
    pub by_field: BTreeMap<String, u64>,
    /// The first finding of each of these fields; place and code of the last one.
    #[serde(skip)]
    fields: BTreeMap<String, (Finding, Place, Option<String>)>,
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
        self.add_field(&finding);
        if self.examples.len() < most_examples {
            self.examples.push(finding);
        }
    }

    fn add_field(&mut self, finding: &Finding) {
        let field = finding.field();
        let place = &finding.place;
        let is_full = self.fields.len() == MAX_RANGES;
        match self.fields.get_mut(field) {
            // Another item of a list.
            Some((_, last, code))
                if (last.line, last.index) == (place.line, place.index)
                    && (&last.file, &*code) == (&place.file, &finding.code) =>
            {
                return;
            }
            Some((_, last, code)) => {
                last.clone_from(place);
                code.clone_from(&finding.code);
            }
            None if is_full => return,
            None => {
                let first = (finding.clone(), place.clone(), finding.code.clone());
                self.fields.insert(field.to_owned(), first);
            }
        }
        *self.by_field.entry(field.to_owned()).or_default() += 1;
    }

    /// Appends warnings for people: a line for each field.
    ///
    /// # Errors
    ///
    /// If `out` can't be written.
    pub fn write_lines(&self, rule: &str, out: &mut String) -> fmt::Result {
        for (field, (first, ..)) in &self.fields {
            let Finding { place, message, .. } = first;
            write!(out, "warning: ")?;
            if place.line.is_some() || place.index.is_some() || first.code.is_some() {
                let products = self.by_field.get(field).copied().unwrap_or_default();
                write!(out, "{}: ", ProductCount(products))?;
            }
            write!(out, "{}", rule.replace('_', " "))?;
            if !field.is_empty() {
                write!(out, " {}", single_line(field))?;
            }
            let place = Place {
                column: None,
                ..place.clone()
            };
            writeln!(out, " ({}, first at {place})", single_line(message))?;
        }
        Ok(())
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
