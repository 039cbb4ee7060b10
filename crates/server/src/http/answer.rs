//! Answers: bodies, and the headers that every answer of a kind bears.

use bytes::Bytes;
use http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_TYPE, ETAG, LINK, RETRY_AFTER, VARY, WWW_AUTHENTICATE,
    X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use http_body_util::Full;
use vitrine_wire::error::{ErrorBody, ErrorType};

use super::conditional::EntityTag;
use super::error::ApiError;
use super::quota::seconds_up;

/// An answer, whole in memory.
pub type Answer = Response<Full<Bytes>>;

/// The header that says which version answered.
pub const X_API_VERSION: HeaderName = HeaderName::from_static("x-api-version");

/// The only content type of JSON answers: a client in the field compares the string.
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// How long clients may keep what they read with a key.
const KEYED_CACHING: HeaderValue = HeaderValue::from_static(
    "private, max-age=60, stale-while-revalidate=300, stale-if-error=86400",
);

const KEYED_VARY: HeaderValue =
    HeaderValue::from_static("Accept-Encoding, X-Api-Version, X-Api-Key");

/// What a keyed read found. Its body is made only if it is sent.
pub struct Resource<'s> {
    /// The tag of the body.
    pub tag: EntityTag,
    /// The page's neighbours, for the `Link` header.
    pub link: Option<String>,
    /// Makes the body.
    pub body: Box<dyn FnOnce() -> Vec<u8> + 's>,
}

impl Resource<'_> {
    /// A body that had to be made to know its tag.
    #[must_use]
    pub fn whole(body: Vec<u8>) -> Self {
        Self {
            tag: EntityTag::of(&body),
            link: None,
            body: Box::new(move || body),
        }
    }

    /// The answer that the client needn't be sent the body.
    #[must_use]
    pub fn not_modified(&self) -> Answer {
        let mut answer = Response::new(Full::default());
        *answer.status_mut() = StatusCode::NOT_MODIFIED;
        self.describe(&mut answer);
        answer
    }

    /// The answer with the body.
    #[must_use]
    pub fn found(mut self) -> Answer {
        let make = std::mem::replace(&mut self.body, Box::new(Vec::new));
        let mut answer = Response::new(Full::from(make()));
        let headers = answer.headers_mut();
        headers.insert(CONTENT_TYPE, JSON);
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        self.describe(&mut answer);
        answer
    }

    fn describe(&self, answer: &mut Answer) {
        let headers = answer.headers_mut();
        if let Ok(tag) = HeaderValue::from_str(self.tag.as_str()) {
            headers.insert(ETAG, tag);
        }
        if let Some(Ok(link)) = self.link.as_deref().map(HeaderValue::from_str) {
            headers.insert(LINK, link);
        }
        headers.insert(CACHE_CONTROL, KEYED_CACHING);
        headers.insert(VARY, KEYED_VARY);
    }
}

/// Something that anybody may read and caches may share.
#[must_use]
pub fn public(
    body: Bytes,
    content_type: &'static str,
    caching: &'static str,
    request: &http::HeaderMap,
) -> Answer {
    let tag = EntityTag::of(&body);
    let is_known = tag.is_known_to(request);
    let mut answer = if is_known {
        let mut answer = Response::new(Full::default());
        *answer.status_mut() = StatusCode::NOT_MODIFIED;
        answer
    } else {
        Response::new(Full::from(body))
    };
    let headers = answer.headers_mut();
    if !is_known {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    }
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(caching));
    headers.insert(VARY, HeaderValue::from_static("Accept-Encoding"));
    if let Ok(tag) = HeaderValue::from_str(tag.as_str()) {
        headers.insert(ETAG, tag);
    }
    answer
}

impl From<ApiError> for Answer {
    fn from(error: ApiError) -> Self {
        let ApiError {
            kind,
            message,
            help,
            details,
            retry_after,
        } = error;
        let body = ErrorBody {
            kind,
            message,
            help,
            details,
        };
        // Plain texts can't fail to become JSON.
        let body = serde_json::to_vec(&body).unwrap_or_default();
        let mut answer = Response::new(Full::from(body));
        *answer.status_mut() = ApiError::status(kind);
        // For whoever counts errors by type.
        answer.extensions_mut().insert(kind);
        let headers = answer.headers_mut();
        headers.insert(CONTENT_TYPE, JSON);
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(time) = retry_after {
            headers.insert(RETRY_AFTER, seconds_up(time).max(1).into());
        }
        match kind {
            ErrorType::Unauthorized | ErrorType::InvalidApiKey => {
                headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("ApiKey"));
            }
            ErrorType::MethodNotAllowed => {
                headers.insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            }
            _ => {}
        }
        answer
    }
}
