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
#[derive(Debug)]
pub struct Copy {
    /// Number of its key; none for the one that is never revoked.
    pub key: Option<usize>,
    filter: Filter,
    limit: usize,
    products: BTreeMap<String, Value>,
    token: Option<String>,
    /// Last code of a walk that goes on.
    after: Option<String>,
    /// States since which changes are told; none while the copy is begun.
    base: Option<BTreeSet<At>>,
    /// States that the first page of a walk may have shown, while it goes on.
    first: Option<BTreeSet<At>>,
    /// States that the last answer may have shown.
    newest: BTreeSet<At>,
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
    base: Option<At>,
    first: Option<At>,
    shown: At,
}

impl Copy {
    pub fn new(key: Option<usize>, filter: Filter, limit: usize) -> Self {
        Self {
            key,
            filter,
            limit,
            products: BTreeMap::new(),
            token: None,
            after: None,
            base: None,
            first: None,
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
        let tokens = [self.base.as_ref(), self.first.as_ref(), Some(&self.newest)];
        let mut tokens = tokens.into_iter().flatten().flatten();
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
        allowed.retain(|assumed| self.allows(view, *assumed, &answer));
        self.apply(&answer);
        let is_complete = answer.changes.is_empty() && !answer.has_more;
        if is_complete {
            allowed.retain(|assumed| self.equals(view, assumed.shown));
        }
        let shown: BTreeSet<At> = allowed.iter().map(|assumed| assumed.shown).collect();
        if shown.is_empty() {
            return Err(self.refusal(view, possible, reply));
        }
        let first = match self.first {
            Some(_) => allowed.iter().filter_map(|assumed| assumed.first).collect(),
            None => shown.clone(),
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

    fn assumptions(&self, possible: &BTreeSet<At>) -> Vec<Assumed> {
        let options = |set: &Option<BTreeSet<At>>| -> Vec<Option<At>> {
            match set {
                None => vec![None],
                Some(set) => set.iter().copied().map(Some).collect(),
            }
        };
        let (bases, firsts) = (options(&self.base), options(&self.first));
        let mut assumptions = Vec::new();
        for &shown in possible {
            let is_before = |at: &Option<At>| at.is_none_or(|at| at.is_before(&shown));
            // A server that shows less looks at the store first.
            if !self.newest.is_empty() && !self.newest.iter().any(|at| at.is_before(&shown)) {
                continue;
            }
            for &base in bases.iter().filter(|base| is_before(base)) {
                let firsts = firsts.iter().filter(|first| is_before(first));
                assumptions.extend(firsts.map(|&first| Assumed { base, first, shown }));
            }
        }
        assumptions
    }

    /// Returns true if an answer is right under this assumption.
    fn allows(&self, view: &View, assumed: Assumed, answer: &Answer) -> bool {
        let Assumed { base, first, shown } = assumed;
        let after = self.after.as_deref().unwrap_or_default();
        let codes = || answer.changes.iter().map(|change| change.code.as_str());
        let is_in_order = codes().all(|code| code > after) && codes().is_sorted_by(|a, b| a < b);
        let is_page = answer.changes.len() <= self.limit
            && !(answer.has_more && answer.changes.is_empty())
            && view.catalogs.states()[shown.catalog].catalog.is_some();
        let was_visible = |code: &str, from: At| {
            let mut states = view.between(from, shown).into_iter();
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
                    && removed_since.is_some_and(|from| was_visible(&change.code, from))
            }
        };
        let last = answer.changes.last().filter(|_| answer.has_more);
        let is_told = |code: &&str| {
            let is_within = *code > after && last.is_none_or(|last| *code <= last.code.as_str());
            is_within && !codes().any(|told| told == *code)
        };
        let may_be_untold = |code: &str| {
            let now = self.visible(view, shown, code);
            match (base, now) {
                (None, now) => now.is_none(),
                (Some(base), None) => !was_visible(code, base),
                (Some(base), Some(now)) => {
                    let before = self.visible(view, base, code);
                    let is_same = |before: Product| {
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
