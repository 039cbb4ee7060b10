//! `X-Simulate`: a test key gets the error that it requests, with the details and headers of a real one
//! (docs/contract/access.md#simulated-errors).

use http::header::CONNECTION;
use http::{HeaderMap, HeaderName, HeaderValue};
use vitrine_model::key::{KeyKind, KnownKey};
use vitrine_wire::error::ErrorType;

use crate::http::error::ApiError;
use crate::http::error::types::row;
use crate::http::request::parameters;
use crate::http::request::single;

const X_SIMULATE: HeaderName = HeaderName::from_static("x-simulate");

/// Returns the error type that a test key requests.
///
/// # Errors
///
/// If the key is no test key, or there is no such type.
pub(crate) fn requested(
    headers: &HeaderMap,
    key: &KnownKey,
) -> Result<Option<ErrorType>, ApiError> {
    let asked = single(headers, &X_SIMULATE);
    if asked == Ok(None) {
        return Ok(None);
    }
    if key.record.kind != KeyKind::Test {
        return Err(ApiError::plain(ErrorType::Forbidden));
    }
    let asked = asked.ok().flatten().unwrap_or_default();
    let kind = ErrorType::ALL.iter().find(|kind| kind.as_str() == asked);
    let unknown = || ApiError::unknown_simulation(asked);
    kind.map(|kind| Some(*kind)).ok_or_else(unknown)
}

/// Returns a simulated error. One for refused parameters is that of a query with such a fault.
pub(crate) fn error(kind: ErrorType) -> ApiError {
    let refused = row(kind).refused_query;
    let refused = refused.and_then(|query| parameters::list(Some(query)).err());
    refused.unwrap_or_else(|| ApiError::plain(kind))
}

/// Adds the headers of the real error that aren't in the table of errors: after a body that wasn't read, the connection
/// closes.
pub(crate) fn add_headers(kind: ErrorType, headers: &mut HeaderMap) {
    if row(kind).closes {
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
}
