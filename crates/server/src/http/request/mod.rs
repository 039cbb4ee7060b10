//! Parsing of requests: query parameters, headers, request ids.

pub(crate) mod accept;
pub(crate) mod changes_token;
pub mod encoding;
pub(crate) mod host;
pub mod parameters;
pub(crate) mod query;
pub(crate) mod request_id;
mod sealed_code;
pub(crate) mod trace_id;
pub(crate) mod version;

use http::{HeaderMap, HeaderName};

/// Extension of a request whose target had a fragment, which the parser dropped.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HasFragment;

/// Error of a header that is repeated, or isn't text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unreadable;

/// Returns the value of a header that may be sent once; an empty one counts as missing.
///
/// # Errors
///
/// If the header is repeated, or isn't text.
pub(crate) fn single<'h>(
    headers: &'h HeaderMap,
    name: &HeaderName,
) -> Result<Option<&'h str>, Unreadable> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => {
            let text = value.to_str().map_err(|_| Unreadable)?.trim();
            Ok((!text.is_empty()).then_some(text))
        }
        (Some(_), Some(_)) => Err(Unreadable),
    }
}
