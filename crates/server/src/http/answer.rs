//! Answers: bodies, and the headers that every answer of a kind bears.

use bytes::Bytes;
use http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, LINK, REFERRER_POLICY, RETRY_AFTER,
    VARY, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use vitrine_wire::error::{ErrorBody, ErrorType};

use super::body::Body;
use super::body_cache::{BodyCache, Key};
use super::compress::{Effort, WORTH_COMPRESSING_BYTES, compress};
use super::conditional::EntityTag;
use super::encoding::{Accepted, Coding};
use super::error::ApiError;
use super::making::{Later, Make, Prepared};
use super::quota::seconds_up;
use crate::web::CONTENT_SECURITY_POLICY;

/// An answer, whole in memory.
pub type Answer = Response<Body>;

/// The header that says which version answered.
pub const X_API_VERSION: HeaderName = HeaderName::from_static("x-api-version");

/// The only content type of JSON answers: a client in the field compares the string.
const JSON: HeaderValue = HeaderValue::from_static("application/json");

const NO_SNIFF: HeaderValue = HeaderValue::from_static("nosniff");

/// An answer has so many headers at most: nine of its own, the page's neighbours, two of a quota.
const MOST_HEADERS: usize = 12;

/// Who may keep an answer, and how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// The holder of the key.
    KeyHolder,
    /// Anybody: the OpenAPI document.
    Document,
    /// Anybody, for good: a text, whose address is its digest.
    Text,
    /// Anybody: a page of the documentation or a file that pages name, of this content type.
    Site(&'static str),
}

impl Audience {
    // `const` has the values checked when this is built, and not for each answer.

    const fn content_type(self) -> HeaderValue {
        match self {
            Self::KeyHolder | Self::Document => JSON,
            Self::Text => const { HeaderValue::from_static("text/markdown; charset=utf-8") },
            Self::Site(content_type) => HeaderValue::from_static(content_type),
        }
    }

    const fn cache_control(self) -> HeaderValue {
        match self {
            Self::KeyHolder => {
                const {
                    HeaderValue::from_static(
                        "private, max-age=60, stale-while-revalidate=300, stale-if-error=86400",
                    )
                }
            }
            Self::Document | Self::Site(_) => {
                const { HeaderValue::from_static("public, max-age=300") }
            }
            Self::Text => const { HeaderValue::from_static("public, max-age=31536000, immutable") },
        }
    }

    const fn vary(self) -> HeaderValue {
        match self {
            Self::KeyHolder => {
                const { HeaderValue::from_static("Accept-Encoding, X-Api-Version, X-Api-Key") }
            }
            Self::Document | Self::Text | Self::Site(_) => {
                const { HeaderValue::from_static("Accept-Encoding") }
            }
        }
    }
}

/// Whether the plain body of an answer is worth keeping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// It lies ready, or is made quickly.
    No,
    /// It is, once somebody asks for it again. Until then the memory for it serves the next one, instead of being
    /// the system's to hand out anew; but it may be kept already.
    OnceAskedAgain,
    /// It is put together of many parts, or takes memory that those who ask for it can share.
    Plain,
}

/// What becomes of an answer that would have to wait too long to be compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhileBusy {
    /// It goes out as it is.
    SentPlain,
    /// It isn't made; the client is told to ask again later.
    PutOff,
}

/// What a read found. Its body is made only if it is sent and isn't kept.
pub struct Resource<'s> {
    tag: EntityTag,
    audience: Audience,
    link: Option<HeaderValue>,
    keep: Keep,
    while_busy: WhileBusy,
    body: Box<dyn Make + 's>,
}

impl<'s> Resource<'s> {
    /// What a read found for the holder of a key: the tag of a body, and what makes that.
    #[must_use]
    pub fn new(tag: EntityTag, body: impl Make + 's) -> Self {
        Self {
            tag,
            audience: Audience::KeyHolder,
            link: None,
            keep: Keep::No,
            while_busy: WhileBusy::SentPlain,
            body: Box::new(body),
        }
    }

    /// A body that was made before.
    #[must_use]
    pub fn ready(tag: EntityTag, body: Bytes) -> Self {
        Self::new(tag, move || Ok(Body::from(body)))
    }

    /// With the page's neighbours, for the `Link` header.
    #[must_use]
    pub fn with_link(self, link: Option<HeaderValue>) -> Self {
        Self { link, ..self }
    }

    /// With a plain body that is worth keeping.
    #[must_use]
    pub fn kept(self, keep: Keep) -> Self {
        Self { keep, ..self }
    }

    /// With what becomes of it while too many bodies wait to be compressed.
    #[must_use]
    pub fn while_busy(self, while_busy: WhileBusy) -> Self {
        Self { while_busy, ..self }
    }

    /// For somebody else than the holder of a key.
    #[must_use]
    pub fn for_audience(self, audience: Audience) -> Self {
        Self { audience, ..self }
    }

    /// Whether the client already has this answer.
    #[must_use]
    pub fn is_known_to(&self, headers: &HeaderMap) -> bool {
        self.tag.is_known_to(headers)
    }

    /// The answer that the client needn't be sent the body.
    #[must_use]
    pub fn not_modified(self) -> Answer {
        let mut answer = self.head().0;
        *answer.status_mut() = StatusCode::NOT_MODIFIED;
        answer
    }

    /// What its body is kept under, in the coding that the client likes best.
    fn key(&self, request: &HeaderMap) -> Key {
        Key {
            hash: self.tag.hash(),
            coding: Accepted::by(request).best(),
        }
    }

    /// Whether it would have to wait too long to be compressed, and is to be put off then.
    pub(super) fn is_too_much(&self, request: &HeaderMap, bodies: &BodyCache) -> bool {
        self.while_busy == WhileBusy::PutOff
            && bodies.is_busy()
            && bodies.is_too_busy_for(&self.key(request))
    }

    /// The answer with the body, encoded as the client likes it best. What is kept needs no body to be
    /// made; what takes long to compress is left to [`Prepared::finish`].
    pub(super) fn found(
        self,
        request: &HeaderMap,
        bodies: &BodyCache,
    ) -> Result<Prepared, ApiError> {
        let accepted = Accepted::by(request);
        let coding = accepted.best();
        let hash = self.tag.hash();
        let key = Key { hash, coding };
        let plain_key = Key {
            hash,
            coding: Coding::Identity,
        };
        let (audience, keep, while_busy) = (self.audience, self.keep, self.while_busy);
        let (mut answer, body) = self.head();
        let headers = answer.headers_mut();
        headers.insert(CONTENT_TYPE, audience.content_type());
        headers.insert(X_CONTENT_TYPE_OPTIONS, NO_SNIFF);
        if coding != Coding::Identity
            && let Some(kept) = bodies.compressed(&key)
        {
            encode(&mut answer, coding, kept);
            return Ok(answer.into());
        }
        let kept = (keep != Keep::No)
            .then(|| bodies.plain(&plain_key))
            .flatten();
        let is_kept = kept.is_some();
        // Only long bodies are ever put off: they are made where they are compressed.
        if coding != Coding::Identity && while_busy == WhileBusy::PutOff {
            let plain = kept.map_or_else(|| body.later(), |kept| Ok(Later::Made(kept)))?;
            return Ok(Prepared::to_encode(answer, key, plain));
        }
        let plain = kept.map_or_else(|| body.now(), |kept| Ok(kept.into()))?;
        let is_short = plain.len() < WORTH_COMPRESSING_BYTES && accepted.takes_plain();
        if coding == Coding::Identity || is_short {
            *answer.body_mut() = match keep {
                Keep::Plain if !is_kept => bodies.keep_plain(plain_key, plain),
                _ => plain,
            };
            return Ok(answer.into());
        }
        let plain = plain.into_bytes();
        let Some(made) = bodies.compress_here(key, &plain) else {
            return Ok(Prepared::to_encode(answer, key, Later::Made(plain)));
        };
        encode(&mut answer, coding, made);
        Ok(answer.into())
    }

    /// What an answer with this body says of itself, and what makes the body.
    fn head(self) -> (Answer, Box<dyn Make + 's>) {
        let Self {
            tag,
            audience,
            link,
            body,
            ..
        } = self;
        let mut answer = Response::new(Body::default());
        let headers = answer.headers_mut();
        // Room for all that are to come, so that the map isn't moved as it grows.
        headers.reserve(MOST_HEADERS);
        headers.insert(ETAG, tag.header_value());
        if let Some(link) = link {
            headers.insert(LINK, link);
        }
        headers.insert(CACHE_CONTROL, audience.cache_control());
        headers.insert(VARY, audience.vary());
        if let Audience::Site(_) = audience {
            let policy = HeaderValue::from_static(CONTENT_SECURITY_POLICY);
            headers.insert(http::header::CONTENT_SECURITY_POLICY, policy);
            headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
        }
        (answer, body)
    }
}

/// Gives an answer its body in a coding.
pub(super) fn encode(answer: &mut Answer, coding: Coding, body: Bytes) {
    *answer.body_mut() = body.into();
    if let Some(coding) = coding.header_value() {
        answer.headers_mut().insert(CONTENT_ENCODING, coding);
    }
}

/// Encodes an error for a client that refuses plain bodies. All others get it plain: errors are short.
pub(super) fn encode_error(answer: &mut Answer, request: &HeaderMap) {
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

/// Adds a request header to the single `Vary` of an answer.
pub(super) fn vary_by(headers: &mut HeaderMap, name: &'static str) {
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

impl From<ApiError> for Answer {
    fn from(error: ApiError) -> Self {
        let (kind, retry_after) = (error.kind, error.retry_after);
        // Plain texts can't fail to become JSON.
        let body = serde_json::to_vec(&ErrorBody::from(error)).unwrap_or_default();
        let mut answer = Response::new(Body::from(body));
        *answer.status_mut() = ApiError::status(kind);
        // For whoever counts errors by type.
        answer.extensions_mut().insert(kind);
        let headers = answer.headers_mut();
        headers.insert(CONTENT_TYPE, JSON);
        headers.insert(X_CONTENT_TYPE_OPTIONS, NO_SNIFF);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pages_that_would_wait_to_be_compressed_are_too_much() {
        let is_too_much = |while_busy, accepted: &'static str, bodies: &BodyCache| {
            let resource = Resource::ready(EntityTag::of(b"a page"), Bytes::new());
            let resource = resource.while_busy(while_busy);
            let mut headers = HeaderMap::new();
            let accepted = HeaderValue::from_static(accepted);
            headers.insert(http::header::ACCEPT_ENCODING, accepted);
            resource.is_too_much(&headers, bodies)
        };
        let (busy, quiet) = (BodyCache::busy(), BodyCache::new(0));
        assert!(is_too_much(WhileBusy::PutOff, "br", &busy));
        assert!(!is_too_much(WhileBusy::PutOff, "identity", &busy));
        assert!(!is_too_much(WhileBusy::SentPlain, "br", &busy));
        assert!(!is_too_much(WhileBusy::PutOff, "br", &quiet));
    }
}
