//! Events: what an endpoint is sent (docs/contract/webhooks.md#events).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use serde::Serialize;
use tokio::time::Instant;
use vitrine_model::changes::{ChangesQuery, Position, StateId, Work};
use vitrine_model::key::KeyTable;
use vitrine_model::query::Limit;
use vitrine_model::version::ApiVersion;
use vitrine_store::webhooks::{Endpoint, EventFormat, PendingEvent};
use vitrine_wire::event::{CatalogChanged, ChangedCatalog, LiveRevision, NoData, WebhookTest};

use super::seen::SETTLED;
use crate::http::request::changes_token::{TermsDigest, Token};
use crate::http::request::parameters::ChangesRequest;
use crate::live::{Feed, VisibleFeed};

/// Type of an event of changes.
const CHANGED: &str = EventFormat::CatalogChanged.as_str();

/// Type of a test event.
pub(super) const TEST: &str = "webhook.test";

/// A position that nobody knows.
pub(super) const UNKNOWN: &str = "?";

/// Maximum number of codes that an event names.
const MAX_CODES: usize = 100;

/// Catalog and keys of one moment, of which events are made.
pub(super) struct EventSource {
    pub(super) feed: Arc<Feed>,
    pub(super) keys: Arc<KeyTable>,
    /// Position that every server has reached by now, or the time until there is one.
    pub(super) anchor: Result<Position, Duration>,
    /// Versions of assortments that keys have here, and since when.
    assortments: HashMap<String, (StateId, Instant)>,
    /// Results so far, by assortment, filters and position: many endpoints may share them.
    found: HashMap<(Option<String>, String, Position), Option<Arc<Summary>>>,
}

/// Number of changes, and the codes if they are few.
#[derive(Debug, Default)]
struct Summary {
    changed: u64,
    removed: u64,
    codes: Option<Vec<String>>,
}

/// Changes to send to an endpoint.
struct Found {
    /// Position since which they are known; none if the copy restarts.
    base: Option<Position>,
    summary: Arc<Summary>,
    /// Position of the catalog here.
    end: Position,
    /// Position that is acknowledged with the event.
    acknowledged: Position,
    /// Version of `changes_url`, and name of the assortment.
    terms: (ApiVersion, Option<String>),
}

/// News of an endpoint.
#[derive(Debug)]
pub(super) enum News {
    /// Nothing visible changed until this position.
    None(String),
    /// An event to deliver.
    Event(Box<PendingEvent>),
    /// There is an event to be made, or perhaps one in the store.
    Due,
    /// Its position is newer than the catalog here.
    Ahead,
    /// Its copy has to restart, but not yet: other servers may not show this catalog.
    Later(Duration),
    /// Its key is refused, or what the key sees is unknown.
    Unknown,
}

/// Returns a position as the store keeps it.
pub(super) fn position_text(position: &Position) -> String {
    URL_SAFE_NO_PAD.encode(position.to_bytes())
}

pub(super) fn position(text: &str) -> Option<Position> {
    let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
    Some(Position::from_bytes(bytes.as_slice().try_into().ok()?))
}

/// Returns the body of a test event.
pub(super) fn test_body(now: Timestamp) -> String {
    json(&WebhookTest {
        kind: TEST.into(),
        timestamp: milliseconds(now),
        data: NoData {},
    })
}

/// Returns a body: texts and numbers only, so that it can't fail.
pub(super) fn json(body: &impl Serialize) -> String {
    serde_json::to_string(body).unwrap_or_default()
}

pub(super) fn milliseconds(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}

impl EventSource {
    /// Returns a source; `before` is the last one.
    pub(super) fn new(
        feed: Arc<Feed>,
        keys: Arc<KeyTable>,
        anchor: Result<Position, Duration>,
        before: Option<Self>,
    ) -> Self {
        Self {
            feed,
            keys,
            anchor,
            assortments: before.map(|before| before.assortments).unwrap_or_default(),
            found: HashMap::new(),
        }
    }

    /// Returns the time until every server shows a key the version of an assortment that it has here.
    pub(super) fn unsettled(&mut self, key: &str, version: StateId) -> Option<Duration> {
        let seen = self.assortments.entry(key.to_owned());
        let (seen, since) = seen.or_insert_with(|| (version, Instant::now()));
        if *seen != version {
            (*seen, *since) = (version, Instant::now());
        }
        let left = SETTLED.checked_sub(since.elapsed());
        left.filter(|left| !left.is_zero())
    }

    /// Returns true if the key of an endpoint is accepted.
    pub(super) fn is_key_active(&self, endpoint: &Endpoint, now: Timestamp) -> bool {
        let key = self.keys.get(&endpoint.key);
        key.is_some_and(|key| key.record.is_active(now))
    }

    /// Returns the news of an endpoint since a position, without making its event. `gives_up_ahead` is true if a newer position
    /// is taken for one that was lost.
    pub(super) fn outlook(
        &mut self,
        endpoint: &Endpoint,
        request: &ChangesRequest,
        since: &str,
        gives_up_ahead: bool,
    ) -> News {
        let found = self.find(endpoint, request, since, gives_up_ahead);
        found.map_or_else(|news| news, |_| News::Due)
    }

    /// Returns the news of an endpoint since a position, with its event.
    pub(super) fn news(
        &mut self,
        endpoint: &Endpoint,
        request: &ChangesRequest,
        since: &str,
        public_url: &str,
        gives_up_ahead: bool,
    ) -> News {
        let Found {
            base,
            summary,
            end,
            acknowledged,
            terms,
        } = match self.find(endpoint, request, since, gives_up_ahead) {
            Ok(found) => found,
            Err(news) => return news,
        };
        let now = Timestamp::now();
        let (version, assortment) = terms;
        let terms = TermsDigest::of(
            version.as_str(),
            public_url,
            self.feed.damaged,
            assortment.as_deref(),
        );
        let token = base.map(|base| Token {
            issued: now.as_second(),
            filter: request.filter_digest,
            terms,
            // A server that is behind reads the store before it answers.
            newest: end,
            base: Some(base),
            first: None,
            place: None,
        });
        let changes_url = changes_url(public_url, &endpoint.filters, token.as_ref());
        News::Event(Box::new(PendingEvent {
            id: random_id(),
            body: changed_body(&self.feed, &summary, changes_url, base.is_none(), now),
            end: position_text(&acknowledged),
            failures: 0,
        }))
    }

    /// Looks for changes since a position; without any, returns the news.
    fn find(
        &mut self,
        endpoint: &Endpoint,
        request: &ChangesRequest,
        since: &str,
        gives_up_ahead: bool,
    ) -> Result<Found, News> {
        let (feed, keys) = (Arc::clone(&self.feed), Arc::clone(&self.keys));
        let seen = visible(&feed, &keys, endpoint).ok_or(News::Unknown)?;
        let end = seen.position();
        let unsettled = self.unsettled(&endpoint.key, end.assortment);
        let since = position(since);
        let known = since.filter(|since| seen.knows(since));
        if known == Some(end) {
            return Err(News::None(position_text(&end)));
        }
        if let (Some(since), None) = (since, known) {
            let is_ahead = !end.may_follow(&since) || feed.journal.is_none();
            if is_ahead && !gives_up_ahead {
                return Err(News::Ahead);
            }
        }
        let assortment = seen.assortment().map(str::to_owned);
        let found = known.map(|since| {
            let key = (assortment.clone(), endpoint.filters.clone(), since);
            let found = self.found.entry(key);
            let found = found.or_insert_with(|| summary(&seen, &since, request).map(Arc::new));
            (since, found.clone())
        });
        let (base, summary) = match found {
            Some((since, Some(summary))) => (Some(since), summary),
            _ => (None, Arc::default()),
        };
        if base.is_some() && summary.changed + summary.removed == 0 {
            return Err(News::None(position_text(&end)));
        }
        // A copy may restart at a server that is a moment behind: it is sent again what that server didn't show.
        let acknowledged = match (base, self.anchor, unsettled) {
            (Some(_), ..) => end,
            (None, Ok(anchor), None) => Position {
                assortment: end.assortment,
                ..anchor
            },
            (None, Err(left), _) | (None, Ok(_), Some(left)) => return Err(News::Later(left)),
        };
        let key = keys.get(&endpoint.key);
        let version = key.and_then(|key| key.record.api_version.as_deref());
        let version = endpoint.api_version.as_deref().or(version);
        let version = version.and_then(|date| date.parse().ok());
        Ok(Found {
            base,
            summary,
            end,
            acknowledged,
            terms: (version.unwrap_or_default(), assortment),
        })
    }
}

/// Returns the feed as the key of an endpoint sees it; `None` if the key is refused, or what it sees is unknown.
pub(super) fn visible<'f>(
    feed: &'f Feed,
    keys: &'f KeyTable,
    endpoint: &Endpoint,
) -> Option<VisibleFeed<'f>> {
    let now = Timestamp::now();
    let key = keys.get(&endpoint.key);
    let key = key.filter(|key| key.record.is_active(now))?;
    VisibleFeed::of_key(feed, key, now)
}

/// Returns the body of an event of changes.
fn changed_body(
    feed: &Feed,
    summary: &Summary,
    changes_url: String,
    resync: bool,
    now: Timestamp,
) -> String {
    let revision = feed.snapshot.revision();
    let codes = summary.codes.as_ref();
    json(&CatalogChanged {
        kind: CHANGED.into(),
        timestamp: milliseconds(now),
        data: ChangedCatalog {
            revision: LiveRevision {
                number: revision.number,
                published_at: milliseconds(revision.created_at),
            },
            changed: summary.changed,
            removed: summary.removed,
            codes: codes.map(|codes| codes.iter().map(Into::into).collect()),
            resync,
            changes_url,
        },
    })
}

/// Returns a random id of an event.
pub(super) fn random_id() -> String {
    let mut bytes = [0; 16];
    // Without random numbers there would be no keys, either.
    let _ = getrandom::fill(&mut bytes);
    format!("msg_{}", URL_SAFE_NO_PAD.encode(bytes))
}

fn changes_url(public_url: &str, filters: &str, since: Option<&Token>) -> String {
    let since = since.map(|token| format!("since={token}"));
    let filters = (!filters.is_empty()).then(|| filters.to_owned());
    let query: Vec<String> = filters.into_iter().chain(since).collect();
    let mark = if query.is_empty() { "" } else { "?" };
    format!("{public_url}/v2/product/changes{mark}{}", query.join("&"))
}

/// Counts the changes since a known position; `None` if it became unknown.
fn summary(seen: &VisibleFeed<'_>, since: &Position, request: &ChangesRequest) -> Option<Summary> {
    let mut query = ChangesQuery {
        after: None,
        limit: Limit::default(),
        ..request.query.clone()
    };
    let (mut changed, mut removed) = (0, 0);
    let mut codes = Some(Vec::new());
    loop {
        let page = seen.page(Some(since), &query, &mut Work::unlimited())?;
        for change in &page.changes {
            match change.product {
                Some(_) => changed += 1,
                None => removed += 1,
            }
            codes = codes.filter(|codes: &Vec<String>| codes.len() < MAX_CODES);
            if let Some(codes) = &mut codes {
                codes.push(change.code().to_owned());
            }
        }
        if page.more_after.is_none() {
            return Some(Summary {
                changed,
                removed,
                codes,
            });
        }
        query.after = page.more_after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_url_has_filters_and_token() {
        let url = |filters, token| changes_url("https://catalog.example", filters, token);
        assert_eq!(url("", None), "https://catalog.example/v2/product/changes");
        assert_eq!(
            url("codes=A", None),
            "https://catalog.example/v2/product/changes?codes=A"
        );
    }

    #[test]
    fn position_is_read_back() {
        let here = Position {
            number: 7,
            ..Position::default()
        };
        assert_eq!(position(&position_text(&here)), Some(here));
        assert_eq!(position("short"), None);
    }
}
