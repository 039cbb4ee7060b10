//! Readers of a record's fields: each returns a valid value, or reports its faults. All fields are read, so that all
//! faults are found.

use std::borrow::Cow;
use std::collections::HashSet;
use std::hash::Hash;
use std::str::FromStr;

use vitrine_model::Invalid;
use vitrine_model::content::TextDigest;
use vitrine_model::money::Amount;

use super::spreadsheet::likely_cause;
use super::suspicious::IsText;
use crate::assortments::suggest;
use crate::load::json::{MAX_PROBLEMS, Node};
use crate::load::pointer::At;
use crate::load::read::Record;
use crate::load::report::{Finding, Severity, shown, shown_pointer};

/// Maximum number of items of a list that are compared with each other; those of longer lists are hashed.
const MAX_COMPARED: usize = 32;

/// End of a message about a value that a patch leaves as it is.
const LIVE_VALUE: &str = "; this is the live product's value, which the patch leaves as it is";

/// Error of a value whose fault is in the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Faulty;

/// Context of the check of one record.
pub(super) struct Context<'c> {
    pub(super) findings: &'c mut Vec<Finding>,
    pub(super) record: &'c Record,
    /// The patch that was merged into the live product, if the record is one.
    pub(super) patch: Option<&'c Node<'c>>,
    pub(super) code: Option<String>,
    /// Markdown of the record so far, with its digests.
    pub(super) texts: Vec<(TextDigest, String)>,
    /// Number of warnings and of faults, including those that aren't kept.
    pub(super) counts: [usize; 2],
}

/// Members of an object, and its position.
#[derive(Clone, Copy)]
pub(super) struct Fields<'n> {
    members: &'n [(Cow<'n, str>, Node<'n>)],
    pub(super) at: At<'n>,
}

impl<'n> Fields<'n> {
    pub(super) fn new(members: &'n [(Cow<'n, str>, Node<'n>)], at: At<'n>) -> Self {
        Self { members, at }
    }

    /// Returns the members, in order.
    pub(super) fn members(&self) -> &'n [(Cow<'n, str>, Node<'n>)] {
        self.members
    }

    /// Returns the value of a key, null included, if the key is present.
    pub(super) fn stated(&self, key: &str) -> Option<&'n Node<'n>> {
        let (_, node) = self.members.iter().find(|(name, _)| name == key)?;
        Some(node)
    }

    /// Returns the value of a key, unless it is null; `""` counts as null (docs/contract/resources.md#null-and-empty).
    pub(super) fn get(&self, key: &str) -> Option<&'n Node<'n>> {
        self.stated(key).filter(|node| match node {
            Node::Null => false,
            Node::Text(text) => !text.is_empty(),
            _ => true,
        })
    }
}

/// Returns the value that is probably meant, to be appended to the message; empty if none is near.
fn suggestion(invalid: Invalid, value: Option<&Node<'_>>) -> String {
    let Some(Node::Text(text)) = value else {
        return String::new();
    };
    let meant = match invalid.rule {
        "country" => suggest::country(text),
        "currency" => suggest::currency(text),
        "payout_type" => suggest::payout_type(text),
        // What is expected begins with the values of an enum.
        _ if invalid.expected.starts_with('`') => {
            let values = invalid.expected.split('`').skip(1).step_by(2);
            suggest::nearest(text, values).map(str::to_owned)
        }
        _ => None,
    };
    meant.map_or_else(String::new, |meant| format!("; did you mean `{meant}`?"))
}

impl Context<'_> {
    /// Reports a fault, once for each value.
    pub(super) fn fault(
        &mut self,
        at: &At<'_>,
        value: Option<&Node<'_>>,
        invalid: Invalid,
    ) -> Faulty {
        if value != Some(&Node::Unreadable) {
            let mut cause = likely_cause(self.record, &at.to_string(), value);
            if cause.is_empty() {
                cause = suggestion(invalid, value);
            }
            let message = format!("expected {}{cause}", invalid.expected);
            self.add(Severity::Fault, at, value, invalid.rule, message);
        }
        Faulty
    }

    /// Reports a fault with a message of its own.
    pub(super) fn fault_as(
        &mut self,
        at: &At<'_>,
        value: Option<&Node<'_>>,
        rule: &'static str,
        message: String,
    ) -> Faulty {
        self.add(Severity::Fault, at, value, rule, message);
        Faulty
    }

    /// Reports a warning about a value; of a patch only about those that it has.
    pub(super) fn warn(
        &mut self,
        at: &At<'_>,
        value: Option<&Node<'_>>,
        rule: &'static str,
        message: impl Into<String>,
    ) {
        // Beyond the limit, it is only counted.
        if self.counts[Severity::Warning as usize] > MAX_PROBLEMS || self.states(at) {
            self.add(Severity::Warning, at, value, rule, message.into());
        }
    }

    /// Reports a warning about a value that doesn't go together with others; of a patch only if it has one of these fields.
    pub(super) fn warn_together(
        &mut self,
        (at, value): (&At<'_>, Option<&Node<'_>>),
        (fields, keys): (&Fields<'_>, &[&str]),
        rule: &'static str,
        message: &str,
    ) {
        if keys.iter().any(|key| self.states(&fields.at.key(key))) {
            self.add(Severity::Warning, at, value, rule, message.to_owned());
        }
    }

    /// Returns true if the record itself has a value, not the live product that it patches.
    pub(super) fn states(&self, at: &At<'_>) -> bool {
        self.patch.is_none_or(|patch| at.find(patch).is_some())
    }

    fn add(
        &mut self,
        severity: Severity,
        at: &At<'_>,
        value: Option<&Node<'_>>,
        rule: &'static str,
        message: String,
    ) {
        // Without this limit, a record full of faults would take a hundred times its size.
        self.counts[severity as usize] += 1;
        if self.counts[severity as usize] > MAX_PROBLEMS {
            return;
        }
        let pointer = at.to_string();
        let (place, kept) = match self.states(at) {
            true => (self.record.place_of(&pointer), ""),
            false => (self.record.place.clone(), LIVE_VALUE),
        };
        self.findings.push(Finding {
            severity,
            place,
            code: self.code.clone(),
            pointer: shown_pointer(&pointer),
            value: value.map(|node| shown(&node.to_json())),
            rule,
            message: message + kept,
        });
    }

    /// Warns of unknown members, which are left out.
    pub(super) fn warn_unknown(&mut self, fields: &Fields<'_>, is_known: impl Fn(&str) -> bool) {
        for (key, node) in fields.members {
            if !is_known(key) {
                let message = "ignored: the API has no such field here";
                self.warn(&fields.at.key(key), Some(node), "unknown_field", message);
            }
        }
    }

    /// Reads a text, trimmed; an empty one counts as null.
    fn text<'n>(&mut self, at: &At<'_>, node: &'n Node<'n>) -> Result<Option<&'n str>, Faulty> {
        let Node::Text(text) = node else {
            return Err(self.fault(at, Some(node), Invalid::new("type", "a string")));
        };
        let trimmed = text.trim();
        self.check_characters(at, node, trimmed, IsText::No);
        if trimmed.len() != text.len() {
            let message = "blanks around it were removed";
            self.warn(at, Some(node), "blanks_trimmed", message);
        }
        Ok((!trimmed.is_empty()).then_some(trimmed))
    }

    fn parsed<T>(
        &mut self,
        at: &At<'_>,
        node: &Node<'_>,
        parse: impl FnOnce(&str) -> Result<T, Invalid>,
    ) -> Result<Option<T>, Faulty> {
        let Some(text) = self.text(at, node)? else {
            return Ok(None);
        };
        let parsed = parse(text).map_err(|invalid| self.fault(at, Some(node), invalid))?;
        Ok(Some(parsed))
    }

    /// Reads an optional text.
    pub(super) fn optional<T: FromStr<Err = Invalid>>(
        &mut self,
        fields: &Fields<'_>,
        key: &str,
    ) -> Result<Option<T>, Faulty> {
        match fields.get(key) {
            Some(node) => self.parsed(&fields.at.key(key), node, T::from_str),
            None => Ok(None),
        }
    }

    /// Reads a required text.
    pub(super) fn required<T: FromStr<Err = Invalid>>(
        &mut self,
        fields: &Fields<'_>,
        key: &str,
    ) -> Result<T, Faulty> {
        let value = self.optional(fields, key)?;
        value.ok_or_else(|| self.missing(fields, key))
    }

    /// Reports that a required value is absent or null.
    pub(super) fn missing(&mut self, fields: &Fields<'_>, key: &str) -> Faulty {
        let invalid = Invalid::new("required", "a value, since the field is required");
        self.fault(&fields.at.key(key), fields.stated(key), invalid)
    }

    /// Reads a required boolean.
    pub(super) fn flag(&mut self, fields: &Fields<'_>, key: &str) -> Result<bool, Faulty> {
        match fields.get(key) {
            None => Err(self.missing(fields, key)),
            Some(Node::Bool(value)) => Ok(*value),
            Some(node) => {
                let invalid = Invalid::new("type", "true or false");
                Err(self.fault(&fields.at.key(key), Some(node), invalid))
            }
        }
    }

    /// Reads a required whole number of at least `least`.
    pub(super) fn whole(
        &mut self,
        fields: &Fields<'_>,
        key: &str,
        least: u32,
    ) -> Result<u32, Faulty> {
        let Some(node) = fields.get(key) else {
            return Err(self.missing(fields, key));
        };
        let invalid = match (node, least) {
            (Node::Number(text), _) => match text.parse::<u32>() {
                Ok(number) if number >= least => return Ok(number),
                _ if least == 0 => {
                    Invalid::new("whole_number", "a whole number from 0 to 4294967295")
                }
                _ => Invalid::new("whole_number", "a whole number from 1 to 4294967295"),
            },
            _ => Invalid::new("type", "a whole number such as `12`"),
        };
        Err(self.fault(&fields.at.key(key), Some(node), invalid))
    }

    /// Reads a decimal from a string or a number, from its digits, never through a float.
    pub(super) fn decimal<T: FromStr<Err = Invalid>>(
        &mut self,
        at: &At<'_>,
        node: &Node<'_>,
    ) -> Result<Option<T>, Faulty> {
        match node {
            Node::Number(text) => {
                let parsed = text.parse();
                parsed
                    .map(Some)
                    .map_err(|invalid| self.fault(at, Some(node), invalid))
            }
            Node::Text(_) => {
                let parsed = self.parsed(at, node, T::from_str)?;
                self.check_thousands(at, node)?;
                Ok(parsed)
            }
            _ => {
                let invalid = Invalid::new("type", "a decimal, as a string or a number");
                Err(self.fault(at, Some(node), invalid))
            }
        }
    }

    /// Reads a required decimal.
    pub(super) fn required_decimal<T: FromStr<Err = Invalid>>(
        &mut self,
        fields: &Fields<'_>,
        key: &str,
    ) -> Result<T, Faulty> {
        let value = match fields.get(key) {
            Some(node) => self.decimal(&fields.at.key(key), node)?,
            None => None,
        };
        value.ok_or_else(|| self.missing(fields, key))
    }

    /// Reads an optional array, each item by `read`. All items are read, even if some are faulty.
    pub(super) fn list<'n, T>(
        &mut self,
        fields: &Fields<'n>,
        key: &str,
        mut read: impl FnMut(&mut Self, &At<'_>, &'n Node<'n>) -> Result<T, Faulty>,
    ) -> Result<Option<Vec<T>>, Faulty> {
        let at = fields.at.key(key);
        let items = match fields.get(key) {
            None => return Ok(None),
            Some(Node::List(items)) => items,
            Some(node) => {
                return Err(self.fault(&at, Some(node), Invalid::new("type", "an array")));
            }
        };
        let mut values = Vec::with_capacity(items.len());
        let mut faulty = false;
        for (index, item) in items.iter().enumerate() {
            match read(self, &at.index(index), item) {
                Ok(value) => values.push(value),
                Err(Faulty) => faulty = true,
            }
        }
        if faulty {
            Err(Faulty)
        } else {
            Ok(Some(values))
        }
    }

    /// Reads a required array of distinct texts, at most so many.
    pub(super) fn texts<T: Clone + Eq + Hash>(
        &mut self,
        fields: &Fields<'_>,
        key: &str,
        (most, too_many): (usize, Invalid),
        parse: fn(&str) -> Result<T, Invalid>,
    ) -> Result<Vec<T>, Faulty> {
        let read = |context: &mut Self, at: &At<'_>, node: &Node<'_>| {
            let value = context.parsed(at, node, parse)?;
            let empty = Invalid::new("required", "a text that isn't empty");
            value.ok_or_else(|| context.fault(at, Some(node), empty))
        };
        let values = self.list(fields, key, read)?;
        if let Some(Node::List(items)) = fields.get(key) {
            self.check_items(&fields.at.key(key), items);
        }
        let values = values.ok_or_else(|| self.missing(fields, key))?;
        let is_short = values.len() <= MAX_COMPARED;
        let mut seen = HashSet::new();
        let mut unique = Vec::with_capacity(values.len());
        for (index, value) in values.into_iter().enumerate() {
            let is_new = match is_short {
                true => !unique.contains(&value),
                false => seen.insert(value.clone()),
            };
            if is_new {
                unique.push(value);
            } else {
                let at = fields.at.key(key);
                let message = "ignored: it is in the list already";
                self.warn(&at.index(index), None, "repeated_value", message);
            }
        }
        match unique.len() <= most {
            true => Ok(unique),
            false => Err(self.fault(&fields.at.key(key), None, too_many)),
        }
    }

    /// Reads an optional array of amounts.
    pub(super) fn amounts(
        &mut self,
        fields: &Fields<'_>,
        key: &str,
    ) -> Result<Option<Vec<Amount>>, Faulty> {
        self.list(fields, key, |context, at, node| {
            let amount = context.decimal(at, node)?;
            let empty = Invalid::new("required", "an amount");
            amount.ok_or_else(|| context.fault(at, Some(node), empty))
        })
    }

    /// Reads an optional object.
    pub(super) fn object<'n>(
        &mut self,
        fields: &'n Fields<'n>,
        key: &'n str,
    ) -> Result<Option<Fields<'n>>, Faulty> {
        let at = fields.at.key(key);
        match fields.get(key) {
            None => Ok(None),
            Some(Node::Object(members)) => Ok(Some(Fields::new(members, at))),
            Some(node) => Err(self.fault(&at, Some(node), Invalid::new("type", "an object"))),
        }
    }

    /// Reads a required object.
    pub(super) fn required_object<'n>(
        &mut self,
        fields: &'n Fields<'n>,
        key: &'n str,
    ) -> Result<Fields<'n>, Faulty> {
        let object = self.object(fields, key)?;
        object.ok_or_else(|| self.missing(fields, key))
    }
}
