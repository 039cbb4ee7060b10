//! Damage that spreadsheets do to values: detected, and reported as the likely cause.

use vitrine_model::Invalid;
use vitrine_model::money::is_scientific;

use super::fields::{Context, Faulty};
use crate::load::json::Node;
use crate::load::pointer::At;
use crate::load::read::Record;
use crate::load::read::columns::Kind;
use crate::load::report::shown;

/// Returns the likely cause of a faulty value, to be appended to the message; empty if none is known.
pub(super) fn likely_cause(record: &Record, pointer: &str, value: Option<&Node<'_>>) -> String {
    let Some(Node::Text(text)) = value else {
        return String::new();
    };
    if is_scientific(text.trim()) {
        return "; a spreadsheet shortened this number: format its column as text and enter it again"
            .to_owned();
    }
    // Countries have two letters, so other lengths are no countries. In amounts, a single comma may be a decimal
    // separator.
    let (separators, longest): (&[char], usize) = match record.list_at(pointer) {
        Some(Kind::Texts) => (&[',', ';', '/', ' ', '\n'], 2),
        Some(Kind::Amounts) => (&[';', ' ', '\n'], usize::MAX),
        _ => return String::new(),
    };
    let items = text.split(separators).map(|item| item.trim_matches(','));
    let items: Vec<&str> = items.filter(|item| !item.is_empty()).collect();
    match items.len() > 1 && items.iter().all(|item| item.len() <= longest) {
        true => format!("; `|` separates items: `{}`", shown(&items.join("|"))),
        false => String::new(),
    }
}

/// Returns true if the point of a decimal may separate thousands: `1.000`, `12.500`.
fn may_be_thousands(text: &str) -> bool {
    let [whole @ .., b'.', a, b, c] = text.trim().as_bytes() else {
        return false;
    };
    let digits = |bytes: &[u8]| bytes.iter().all(u8::is_ascii_digit);
    (1..=3).contains(&whole.len()) && whole[0] != b'0' && digits(whole) && digits(&[*a, *b, *c])
}

impl Context<'_> {
    /// Refuses a decimal whose point may separate thousands, if the table seems to have decimal commas; warns of it in
    /// other tables.
    pub(super) fn check_thousands(&mut self, at: &At<'_>, node: &Node<'_>) -> Result<(), Faulty> {
        let Node::Text(text) = node else {
            return Ok(());
        };
        if !may_be_thousands(text) || !self.states(at) {
            return Ok(());
        }
        let Some(separator) = self.record.separator_at(&at.to_string()) else {
            return Ok(());
        };
        if separator == b';' {
            let expected = "an amount whose point can't be mistaken for a thousands separator, as this table's cells \
                 are separated by `;`: `1000` for a thousand, `1.00` for one";
            return Err(self.fault(
                at,
                Some(node),
                Invalid::new("thousands_separator", expected),
            ));
        }
        let message = "read as a decimal point; if it separates thousands, remove it";
        self.warn(at, Some(node), "thousands_separator", message);
        Ok(())
    }

    /// Warns of a cell with one item that seems to be several.
    pub(super) fn check_items(&mut self, at: &At<'_>, items: &[Node<'_>]) {
        let [item @ Node::Text(text)] = items else {
            return;
        };
        if text.contains([',', ';', '\n']) && self.record.list_at(&at.to_string()).is_some() {
            let items = text.split([',', ';', '\n']).map(str::trim);
            let items: Vec<&str> = items.filter(|item| !item.is_empty()).collect();
            let items = shown(&items.join("|"));
            let message =
                format!("read as one item; if it is several, separate them with `|`: `{items}`");
            self.warn(&at.index(0), Some(item), "list_separator", message);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_separators_are_recognised() {
        for (text, expected) in [
            ("1.000", true),
            ("999.990", true),
            ("0.500", false),
            ("1000.000", false),
            ("1.00", false),
            ("1.000.000", false),
            ("1,000", false),
        ] {
            assert_eq!(may_be_thousands(text), expected, "{text}");
        }
    }
}
