//! Page of the audit log: who changed keys, assortments, texts and webhooks, and how; of all, or of one subject.

use askama::Template;
use http::StatusCode;
use vitrine_store::audit::{AuditEntry, FieldChange};

use super::Browser;
use super::answer::{self, ASSETS, Problem, Shown};
use super::query::{number, pairs, refused, repeated, unknown};
use super::times::minute;
use crate::http::request::query::encoded;

/// Number of entries on a page.
const PAGE: u32 = 100;

/// Maximum number of entries: the log is read from its newest end.
const MAX_ENTRIES: u32 = 10_000;

/// Kinds of subjects, with their words.
const KINDS: [(&str, &str); 7] = [
    ("key", "Keys"),
    ("assortment", "Assortments"),
    ("webhook", "Webhooks"),
    ("text", "Texts"),
    ("override", "Overrides"),
    ("operator", "Operators"),
    ("store", "Store"),
];

#[derive(Template)]
#[template(path = "browser/audit.html")]
struct AuditPage {
    assets: &'static str,
    here: &'static str,
    subject: String,
    kind: Option<String>,
    entries: Vec<AuditEntry>,
    next: Option<String>,
    is_first_page: bool,
}

impl AuditPage {
    fn address(&self, kind: Option<&str>, subject: &str) -> String {
        address(kind, subject, None)
    }

    fn is_of(&self, kind: &str) -> bool {
        self.kind.as_deref() == Some(kind)
    }

    /// Returns the word for a kind of subject.
    fn kind_word<'a>(&self, kind: &'a str) -> &'a str {
        let known = KINDS.into_iter().find(|(name, _)| *name == kind);
        known.map_or(kind, |(name, _)| name)
    }
}

/// Returns true if a field had no value, and has none.
fn is_empty(change: &FieldChange) -> bool {
    let values = [&change.before, &change.after];
    values.into_iter().flatten().all(String::is_empty)
}

/// Cuts a long value. Of the position of an endpoint, a token, the beginning tells it from others.
fn cut(field: &str, value: &str) -> String {
    let most = match field {
        "position" => 12,
        _ => 160,
    };
    match value.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &value[..end]),
        None => value.to_owned(),
    }
}

fn address(kind: Option<&str>, subject: &str, page: Option<u32>) -> String {
    let page = page.map(|page| page.to_string());
    let subject = Some(subject).filter(|subject| !subject.is_empty());
    let parameters = [
        ("kind", kind),
        ("subject", subject),
        ("page", page.as_deref()),
    ];
    let given = parameters
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)));
    let query: Vec<String> = given
        .map(|(name, value)| format!("{name}={}", encoded(value)))
        .collect();
    match query.is_empty() {
        true => "/audit".to_owned(),
        false => format!("/audit?{}", query.join("&")),
    }
}

/// Renders the page of the audit log.
pub(super) fn page(browser: &Browser, query: Option<&str>) -> Shown {
    let (mut subject, mut kind, mut page) = (None, None, None);
    for (name, value) in pairs(query)? {
        let is_repeated = match name.as_str() {
            "subject" => subject.replace(value.trim().to_owned()).is_some(),
            "kind" if value.is_empty() => false,
            "kind" => {
                let is_known = KINDS.iter().any(|(kind, _)| *kind == value);
                let known = Some(value).filter(|_| is_known);
                let why = "isn't `key`, `assortment`, `webhook`, `text`, `override`, `operator` or `store`";
                kind.replace(known.ok_or_else(|| refused("kind", why))?)
                    .is_some()
            }
            "page" => {
                let number = number(&value);
                let number = number.filter(|number| (1..=MAX_ENTRIES / PAGE).contains(number));
                page.replace(number.ok_or_else(|| refused("page", "isn't a number from 1 to 100"))?)
                    .is_some()
            }
            _ => return Err(unknown(&name)),
        };
        if is_repeated {
            return Err(repeated(&name));
        }
    }
    let (subject, page): (String, u32) = (subject.unwrap_or_default(), page.unwrap_or(1));
    let wanted = Some(subject.as_str()).filter(|subject| !subject.is_empty());
    // Kinds are searched among the newest entries.
    let limit = match kind {
        Some(_) => MAX_ENTRIES,
        None => page * PAGE + 1,
    };
    let read = browser.store.audit(wanted, limit);
    let mut entries = read.map_err(|error| Problem::store_away(&error))?;
    entries.retain(|entry| kind.as_ref().is_none_or(|kind| *kind == entry.subject_kind));
    let has_more = entries.len() > (page * PAGE) as usize && page < MAX_ENTRIES / PAGE;
    let skipped = ((page - 1) * PAGE) as usize;
    let shown = AuditPage {
        assets: ASSETS,
        here: "audit",
        entries: entries
            .into_iter()
            .skip(skipped)
            .take(PAGE as usize)
            .collect(),
        next: has_more.then(|| address(kind.as_deref(), &subject, Some(page + 1))),
        is_first_page: page == 1,
        subject,
        kind,
    };
    answer::html(StatusCode::OK, &shown)
}
