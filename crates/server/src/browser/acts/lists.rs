//! The pages of overrides, of the audit log, and of all acts.

use askama::Template;
use http::StatusCode;
use vitrine_ingest::load::report::shown;
use vitrine_ingest::overrides::Override;
use vitrine_store::StoreError;
use vitrine_store::audit::{AuditEntry, FieldChange};
use vitrine_store::overrides::OverrideStatus;

use super::ACTS;
use crate::browser::Browser;
use crate::browser::answer::{self, ASSETS, Problem, Shown};
use crate::browser::revisions::minute;
use crate::browser::sign_in::viewer;

/// Maximum number of entries of the audit log, and of ended overrides.
const MAX_SHOWN: u32 = 200;

#[derive(Template)]
#[template(path = "acts/index.html")]
struct IndexPage {
    assets: &'static str,
    here: &'static str,
    acts: Vec<(&'static str, &'static str)>,
}

#[derive(Template)]
#[template(path = "acts/overrides.html")]
struct OverridesPage {
    assets: &'static str,
    here: &'static str,
    /// Title, overrides, and words if there are none.
    groups: Vec<(&'static str, Vec<OverrideView>, &'static str)>,
    can_act: bool,
}

struct OverrideView {
    number: u64,
    values: String,
    products: String,
    from: String,
    until: String,
    by: String,
    note: String,
    is_open: bool,
}

#[derive(Template)]
#[template(path = "acts/audit.html")]
struct AuditPage {
    assets: &'static str,
    here: &'static str,
    entries: Vec<EntryView>,
}

struct EntryView {
    number: u64,
    at: String,
    by: String,
    action: String,
    kind: String,
    subject: String,
    changes: Vec<String>,
    note: String,
}

/// Renders the page of all acts that the operator may do.
pub(in crate::browser) fn index() -> Shown {
    let viewer = viewer::current();
    let may = |role| viewer.as_ref().is_some_and(|viewer| viewer.is(role));
    let acts = ACTS.iter().filter(|act| may(act.role));
    let page = IndexPage {
        assets: ASSETS,
        here: "acts",
        acts: acts
            .filter_map(|act| Some((act.path, act.title?)))
            .collect(),
    };
    answer::html(StatusCode::OK, &page)
}

/// Renders the page of overrides: what is active, what begins, what ended last.
pub(in crate::browser) fn overrides(browser: &Browser) -> Shown {
    let away = |error: StoreError| Problem::store_away(&error);
    let mut all = browser.acts_store.overrides().map_err(away)?;
    all.reverse();
    let of = |status: OverrideStatus, most: usize| {
        let chosen = all
            .iter()
            .filter(|one| one.made.status == status)
            .take(most);
        let read = Override::read_all(chosen.cloned().collect());
        read.map(|read| read.iter().map(view).collect::<Vec<_>>())
    };
    let mut groups = Vec::new();
    for (title, status, most, none) in [
        (
            "Active",
            OverrideStatus::Active,
            usize::MAX,
            "Nothing lies over what loads brought.",
        ),
        (
            "Scheduled",
            OverrideStatus::Scheduled,
            usize::MAX,
            "Nothing begins later.",
        ),
        (
            "Ended",
            OverrideStatus::Ended,
            MAX_SHOWN as usize,
            "None ended yet.",
        ),
    ] {
        groups.push((title, of(status, most).map_err(away)?, none));
    }
    let page = OverridesPage {
        assets: ASSETS,
        here: "overrides",
        groups,
        can_act: viewer::edits(),
    };
    answer::html(StatusCode::OK, &page)
}

fn view(one: &Override) -> OverrideView {
    let (made, ended) = (&one.stored.made, one.stored.ended.as_ref());
    let until = match (ended, made.until) {
        (Some(end), _) => minute(&end.at),
        (None, Some(until)) => minute(&until),
        (None, None) => "ended by hand".to_owned(),
    };
    let ended_by = ended.and_then(|end| end.by.as_deref());
    OverrideView {
        number: one.number,
        values: one.definition.values_text(),
        products: one.definition.selection_text(),
        from: minute(&made.from),
        until,
        by: match ended_by {
            Some(by) => format!("{}, ended by {by}", made.created_by),
            None => made.created_by.clone(),
        },
        note: shown(made.note.as_deref().unwrap_or_default()),
        is_open: made.status != OverrideStatus::Ended,
    }
}

/// Renders the page of the audit log.
pub(in crate::browser) fn audit(browser: &Browser) -> Shown {
    let entries = browser.acts_store.audit(None, MAX_SHOWN);
    let entries = entries.map_err(|error| Problem::store_away(&error))?;
    let page = AuditPage {
        assets: ASSETS,
        here: "audit",
        entries: entries.into_iter().map(entry).collect(),
    };
    answer::html(StatusCode::OK, &page)
}

fn entry(entry: AuditEntry) -> EntryView {
    EntryView {
        number: entry.number,
        at: minute(&entry.at),
        by: entry.by,
        action: entry.action,
        kind: entry.subject_kind,
        subject: entry.subject,
        changes: entry.changes.iter().map(change).collect(),
        note: entry.note.unwrap_or_default(),
    }
}

fn change(change: &FieldChange) -> String {
    let FieldChange {
        field,
        before,
        after,
    } = change;
    match (before, after) {
        (None, None) => format!("{field} replaced"),
        (None, Some(after)) => format!("{field} {after}"),
        (Some(before), after) => {
            let after = after.as_deref().unwrap_or("none");
            format!("{field} {before} → {after}")
        }
    }
}
