//! Page of all keys: labels, status and last use. It has neither secrets nor their hashes.

use askama::Template;
use http::StatusCode;
use jiff::Timestamp;
use vitrine_model::key::{KeyKind, KeyRecord, KeyStatus};

use super::Browser;
use super::answer::{self, ASSETS, Problem, Shown};
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
    let page = KeysPage {
        assets: ASSETS,
        here: "keys",
        keys: keys.iter().map(|key| view(key, now)).collect(),
    };
    answer::html(StatusCode::OK, &page)
}

fn view(key: &KeyRecord, now: Timestamp) -> KeyView {
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
        created: minute(&key.created_at),
        expires: time(&key.expires_at),
        revoked: time(&key.revoked_at),
        last_used: time(&key.last_used_at),
    }
}
