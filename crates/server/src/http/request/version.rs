//! Negotiation of the API version by the header `X-Api-Version`.

use http::{HeaderMap, HeaderName};
use vitrine_model::key::KnownKey;
use vitrine_model::version::{ApiVersion, VersionError};
use vitrine_wire::error::ErrorType;

use super::single;
use crate::http::error::ApiError;
use crate::http::versions::Version;

/// Name of the header with the API version.
pub(crate) const X_API_VERSION: HeaderName = HeaderName::from_static("x-api-version");

/// Returns the version for a request: that of its header, else the key's own, else the default.
///
/// # Errors
///
/// If there is no such version, or if it was removed.
pub(crate) fn negotiate(headers: &HeaderMap, key: &KnownKey) -> Result<Version, ApiError> {
    let error = |kind| match kind {
        VersionError::Removed => ApiError::plain(ErrorType::VersionRemoved),
        VersionError::Unknown => ApiError::plain(ErrorType::InvalidVersion),
    };
    let requested = single(headers, &X_API_VERSION).map_err(|_| error(VersionError::Unknown))?;
    let pinned = key.record.api_version.as_deref();
    let version: ApiVersion = match requested.or(pinned) {
        Some(date) => date.parse().map_err(error)?,
        None => ApiVersion::default(),
    };
    Ok(version.into())
}
