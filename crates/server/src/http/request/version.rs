//! Negotiation of the API version by the header `X-Api-Version`.

use http::HeaderMap;
use vitrine_model::key::KnownKey;
use vitrine_model::version::{ApiVersion, VersionError};
use vitrine_wire::error::ErrorType;

use super::single;
use crate::http::error::ApiError;
use crate::http::response::X_API_VERSION;

/// Returns the version for a request: that of its header, else the key's own, else the default.
///
/// # Errors
///
/// If there is no such version, or if it was removed.
pub(crate) fn negotiate(headers: &HeaderMap, key: &KnownKey) -> Result<ApiVersion, ApiError> {
    let error = |kind| match kind {
        VersionError::Removed => ApiError::plain(ErrorType::VersionRemoved),
        VersionError::Unknown => ApiError::plain(ErrorType::InvalidVersion),
    };
    let requested = single(headers, &X_API_VERSION).map_err(|_| error(VersionError::Unknown))?;
    match requested.or(key.record.api_version.as_deref()) {
        Some(version) => version.parse().map_err(error),
        None => Ok(ApiVersion::default()),
    }
}
