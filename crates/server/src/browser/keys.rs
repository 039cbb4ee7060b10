//! Pages of keys: labels, status, assortments, last use, and requests by day. It has neither secrets nor their hashes.

use std::collections::HashMap;

use askama::Template;
use http::StatusCode;
use jiff::civil::Date;
use jiff::{Span, Timestamp};
use vitrine_model::assortment::AssortmentTable;
use vitrine_model::key::{KeyKind, KeyRecord, KeyStatus};
use vitrine_store::record::KeyDay;

use super::Browser;
use super::amounts::grouped;
use super::answer::{self, ASSETS, Problem, Shown};
use super::query::{Query, number, pairs, refused, repeated, unknown};
use super::times::{date, day, minute};
use crate::http::request::query::encoded;

/// Number of days of the charts, today included.
const DAYS: usize = 30;

/// Number of keys on a page.
const PAGE: usize = 50;

/// Maximum page number.
const MAX_PAGES: usize = 10_000;

/// Height of the charts, and width of a day in them, in units of their own.
const HEIGHT: u64 = 20;
const WIDTH: usize = 4;

#[derive(Template)]
#[template(path = "browser/keys.html")]
struct KeysPage {
    assets: &'static str,
    here: &'static str,
    search: String,
    /// Number of keys that are found.
    count: String,
    /// Keys of the page.
    keys: Vec<KeyView>,
    previous: Option<String>,
    next: Option<String>,
}

struct KeyView {
    prefix: String,
    label: String,
    /// Word, and badge class; active keys have none.
    status: (&'static str, &'static str),
    is_test: bool,
    quota: Option<String>,
    version: Option<String>,
    /// Name, and URL of the products as it sees them.
    assortment: Option<(String, String)>,
    /// True if this server shows the key nothing, as it doesn't know the rules.
    is_unknown: bool,
    created: Timestamp,
    /// Time at which it was revoked, or else expires.
    ends: Option<Timestamp>,
    is_revoked: bool,
    last_used: Option<Timestamp>,
    usage: Usage,
}

/// Requests of a key by day.
struct Usage {
    total: String,
    /// Words for who doesn't see the chart.
    label: String,
    /// Place and height of the bar of each day with requests.
    bars: Vec<(usize, u64)>,
}

impl Usage {
    /// Returns the requests of these days, the last of which is `today`.
    fn of(days: &[&KeyDay], today: Date) -> Self {
        let most = days.iter().max_by_key(|day| day.counts.requests);
        let total = days.iter().map(|day| day.counts.requests).sum::<u64>();
        let total = grouped(&total.to_string());
        let label = match most {
            Some(most) => format!(
                "{total} requests in {DAYS} days, the most, {}, on {}",
                grouped(&most.counts.requests.to_string()),
                most.day
            ),
            None => format!("no requests in {DAYS} days"),
        };
        let most = most.map_or(1, |most| most.counts.requests.max(1));
        let bar = |day: &&KeyDay| {
            let ago = today
                .since(day.day)
                .map_or(-1, |span| i64::from(span.get_days()));
            let place = usize::try_from(ago)
                .ok()
                .and_then(|ago| (DAYS - 1).checked_sub(ago))?;
            // A day with any requests is seen.
            let height =
                (u128::from(day.counts.requests) * u128::from(HEIGHT)).div_ceil(most.into());
            let height = u64::try_from(height).ok().filter(|height| *height > 0)?;
            Some((place * WIDTH, height))
        };
        Self {
            label,
            bars: days.iter().filter_map(bar).collect(),
            total,
        }
    }
}

/// Keys to show.
#[derive(Default)]
struct Wanted {
    /// Part of the label, of the prefix or of the assortment's name, in any case; empty for all.
    search: String,
    /// Number of the page, from 0.
    page: usize,
}

impl Wanted {
    fn parse(query: Option<&str>) -> Result<Self, Problem> {
        let mut wanted = Self::default();
        let mut given = Vec::new();
        for (name, value) in pairs(query)? {
            if given.contains(&name) {
                return Err(repeated(&name));
            }
            match name.as_str() {
                "q" => wanted.search = value.trim().to_owned(),
                "page" => {
                    let number = number(&value);
                    let number = number.filter(|number: &usize| (1..=MAX_PAGES).contains(number));
                    let why = "isn't a page number";
                    wanted.page = number.ok_or_else(|| refused("page", why))? - 1;
                }
                _ => return Err(unknown(&name)),
            }
            given.push(name);
        }
        Ok(wanted)
    }

    fn matches(&self, key: &KeyRecord) -> bool {
        let search = self.search.to_lowercase();
        let texts = [Some(&key.label), Some(&key.prefix), key.assortment.as_ref()];
        let mut texts = texts.into_iter().flatten();
        texts.any(|text| text.to_lowercase().contains(&search))
    }

    /// Returns the URL of another page, from 0.
    fn address(&self, page: usize) -> String {
        let search = match self.search.is_empty() {
            true => String::new(),
            false => format!("q={}&", encoded(&self.search)),
        };
        format!("/keys?{search}page={}", page + 1)
    }
}

/// Renders the page of keys.
pub(super) fn page(browser: &Browser, query: Option<&str>) -> Shown {
    let wanted = Wanted::parse(query)?;
    let keys = browser.store.keys();
    let mut keys = keys.map_err(|error| Problem::store_away(&error))?;
    keys.retain(|key| wanted.matches(key));
    let now = Timestamp::now();
    let today = date(now);
    let since = today.saturating_sub(Span::new().days(DAYS as i64 - 1));
    let days = browser.store.key_days(since);
    let days = days.map_err(|error| Problem::store_away(&error))?;
    let mut by_key: HashMap<&str, Vec<&KeyDay>> = HashMap::new();
    for day in &days {
        by_key.entry(&day.prefix).or_default().push(day);
    }
    let usage = |key: &KeyRecord| {
        let days = by_key.get(key.prefix.as_str());
        Usage::of(days.map_or(&[], Vec::as_slice), today)
    };
    // Active ones first, the newest first.
    keys.sort_by_key(|key| (!key.is_active(now), std::cmp::Reverse(key.created_at)));
    let live = browser.app.live.keys();
    let shown = keys.iter().skip(wanted.page * PAGE).take(PAGE);
    let page = KeysPage {
        assets: ASSETS,
        here: "keys",
        count: grouped(&keys.len().to_string()),
        keys: shown
            .map(|key| view(key, live.assortments(), now, usage(key)))
            .collect(),
        previous: wanted.page.checked_sub(1).map(|page| wanted.address(page)),
        next: (keys.len() > (wanted.page + 1) * PAGE).then(|| wanted.address(wanted.page + 1)),
        search: wanted.search,
    };
    answer::html(StatusCode::OK, &page)
}

fn view(key: &KeyRecord, known: &AssortmentTable, now: Timestamp, usage: Usage) -> KeyView {
    let assortment = key.assortment.as_deref();
    KeyView {
        prefix: key.prefix.clone(),
        label: key.label.clone(),
        status: status_badge(key.status(now)),
        is_test: key.kind == KeyKind::Test,
        quota: key.quota.map(|quota| quota.to_string()),
        version: key.api_version.clone(),
        assortment: assortment.map(|name| {
            let address = Query::of_assortment(name).address();
            (name.to_owned(), address)
        }),
        is_unknown: known.held.contains(&key.prefix)
            || assortment.is_some_and(|name| known.get(name).is_none()),
        created: key.created_at,
        ends: key.revoked_at.or(key.expires_at),
        is_revoked: key.revoked_at.is_some(),
        last_used: key.last_used_at,
        usage,
    }
}

/// Returns the word for a status, and the class of its badge; active keys have none.
pub(super) fn status_badge(status: KeyStatus) -> (&'static str, &'static str) {
    match status {
        KeyStatus::Active => ("Active", ""),
        KeyStatus::Rotated => ("Rotated", "caution"),
        KeyStatus::Expired => ("Expired", "bad"),
        KeyStatus::Revoked => ("Revoked", "bad"),
    }
}

#[cfg(test)]
mod tests {
    use vitrine_model::key::KeyRequests;

    use super::*;

    #[test]
    fn bars_of_days_stand_in_their_places() {
        let day = |day: i8, requests: u64| KeyDay {
            day: jiff::civil::date(2026, 11, day),
            prefix: String::new(),
            counts: KeyRequests {
                requests,
                charged: 0,
            },
        };
        let days = [day(26, 1_000), day(25, 1), day(24, 0), day(1, 500)];
        let usage = Usage::of(
            &days.iter().collect::<Vec<_>>(),
            jiff::civil::date(2026, 11, 26),
        );
        assert_eq!(usage.bars, [(116, 20), (112, 1), (16, 10)]);
        assert_eq!(usage.total, "1,501");
        let label = "1,501 requests in 30 days, the most, 1,000, on 2026-11-26";
        assert_eq!(usage.label, label);
        let none = Usage::of(&[], jiff::civil::date(2026, 11, 26));
        assert!(none.bars.is_empty() && none.label.starts_with("no requests"));
    }
}
