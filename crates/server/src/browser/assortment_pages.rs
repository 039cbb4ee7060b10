//! Pages of assortments: the list, and one with its rules, its keys and its versions.

use std::collections::HashMap;

use askama::Template;
use http::StatusCode;
use jiff::Timestamp;
use vitrine_ingest::load::json::Node;
use vitrine_model::assortment::AssortmentTable;
use vitrine_model::key::KeyRecord;
use vitrine_store::StoreError;
use vitrine_store::assortment::AssortmentVersion;

use super::Browser;
use super::amounts::grouped;
use super::answer::{self, ASSETS, Problem, Shown};
use super::keys::status_badge;
use super::pretty::rules_text;
use super::query::{Query, number, pairs, refused, repeated, unknown};
use super::times::minute;
use crate::assortments::rules_at;
use crate::http::request::query::encoded;

/// Number of assortments on a page.
const PAGE: usize = 50;

/// Maximum page number.
const MAX_PAGES: usize = 1_000;

/// Maximum number of versions that are shown.
const MAX_VERSIONS: u32 = 20;

/// Maximum number of keys that are shown.
const MAX_KEYS: usize = 20;

#[derive(Template)]
#[template(path = "browser/assortments.html")]
struct ListPage {
    assets: &'static str,
    here: &'static str,
    search: String,
    assortments: Vec<Row>,
    /// Number of keys that this server holds back, as their assortments vanished.
    held: usize,
    previous: Option<String>,
    next: Option<String>,
}

/// An assortment in the list.
struct Row {
    version: AssortmentVersion,
    keys: usize,
    /// Products shown; none if this server doesn't know the rules.
    shown: Option<String>,
    /// URL of the products as it shows them.
    address: String,
}

#[derive(Template)]
#[template(path = "browser/assortment.html")]
struct OnePage {
    assets: &'static str,
    here: &'static str,
    name: String,
    /// Newest first; the first one is live unless it is a removal.
    versions: Vec<AssortmentVersion>,
    has_more: bool,
    /// Number of the version whose rules are shown, and the rules.
    rules: Option<(u32, String)>,
    shown: Option<String>,
    address: String,
    keys: Vec<KeyView>,
    more_keys: usize,
}

/// A key of an assortment.
struct KeyView {
    prefix: String,
    label: String,
    /// Word, and badge class; active keys have none.
    status: (&'static str, &'static str),
}

impl OnePage {
    fn is_live(&self) -> bool {
        self.versions
            .first()
            .is_some_and(|newest| newest.rules.is_some())
    }

    fn is_newest(&self, number: &u32) -> bool {
        self.versions
            .first()
            .is_some_and(|newest| newest.number == *number)
    }

    /// Returns true if a version can be rolled back to.
    fn is_former(&self, version: &AssortmentVersion) -> bool {
        version.rules.is_some() && !self.is_newest(&version.number)
    }

    fn key_count(&self) -> String {
        match self.keys.len() + self.more_keys {
            0 => "No key has it".to_owned(),
            1 => "1 key".to_owned(),
            count => format!("{} keys", grouped(&count.to_string())),
        }
    }
}

/// Returns the number of products that an assortment shows here; `None` if this server doesn't know it.
fn shown(browser: &Browser, table: &AssortmentTable, name: &str) -> Option<usize> {
    let (snapshot, known) = (browser.app.live.snapshot()?, table.get(name)?);
    Some(known.live().view(&snapshot).count(&snapshot))
}

fn away(error: &StoreError) -> Problem {
    Problem::store_away(error)
}

/// Reads the page and the search of a URL.
fn wanted(query: Option<&str>) -> Result<(usize, String), Problem> {
    let (mut page, mut search) = (None, None);
    for (name, value) in pairs(query)? {
        let is_repeated = match name.as_str() {
            "page" => {
                let number = number(&value);
                let number = number.filter(|number| (1..=MAX_PAGES).contains(number));
                let number =
                    number.ok_or_else(|| refused("page", "isn't a number from 1 to 1000"))?;
                page.replace(number).is_some()
            }
            "q" => search.replace(value.trim().to_owned()).is_some(),
            _ => return Err(unknown(&name)),
        };
        if is_repeated {
            return Err(repeated(&name));
        }
    }
    Ok((page.unwrap_or(1), search.unwrap_or_default()))
}

/// Renders the list of assortments.
pub(super) fn list(browser: &Browser, query: Option<&str>) -> Shown {
    let (page, search) = wanted(query)?;
    let live = browser.app.live.keys();
    let table = live.assortments();
    // Rules that this server knows aren't read again.
    let known = table.iter().map(|known| {
        (
            known.live().name().to_owned(),
            known.version_id().to_owned(),
        )
    });
    let known: Vec<(String, String)> = known.collect();
    let mut read = browser
        .store
        .read_assortments(&known, None)
        .map_err(|error| away(&error))?;
    let wanted = search.to_lowercase();
    read.names
        .retain(|(name, _)| name.to_lowercase().contains(&wanted));
    let mut keys: HashMap<&str, usize> = HashMap::new();
    let records = read.keys.records.iter();
    for key in records.filter(|key| key.revoked_at.is_none()) {
        if let Some(name) = &key.assortment {
            *keys.entry(name).or_default() += 1;
        }
    }
    let mut assortments = Vec::new();
    for (name, _) in read.names.iter().skip((page - 1) * PAGE).take(PAGE) {
        let version = browser.store.assortment_versions(name, 1);
        let newest = version.map_err(|error| away(&error))?.into_iter().next();
        assortments.extend(newest.map(|version| Row {
            version,
            keys: keys.get(name.as_str()).copied().unwrap_or_default(),
            shown: shown(browser, table, name).map(|count| grouped(&count.to_string())),
            address: Query::of_assortment(name).address(),
        }));
    }
    let address = |page: usize| match search.is_empty() {
        true => format!("/assortments?page={page}"),
        false => format!("/assortments?q={}&page={page}", encoded(&search)),
    };
    let has_more = read.names.len() > page * PAGE;
    let shown = ListPage {
        assets: ASSETS,
        here: "assortments",
        assortments,
        held: table.held.len(),
        previous: (page > 1).then(|| address(page - 1)),
        next: has_more.then(|| address(page + 1)),
        search,
    };
    answer::html(StatusCode::OK, &shown)
}

/// Renders the page of an assortment.
pub(super) fn one(browser: &Browser, name: &str, query: Option<&str>) -> Shown {
    let mut version = None;
    for (parameter, value) in pairs(query)? {
        if parameter != "version" {
            return Err(unknown(&parameter));
        }
        let number: Option<u32> = number(&value);
        let number = number.ok_or_else(|| refused("version", "isn't the number of a version"))?;
        if version.replace(number).is_some() {
            return Err(repeated("version"));
        }
    }
    let read = browser.store.assortment_versions(name, MAX_VERSIONS + 1);
    let mut versions = read.map_err(|error| away(&error))?;
    let Some(newest) = versions.first() else {
        return Err(Problem::not_found(
            "There is no such assortment",
            "It may have another name; the page of assortments lists all.",
        )
        .leading_to("/assortments", "All assortments"));
    };
    let is_live = newest.rules.is_some();
    let number = version.unwrap_or(newest.number);
    let rules = match is_live || version.is_some() {
        true => match rules_at(&browser.store, name, Some(number)) {
            Ok(rules) => Some((number, rules_text(&Node::parse(&rules).0))),
            Err(error) => match error.downcast_ref::<StoreError>() {
                Some(error) => return Err(away(error)),
                None => {
                    let help = "The list of versions has those with rules.";
                    return Err(Problem::not_found(
                        "There are no rules of this version",
                        help,
                    ));
                }
            },
        },
        false => None,
    };
    let has_more = versions.len() > MAX_VERSIONS as usize;
    versions.truncate(MAX_VERSIONS as usize);
    let now = Timestamp::now();
    let keys = browser.store.keys().map_err(|error| away(&error))?;
    let mut keys: Vec<KeyRecord> = (keys.into_iter())
        .filter(|key| key.revoked_at.is_none() && key.assortment.as_deref() == Some(name))
        .collect();
    keys.sort_by_key(|key| (!key.is_active(now), std::cmp::Reverse(key.created_at)));
    let live = browser.app.live.keys();
    let shown = OnePage {
        assets: ASSETS,
        here: "assortments",
        name: name.to_owned(),
        versions,
        has_more,
        rules,
        shown: shown(browser, live.assortments(), name).map(|count| grouped(&count.to_string())),
        address: Query::of_assortment(name).address(),
        more_keys: keys.len().saturating_sub(MAX_KEYS),
        keys: keys
            .iter()
            .take(MAX_KEYS)
            .map(|key| view(key, now))
            .collect(),
    };
    answer::html(StatusCode::OK, &shown)
}

fn view(key: &KeyRecord, now: Timestamp) -> KeyView {
    KeyView {
        prefix: key.prefix.clone(),
        label: key.label.clone(),
        status: status_badge(key.status(now)),
    }
}
