//! The changes feed: what differs since a token (docs/contract/changes.md).

use std::sync::Arc;

use jiff::Timestamp;
use vitrine_model::changes::{Change, ChangesPage, ChangesQuery, Position};
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
use crate::live::{Feed, SearchLimit, VisibleFeed};
use vitrine_wire::error::ErrorType;

/// Minimum age of a token that is called gone, in seconds: a younger one may be of a state that isn't here yet.
const MIN_GONE_SECONDS: i64 = 30;

/// Usual length of the text before a change's product, in bytes: most codes with the JSON around them are no longer.
const CHANGE_TEXT_BYTES: usize = 48;

/// Beginning of a search: what a token leads to.
pub(crate) struct Start {
    /// Position since which changes are told; none while a copy is begun.
    base: Option<Position>,
    /// Position that the walk's first page showed.
    first: Position,
    /// Code after which the walk goes on.
    after: Option<ProductCode>,
}

impl Start {
    /// Begins later if a code is known up to which nothing visible changed since the base.
    pub(crate) fn skipping(mut self, known: impl FnOnce(Position) -> Option<ProductCode>) -> Self {
        if let (Some(base), None) = (self.base, &self.after) {
            self.after = known(base);
        }
        self
    }
}

/// A page of changes, and the token for the next request.
pub(crate) struct PageFound<'s> {
    changes: Vec<Change<'s>>,
    next: Token,
    has_more: bool,
}

impl PageFound<'_> {
    /// Returns true if nothing changed, and nothing is left to look at.
    pub(crate) fn is_free(&self) -> bool {
        self.changes.is_empty() && !self.has_more
    }

    /// Returns true if nothing changed until this position, from which on the next change can be waited for.
    pub(crate) fn is_at_rest(&self, position: &Position) -> bool {
        self.is_free() && self.next.base == Some(*position)
    }
}

/// Returns where the search for a request begins: at its token; or, if its positions ended while the request waited, at `moved`,
/// a later position since which nothing visible changed. Returns the reason if the token can't be continued here.
pub(crate) fn start(
    feed: VisibleFeed<'_>,
    request: &ChangesRequest,
    terms: TermsDigest,
    moved: Option<Position>,
) -> Result<Start, NotContinued> {
    let position = feed.position();
    let Some(token) = &request.since else {
        return Ok(Start {
            base: None,
            first: position,
            after: None,
        });
    };
    if token.terms != terms {
        return Err(NotContinued::OtherTerms);
    }
    let is_known = is_known(feed, token);
    // A removal depends on all combinations of revisions and rules since the token's base (docs/contract/changes.md#tokens), also
    // on those that the wait has gone past. With the same rules since then, there are none. A walk that goes on would begin behind
    // its last code.
    let has_other_rules =
        (token.base.as_ref()).is_some_and(|base| base.assortment != position.assortment);
    let goes_on = token.first.is_none() && is_known && has_other_rules;
    if let Some(moved) = moved.filter(|_| !goes_on) {
        return match feed.knows(&moved) {
            true => Ok(Start {
                base: Some(moved),
                first: position,
                after: None,
            }),
            false => Err(NotContinued::UnknownPosition),
        };
    }
    match token.after(feed.store_id()) {
        Ok(after) if is_known => Ok(Start {
            base: token.base,
            first: token.first.unwrap_or(position),
            after,
        }),
        _ => Err(NotContinued::UnknownPosition),
    }
}

/// Finds the next changes, within the limit of a request's work.
pub(crate) fn find<'s>(
    feed: VisibleFeed<'s>,
    request: &ChangesRequest,
    terms: TermsDigest,
    start: Start,
    now: Timestamp,
) -> Result<PageFound<'s>, NotContinued> {
    let Start { base, first, after } = start;
    let position = feed.position();
    let query = ChangesQuery {
        after,
        ..request.query.clone()
    };
    let token = Token {
        issued: now.as_second(),
        filter: request.filter_digest,
        terms,
        newest: position,
        base: Some(first),
        first: None,
        place: None,
    };
    if request.begins_now {
        return Ok(PageFound {
            changes: Vec::new(),
            next: token,
            has_more: false,
        });
    }
    let page = SearchLimit::of_request().search(|work| {
        let page = feed.page(base.as_ref(), &query, work)?;
        let is_over = page.changes.is_empty() && !page.has_more();
        // The rest of a copy that is begun isn't visible any more, and is told as removed.
        match base.is_none() && is_over && first != position {
            true => feed.page(Some(&first), &query, work),
            false => Some(page),
        }
    });
    let ChangesPage {
        changes,
        more_after,
    } = page.ok_or(NotContinued::UnknownPosition)?;
    let goes_on = more_after.is_some();
    // An empty last answer says that the copy is complete. If the catalog changed since the first one, another walk follows.
    let is_repeated = changes.is_empty() && !goes_on && first != position;
    let next = match more_after {
        Some(code) => Token {
            base,
            first: Some(first),
            ..token
        }
        .at(&code, feed.store_id()),
        None => token,
    };
    Ok(PageFound {
        changes,
        next,
        has_more: goes_on || is_repeated,
    })
}

/// Returns true if the positions and the place of a token are known.
pub(crate) fn is_known(feed: VisibleFeed<'_>, token: &Token) -> bool {
    token.positions().all(|position| feed.knows(position)) && token.after(feed.store_id()).is_ok()
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
    let PageFound {
        changes,
        next,
        has_more,
    } = found;
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
    let parts = parts((&changes, has_more), &next, &snapshot, visible);
    let length = parts.len();
    let body = move |payer: Payer<'_>| Ok(Body::page(snapshot, parts, payer.to_owned()));
    Resource::new(tag, length, body).for_audience(Audience::Feed)
}

/// Returns the parts of a page's body.
fn parts(
    (changes, has_more): (&[Change<'_>], bool),
    next: &str,
    snapshot: &Snapshot,
    visible: &Visible,
) -> Parts {
    let count = changes.len();
    let mut parts = PartsBuilder::with_capacity(count, count * CHANGE_TEXT_BYTES);
    let mut products = visible.writer(snapshot);
    let mut start = &b"{\"changes\":[{\"code\":\""[..];
    for change in changes {
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
    parts.text(match changes.is_empty() {
        true => b"{\"changes\":[",
        false => b"}",
    });
    let has_more = if has_more { "true" } else { "false" };
    for text in ["],\"next\":\"", next, "\",\"has_more\":", has_more, "}"] {
        parts.text(text.as_bytes());
    }
    parts.finish()
}
