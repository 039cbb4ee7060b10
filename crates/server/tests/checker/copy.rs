//! A client that keeps a copy by the changes feed (docs/contract/changes.md), over several servers and while the catalog
//! changes.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value;

use crate::catalog::{CODES, Content, Filter, Product, Version};
use crate::harness::{Reply, text};
use crate::judge::State;
use crate::operation::filter_pairs;

/// Time for which an answer may be held, in seconds.
const WAIT_SECONDS: u8 = 1;

/// A client's copy, and which states its token may be of.
#[derive(Debug)]
pub struct Copy {
    filter: Filter,
    limit: usize,
    products: BTreeMap<String, Value>,
    token: Option<String>,
    /// Last code of a walk that goes on.
    after: Option<String>,
    /// States since which changes are told; none while the copy is begun.
    base: Option<BTreeSet<usize>>,
    /// States that the first page of a walk may have shown, while it goes on.
    first: Option<BTreeSet<usize>>,
    /// The oldest and the newest state that the last answer may have shown.
    newest: [usize; 2],
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Answer {
    changes: Vec<Change>,
    next: String,
    has_more: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Change {
    code: String,
    product: Value,
}

/// States that an answer may be of: that of the base, of the walk's first page, and the one shown.
#[derive(Debug, Clone, Copy)]
struct Assumed {
    base: Option<usize>,
    first: Option<usize>,
    shown: usize,
}

impl Copy {
    pub fn new(filter: Filter, limit: usize) -> Self {
        Self {
            filter,
            limit,
            products: BTreeMap::new(),
            token: None,
            after: None,
            base: None,
            first: None,
            newest: [0; 2],
        }
    }

    /// Returns true if it has a token with which it can wait.
    pub fn can_wait(&self) -> bool {
        self.token.is_some()
    }

    /// Returns the target of its next request.
    pub fn path(&self, waits: bool) -> String {
        let wait = waits.then(|| format!("wait={WAIT_SECONDS}"));
        self.path_with(&self.filter, wait)
    }

    /// Returns the target of a request with other filters, which has to be refused; `None` without a token, or if the
    /// filters are the same.
    pub fn misused(&self, filter: &Filter) -> Option<String> {
        self.token.as_ref()?;
        let is_other = filter.normal() != self.filter.normal();
        is_other.then(|| self.path_with(filter, None))
    }

    fn path_with(&self, filter: &Filter, more: Option<String>) -> String {
        let mut pairs = filter_pairs(filter);
        pairs.push(format!("limit={}", self.limit));
        pairs.extend(self.token.as_ref().map(|token| format!("since={token}")));
        pairs.extend(more);
        format!("/v2/product/changes?{}", pairs.join("&"))
    }

    /// Returns true if a server that shows a state of `oldest` or a newer one may know less than the token.
    pub fn may_be_ahead_of(&self, oldest: usize) -> bool {
        oldest < self.newest[1]
    }

    /// Takes an answer of a server that shows a state of `oldest` or a newer one. Returns the oldest state that it may
    /// have shown, and whether the copy is complete.
    pub fn take(
        &mut self,
        states: &[State],
        oldest: usize,
        reply: &Reply,
    ) -> Result<(usize, bool), String> {
        let answer: Answer = serde_json::from_slice(&reply.body)
            .map_err(|error| format!("{error}: {}", text(&reply.body)))?;
        let assumed = self.assumptions(oldest, states.len());
        let mut allowed: Vec<Assumed> = assumed
            .filter(|assumed| self.allows(states, *assumed, &answer))
            .collect();
        self.apply(&answer);
        let is_complete = answer.changes.is_empty() && !answer.has_more;
        if is_complete {
            allowed.retain(|assumed| self.equals(&states[assumed.shown]));
        }
        let shown: BTreeSet<usize> = allowed.iter().map(|assumed| assumed.shown).collect();
        let (Some(from), Some(to)) = (shown.first().copied(), shown.last().copied()) else {
            let states = &states[oldest..];
            let body = text(&reply.body);
            return Err(format!(
                "{self:?}\nwas given\n  {body}\nwhich none of these allows:\n  {states:?}"
            ));
        };
        let first = match self.first {
            Some(_) => allowed.iter().filter_map(|assumed| assumed.first).collect(),
            None => shown,
        };
        match answer.has_more {
            true => {
                let base = allowed.iter().map(|assumed| assumed.base);
                self.base = base.collect();
                self.first = Some(first);
                self.after = answer.changes.last().map(|change| change.code.clone());
            }
            false => (self.base, self.first, self.after) = (Some(first), None, None),
        }
        self.newest = [from, to];
        self.token = Some(answer.next);
        Ok((from, is_complete))
    }

    fn assumptions(&self, oldest: usize, states: usize) -> impl Iterator<Item = Assumed> + use<> {
        let options = |set: &Option<BTreeSet<usize>>| -> Vec<Option<usize>> {
            match set {
                None => vec![None],
                Some(set) => set.iter().copied().map(Some).collect(),
            }
        };
        let (bases, firsts) = (options(&self.base), options(&self.first));
        // A server that shows less looks at the store first.
        (oldest.max(self.newest[0])..states).flat_map(move |shown| {
            let (bases, firsts) = (bases.clone(), firsts.clone());
            bases.into_iter().flat_map(move |base| {
                let firsts = firsts.clone().into_iter();
                firsts.map(move |first| Assumed { base, first, shown })
            })
        })
    }

    /// Returns true if an answer is right under this assumption.
    fn allows(&self, states: &[State], assumed: Assumed, answer: &Answer) -> bool {
        let Assumed { base, first, shown } = assumed;
        let after = self.after.as_deref().unwrap_or_default();
        let codes = || answer.changes.iter().map(|change| change.code.as_str());
        let is_in_order = codes().all(|code| code > after) && codes().is_sorted_by(|a, b| a < b);
        let is_page = answer.changes.len() <= self.limit
            && !(answer.has_more && answer.changes.is_empty())
            && states[shown].catalog.is_some();
        let was_visible = |code: &str, from: usize| {
            (from..=shown).any(|state| self.visible(&states[state], code).is_some())
        };
        // Of a begun copy, what was visible since the walk's first page may be told as removed.
        let removed_since = base.or(first.filter(|_| self.token.is_some()));
        let is_right = |change: &Change| match self.visible(&states[shown], &change.code) {
            Some(product) => {
                product.json(&change.code, Content::Url, Version::Older) == change.product
            }
            None => {
                change.product.is_null()
                    && removed_since.is_some_and(|from| was_visible(&change.code, from))
            }
        };
        let last = answer.changes.last().filter(|_| answer.has_more);
        let is_told = |code: &&str| {
            let is_within = *code > after && last.is_none_or(|last| *code <= last.code.as_str());
            is_within && !codes().any(|told| told == *code)
        };
        let may_be_untold = |code: &str| {
            let now = self.visible(&states[shown], code);
            match (base, now) {
                (None, now) => now.is_none(),
                (Some(base), None) => !was_visible(code, base),
                (Some(base), Some(now)) => {
                    let before = self.visible(&states[base], code);
                    let is_same = |before: &Product| {
                        before == now
                            || before.json(code, Content::Url, Version::Older)
                                == now.json(code, Content::Url, Version::Older)
                    };
                    before.is_some_and(is_same)
                }
            }
        };
        // If all the rest of a begun copy vanished, the removals are told in place of an empty answer.
        is_in_order
            && is_page
            && answer.changes.iter().all(is_right)
            && CODES.into_iter().filter(is_told).all(may_be_untold)
    }

    fn visible<'s>(&self, state: &'s State, code: &str) -> Option<&'s Product> {
        let product = state.catalog.as_ref()?.0.get(code);
        product.filter(|product| self.filter.matches(code, product))
    }

    fn apply(&mut self, answer: &Answer) {
        for Change { code, product } in &answer.changes {
            match product {
                Value::Null => drop(self.products.remove(code)),
                product => drop(self.products.insert(code.clone(), product.clone())),
            }
        }
    }

    /// Returns true if the copy equals the list of a state.
    pub fn equals(&self, state: &State) -> bool {
        let visible = CODES.into_iter().filter_map(|code| {
            let product = self.visible(state, code)?;
            Some((
                code.to_owned(),
                product.json(code, Content::Url, Version::Older),
            ))
        });
        visible.collect::<BTreeMap<_, _>>() == self.products
    }
}
