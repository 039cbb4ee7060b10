//! Resources: results of reads, and the steps from there to a response. The body is made as late as possible: reserved
//! in the budget, then taken from the cache or made and compressed.

use bytes::Bytes;
use http::header::{
    CACHE_CONTROL, CONTENT_TYPE, ETAG, LINK, REFERRER_POLICY, VARY, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderValue, StatusCode};

use super::entity_tag::EntityTag;
use super::{Audience, NO_SNIFF, Response, encode};
use crate::http::body::Body;
use crate::http::body::budget::{Budget, Payer, Permit};
use crate::http::body::cache::{BodyCache, HERE_BYTES, Key};
use crate::http::body::compress::{MAX_COMPRESSED_BYTES, WORTH_COMPRESSING_BYTES};
use crate::http::error::ApiError;
use crate::http::request::encoding::{Accepted, Coding};
use crate::web::CONTENT_SECURITY_POLICY;

/// Maximum number of headers of a response: nine of its own, `Link`, two of a quota.
const MAX_HEADERS: usize = 12;

/// Maximum length of a body that is sent plain if the queue for compression is full, in bytes. A longer one is refused.
const MAX_PLAIN_INSTEAD_BYTES: usize = 2 << 20;

/// Policy for caching the plain body of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CachePolicy {
    /// Never caches it: it exists already, or is quick to make.
    Never,
    /// Looks it up, but doesn't insert it: most pages are requested only once.
    OnSecondHit,
    /// Looks it up, and inserts it.
    Always,
}

/// Cache, budget and accounts for the body of a response.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SendContext<'a> {
    pub(crate) cache: &'a BodyCache,
    pub(crate) budget: &'a Budget,
    pub(crate) payer: Payer<'a>,
}

/// Result of a read: a tag, and a body that is made only if it is sent and isn't cached.
pub struct Resource<'s> {
    tag: EntityTag,
    audience: Audience,
    link: Option<HeaderValue>,
    cache_plain: CachePolicy,
    /// Length of the plain body, in bytes; estimated if it is made.
    length: usize,
    memory: Memory,
    body: Box<DeferredBody<'s>>,
}

/// Function that makes a body. The payer pays for copies of parts of it.
type DeferredBody<'s> = dyn FnOnce(Payer<'_>) -> Result<Body, ApiError> + Send + 's;

/// Memory of the plain body.
enum Memory {
    /// It refers to memory that exists anyway.
    Shared,
    /// It is made for this response.
    Made,
    /// It is made for this response, and reserved.
    Reserved(Permit),
}

impl<'s> Resource<'s> {
    /// Returns a resource for the holder of a key, with a body of `length` bytes that refers to memory which exists
    /// anyway.
    pub(crate) fn new(
        tag: EntityTag,
        length: usize,
        body: impl FnOnce(Payer<'_>) -> Result<Body, ApiError> + Send + 's,
    ) -> Self {
        Self {
            tag,
            audience: Audience::KeyHolder,
            link: None,
            cache_plain: CachePolicy::Never,
            length,
            memory: Memory::Shared,
            body: Box::new(body),
        }
    }

    /// Returns a resource whose body exists already.
    #[must_use]
    pub fn ready(tag: EntityTag, body: Bytes) -> Self {
        Self::new(tag, body.len(), move |_| Ok(Body::from(body)))
    }

    /// Returns a resource whose body of about `length` bytes is made for this response.
    pub(crate) fn made(
        tag: EntityTag,
        length: usize,
        make: impl FnOnce() -> Result<Vec<u8>, ApiError> + Send + 's,
    ) -> Self {
        Self {
            memory: Memory::Made,
            ..Self::new(tag, length, move |_| Ok(Body::from(make()?)))
        }
    }

    /// Sets the `Link` header, which names the neighbours of a page.
    #[must_use]
    pub fn with_link(self, link: Option<HeaderValue>) -> Self {
        Self { link, ..self }
    }

    /// Sets the policy for caching the plain body.
    #[must_use]
    pub fn cached_plain(self, cache_plain: CachePolicy) -> Self {
        Self {
            cache_plain,
            ..self
        }
    }

    /// Sets the audience, which is the holder of the key by default.
    #[must_use]
    pub fn for_audience(self, audience: Audience) -> Self {
        Self { audience, ..self }
    }

    /// Returns true if `If-None-Match` has the tag: the client already has this response.
    #[must_use]
    pub fn matches_if_none_match(&self, headers: &HeaderMap) -> bool {
        self.audience != Audience::Feed && self.tag.matches_if_none_match(headers)
    }

    /// Returns the 304 response, without a body.
    #[must_use]
    pub fn not_modified(self) -> Response {
        let mut answer = self.head();
        *answer.status_mut() = StatusCode::NOT_MODIFIED;
        answer
    }

    /// Returns the coding that the client prefers; long bodies aren't compressed.
    fn coding(&self, request: &HeaderMap) -> Coding {
        match self.length <= MAX_COMPRESSED_BYTES {
            true => Accepted::by(request).best(),
            false => Coding::Identity,
        }
    }

    /// Reserves memory for a body that has to be made.
    ///
    /// # Errors
    ///
    /// If the budget has no room for it.
    pub(crate) fn reserved(mut self, context: SendContext<'_>) -> Result<Self, ApiError> {
        if let Memory::Made = self.memory {
            let permit = context.payer.reserve(self.length).ok_or_else(|| {
                context.budget.refused.increment();
                ApiError::overloaded()
            })?;
            self.memory = Memory::Reserved(permit);
        }
        Ok(self)
    }

    /// Refuses a long body if the queue for compressing it is full.
    ///
    /// # Errors
    ///
    /// If the queue is full.
    pub(crate) fn not_shed(
        self,
        request: &HeaderMap,
        context: SendContext<'_>,
    ) -> Result<Self, ApiError> {
        if self.length > MAX_PLAIN_INSTEAD_BYTES {
            let key = Key::new(self.tag.hash(), self.coding(request));
            if context.cache.is_too_busy_for(key, context.payer.key()) {
                context.cache.shed.increment();
                return Err(ApiError::overloaded());
            }
        }
        Ok(self)
    }

    /// Makes the response, with the body in the coding that the client prefers. A long body is compressed on another
    /// thread; it is sent plain if the queue is full, if the budget has no room, or if compressing fails.
    ///
    /// # Errors
    ///
    /// If the body can't be made.
    pub(crate) async fn respond(
        self,
        request: &HeaderMap,
        context: SendContext<'_>,
    ) -> Result<Response, ApiError> {
        let SendContext { cache, payer, .. } = context;
        let coding = self.coding(request);
        let key = Key::new(self.tag.hash(), coding);
        let mut response = self.head();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, self.audience.content_type());
        headers.insert(X_CONTENT_TYPE_OPTIONS, NO_SNIFF);
        if coding != Coding::Identity
            && let Some(cached) = cache.compressed(&key)
            && let Some(held) = payer.hold(&cached)
        {
            encode(&mut response, coding, held);
            return Ok(response);
        }
        let plain = self.plain(context)?;
        let is_short = plain.len() < WORTH_COMPRESSING_BYTES;
        if coding == Coding::Identity || is_short && Accepted::by(request).takes_plain() {
            *response.body_mut() = plain;
            return Ok(response);
        }
        let made = match plain.len() > HERE_BYTES {
            // Boxed, so that requests that don't wait have small futures.
            true => Box::pin(cache.compress(key, &plain, payer.key())).await,
            false => cache.compress_here(key, &plain.clone().into_bytes()),
        };
        match made.and_then(|made| payer.hold(&made)) {
            Some(held) => encode(&mut response, coding, held),
            None => *response.body_mut() = plain,
        }
        Ok(response)
    }

    /// Returns the plain body: from the cache, or made, and then cached if the policy says so.
    fn plain(self, context: SendContext<'_>) -> Result<Body, ApiError> {
        let SendContext { cache, payer, .. } = context;
        let key = Key::new(self.tag.hash(), Coding::Identity);
        let mut permit = match self.memory {
            Memory::Reserved(permit) => Some(permit),
            Memory::Shared | Memory::Made => None,
        };
        if self.cache_plain != CachePolicy::Never
            && let Some(cached) = cache.plain(&key)
            && let Some(permit) = permit.take().or_else(|| payer.reserve(cached.len()))
        {
            return Ok(permit.hold(cached).into());
        }
        let body = (self.body)(payer)?;
        let is_cached = self.cache_plain == CachePolicy::Always;
        let permit = permit.or_else(|| {
            // Without room for a copy, the body is sent as references.
            is_cached.then(|| payer.reserve(body.len())).flatten()
        });
        let Some(mut permit) = permit else {
            return Ok(body);
        };
        let made = body.into_bytes();
        if is_cached {
            cache.insert_plain(key, made.clone());
        }
        permit.resize(made.len());
        Ok(permit.hold(made).into())
    }

    /// Returns a response with the headers of this resource, and without a body.
    fn head(&self) -> Response {
        let mut answer = Response::new(Body::default());
        let headers = answer.headers_mut();
        // Reserved at once, so that the map isn't reallocated.
        headers.reserve(MAX_HEADERS);
        if self.audience != Audience::Feed {
            headers.insert(ETAG, self.tag.header_value());
        }
        if let Some(link) = &self.link {
            headers.insert(LINK, link.clone());
        }
        headers.insert(CACHE_CONTROL, self.audience.cache_control());
        headers.insert(VARY, self.audience.vary());
        if let Audience::Site(_) = self.audience {
            let policy = HeaderValue::from_static(CONTENT_SECURITY_POLICY);
            headers.insert(http::header::CONTENT_SECURITY_POLICY, policy);
            headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
        }
        answer
    }
}
