//! Lines of faults in rules as they were written, for editors.

use std::collections::{HashMap, HashSet};

use serde_json::value::RawValue;

use super::Fault;
use crate::load::json::members;
use crate::load::pointer::At;

/// Maximum nesting of values that are looked into: rules have fewer levels.
const MAX_LEVELS: usize = 8;

/// Returns the line of each fault, from 1; `None` if it concerns the rules as a whole, or its place isn't found.
#[must_use]
pub fn lines(text: &str, faults: &[Fault]) -> Vec<Option<usize>> {
    let mut finder = Finder::new(text, faults);
    match serde_json::from_str::<&RawValue>(text) {
        Ok(raw) => finder.json(raw.get(), &At::ROOT, 0),
        // The fault of a text that isn't JSON has no place.
        Err(error) => drop(finder.found.insert("", Some(error.line()))),
    }
    let line = |fault: &Fault| finder.found.get(&*fault.place).copied().flatten();
    faults.iter().map(line).collect()
}

/// Search for the lines of places.
struct Finder<'a> {
    text: &'a str,
    /// The position that was last looked at, and its line.
    last: (usize, usize),
    /// Places, with the lines that were found.
    found: HashMap<&'a str, Option<usize>>,
    /// Places above them.
    above: HashSet<&'a str>,
}

impl<'a> Finder<'a> {
    fn new(text: &'a str, faults: &'a [Fault]) -> Self {
        let places = || faults.iter().map(|fault| &*fault.place);
        let ends = |place: &'a str| place.match_indices(['.', '[']);
        let above = places().flat_map(|place| ends(place).map(|(end, _)| &place[..end]));
        Self {
            text,
            last: (0, 1),
            found: places().map(|place| (place, None)).collect(),
            above: above.chain([""]).collect(),
        }
    }

    fn line_of(&mut self, position: usize) -> usize {
        let (from, line) = match self.last {
            (last, line) if last <= position => (last, line),
            _ => (0, 1),
        };
        let between = self.text.as_bytes().get(from..position);
        let breaks = between.unwrap_or_default().iter();
        let line = line + breaks.filter(|byte| **byte == b'\n').count();
        self.last = (position, line);
        line
    }

    /// Notes the line of a value if it is looked for. Returns true if it may have parts that are.
    fn visit(&mut self, at: &At<'_>, position: usize, level: usize) -> bool {
        let path = at.path();
        if self.found.get(&*path).is_some_and(Option::is_none) && !path.is_empty() {
            let line = self.line_of(position);
            if let Some(found) = self.found.get_mut(&*path) {
                *found = Some(line);
            }
        }
        level < MAX_LEVELS && self.above.contains(&*path)
    }

    fn json(&mut self, value: &'a str, at: &At<'_>, level: usize) {
        let position = value.as_ptr().addr() - self.text.as_ptr().addr();
        if !self.visit(at, position, level) {
            return;
        }
        if value.starts_with('{') {
            for (key, member) in members(value).unwrap_or_default() {
                self.json(member, &at.key(&key), level + 1);
            }
        } else if value.starts_with('[') {
            let items: Vec<&RawValue> = serde_json::from_str(value).unwrap_or_default();
            for (index, item) in items.into_iter().enumerate() {
                self.json(item.get(), &at.index(index), level + 1);
            }
        }
    }
}
