//! Fields of a form, as a query or the body of a POST has them.

use std::collections::HashSet;

use http::StatusCode;
use vitrine_model::key::contains_key;

use crate::browser::answer::Problem;
use crate::browser::query::pairs;

/// Fields that may be sent several times.
const MANY: [&str; 10] = [
    "allow",
    "category",
    "code",
    "country",
    "currency",
    "number",
    "payout_type",
    "rules",
    "state",
    "value",
];

/// Fields that pages of acts add by themselves, and times: a page replaces a short span by a longer time.
const OF_PAGES: [&str; 8] = [
    "base",
    "change",
    "confirm",
    "form_token",
    "from",
    "once",
    "plan",
    "until",
];

/// Returns the length of a text as browsers encode it in a form, in bytes. They send lines with CR and LF, however they came.
fn encoded_bytes(text: &str) -> usize {
    let mut before = 0;
    let bytes = text.bytes().map(|byte| {
        let length = match byte {
            b'\n' if before == b'\r' => 0,
            b'\r' | b'\n' => 6,
            b' ' | b'*' | b'-' | b'.' | b'_' => 1,
            byte if byte.is_ascii_alphanumeric() => 1,
            _ => 3,
        };
        before = byte;
        length
    });
    bytes.sum()
}

/// Fields of a form.
#[derive(Debug, Clone, Default)]
pub(in crate::browser) struct Form(Vec<(String, String)>);

impl Form {
    /// Decodes the fields.
    pub(in crate::browser) fn parse(text: &str) -> Result<Self, Problem> {
        let decoded = pairs(Some(text));
        decoded.map(Self).map_err(|_| {
            Problem::new(
                StatusCode::BAD_REQUEST,
                "This form can't be read",
                "It isn't form-encoded UTF-8.",
            )
        })
    }

    /// Returns a form with these fields.
    pub(super) fn of(fields: Vec<(&'static str, String)>) -> Self {
        let fields = fields.into_iter();
        Self(
            fields
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
        )
    }

    /// Returns a field as it was sent; empty if it wasn't.
    pub(in crate::browser) fn raw(&self, name: &str) -> &str {
        let found = self.0.iter().find(|(own, _)| own == name);
        found.map_or("", |(_, value)| value)
    }

    /// Returns a field without spaces at its ends; empty if it wasn't sent.
    pub(in crate::browser) fn text(&self, name: &str) -> &str {
        self.raw(name).trim()
    }

    /// Returns a field, unless it is empty.
    pub(in crate::browser) fn get(&self, name: &str) -> Option<&str> {
        Some(self.text(name)).filter(|value| !value.is_empty())
    }

    /// Returns true if a field isn't empty.
    pub(super) fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Returns all values of a field that are separated by spaces, commas or lines.
    pub(super) fn words(&self, name: &str) -> Vec<&str> {
        let own = self.0.iter().filter(|(own, _)| own == name);
        own.flat_map(|(_, value)| value.split([' ', ',', '\t', '\r', '\n']))
            .filter(|word| !word.is_empty())
            .collect()
    }

    /// Returns all values of a field, one a line, for values with spaces and commas.
    pub(super) fn items(&self, name: &str) -> Vec<&str> {
        let own = self.0.iter().filter(|(own, _)| own == name);
        own.flat_map(|(_, value)| value.split(['\r', '\n']))
            .map(str::trim)
            .filter(|item| !item.is_empty())
            .collect()
    }

    /// Returns all values of a field, one a line, to be shown in a form again.
    pub(super) fn lines(&self, name: &str) -> String {
        let own = self.0.iter().filter(|(own, _)| own == name);
        let values: Vec<&str> = own.map(|(_, value)| value.trim()).collect();
        values.join("\n").trim().to_owned()
    }

    /// Returns the form as it was sent to be planned.
    pub(super) fn unconfirmed(&self) -> Self {
        let fields = self.0.iter().filter(|(name, _)| name != "confirm");
        Self(fields.cloned().collect())
    }

    /// Refuses fields that were sent more than once, though they have one value, and secrets where they don't belong.
    pub(super) fn check(&self) -> Result<(), Problem> {
        let refused = |title: &str, help: &str| {
            let status = StatusCode::BAD_REQUEST;
            Err(Problem::new(status, title, help))
        };
        let mut seen = HashSet::new();
        for (name, value) in &self.0 {
            if !seen.insert(name) && !MANY.contains(&name.as_str()) {
                let title = "A field was sent twice";
                return refused(title, &format!("`{name}` has one value."));
            }
            // Notes and labels are stored and shown.
            if name != "key" && contains_key(value) {
                return refused(
                    "This form has an API key in it",
                    "Leave its secret out: what is sent here is stored and shown. Its prefix names a key.",
                );
            }
        }
        Ok(())
    }

    /// Returns the length of what was filled in, as browsers encode it, in bytes.
    pub(super) fn filled_in_bytes(&self) -> usize {
        let filled_in = (self.0.iter()).filter(|(name, _)| !OF_PAGES.contains(&name.as_str()));
        let lengths = filled_in.map(|(name, value)| {
            let separators = "&=".len();
            encoded_bytes(name) + encoded_bytes(value) + separators
        });
        lengths.sum()
    }

    /// Returns true if the form was sent to be shown again, with what was filled in.
    pub(super) fn is_changed(&self) -> bool {
        self.text("change") == "yes"
    }

    /// Returns true if the form was sent to be done, not only to be planned.
    pub(super) fn is_confirmed(&self) -> bool {
        self.text("confirm") == "yes"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn length_is_that_of_browsers() {
        for (text, bytes) in [
            ("", 0),
            ("A-1 *._", 7),
            ("a,b", 5),
            ("a\nb", 8),
            ("a\r\nb", 8),
            ("é", 6),
        ] {
            assert_eq!(encoded_bytes(text), bytes, "{text:?}");
        }
        let form = Form::parse("form_token=abc&code=A%2C+B&once=x").expect("a form");
        assert_eq!(form.filled_in_bytes(), "&code=A%2C+B".len());
    }
}
