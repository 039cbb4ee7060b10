//! Index of the rules of many versions of an assortment: which of them show a product. A lookup costs what the product has
//! values, whatever the number of versions and selectors.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;

use super::Rules;
use crate::facts::{FactsView, ValueKind};
use crate::selector::{CodeSet, Codes, Selector, ValueLists};

/// Set of versions: a bit for each, the oldest first.
pub(crate) type VersionSet = u128;

/// Versions in which a selector that holds for a product is one of `allow`, and those in which it is one of `deny`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Votes {
    allow: VersionSet,
    deny: VersionSet,
}

impl Votes {
    /// Returns the versions that show a product with these votes.
    pub(crate) fn shown(self) -> VersionSet {
        self.allow & !self.deny
    }

    pub(crate) fn or(self, other: Self) -> Self {
        Self {
            allow: self.allow | other.allow,
            deny: self.deny | other.deny,
        }
    }
}

/// Index of the rules of at most [`MAX_VERSIONS`](Self::MAX_VERSIONS) versions.
#[derive(Debug)]
pub(super) struct VersionIndex {
    versions: Box<[Arc<Rules>]>,
    /// Votes for every product.
    all: Votes,
    /// Votes by the values of products, for each [`ValueKind`].
    values: [HashMap<Box<[u8]>, Entry>; ValueKind::COUNT],
    /// Selectors with several lists, none of them of codes.
    combined: Vec<Indexed>,
    /// Selectors with codes.
    coded: Vec<Indexed>,
}

/// Result of looking up a value of a product.
#[derive(Debug, Default)]
struct Entry {
    /// Votes of selectors that have this list only.
    votes: Votes,
    /// Indexes of combined selectors of which a list has the value.
    combined: Vec<u32>,
}

/// A selector, with its votes. Equal selectors are indexed once.
#[derive(Debug, Clone, Copy)]
struct Indexed {
    place: Place,
    votes: Votes,
}

/// Place of a selector: its version, true for `deny`, and its index there.
#[derive(Debug, Clone, Copy)]
struct Place(usize, bool, usize);

/// Returns the selector at a place.
fn at(versions: &[Arc<Rules>], Place(version, is_deny, index): Place) -> Option<&Selector> {
    let rules = versions.get(version)?;
    match is_deny {
        true => rules.deny.get(index),
        false => rules.allow.as_ref()?.get(index),
    }
}

impl VersionIndex {
    /// Maximum number of versions.
    pub(super) const MAX_VERSIONS: usize = VersionSet::BITS as usize;

    /// Returns the index of these versions, the oldest first. Those beyond the maximum are left out.
    pub(super) fn new(versions: impl IntoIterator<Item = Arc<Rules>>) -> Self {
        let versions: Box<[Arc<Rules>]> = versions.into_iter().take(Self::MAX_VERSIONS).collect();
        let mut index = Self {
            versions: Box::default(),
            all: Votes::default(),
            values: Default::default(),
            combined: Vec::new(),
            coded: Vec::new(),
        };
        let mut combined = Vec::new();
        for (selector, indexed) in distinct(&versions, &mut index.all) {
            let lists = selector.lists();
            let mut present = lists.iter().enumerate().filter(|(_, list)| list.is_some());
            if selector.codes.is_some() {
                index.coded.push(indexed);
                continue;
            }
            match (present.next(), present.next()) {
                (None, _) => index.all = index.all.or(indexed.votes),
                (Some((kind, Some(only))), None) => {
                    for value in only {
                        let entry = entry(&mut index.values[kind], value);
                        entry.votes = entry.votes.or(indexed.votes);
                    }
                }
                _ => combined.push((lists, indexed)),
            }
        }
        index.add_combined(&combined);
        index.versions = versions;
        index
    }

    /// Indexes each selector by the values of one of its lists: the one whose values fewest others have.
    fn add_combined(&mut self, combined: &[(ValueLists<'_>, Indexed)]) {
        let mut uses: [HashMap<&[u8], usize>; ValueKind::COUNT] = Default::default();
        for (lists, _) in combined {
            for (uses, values) in uses.iter_mut().zip(lists) {
                for value in values.iter().flatten() {
                    *uses.entry(value).or_default() += 1;
                }
            }
        }
        for (lists, indexed) in combined {
            let number = u32::try_from(self.combined.len()).unwrap_or(u32::MAX);
            self.combined.push(*indexed);
            let cost = |(uses, values): (&HashMap<&[u8], usize>, &Vec<&[u8]>)| -> usize {
                values.iter().filter_map(|value| uses.get(value)).sum()
            };
            let lists = lists.iter().zip(&uses).enumerate();
            let lists = lists.filter_map(|(kind, (list, uses))| Some((kind, uses, list.as_ref()?)));
            let rarest = lists.min_by_key(|(_, uses, values)| cost((uses, values)));
            for (kind, value) in rarest
                .iter()
                .flat_map(|(kind, _, list)| list.iter().map(|value| (*kind, value)))
            {
                entry(&mut self.values[kind], value).combined.push(number);
            }
        }
    }

    /// Returns the votes of the selectors without codes for a product with these attributes.
    pub(crate) fn by_facts(&self, facts: &FactsView<'_>) -> Votes {
        let mut votes = self.all;
        for (kind, value) in facts.values() {
            let Some(entry) = self.values[kind as usize].get(value) else {
                continue;
            };
            votes = votes.or(entry.votes);
            for number in &entry.combined {
                let Some(indexed) = self.combined.get(*number as usize) else {
                    continue;
                };
                let is_new = votes.or(indexed.votes) != votes;
                let selector = at(&self.versions, indexed.place);
                if is_new && selector.is_some_and(|selector| selector.selects("", facts)) {
                    votes = votes.or(indexed.votes);
                }
            }
        }
        votes
    }

    /// Returns the selectors with codes, for products in the order of their codes.
    pub(crate) fn coded(&self) -> CodedSelectors<'_> {
        CodedSelectors {
            index: self,
            next: None,
            current: Vec::new(),
        }
    }
}

fn entry<'e>(entries: &'e mut HashMap<Box<[u8]>, Entry>, value: &[u8]) -> &'e mut Entry {
    entries.entry(value.into()).or_default()
}

/// Returns each selector that can hold once, with the votes of all versions that have it. `all` gets those of versions that
/// allow everything.
fn distinct<'v>(versions: &'v [Arc<Rules>], all: &mut Votes) -> Vec<(&'v Selector, Indexed)> {
    let mut numbers: HashMap<&Selector, usize> = HashMap::new();
    let mut found: Vec<(&Selector, Indexed)> = Vec::new();
    for (version, rules) in versions.iter().enumerate() {
        let bit = 1 << version;
        if rules.allow.is_none() {
            all.allow |= bit;
        }
        let allow = rules.allow.iter().flatten().enumerate();
        let deny = rules.deny.iter().enumerate();
        let lists = allow
            .map(|one| (false, one))
            .chain(deny.map(|one| (true, one)));
        for (is_deny, (index, selector)) in lists {
            let is_empty = |list: &Option<Vec<&[u8]>>| list.as_ref().is_some_and(Vec::is_empty);
            let has_no_code = selector.codes.as_ref().is_some_and(Codes::is_empty);
            if has_no_code || selector.lists().iter().any(is_empty) {
                continue;
            }
            let number = *numbers.entry(selector).or_insert_with(|| {
                let (place, votes) = (Place(version, is_deny, index), Votes::default());
                found.push((selector, Indexed { place, votes }));
                found.len() - 1
            });
            let votes = &mut found[number].1.votes;
            match is_deny {
                true => votes.deny |= bit,
                false => votes.allow |= bit,
            }
        }
    }
    found
}

/// A code, the lowest first, with its selector's number and its index there.
type NextCode<'i> = Reverse<(&'i str, usize, usize)>;

/// Selectors with codes, merged by these, so that a lookup touches only those that have the product's code.
pub(crate) struct CodedSelectors<'i> {
    index: &'i VersionIndex,
    /// The next code of each selector that has any left; `None` before the first lookup.
    next: Option<BinaryHeap<NextCode<'i>>>,
    /// Numbers of the selectors with the current code.
    current: Vec<usize>,
}

impl<'i> CodedSelectors<'i> {
    /// Goes to the product with this code, which must not be before that of the last call.
    pub(crate) fn seek(&mut self, code: &str) {
        let index = self.index;
        let codes = |number: usize| -> Option<&'i CodeSet> {
            let indexed = index.coded.get(number)?;
            let codes = at(&index.versions, indexed.place)?.codes.as_ref()?;
            Some(codes.exact())
        };
        let from = |number: usize, start: usize| {
            let codes = codes(number)?;
            let first = codes.first_from(code, start);
            (first < codes.len()).then(|| Reverse((codes.get(first), number, first)))
        };
        let next = self.next.get_or_insert_with(|| {
            let numbers = 0..index.coded.len();
            numbers.filter_map(|number| from(number, 0)).collect()
        });
        self.current.clear();
        while let Some(Reverse((first, number, start))) = next.peek().copied()
            && first <= code
        {
            next.pop();
            let start = match first == code {
                true => {
                    self.current.push(number);
                    start + 1
                }
                false => start,
            };
            next.extend(from(number, start));
        }
    }

    /// Returns the votes for the current product with these attributes.
    pub(crate) fn votes(&self, code: &str, facts: &FactsView<'_>) -> Votes {
        let indexed = self
            .current
            .iter()
            .filter_map(|number| self.index.coded.get(*number));
        indexed.fold(Votes::default(), |votes, indexed| {
            let selector = at(&self.index.versions, indexed.place);
            match selector.is_some_and(|selector| selector.selects(code, facts)) {
                true => votes.or(indexed.votes),
                false => votes,
            }
        })
    }

    /// Returns true if no selector has the current code.
    pub(crate) fn is_empty(&self) -> bool {
        self.current.is_empty()
    }
}
