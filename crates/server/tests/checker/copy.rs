//! A client that keeps a copy by the changes feed (docs/contract/changes.md), over several servers and while the catalog
//! changes.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value;

use crate::access::At;
use crate::catalog::{CODES, Content, Filter, Product, Version};
use crate::harness::{Reply, text};
use crate::judge::View;
use crate::target::filter_pairs;

/// Time for which an answer may be held, in seconds.
const WAIT_SECONDS: u8 = 1;

/// A client's copy, and which states its token may be of.
#[derive(Debug, Clone)]
pub struct Copy {
    /// Number of its key; none for the one that is never revoked.
    pub key: Option<usize>,
    filter: Filter,
    limit: usize,
    products: BTreeMap<String, Value>,
    token: Option<String>,
    /// Walks that its token may be of.
    walks: BTreeSet<Walk>,
    /// States that the last answer may have shown.
    newest: BTreeSet<At>,
}

/// A walk, and how far it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Walk {
    /// State since which changes are told; none while the copy is begun.
    base: Option<At>,
    /// State that its first page showed, if it goes on.
    first: Option<At>,
    /// Last code that it named. It may be further: servers stop after some products, visible or not.
    after: Option<String>,
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

impl Copy {
    pub fn new(key: Option<usize>, filter: Filter, limit: usize) -> Self {
        Self {
            key,
            filter,
            limit,
            products: BTreeMap::new(),
            token: None,
            walks: BTreeSet::from([Walk::default()]),
            newest: BTreeSet::new(),
        }
    }

    /// Drops all that it has, as a client does whose token has ended.
    pub fn begin_again(&mut self) {
        *self = Self::new(self.key, self.filter.clone(), self.limit);
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

    /// Returns true if a server that shows one of these states may know less than the token.
    pub fn may_be_ahead_of(&self, shown: &BTreeSet<At>) -> bool {
        self.may_be(shown, |token, now| {
            token.sight.assortment == now.sight.assortment && !token.is_before(now)
        })
    }

    /// Returns true if the token may be of another assortment than a server sees by.
    pub fn may_be_of_another(&self, shown: &BTreeSet<At>) -> bool {
        self.may_be(shown, |token, now| {
            token.sight.assortment != now.sight.assortment
        })
    }

    /// Returns true if the token may be of older rules than a server sees by.
    pub fn may_be_of_former_rules(&self, shown: &BTreeSet<At>) -> bool {
        self.may_be(shown, |token, now| token.sight.version < now.sight.version)
    }

    /// Returns true if the token is of older rules than a server sees by.
    pub fn is_of_former_rules(&self, shown: &BTreeSet<At>) -> bool {
        let newest = self.newest.last().map(|token| token.sight.version);
        let oldest = shown.iter().map(|now| now.sight.version).min();
        newest.is_some() && newest < oldest
    }

    /// Returns true if the token may be of rules that were forgotten when their assortment was removed.
    pub fn may_be_forgotten(&self, view: &View, shown: &BTreeSet<At>) -> bool {
        self.may_be(shown, |token, now| {
            view.is_removed_between(token.sight, now.sight)
        })
    }

    fn may_be(&self, shown: &BTreeSet<At>, is_so: impl Fn(&At, &At) -> bool) -> bool {
        let of_walks = self.walks.iter().flat_map(|walk| [&walk.base, &walk.first]);
        let mut tokens = of_walks.flatten().chain(&self.newest);
        tokens.any(|token| shown.iter().any(|now| is_so(token, now)))
    }

    /// Takes an answer of a server that shows one of the states `possible`. Returns those that it may have shown, and
    /// whether the copy is complete.
    pub fn take(
        &mut self,
        view: &View,
        possible: &BTreeSet<At>,
        reply: &Reply,
    ) -> Result<(BTreeSet<At>, bool), String> {
        let answer: Answer = serde_json::from_slice(&reply.body)
            .map_err(|error| format!("{error}: {}", text(&reply.body)))?;
        let mut allowed = self.assumptions(possible);
        allowed.retain(|(walk, shown)| self.allows(view, walk, *shown, &answer));
        self.apply(&answer);
        let is_complete = answer.changes.is_empty() && !answer.has_more;
        if is_complete {
            allowed.retain(|(_, shown)| self.equals(view, *shown));
        }
        let shown: BTreeSet<At> = allowed.iter().map(|(_, shown)| *shown).collect();
        if shown.is_empty() {
            return Err(self.refusal(view, possible, reply));
        }
        let next = allowed
            .iter()
            .flat_map(|(walk, shown)| walk.next(*shown, &answer));
        self.walks = next.collect();
        self.newest.clone_from(&shown);
        self.token = Some(answer.next);
        Ok((shown, is_complete))
    }

    fn refusal(&self, view: &View, possible: &BTreeSet<At>, reply: &Reply) -> String {
        let body = text(&reply.body);
        let oldest = possible.first().map_or(0, |at| at.catalog);
        let states = &view.catalogs.states()[oldest..];
        let versions = &view.versions;
        format!(
            "{self:?}\nwas given\n  {body}\nwhich none of these allows:\n  {possible:?}\nof\n  {states:?}\n  {versions:?}"
        )
    }

    /// Returns the walks that the token may be of, each with a state that the answer may show.
    fn assumptions(&self, possible: &BTreeSet<At>) -> Vec<(Walk, At)> {
        let mut assumptions = Vec::new();
        for &shown in possible {
            // A server that shows less looks at the store first.
            if !self.newest.is_empty() && !self.newest.iter().any(|at| at.is_before(&shown)) {
                continue;
            }
            let is_before = |at: Option<At>| at.is_none_or(|at| at.is_before(&shown));
            let walks = self.walks.iter();
            let walks = walks.filter(|walk| is_before(walk.base) && is_before(walk.first));
            assumptions.extend(walks.map(|walk| (walk.clone(), shown)));
        }
        assumptions
    }

    /// Returns true if an answer is right for a walk and the state that it shows.
    fn allows(&self, view: &View, walk: &Walk, shown: At, answer: &Answer) -> bool {
        let Walk { base, first, after } = walk;
        let after = after.as_deref().unwrap_or_default();
        let codes = || answer.changes.iter().map(|change| change.code.as_str());
        let is_in_order = codes().all(|code| code > after) && codes().is_sorted_by(|a, b| a < b);
        let is_page = answer.changes.len() <= self.limit
            && view.catalogs.states()[shown.catalog].catalog.is_some();
        let was_visible = |code: &str, [from, until]: [At; 2]| {
            let mut states = view.between(from, until).into_iter();
            states.any(|state| self.visible(view, state, code).is_some())
        };
        // Of a begun copy, what was visible since the walk's first page may be told as removed.
        let removed_since = base.or(first.filter(|_| self.token.is_some()));
        let is_right = |change: &Change| match self.visible(view, shown, &change.code) {
            Some(product) => {
                product.json(&change.code, Content::Url, Version::Older) == change.product
            }
            None => {
                change.product.is_null()
                    && removed_since.is_some_and(|from| was_visible(&change.code, [from, shown]))
            }
        };
        let last = answer.changes.last().filter(|_| answer.has_more);
        let is_told = |code: &&str| {
            let is_within = match last {
                Some(last) => *code <= last.code.as_str(),
                // An empty answer with more says nothing.
                None => !answer.has_more,
            };
            is_within && *code > after && !codes().any(|told| told == *code)
        };
        let may_be_untold_at = |code: &str, at: At| {
            let now = self.visible(view, at, code);
            match (base, now) {
                (None, now) => now.is_none(),
                (Some(base), None) => !was_visible(code, [*base, at]),
                (Some(base), Some(now)) => {
                    let before = self.visible(view, *base, code);
                    let is_same = |before: Product| {
                        before == now
                            || before.json(code, Content::Url, Version::Older)
                                == now.json(code, Content::Url, Version::Older)
                    };
                    before.is_some_and(is_same)
                }
            }
        };
        // An earlier answer of the walk may have looked at the product.
        let looked_at = view.between(first.unwrap_or(shown), shown);
        let may_be_untold = |code: &str| looked_at.iter().any(|at| may_be_untold_at(code, *at));
        // If all the rest of a begun copy vanished, the removals are told in place of an empty answer.
        is_in_order
            && is_page
            && answer.changes.iter().all(is_right)
            && CODES.into_iter().filter(is_told).all(may_be_untold)
    }

    fn visible(&self, view: &View, at: At, code: &str) -> Option<Product> {
        let product = view.product(at, code);
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
    pub fn equals(&self, view: &View, at: At) -> bool {
        let visible = CODES.into_iter().filter_map(|code| {
            let product = self.visible(view, at, code)?;
            Some((
                code.to_owned(),
                product.json(code, Content::Url, Version::Older),
            ))
        });
        visible.collect::<BTreeMap<_, _>>() == self.products
    }
}

impl Walk {
    /// Returns the walks that may follow an answer that shows a state.
    fn next(&self, shown: At, answer: &Answer) -> Vec<Self> {
        let first = self.first.unwrap_or(shown);
        // The next one tells what changed since the first page of this one.
        let other = Self {
            base: Some(first),
            ..Self::default()
        };
        if !answer.has_more {
            return vec![other];
        }
        let last = answer.changes.last().map(|change| change.code.clone());
        let same = Self {
            base: self.base,
            first: Some(first),
            after: last.or(self.after.clone()),
        };
        // Without a change at its end, it is followed by the next one if the catalog changed meanwhile.
        match answer.changes.is_empty() && first != shown {
            true => vec![same, other],
            false => vec![same],
        }
    }
}
