//! The changes feed: what differs since a token (docs/contract/changes.md).

use std::sync::Arc;

use jiff::Timestamp;
use vitrine_model::changes::{ChangesPage, ChangesQuery, Position};
use vitrine_model::code::ProductCode;
use vitrine_model::snapshot::Snapshot;

use crate::http::body::budget::Payer;
use crate::http::body::{Body, Parts, PartsBuilder};
use crate::http::error::ApiError;
use crate::http::request::changes_token::{TermsDigest, Token};
use crate::http::request::parameters::ChangesRequest;
use crate::http::response::Audience;
use crate::http::response::entity_tag::EntityTag;
use crate::http::response::resource::Resource;
use crate::http::visible::Visible;
use crate::live::{Feed, VisibleFeed};
use vitrine_wire::error::ErrorType;

/// Minimum age of a token that is called gone, in seconds: a younger one may be of a state that isn't here yet.
const MIN_GONE_SECONDS: i64 = 30;

/// Usual length of the text before a change's product, in bytes: most codes with the JSON around them are no longer.
const CHANGE_TEXT_BYTES: usize = 48;

/// A page of changes, and the token for the next request.
pub(crate) struct PageFound<'s> {
    pub(crate) page: ChangesPage<'s>,
    next: Token,
}

impl PageFound<'_> {
    /// Returns true if nothing changed.
    pub(crate) fn is_empty(&self) -> bool {
        self.page.changes.is_empty()
    }

    /// Returns true if nothing changed until this position, from which on the next change can be waited for.
    pub(crate) fn is_at_rest(&self, position: &Position) -> bool {
        self.is_empty() && self.next.base == Some(*position)
    }
}

/// Finds the changes since the request's token; or, if its positions ended while the request waited, since `moved`, a later
/// position since which nothing visible changed. Returns the reason if the token can't be continued here.
pub(crate) fn find<'s>(
    feed: VisibleFeed<'s>,
    request: &ChangesRequest,
    terms: TermsDigest,
    moved: Option<Position>,
    now: Timestamp,
) -> Result<PageFound<'s>, NotContinued> {
    let token = request.since.as_ref();
    if token.is_some_and(|token| token.terms != terms) {
        return Err(NotContinued::OtherTerms);
    }
    // A removal is told by all combinations of revisions and rules since the token's base (docs/contract/changes.md#tokens), also
    // by those that the wait has gone past. A walk that goes on would begin behind its last code.
    let goes_on = |token: &Token| token.first.is_none() && is_known(feed, token);
    let moved = moved.filter(|_| !token.is_some_and(goes_on));
    let waited = moved.is_some();
    let mut base = None;
    let position = feed.position();
    let mut first = position;
    let mut query = request.query.clone();
    if let Some(token) = token {
        if !waited && !is_known(feed, token) {
            return Err(NotContinued::UnknownPosition);
        }
        (base, first) = (token.base, token.first.unwrap_or(position));
    }
    if waited {
        (base, first, query.after) = (moved, position, None);
    }
    let mut page = find_page(feed, base, &query)?;
    if page.changes.is_empty() && first != position {
        // The rest of a copy that is begun isn't visible any more. Told as removed, since an empty answer would say that
        // the copy is complete.
        page = find_page(feed, Some(first), &query)?;
    }
    let last_code = page.changes.last().filter(|_| page.has_more);
    let after: Option<ProductCode> = last_code.and_then(|change| change.code().parse().ok());
    let goes_on = after.is_some();
    let next = Token {
        issued: now.as_second(),
        filter: request.filter_digest,
        terms,
        newest: position,
        base: if goes_on { base } else { Some(first) },
        first: goes_on.then_some(first),
        after,
    };
    Ok(PageFound { page, next })
}

/// Returns true if all positions of a token are known.
pub(crate) fn is_known(feed: VisibleFeed<'_>, token: &Token) -> bool {
    token.positions().all(|position| feed.knows(position))
}

/// Returns a page of the changes since a base, or of everything visible.
fn find_page<'s>(
    feed: VisibleFeed<'s>,
    base: Option<Position>,
    query: &ChangesQuery,
) -> Result<ChangesPage<'s>, NotContinued> {
    match base {
        None => Ok(feed.first_page(query)),
        Some(base) => (feed.changes(&base, query)).ok_or(NotContinued::UnknownPosition),
    }
}

/// Reason why a token can't be continued from what is live here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotContinued {
    /// It was made for another version, public URL or assortment, or with other damage.
    OtherTerms,
    /// One of its positions is unknown.
    UnknownPosition,
}

impl NotContinued {
    /// Returns the error. `is_current` is true if the store was read since the request came, and leads to the same reason. Until
    /// then the key may have got the token's assortment or version, and the store its positions, a moment ago.
    pub(crate) fn error(
        self,
        request: &ChangesRequest,
        is_current: bool,
        now: Timestamp,
    ) -> ApiError {
        let age = (request.since.as_ref()).map_or(0, |token| token.age_seconds(now));
        let is_old = self == Self::OtherTerms || age > MIN_GONE_SECONDS;
        match is_current && is_old {
            true => ApiError::plain(ErrorType::ChangesGone),
            false => ApiError::changes_unknown_yet(),
        }
    }
}

/// Returns the resource of a page of changes, whose body refers to the snapshot.
pub(crate) fn resource(
    feed: &Arc<Feed>,
    request: &ChangesRequest,
    found: PageFound<'_>,
    visible: &Visible,
) -> Resource<'static> {
    let PageFound { page, next } = found;
    let next = next.to_string();
    let since = request
        .since
        .as_ref()
        .map(ToString::to_string)
        .unwrap_or_default();
    let limit = request.query.limit.get().to_le_bytes();
    // All that determines the bytes, since a token has the version's date: nobody is told the tag, but compressed bodies are
    // kept by it.
    let tag = EntityTag::of_parts([since.as_bytes(), b"\n", next.as_bytes(), &limit].into_iter());
    let snapshot = Arc::clone(&feed.snapshot);
    let parts = parts(&page, &next, &snapshot, visible);
    let length = parts.len();
    let body = move |payer: Payer<'_>| Ok(Body::page(snapshot, parts, payer.to_owned()));
    Resource::new(tag, length, body).for_audience(Audience::Feed)
}

/// Returns the parts of a page's body.
fn parts(page: &ChangesPage<'_>, next: &str, snapshot: &Snapshot, visible: &Visible) -> Parts {
    let changes = page.changes.len();
    let mut parts = PartsBuilder::with_capacity(changes, changes * CHANGE_TEXT_BYTES);
    let mut products = visible.writer(snapshot);
    let mut start = &b"{\"changes\":[{\"code\":\""[..];
    for change in &page.changes {
        // Codes have no characters that JSON escapes.
        for text in [start, change.code_bytes(), b"\",\"product\":"] {
            parts.text(text);
        }
        match change.product {
            Some(run) => products.push(&mut parts, run),
            None => parts.text(b"null"),
        }
        start = b"},{\"code\":\"";
    }
    parts.text(match page.changes.is_empty() {
        true => b"{\"changes\":[",
        false => b"}",
    });
    let has_more = if page.has_more { "true" } else { "false" };
    for text in ["],\"next\":\"", next, "\",\"has_more\":", has_more, "}"] {
        parts.text(text.as_bytes());
    }
    parts.finish()
}
