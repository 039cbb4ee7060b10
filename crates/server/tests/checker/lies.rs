//! Lies: answers as a client would see them from a server with a defect. The checker has to find each of
//! them, or it would find nothing.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::catalog::{CODES, Version};
use crate::harness::Reply;

/// A defect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lie {
    /// The last country that is asked for is passed over.
    Filter,
    /// `after` is passed over.
    Cursor,
    /// Keys aren't revoked.
    Revocation,
    /// A roll back always leads to the first revision.
    RollBack,
    /// A load ends all overrides.
    UndoneOverride,
    /// Overrides don't end.
    EndlessOverride,
    /// A page's tag stays as it was first.
    Tag,
    /// The first product of a page is as it was when a page first had it first.
    Mix,
    /// The changes feed tells of no removal.
    ForgottenRemoval,
    /// The changes feed tells as removed what nobody asked for.
    LeakedRemoval,
    /// The changes feed leaves the last change of an answer out, and goes on behind it.
    Base,
    /// The changes feed takes a token for the filters that it was made with, whatever the request's are.
    Token,
    /// The default version answers, whatever version is asked for.
    Version,
    /// Pages are cached by their queries alone: a client gets the page of another one's assortment.
    CacheKey,
    /// A client gets a product that its rules hide.
    Hidden,
    /// A client gets a product at the list discount.
    ListDiscount,
    /// The changes feed tells of no removal by rules.
    ForgottenEdit,
}

/// Request that a liar answers.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// A partner's key, or the one that sees everything.
    pub key: Option<usize>,
    pub path: &'a str,
    pub version: Version,
}

/// Kind of change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Of the catalog.
    Load,
    /// Of what a key sees of it.
    Edit,
}

/// Memory of a liar.
#[derive(Debug, Default)]
pub struct Liar {
    tags: BTreeMap<String, String>,
    products: BTreeMap<String, Value>,
    /// Requests for changes without their tokens, by the token of the answer.
    asked: BTreeMap<String, String>,
    /// Numbers of loads until then, by the token of the answer.
    loads_until: BTreeMap<String, u64>,
    /// First answers since the newest change, by path and version.
    pages: BTreeMap<(String, &'static str), Reply>,
    loads: u64,
}

/// Path of the changes feed.
const CHANGES: &str = "/v2/product/changes";

impl Lie {
    fn path(self, path: &str) -> String {
        let name = match self {
            Self::Filter => "countries_redeemable_in=",
            Self::Cursor => "after=",
            _ => return path.to_owned(),
        };
        let Some((path, query)) = path.split_once('?') else {
            return path.to_owned();
        };
        let mut pairs: Vec<&str> = query.split('&').collect();
        if let Some(last) = pairs.iter().rposition(|pair| pair.starts_with(name)) {
            pairs.remove(last);
        }
        match pairs.is_empty() {
            true => path.to_owned(),
            false => format!("{path}?{}", pairs.join("&")),
        }
    }
}

/// Splits a request for changes at its token.
fn split(path: &str) -> Option<(&str, &str)> {
    path.starts_with(CHANGES)
        .then(|| path.split_once("&since="))?
}

impl Liar {
    /// Returns the path that is asked in place of `path`.
    pub fn path(&self, lie: Lie, path: &str) -> String {
        match (lie, split(path)) {
            (Lie::Token, Some((_, rest))) => {
                let token = rest.split('&').next().unwrap_or_default();
                let asked = self.asked.get(token).map_or("", String::as_str);
                format!("{asked}&since={rest}")
            }
            // Others would be told that the token is for other filters.
            (Lie::Filter, _) if path.starts_with(CHANGES) => path.to_owned(),
            _ => lie.path(path),
        }
    }

    /// Takes note that the store changes.
    pub fn change(&mut self, change: Change) {
        self.pages.clear();
        self.loads += u64::from(change == Change::Load);
    }

    /// Returns the answer about products that is given in place of `reply`: one that another client got.
    fn of_another(&mut self, lie: Lie, asked: Asked<'_>, reply: Reply) -> Reply {
        let code = asked.path.strip_prefix("/v2/product/");
        let is_product = code.is_some_and(|code| !["categories", "countries"].contains(&code));
        let id = (asked.path.to_owned(), asked.version.as_str());
        let kept = self.pages.get(&id);
        let taken = match lie {
            Lie::CacheKey if code.is_none() => kept,
            Lie::Hidden if is_product => kept.filter(|_| reply.status == 404),
            Lie::ListDiscount if is_product => kept.filter(|_| reply.status == 200),
            _ => return reply,
        };
        if let Some(taken) = taken {
            return taken.clone();
        }
        if reply.status == 200 && (lie == Lie::CacheKey || asked.key.is_none()) {
            self.pages.insert(id, reply.clone());
        }
        reply
    }

    /// Returns true if nothing but edits happened since a request's token was given out.
    fn is_of_edits(&self, path: &str) -> bool {
        let token = split(path).and_then(|(_, rest)| rest.split('&').next());
        let loads = token.and_then(|token| self.loads_until.get(token));
        loads == Some(&self.loads)
    }

    /// Returns the answer of the changes feed that is given in place of `reply`.
    fn changes(&mut self, lie: Lie, path: &str, mut reply: Reply) -> Reply {
        let mut answer = reply.json();
        if let Some(next) = answer["next"].as_str() {
            let asked = split(path).map_or(path, |(asked, _)| asked);
            self.asked.insert(next.to_owned(), asked.to_owned());
            self.loads_until.insert(next.to_owned(), self.loads);
        }
        let Some(changes) = answer["changes"].as_array_mut() else {
            return reply;
        };
        match lie {
            Lie::ForgottenEdit if self.is_of_edits(path) => {
                changes.retain(|change| !change["product"].is_null());
            }
            Lie::ForgottenRemoval => changes.retain(|change| !change["product"].is_null()),
            Lie::LeakedRemoval if split(path).is_some() => {
                let leaked = CODES.iter().max().expect("a code");
                if changes.last().is_none_or(|last| last["code"] != **leaked) {
                    changes.push(json!({"code": leaked, "product": null}));
                }
            }
            Lie::Base if split(path).is_some() => drop(changes.pop()),
            _ => return reply,
        }
        reply.body = answer.to_string().into_bytes();
        reply
    }

    /// Returns the reply that is given in place of `reply`.
    pub fn reply(&mut self, lie: Lie, asked: Asked<'_>, reply: Reply) -> Reply {
        let path = asked.path;
        let mut reply = match path.starts_with("/v2/product") && !path.starts_with(CHANGES) {
            true => self.of_another(lie, asked, reply),
            false => reply,
        };
        if reply.status != 200 || !path.starts_with("/v2/product") {
            return reply;
        }
        if path.starts_with(CHANGES) {
            return self.changes(lie, path, reply);
        }
        match lie {
            Lie::Tag => {
                let headers = reply.headers.iter_mut();
                for (_, tag) in headers.filter(|(name, _)| name == "etag") {
                    let first = self.tags.entry(path.to_owned());
                    tag.clone_from(first.or_insert_with(|| tag.clone()));
                }
            }
            Lie::Mix => {
                let mut page = reply.json();
                if let Some(place) = page.pointer_mut("/catalog/0") {
                    let code = place["code"].to_string();
                    let first = self.products.entry(code).or_insert_with(|| place.clone());
                    if first != place {
                        *place = first.clone();
                        reply.body = page.to_string().into_bytes();
                    }
                }
            }
            _ => {}
        }
        reply
    }
}
