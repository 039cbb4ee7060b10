//! Judgement of answers: each must be what the contract says of one state of the catalog and one of the keys and their
//! assortments, both of which the server may still show. So no answer is ever a mixture.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::access::{Access, At, Sight};
use crate::assortment::Rules;
use crate::catalog::{Catalog, Content, Text, markdown};
use crate::harness::{Reply, text};
use crate::target::{Query, Target};
use crate::timeline::Timeline;

/// The catalog at some time.
#[derive(Debug, Clone, Default)]
pub struct State {
    /// Its revision; 0 ahead of the first.
    pub revision: u64,
    /// None ahead of the first load.
    pub catalog: Option<Catalog>,
    /// The texts that it names, or that an earlier one named: those are served for another day.
    texts: BTreeSet<u8>,
}

/// All that there was, and what the servers may show of it.
#[derive(Debug)]
pub struct View {
    pub catalogs: Timeline<State>,
    pub access: Timeline<Access>,
    /// All versions of assortments, by name and number.
    pub versions: BTreeMap<(&'static str, u64), Rules>,
    /// The versions that are removals.
    pub removals: BTreeSet<(&'static str, u64)>,
}

/// Request, with its server and its key.
#[derive(Debug, Clone, Copy)]
pub struct Exchange<'a> {
    pub server: usize,
    /// A partner's key, or the one that is never revoked.
    pub key: Option<usize>,
    pub target: &'a Target,
}

impl State {
    /// The state that follows, with another catalog.
    pub fn next(&self, revision: u64, catalog: Catalog) -> Self {
        let named = catalog.0.values().filter_map(|product| match product.text {
            Text::Markdown(number) => Some(number),
            Text::None | Text::Outside(_) => None,
        });
        Self {
            revision,
            texts: self.texts.iter().copied().chain(named).collect(),
            catalog: Some(catalog),
        }
    }
}

impl View {
    pub fn new() -> Self {
        Self {
            catalogs: Timeline::new(State::default()),
            access: Timeline::new(Access::default()),
            versions: BTreeMap::new(),
            removals: BTreeSet::new(),
        }
    }

    /// All states that a server may show with a key, from a state of the catalog on.
    pub fn places(&self, server: usize, key: Option<usize>, oldest: usize) -> BTreeSet<At> {
        let sights = self.sights(server, key);
        let catalogs = oldest..self.catalogs.states().len();
        catalogs
            .flat_map(|catalog| sights.iter().map(move |&sight| At { catalog, sight }))
            .collect()
    }

    /// The newest state, as a good key sees it.
    pub fn newest(&self, key: Option<usize>) -> At {
        At {
            catalog: self.catalogs.states().len() - 1,
            sight: self.access.newest().sight(key).unwrap_or_default(),
        }
    }

    /// Takes note that a server saw by one of these with a key.
    pub fn saw(&mut self, server: usize, key: Option<usize>, seen: &BTreeSet<Sight>) {
        let has = |access: &Access| access.sight(key).is_some_and(|sight| seen.contains(&sight));
        self.access.shows(server, has);
    }

    /// Takes note of an answer; an error where the contract doesn't allow it.
    pub fn take(&mut self, asked: Exchange<'_>, reply: &Reply) -> Result<(), String> {
        let is_allowed = match reply.status {
            503 => {
                is_error(reply, "unavailable")
                    && self
                        .catalogs
                        .shows(asked.server, |state| state.catalog.is_none())
            }
            401 => {
                is_error(reply, "invalid_api_key")
                    && !matches!(asked.target, Target::Text(_))
                    && self
                        .catalogs
                        .shows(asked.server, |state| state.catalog.is_some())
                    && self.refuses(asked.server, asked.key)
            }
            _ => self.shows_content(asked, reply),
        };
        if is_allowed {
            return Ok(());
        }
        let states = &self.catalogs.states()[self.catalogs.oldest(asked.server)..];
        let sights = self.sights(asked.server, asked.key);
        let rules: Vec<_> = sights.iter().map(|sight| self.rules(*sight)).collect();
        Err(format!(
            "{asked:?}\nwas answered with {} {:?}\n  {}\nwhich none of these allows:\n  {states:?}\nby\n  {rules:?}",
            reply.status,
            reply.header("link"),
            text(&reply.body),
        ))
    }

    /// Takes note that a server refused a key; whether it may.
    pub fn refuses(&mut self, server: usize, key: Option<usize>) -> bool {
        let is_bad = |access: &Access| access.sight(key).is_none();
        self.access.shows(server, is_bad)
    }

    fn shows_content(&mut self, asked: Exchange<'_>, reply: &Reply) -> bool {
        let body = || serde_json::from_slice::<Value>(&reply.body).unwrap_or(Value::Null);
        let is_missing = || reply.status == 404 && is_error(reply, "not_found");
        match asked.target {
            Target::Text(number) => self.catalogs.shows(asked.server, |state| {
                match (&state.catalog, state.texts.contains(number)) {
                    (None, _) => false,
                    (Some(_), false) => is_missing(),
                    (Some(_), true) => {
                        reply.status == 200 && reply.body == markdown(*number).as_bytes()
                    }
                }
            }),
            Target::List(query) => {
                let body = body();
                self.shows(asked, |catalog| {
                    reply.status == 200 && is_page(catalog, query, reply, &body)
                })
            }
            Target::Product(code, content, version) => {
                let body = body();
                self.shows(asked, |catalog| match catalog.0.get(code) {
                    Some(product) => {
                        reply.status == 200 && product.json(code, *content, *version) == body
                    }
                    None => is_missing(),
                })
            }
            Target::Categories => {
                let body = body();
                self.shows(asked, |catalog| {
                    let codes = catalog.values(|facts| &facts.categories);
                    let codes: Vec<_> = codes.iter().map(|code| json!({"code": code})).collect();
                    reply.status == 200 && body == json!({"categories": codes})
                })
            }
            Target::Countries => {
                let body = body();
                self.shows(asked, |catalog| {
                    let countries = catalog.values(|facts| &facts.countries);
                    reply.status == 200 && body == json!({"countries": countries})
                })
            }
        }
    }

    /// Takes note of an answer that some catalogs give, as the key sees them; whether it may be given.
    fn shows(&mut self, asked: Exchange<'_>, has: impl Fn(&Catalog) -> bool) -> bool {
        let Exchange { server, key, .. } = asked;
        let oldest = self.catalogs.oldest(server);
        let states = &self.catalogs.states()[oldest..];
        let first_by = |sight: &Sight| {
            let rules = self.rules(*sight);
            let has = |catalog: &Catalog| has(&catalog.seen_by(rules));
            let has = |state: &State| state.catalog.as_ref().is_some_and(has);
            Some((*sight, states.iter().position(has)?))
        };
        let first: BTreeMap<Sight, usize> = (self.sights(server, key).iter())
            .filter_map(first_by)
            .collect();
        let Some(catalog) = first.values().min() else {
            return false;
        };
        self.catalogs.raise(server, oldest + catalog);
        self.saw(server, key, &first.into_keys().collect());
        true
    }
}

fn is_error(reply: &Reply, expected: &str) -> bool {
    reply.error() == expected
}

fn is_page(catalog: &Catalog, query: &Query, reply: &Reply, body: &Value) -> bool {
    let limit = query.limit.unwrap_or(500);
    let page = catalog.page(&query.filter, query.cursor, limit);
    let product = |code: &&str| catalog.0[code].json(code, Content::Url, query.version);
    let products: Vec<Value> = page.codes.iter().map(product).collect();
    let expected = json!({
        "catalog": products,
        "pagination": {
            "cursors": {"before": page.codes.first(), "after": page.codes.last()},
            "page": {"limit": limit},
        },
    });
    let neighbour = |is_there: bool, name: &str, cursor: &str, code: Option<&&str>| {
        code.filter(|_| is_there)
            .map(|code| format!("{cursor}={code}>; rel=\"{name}\""))
    };
    let neighbours = [
        neighbour(page.has_previous, "prev", "before", page.codes.first()),
        neighbour(page.has_next, "next", "after", page.codes.last()),
    ];
    let link = reply.header("link").unwrap_or_default();
    let expected_links: Vec<&String> = neighbours.iter().flatten().collect();
    *body == expected
        && expected_links.len() == link.matches("rel=").count()
        && expected_links
            .iter()
            .all(|neighbour| link.contains(*neighbour))
}

/// A code as long as another that is in no catalog.
pub fn never_loaded(code: &str) -> &'static str {
    ["N", "NN", "NNN"][code.len() - 1]
}

/// Checks that a 404 tells nothing of its product: it is that of a code that never was.
pub fn is_like_never(reply: &Reply, code: &str, never: &Reply, other: &str) -> Result<(), String> {
    let quoted = |code: &str| format!("`{code}`");
    let expected = text(&never.body).replace(&quoted(other), &quoted(code));
    let is_of_request = |name: &str| ["date", "x-request-id"].contains(&name);
    let headers = |reply: &Reply| -> Vec<_> {
        let headers = reply.headers.iter();
        let headers = headers.filter(|(name, _)| !is_of_request(name));
        headers.cloned().collect()
    };
    // The key may have been revoked in between.
    match never.status != 404 || text(&reply.body) == expected && headers(reply) == headers(never) {
        true => Ok(()),
        false => Err(format!("{code}: {reply:?}, but {other}: {never:?}")),
    }
}
