//! Events of the format `product.update`: one for each product and revision, with its states before and after, from the store's
//! history (docs/contract/webhooks.md#updates-of-products).
//!
//! An endpoint goes from its position on revision by revision, within each by codes. Rules of its assortment that changed come
//! last, as a step of their own; if another revision comes meanwhile, each of its products is sent by the rules by which it was
//! sent before. If the history isn't known any more, everything visible is sent as new.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;
use vitrine_model::assortment::Assortment;
use vitrine_model::changes::{ChangesQuery, Position, StateId};
use vitrine_model::code::ProductCode;
use vitrine_model::key::KeyTable;
use vitrine_model::revision::Revision;
use vitrine_model::selector::Selector;
use vitrine_store::record::{Moment, StoredProduct};
use vitrine_store::webhooks::{Endpoint, EventFormat, Lease, PendingEvent};
use vitrine_store::{Store, StoreError};
use vitrine_wire::event::ProductUpdate;

use super::event::{EventSource, News, UNKNOWN, json, milliseconds, random_id, visible};
use super::place::{Part, Place};
use super::state::State;
use super::work::{LOOK_AGAIN, Work};
use crate::live::{Feed, VisibleFeed};

/// Maximum number of changes of a revision that are read at once.
const CHUNK: u32 = 64;

/// Maximum number of parts that were sent by different rules. Each edit of rules while rules are being sent adds one; beyond
/// the maximum, everything visible is sent as new.
const MAX_PARTS: usize = 16;

/// Maximum time of a search for the next events of all endpoints whose turn it is; then the places that were reached are stored.
const MAX_SEARCH: Duration = Duration::from_millis(100);

/// An endpoint whose next event is wanted.
struct Wanted {
    endpoint: Endpoint,
    /// Its position.
    since: String,
    filter: Selector,
    /// True if a position that is newer than the catalog here is taken for one that was lost.
    gives_up_ahead: bool,
}

/// Returns whether an endpoint has something to be sent: by its position alone, without reading the store.
pub(super) fn outlook(
    source: &mut EventSource,
    (endpoint, since): (&Endpoint, &str),
    gives_up_ahead: bool,
) -> News {
    let (feed, keys) = (Arc::clone(&source.feed), Arc::clone(&source.keys));
    let Some(seen) = visible(&feed, &keys, endpoint) else {
        return News::Unknown;
    };
    let end = seen.position();
    let unsettled = source.unsettled(&endpoint.key, end.assortment);
    let place = read_place(since, seen, end);
    if place == Place::at(end) {
        return News::None(place.text());
    }
    if !can_follow(&feed, end, &place) && !gives_up_ahead {
        return News::Ahead;
    }
    // Former rules are read a moment after newer ones; until then, they only seem to be lost.
    let are_rules_known = seen.version(place.base.assortment).is_some();
    unsettled
        .filter(|_| !are_rules_known)
        .map_or(News::Due, News::Later)
}

/// Returns true if the catalog here may be later than a place. While the history isn't read yet, changes of rules aren't known,
/// which doesn't mean that they are lost.
fn can_follow(feed: &Feed, end: Position, place: &Place) -> bool {
    end.may_follow(&place.base) && feed.journal.is_some()
}

/// Reads the place of an endpoint. The live revision may have had another id, before the store was restored.
fn read_place(since: &str, seen: VisibleFeed<'_>, end: Position) -> Place {
    let mut place = Place::read(since, end);
    if place.base.number == end.number && seen.knows(&place.base) {
        place.base.revision = end.revision;
    }
    place
}

impl Work {
    /// Looks in the store for the next events of the format `product.update`.
    pub(super) async fn find_updates(
        &mut self,
        taken: &[(Lease, Endpoint)],
    ) -> HashMap<String, News> {
        let Some(source) = &self.source else {
            return HashMap::new();
        };
        let (feed, keys) = (Arc::clone(&source.feed), Arc::clone(&source.keys));
        let wanted = taken.iter().filter_map(|(_, endpoint)| {
            let entry = self.entries.get(&endpoint.id)?;
            let request = entry.request.as_ref()?;
            let (since, is_pending) = match entry.is_lost {
                true => (UNKNOWN, false),
                false => (
                    endpoint.progress.position.as_str(),
                    endpoint.progress.pending.is_some(),
                ),
            };
            let is_wanted = endpoint.format == EventFormat::ProductUpdate
                && endpoint.test.is_none()
                && !is_pending;
            is_wanted.then(|| Wanted {
                endpoint: endpoint.clone(),
                since: since.to_owned(),
                filter: request.query.filter.clone(),
                gives_up_ahead: entry.gives_up(),
            })
        });
        let wanted: Vec<Wanted> = wanted.collect();
        if wanted.is_empty() {
            return HashMap::new();
        }
        let ids: Vec<String> = (wanted.iter())
            .map(|wanted| wanted.endpoint.id.clone())
            .collect();
        let found = self.on_store(move |store| {
            let deadline = Instant::now() + MAX_SEARCH;
            let next = |wanted: &Wanted| match Instant::now() < deadline {
                true => next(store, (&feed, &keys), wanted, deadline),
                // Others wait for their turns: this one comes later.
                false => Ok(News::Due),
            };
            wanted.iter().map(next).collect::<Result<Vec<News>, _>>()
        });
        match found.await {
            Some(found) => ids.into_iter().zip(found).collect(),
            None => {
                for id in ids {
                    if let Some(entry) = self.entries.get_mut(&id) {
                        entry.not_before = Some(Instant::now() + LOOK_AGAIN);
                    }
                    self.set_timer(&id, LOOK_AGAIN + LOOK_AGAIN);
                }
                HashMap::new()
            }
        }
    }
}

/// Returns the next event of an endpoint, or the place that was reached without one.
///
/// # Errors
///
/// If the store can't be read.
fn next(
    store: &Store,
    (feed, keys): (&Feed, &KeyTable),
    wanted: &Wanted,
    deadline: Instant,
) -> Result<News, StoreError> {
    let Wanted {
        endpoint,
        since,
        filter,
        gives_up_ahead,
    } = wanted;
    let Some(seen) = visible(feed, keys, endpoint) else {
        return Ok(News::Unknown);
    };
    let end = seen.position();
    let mut walker = Walker {
        store,
        seen,
        end,
        filter,
        place: read_place(since, seen, end),
    };
    if walker.place != Place::at(end) && !can_follow(feed, end, &walker.place) {
        if !gives_up_ahead {
            return Ok(News::Ahead);
        }
        walker.place = Place::walk(end);
    }
    // At least once, so that each turn comes further.
    while walker.place != Place::at(end) {
        let sent = match walker.step() {
            Ok(sent) => sent,
            Err(StoreError::Pruned { .. }) => {
                walker.place = Place::walk(end);
                continue;
            }
            Err(error) => return Err(error),
        };
        if let Some(event) = sent {
            return Ok(News::Event(Box::new(event)));
        }
        if Instant::now() >= deadline {
            break;
        }
    }
    Ok(News::None(walker.place.text()))
}

/// A product before or after a change, if it was there, and the assortment then; none for everything.
type Side<'s> = (Option<&'s StoredProduct>, &'s Option<Arc<Assortment>>);

/// Search for the next event.
struct Walker<'w> {
    store: &'w Store,
    seen: VisibleFeed<'w>,
    end: Position,
    filter: &'w Selector,
    place: Place,
}

impl Walker<'_> {
    /// Reads on from the place; returns the first event that is found.
    fn step(&mut self) -> Result<Option<PendingEvent>, StoreError> {
        let (base, end) = (self.place.base, self.end);
        if self.place.is_walk {
            self.walk()
        } else if base.number < end.number {
            self.revision(base.number + 1)
        } else if base.revision != end.revision {
            self.place = Place::walk(end);
            Ok(None)
        } else {
            self.rules()
        }
    }

    /// Sends the next visible product as new: as it was when the walk began, since later revisions are sent after it.
    fn walk(&mut self) -> Result<Option<PendingEvent>, StoreError> {
        let base = self.place.base;
        let first = (self.seen).first_code(None, self.query(self.place.sent.as_ref()));
        let Some(code) = first.flatten() else {
            self.place = Place::at(base);
            return Ok(None);
        };
        let Some(rules) = self.seen.version(base.assortment) else {
            self.place = Place::walk(self.end);
            return Ok(None);
        };
        let product = self.store.product(&code, Moment::Revision(base.number))?;
        let (old, new) = ((None, &None), (product.as_ref(), &rules));
        let next = self.place.behind(&code);
        Ok(self.reach(&code, (old, new), Timestamp::now(), next))
    }

    /// Tells the next change of a revision.
    fn revision(&mut self, number: u64) -> Result<Option<PendingEvent>, StoreError> {
        let base = self.place.base;
        let id_of = |revision: &Revision| StateId::of_revision(&revision.id);
        let before = self.store.revision(base.number)?;
        let before = before.map(|published| id_of(&published.revision));
        let is_known = base.number == 0 || before == Some(base.revision) || self.seen.knows(&base);
        let (true, Some(published)) = (is_known, self.store.revision(number)?) else {
            self.place = Place::walk(self.end);
            return Ok(None);
        };
        let at = published.revision.created_at;
        let sent = self.place.sent.clone();
        let changes = (self.store).revision_changes(number, None, sent.as_ref(), CHUNK)?;
        for change in &changes {
            let code = &change.code;
            if !self.filter.selects_code(code.as_str()) {
                continue;
            }
            let Some(rules) = self.seen.version(self.place.rules_of(code)) else {
                self.place = Place::walk(self.end);
                return Ok(None);
            };
            let old = match base.number {
                0 => None,
                before => self.store.product(code, Moment::Revision(before))?,
            };
            let new = self.store.product(code, Moment::Revision(number))?;
            let (old, new) = ((old.as_ref(), &rules), (new.as_ref(), &rules));
            if let Some(event) = self.event(code, (old, new), at, &self.place.behind(code)) {
                return Ok(Some(event));
            }
        }
        let is_last = changes.len() < usize::try_from(CHUNK).unwrap_or(usize::MAX);
        self.place = match changes.last() {
            Some(last) if !is_last => self.place.behind(&last.code),
            _ => self.place.after_revision(Position {
                number,
                revision: id_of(&published.revision),
                ..base
            }),
        };
        Ok(None)
    }

    /// Sends the next product that other rules treat differently from those by which it was sent before.
    fn rules(&mut self) -> Result<Option<PendingEvent>, StoreError> {
        let (base, end) = (self.place.base, self.end);
        let sent = self.place.last_by(end.assortment).cloned();
        let is_rest = |part: &&Part| sent.as_ref().is_none_or(|sent| part.last > *sent);
        let part = self.place.parts.iter().find(is_rest).cloned();
        let id = part.as_ref().map_or(base.assortment, |part| part.rules);
        let since = Position {
            assortment: id,
            ..end
        };
        let first = (self.seen).first_code(Some(&since), self.query(sent.as_ref()));
        let (Some(first), Some(before), ..=MAX_PARTS) =
            (first, self.seen.version(id), self.place.parts.len())
        else {
            self.place = Place::walk(end);
            return Ok(None);
        };
        let is_in_part = |code: &ProductCode| part.as_ref().is_none_or(|part| *code <= part.last);
        let Some(code) = first.filter(is_in_part) else {
            self.place = match part {
                Some(part) => self.place.with_rules(end.assortment, &part.last),
                None => Place::at(end),
            };
            return Ok(None);
        };
        let product = (self.store).product(&code, Moment::Revision(end.number))?;
        let after = self.seen.version(end.assortment).flatten();
        let sides = ((product.as_ref(), &before), (product.as_ref(), &after));
        let next = self.place.with_rules(end.assortment, &code);
        Ok(self.reach(&code, sides, Timestamp::now(), next))
    }

    fn query(&self, after: Option<&ProductCode>) -> ChangesQuery {
        ChangesQuery {
            filter: self.filter.clone(),
            after: after.cloned(),
            ..ChangesQuery::default()
        }
    }

    /// Returns the event of a product, after which `next` is the place; that is reached without one if there is nothing to send.
    fn reach(
        &mut self,
        code: &ProductCode,
        sides: (Side<'_>, Side<'_>),
        at: Timestamp,
        next: Place,
    ) -> Option<PendingEvent> {
        let event = self.event(code, sides, at, &next);
        if event.is_none() {
            self.place = next;
        }
        event
    }

    /// Returns the event of a product with its states, after which `next` is the place; none if it is visible in neither.
    fn event(
        &self,
        code: &ProductCode,
        (old, new): (Side<'_>, Side<'_>),
        at: Timestamp,
        next: &Place,
    ) -> Option<PendingEvent> {
        let state = |(product, rules): Side<'_>| {
            let rules = rules.as_ref().map(|assortment| assortment.rules());
            product.and_then(|product| State::of(product, rules, self.filter))
        };
        let (old_state, new_state) = (state(old), state(new));
        if old_state.is_none() && new_state.is_none() {
            return None;
        }
        Some(PendingEvent {
            id: random_id(),
            body: json(&ProductUpdate {
                product_code: code.as_str().into(),
                old_state: old_state.as_ref().map(State::wire),
                new_state: new_state.as_ref().map(State::wire),
                timestamp: milliseconds(at),
            }),
            end: next.text(),
            failures: 0,
        })
    }
}
