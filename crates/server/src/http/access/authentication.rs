//! Authentication of requests by the header `X-Api-Key`.

use http::{HeaderMap, HeaderName};
use jiff::Timestamp;
use vitrine_model::key::{KeyTable, KnownKey};
use vitrine_wire::error::ErrorType;

use crate::http::error::ApiError;
use crate::http::request::single;

const X_API_KEY: HeaderName = HeaderName::from_static("x-api-key");

/// Returns the key that a request bears, and its prefix as the request wrote it.
///
/// # Errors
///
/// If there is no key, or if it is wrong, expired or revoked.
pub(crate) fn authenticate<'k, 'r>(
    headers: &'r HeaderMap,
    keys: &'k KeyTable,
    now: Timestamp,
) -> Result<(&'k KnownKey, &'r str), ApiError> {
    let invalid = || ApiError::plain(ErrorType::InvalidApiKey);
    let presented = single(headers, &X_API_KEY)
        .map_err(|_| invalid())?
        .ok_or_else(|| ApiError::plain(ErrorType::Unauthorized))?;
    let key = keys.authenticate(presented, now).ok_or_else(invalid)?;
    let prefix = presented.split_once('.').map_or("", |(prefix, _)| prefix);
    Ok((key, prefix))
}
