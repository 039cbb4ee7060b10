//! The journal of changes against a naive history, and copies that clients keep by it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use proptest::prelude::*;
use vitrine_model::changes::{
    ChangesPage, ChangesQuery, Journal, Point, Position, Work, first_page,
};
use vitrine_model::query::Limit;
use vitrine_model::selector::Selector;
use vitrine_model::snapshot::Snapshot;

use crate::history::{History, Operation, operations};
use crate::naive::{code, filter};

/// Number of the first revision.
const FIRST: u64 = 7;

/// Codes with bytes, or `None` for removals.
pub type Changes = Vec<(String, Option<String>)>;

/// Returns the changes on a page.
pub fn shown(snapshot: &Snapshot, page: &ChangesPage) -> Changes {
    let bytes = |run| String::from_utf8(snapshot.slice(snapshot.run(run)).to_vec()).expect("text");
    let changes = page.changes.iter();
    changes
        .map(|change| (change.code().to_string(), change.product.map(bytes)))
        .collect()
}

/// Returns a journal that is read at the start and at each of these moments, and the moments.
fn read_in_steps(history: &History, start: usize, steps: &[usize]) -> (Journal, Vec<usize>) {
    let mut at = start;
    let mut journal = history.journal(0, at);
    let mut moments = vec![at];
    for step in steps {
        let next = history.last().min(at + step);
        journal = history.extended(&journal, at, next);
        at = next;
        moments.push(at);
    }
    let last = history.last();
    moments.push(last);
    (history.extended(&journal, at, last), moments)
}

/// Asserts that a walk from each known moment to the newest one finds what the naive history does.
fn assert_walks(
    history: &History,
    journal: &Journal,
    filter: &Selector,
    limit: u16,
) -> Result<usize, TestCaseError> {
    let last = history.last();
    let snapshot = history.snapshot(last);
    let until = journal.locate(&history.position(last)).expect("the newest");
    let mut known = 0;
    for since in 0..=last {
        let Some(point) = journal.locate(&history.position(since)) else {
            continue;
        };
        known += 1;
        let mut walk: Changes = Vec::new();
        let mut query = ChangesQuery {
            filter: filter.clone(),
            after: None,
            limit: Limit::new(limit).expect("a limit"),
        };
        loop {
            let work = &mut Work::unlimited();
            let page = journal.changes(&snapshot, [point, until], &query, None, work);
            walk.extend(shown(&snapshot, &page));
            prop_assert!(page.changes.len() <= usize::from(limit));
            let Some(after) = page.more_after else {
                break;
            };
            prop_assert_eq!(page.changes.len(), usize::from(limit));
            query.after = Some(after);
        }
        let expected: Changes = history.changes([since, last], filter).into_iter().collect();
        prop_assert_eq!(walk, expected, "since {}", since);
    }
    Ok(known)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn walks_find_each_change_once_however_journals_are_read(
        operations in operations(),
        filter in filter(),
        limit in 1..5_u16,
        start in any::<prop::sample::Index>(),
        steps in prop::collection::vec(0..4_usize, 0..30),
    ) {
        let history = History::of(FIRST, &operations);
        let start = start.index(history.moments.len());
        let at_once = history.journal(0, history.last());
        assert_walks(&history, &at_once, &filter, limit)?;
        let (stepwise, _) = read_in_steps(&history, start, &steps);
        assert_walks(&history, &stepwise, &filter, limit)?;
        let all_steps = vec![1; history.moments.len()];
        let (stepwise, moments) = read_in_steps(&history, 0, &all_steps);
        prop_assert_eq!(moments.len(), history.moments.len() + 2);
        let known = assert_walks(&history, &stepwise, &filter, limit)?;
        prop_assert_eq!(known, history.moments.len(), "it saw every id");
        let written = Journal::from_bytes(&stepwise.to_bytes());
        prop_assert_eq!(written.as_ref(), Ok(&stepwise));
    }

    #[test]
    fn trimmed_journals_answer_alike_as_far_as_they_reach(
        operations in operations(),
        filter in filter(),
        steps in prop::collection::vec(1..4_usize, 0..30),
        max_bytes in prop_oneof![0..3_000_usize, Just(usize::MAX)],
        kept_since in 0..50_i64,
    ) {
        let history = History::of(FIRST, &operations);
        let (journal, _) = read_in_steps(&history, 0, &steps);
        let time = Timestamp::from_second(kept_since).expect("a time");
        let trimmed = journal.clone().trimmed(max_bytes, time);
        prop_assert!(trimmed.bytes() <= max_bytes);
        let known = assert_walks(&history, &trimmed, &filter, 3)?;
        prop_assert!(known > 0, "the newest state is always known");
        if max_bytes == usize::MAX {
            for at in 0..=history.last() {
                let position = history.position(at);
                let (before, after) = (journal.locate(&position), trimmed.locate(&position));
                let ended = before.and_then(|point| journal.replaced_at(point));
                let is_kept = ended.is_none_or(|ended| ended >= time);
                prop_assert!(after == before || !is_kept, "{before:?}, {after:?}");
            }
        }
        let read = Journal::from_bytes(&trimmed.to_bytes());
        prop_assert_eq!(read.as_ref(), Ok(&trimmed));
    }

    #[test]
    fn pages_between_any_two_states_match_the_naive_history(
        operations in operations(),
        filter in filter(),
        after in prop::option::of(code()),
        limit in 1..9_u16,
        points in any::<[prop::sample::Index; 2]>(),
    ) {
        let history = History::of(FIRST, &operations);
        let (journal, _) = read_in_steps(&history, 0, &vec![1; history.moments.len()]);
        let points = points.map(|point| point.index(history.moments.len()));
        let [since, until] = points.map(|at| journal.locate(&history.position(at)).expect("known"));
        let snapshot = history.snapshot(points[1]);
        let query = ChangesQuery {
            filter,
            after,
            limit: Limit::new(limit).expect("a limit"),
        };
        let work = &mut Work::unlimited();
        let page = journal.changes(&snapshot, [since, until], &query, None, work);
        let expected: Changes = match points[0] <= points[1] {
            true => history.changes(points, &query.filter).into_iter().collect(),
            // A server that is behind has nothing to tell.
            false => Vec::new(),
        };
        let is_after = |code: &str| query.after.as_ref().is_none_or(|after| code > after.as_str());
        let rest = expected.into_iter().filter(|(code, _)| is_after(code));
        let mut expected: Changes = rest.collect();
        prop_assert_eq!(page.has_more(), expected.len() > usize::from(limit));
        expected.truncate(limit.into());
        prop_assert_eq!(shown(&snapshot, &page), expected);
    }

    #[test]
    fn copies_equal_the_list_at_rest_on_any_server(
        operations in operations(),
        filter in filter(),
        limit in 1..4_u16,
        products in prop_oneof![1..5_usize, Just(usize::MAX)],
        // Server, and how far it goes on before it answers.
        requests in prop::collection::vec((0..2_usize, 0..4_usize), 1..40),
    ) {
        let history = History::of(FIRST, &operations);
        let mut servers = [Server::new(&history, 0), Server::new(&history, history.last() / 3)];
        let mut client = Client::new(filter, limit, products);
        for (server, ahead) in requests {
            let at = servers[server].at + ahead;
            servers[server].go_on(&history, at);
            client.ask(&history, &mut servers[server])?;
        }
        // At rest, there are as many answers as two walks have, and one that is empty.
        for server in &mut servers {
            server.go_on(&history, usize::MAX);
        }
        let mut count = 0;
        while !client.ask(&history, &mut servers[count % 2])? {
            count += 1;
            prop_assert!(count < 40, "it ends");
        }
        prop_assert_eq!(&client.copy, &history.list(history.last(), &client.query.filter));
    }
}

/// A server, which may be behind its store.
struct Server {
    at: usize,
    journal: Journal,
}

impl Server {
    fn new(history: &History, at: usize) -> Self {
        let journal = history.journal(0, at);
        Self { at, journal }
    }

    /// Reads the store as of a later moment.
    fn go_on(&mut self, history: &History, at: usize) {
        let at = at.max(self.at).min(history.last());
        self.journal = history.extended(&self.journal, self.at, at);
        self.at = at;
    }
}

/// A client with its copy and the parts of its token.
struct Client {
    query: ChangesQuery,
    /// Number of products that its answers may look at.
    products: usize,
    copy: BTreeMap<String, String>,
    /// Moment of the base; none while the copy begins.
    base: Option<usize>,
    /// Moments that the first page of the walk showed, and the newest one that any did.
    first_shown: Option<usize>,
    newest: usize,
}

impl Client {
    fn new(filter: Selector, limit: u16, products: usize) -> Self {
        Self {
            products,
            query: ChangesQuery {
                filter,
                after: None,
                limit: Limit::new(limit).expect("a limit"),
            },
            copy: BTreeMap::new(),
            base: None,
            first_shown: None,
            newest: 0,
        }
    }

    /// Returns the point of a moment, as far as the server knows it.
    fn locate(server: &Server, history: &History, at: usize) -> Option<Point> {
        let position: Position = history.position(at);
        server.journal.locate(&position)
    }

    /// Asks for changes and stores them. Returns true if the answer was empty.
    fn ask(&mut self, history: &History, server: &mut Server) -> Result<bool, TestCaseError> {
        // A server that is behind the token looks at its store.
        server.go_on(history, self.newest);
        let at = server.at;
        let snapshot = history.snapshot(at);
        let until = Self::locate(server, history, at).expect("the newest");
        let work = &mut Work::new(self.products, &|| false);
        let page = match self.base {
            None => first_page(&snapshot, &self.query, None, work),
            Some(base) => {
                let Some(since) = Self::locate(server, history, base) else {
                    // Restored twice since: the answer is 410, and the copy begins anew.
                    let limit = u16::try_from(self.query.limit.get()).expect("small");
                    *self = Self::new(self.query.filter.clone(), limit, self.products);
                    return Ok(false);
                };
                prop_assert!(since.is_reached_by(until));
                server
                    .journal
                    .changes(&snapshot, [since, until], &self.query, None, work)
            }
        };
        for (code, product) in shown(&snapshot, &page) {
            let parsed = code.parse().expect("a code");
            match product {
                Some(bytes) => drop(self.copy.insert(code, bytes)),
                None => {
                    let base = self.base.expect("without a base, nothing is removed");
                    let filter = &self.query.filter;
                    let was_visible = |at| history.visible(at, &parsed, filter).is_some();
                    prop_assert!((base..at).any(was_visible), "leaked {code}");
                    self.copy.remove(&code);
                }
            }
        }
        let first_shown = *self.first_shown.get_or_insert(at);
        self.newest = self.newest.max(at);
        let is_empty = page.changes.is_empty();
        self.query.after = page.more_after;
        if self.query.after.is_some() {
            return Ok(false);
        }
        self.base = Some(first_shown);
        self.first_shown = None;
        // Otherwise the catalog changed during the walk, and another walk follows.
        let is_at_rest = is_empty && first_shown == at;
        if is_at_rest {
            prop_assert_eq!(&self.copy, &history.list(at, &self.query.filter));
        }
        Ok(is_at_rest)
    }
}

#[test]
fn restored_revision_is_known_by_its_former_id() {
    let operations = vec![Operation::Publish(vec![]), Operation::Restore];
    let history = History::of(FIRST, &operations);
    let before = history.journal(0, 1);
    let known = |journal: &Journal| {
        let moments = 0..=history.last();
        let known = moments.filter(|at| journal.locate(&history.position(*at)).is_some());
        known.collect::<Vec<_>>()
    };
    assert_eq!(known(&before), [0, 1], "the new id isn't known yet");
    assert_eq!(known(&history.extended(&before, 1, 2)), [0, 1, 2]);
    assert_eq!(known(&history.journal(0, 2)), [0, 1, 2]);
    assert_eq!(
        known(&history.journal(1, 2)),
        [1, 2],
        "revision 8 is the oldest"
    );
}
