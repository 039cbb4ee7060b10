//! Responses: bodies, and the headers of each kind of response.

pub mod entity_tag;
pub mod resource;

use std::time::Duration;

use bytes::Bytes;
use http::header::{
    CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, RETRY_AFTER, VARY, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderName, HeaderValue};
use vitrine_wire::error::ErrorBody;

use super::body::Body;
use super::body::compress::{Effort, compress};
use super::error::ApiError;
use super::error::types::row;
use super::request::encoding::{Accepted, Coding};

/// A response.
pub type Response = http::Response<Body>;

/// Content type of all JSON responses: a client in the field compares the string.
const JSON: HeaderValue = HeaderValue::from_static("application/json");

pub(crate) const NO_SNIFF: HeaderValue = HeaderValue::from_static("nosniff");

/// Audience of a response, which determines its content type and caching.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// The holder of the key.
    KeyHolder,
    /// The holder of the key, once: an answer of the changes feed.
    Feed,
    /// Everyone: the OpenAPI document.
    Document,
    /// Everyone, without a limit of time: a text, whose URL is its digest.
    Text,
    /// Everyone: a page of the documentation or a file of pages, with this content type.
    Site(&'static str),
}

impl Audience {
    // `const` values are checked at compile time, not for each response.

    pub(crate) const fn content_type(self) -> HeaderValue {
        match self {
            Self::KeyHolder | Self::Feed | Self::Document => JSON,
            Self::Text => const { HeaderValue::from_static("text/markdown; charset=utf-8") },
            Self::Site(content_type) => HeaderValue::from_static(content_type),
        }
    }

    pub(crate) const fn cache_control(self) -> HeaderValue {
        match self {
            Self::KeyHolder => {
                const {
                    HeaderValue::from_static(
                        "private, max-age=60, stale-while-revalidate=300, stale-if-error=86400",
                    )
                }
            }
            Self::Feed => const { HeaderValue::from_static("no-store") },
            Self::Document | Self::Site(_) => {
                const { HeaderValue::from_static("public, max-age=300") }
            }
            Self::Text => const { HeaderValue::from_static("public, max-age=31536000, immutable") },
        }
    }

    pub(crate) const fn vary(self) -> HeaderValue {
        match self {
            Self::KeyHolder | Self::Feed => {
                const { HeaderValue::from_static("Accept-Encoding, X-Api-Version, X-Api-Key") }
            }
            Self::Document | Self::Text | Self::Site(_) => {
                const { HeaderValue::from_static("Accept-Encoding") }
            }
        }
    }
}

/// Sets the body of a response in a coding.
pub(crate) fn encode(answer: &mut Response, coding: Coding, body: Bytes) {
    *answer.body_mut() = body.into();
    if let Some(coding) = coding.header_value() {
        answer.headers_mut().insert(CONTENT_ENCODING, coding);
    }
}

/// Compresses an error for a client that refuses plain bodies. All others get it plain: errors are short.
pub(crate) fn encode_error(answer: &mut Response, request: &HeaderMap) {
    let is_error = answer.status().is_client_error() || answer.status().is_server_error();
    if !is_error {
        return;
    }
    let accepted = Accepted::by(request);
    let coding = accepted.best();
    if accepted.takes_plain() || coding == Coding::Identity {
        return;
    }
    let plain = std::mem::take(answer.body_mut()).into_bytes();
    match compress(coding, Effort::Thorough, &plain) {
        Ok(made) => encode(answer, coding, made),
        Err(_) => *answer.body_mut() = plain.into(),
    }
    vary_by(answer.headers_mut(), "Accept-Encoding");
}

/// Adds the name of a request header to `Vary`.
pub(crate) fn vary_by(headers: &mut HeaderMap, name: &'static str) {
    let value = match headers.get(VARY) {
        Some(before) => {
            HeaderValue::from_bytes(&[before.as_bytes(), b", ", name.as_bytes()].concat())
        }
        None => Ok(HeaderValue::from_static(name)),
    };
    if let Ok(value) = value {
        headers.insert(VARY, value);
    }
}

impl From<ApiError> for Response {
    fn from(error: ApiError) -> Self {
        let (kind, retry_after) = (error.kind, error.retry_after);
        // Plain texts can't fail to become JSON.
        let body = serde_json::to_vec(&ErrorBody::from(error)).unwrap_or_default();
        let mut answer = Response::new(Body::from(body));
        *answer.status_mut() = ApiError::status(kind);
        // For the count of errors by type.
        answer.extensions_mut().insert(kind);
        let headers = answer.headers_mut();
        headers.insert(CONTENT_TYPE, JSON);
        headers.insert(X_CONTENT_TYPE_OPTIONS, NO_SNIFF);
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(time) = retry_after {
            headers.insert(RETRY_AFTER, seconds_up(time).max(1).into());
        }
        if let Some((name, value)) = row(kind).header
            && let Ok(name) = HeaderName::from_bytes(name.as_bytes())
        {
            headers.insert(name, HeaderValue::from_static(value));
        }
        answer
    }
}

/// Returns whole seconds, rounded up, so that a client that waits for them waits long enough.
pub(crate) fn seconds_up(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_rounded_up() {
        for (milliseconds, seconds) in [(0, 0), (1, 1), (1_000, 1), (2_001, 3), (2_999, 3)] {
            assert_eq!(seconds_up(Duration::from_millis(milliseconds)), seconds);
        }
    }
}
