//! Queries as addresses write them: pairs of names and values, encoded as forms are. What may stand in one is said
//! elsewhere: in `parameters`, and by the browser.

use std::borrow::Cow;

use percent_encoding::{
    AsciiSet, NON_ALPHANUMERIC, PercentEncode, percent_decode, utf8_percent_encode,
};

/// What stays as it is in a query (RFC 3986, "unreserved").
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// A name or a value, decoded; `None` where that isn't UTF-8.
type Decoded<'q> = Option<Cow<'q, str>>;

/// The name and value of each pair of a query.
pub(crate) fn pairs(query: &str) -> impl Iterator<Item = (Decoded<'_>, Decoded<'_>)> {
    query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decoded(name), decoded(value))
        })
}

/// Undoes form encoding: `+` is a blank, `%XX` a byte.
fn decoded(text: &str) -> Decoded<'_> {
    if !text.contains(['%', '+']) {
        return Some(Cow::Borrowed(text));
    }
    let blanks = text.replace('+', " ");
    let decoded = percent_decode(blanks.as_bytes()).decode_utf8().ok()?;
    Some(Cow::Owned(decoded.into_owned()))
}

/// A name or a value as it stands in a query.
pub(crate) fn encoded(text: &str) -> PercentEncode<'_> {
    utf8_percent_encode(text, ENCODED)
}
