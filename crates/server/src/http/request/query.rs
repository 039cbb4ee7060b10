//! Syntax of queries: pairs of names and values, form-encoded. `parameters` and the catalog browser define the names.

use std::borrow::Cow;

use percent_encoding::{
    AsciiSet, NON_ALPHANUMERIC, PercentEncode, percent_decode, utf8_percent_encode,
};

/// Characters that are percent-encoded in a query: all but the unreserved ones (RFC 3986, section 2.3).
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Decoded name or value.
type Decoded<'q> = Result<Cow<'q, str>, Undecodable<'q>>;

/// Error of a name or value that can't be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Undecodable<'q> {
    /// Text as in the query.
    pub(crate) raw: &'q str,
    /// Advice for the client's developer.
    pub(crate) help: &'static str,
}

/// Returns the name and value of each pair of a query.
pub(crate) fn pairs(query: &str) -> impl Iterator<Item = (Decoded<'_>, Decoded<'_>)> {
    query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decoded(name), decoded(value))
        })
}

/// Decodes form encoding: `+` is a blank, `%XX` a byte.
fn decoded(text: &str) -> Decoded<'_> {
    if !text.contains(['%', '+']) {
        return Ok(Cow::Borrowed(text));
    }
    if has_malformed_escape(text) {
        let help =
            "a `%` begins an escape of two hexadecimal digits; send the character itself as `%25`";
        return Err(Undecodable { raw: text, help });
    }
    let blanks = text.replace('+', " ");
    match percent_decode(blanks.as_bytes()).decode_utf8() {
        Ok(decoded) => Ok(Cow::Owned(decoded.into_owned())),
        Err(_) => {
            let help = "names and values are percent-encoded UTF-8";
            Err(Undecodable { raw: text, help })
        }
    }
}

/// Returns true if a `%` isn't followed by two hexadecimal digits.
fn has_malformed_escape(text: &str) -> bool {
    let mut parts = text.as_bytes().split(|byte| *byte == b'%').skip(1);
    parts.any(|part| !matches!(part, [a, b, ..] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit()))
}

/// Returns a whole number of a query, if it is one in its only form: digits without leading zeros, after a `-` if it is below zero.
/// It may be too long for any type.
pub(crate) fn whole_number(text: &str) -> Option<&str> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_canonical = match digits.as_bytes() {
        [b'0'] => digits.len() == text.len(),
        [b'1'..=b'9', rest @ ..] => rest.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    is_canonical.then_some(text)
}

/// Encodes a name or value for a query.
pub(crate) fn encoded(text: &str) -> PercentEncode<'_> {
    utf8_percent_encode(text, ENCODED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_have_one_form() {
        for number in ["0", "5", "500", "-1", "12345678901234567890"] {
            assert_eq!(whole_number(number), Some(number));
        }
        for other in [
            "", "-", "-0", "00", "05", "-05", "+5", " 5", "5 ", "1.0", "1e2", "0x1", "٥",
        ] {
            assert_eq!(whole_number(other), None, "{other}");
        }
    }
}
