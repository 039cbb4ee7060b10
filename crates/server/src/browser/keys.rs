//! Page of all keys: labels, status, assortments and last use. It has neither secrets nor their hashes.

use askama::Template;
use http::StatusCode;
use jiff::Timestamp;
use vitrine_model::assortment::AssortmentTable;
use vitrine_model::key::{KeyKind, KeyRecord, KeyStatus};

use super::Browser;
use super::answer::{self, ASSETS, Problem, Shown};
use super::query::Query;
use super::revisions::minute;

#[derive(Template)]
#[template(path = "browser/keys.html")]
struct KeysPage {
    assets: &'static str,
    here: &'static str,
    keys: Vec<KeyView>,
}

struct KeyView {
    prefix: String,
    label: String,
    /// Word and badge class.
    status: (&'static str, &'static str),
    kind: &'static str,
    quota: Option<String>,
    version: Option<String>,
    /// Name, and URL of the grid as it sees the catalog.
    assortment: Option<(String, String)>,
    /// True if this server shows the key nothing, as it doesn't know the rules.
    is_unknown: bool,
    created: String,
    /// Time of expiry or revocation.
    expires: Option<String>,
    revoked: Option<String>,
    last_used: Option<String>,
}

/// Renders the page of all keys.
pub(super) fn page(browser: &Browser) -> Shown {
    let keys = browser.store.keys();
    let mut keys = keys.map_err(|error| Problem::store_away(&error))?;
    let now = Timestamp::now();
    // Active ones first, the newest first.
    keys.sort_by_key(|key| (!key.is_active(now), std::cmp::Reverse(key.created_at)));
    let live = browser.app.live.keys();
    let page = KeysPage {
        assets: ASSETS,
        here: "keys",
        keys: keys
            .iter()
            .map(|key| view(key, live.assortments(), now))
            .collect(),
    };
    answer::html(StatusCode::OK, &page)
}

fn view(key: &KeyRecord, known: &AssortmentTable, now: Timestamp) -> KeyView {
    let assortment = key.assortment.as_deref();
    let time = |moment: &Option<Timestamp>| moment.as_ref().map(minute);
    KeyView {
        prefix: key.prefix.clone(),
        label: key.label.clone(),
        status: match key.status(now) {
            KeyStatus::Active => ("Active", "good"),
            KeyStatus::Rotated => ("Rotated", "caution"),
            KeyStatus::Expired => ("Expired", "bad"),
            KeyStatus::Revoked => ("Revoked", "bad"),
        },
        kind: match key.kind {
            KeyKind::Live => "Live",
            KeyKind::Test => "Test",
        },
        quota: key.quota.map(|quota| quota.to_string()),
        version: key.api_version.clone(),
        assortment: assortment.map(|name| {
            let address = Query::of_assortment(name).address();
            (name.to_owned(), address)
        }),
        is_unknown: known.held.contains(&key.prefix)
            || assortment.is_some_and(|name| known.get(name).is_none()),
        created: minute(&key.created_at),
        expires: time(&key.expires_at),
        revoked: time(&key.revoked_at),
        last_used: time(&key.last_used_at),
    }
}
