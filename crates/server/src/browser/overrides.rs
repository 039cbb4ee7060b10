//! Page of overrides: those that hold now, those to come, what begins and ends by day, and those that ended.

use std::collections::BTreeMap;

use askama::Template;
use http::StatusCode;
use jiff::Timestamp;
use jiff::civil::Date;
use vitrine_ingest::overrides::{Kind, Override};
use vitrine_store::overrides::{OverrideStatus, StoredOverride};

use super::Browser;
use super::answer::{self, ASSETS, Problem, Shown};
use super::query::{pairs, unknown};
use super::times::{date, day_heading, minute, span};

/// Maximum number of ended overrides that are shown.
const MAX_ENDED: usize = 50;

/// Number of overrides of a status that aren't folded up.
const OPEN: usize = 20;

/// Number of days with beginnings and ends that aren't folded up.
const OPEN_DAYS: usize = 7;

#[derive(Template)]
#[template(path = "browser/overrides.html")]
struct OverridesPage {
    assets: &'static str,
    here: &'static str,
    days: Vec<DayView>,
    groups: [GroupView; 3],
    /// Number of ended ones that aren't shown.
    more: usize,
}

/// Overrides of one status.
struct GroupView {
    id: &'static str,
    heading: &'static str,
    overrides: Vec<OverrideView>,
}

impl OverridesPage {
    /// Splits the days with beginnings and ends into the next ones and those that are folded up.
    fn next_days(&self) -> (&[DayView], &[DayView]) {
        self.days.split_at(self.days.len().min(OPEN_DAYS))
    }
}

impl GroupView {
    /// Splits the overrides into those that stand open and those that are folded up.
    fn first(&self) -> (&[OverrideView], &[OverrideView]) {
        self.overrides.split_at(self.overrides.len().min(OPEN))
    }
}

/// Beginnings and ends of a day.
struct DayView {
    heading: String,
    instants: Vec<InstantView>,
}

/// A beginning or an end to come.
#[derive(Debug, Clone)]
pub(super) struct InstantView {
    pub(super) number: u64,
    /// True if it begins.
    pub(super) begins: bool,
    pub(super) time: String,
    /// Time until it.
    pub(super) within: String,
    /// Action, and the products in words.
    pub(super) action: &'static str,
    pub(super) products: String,
    pub(super) at: Timestamp,
}

struct OverrideView {
    number: u64,
    action: &'static str,
    /// Products and values, or why they can't be read.
    products: String,
    values: String,
    from: String,
    until: Option<String>,
    by: String,
    note: Option<String>,
    /// Time, author and reason of its end.
    ended: Option<(String, Option<String>, Option<String>)>,
}

/// Renders the page of overrides.
pub(super) fn page(browser: &Browser, query: Option<&str>) -> Shown {
    let now = Timestamp::now();
    // The page had a calendar once: addresses of its months still lead here.
    let mut given = pairs(query)?.into_iter().map(|(name, _)| name);
    if let Some(name) = given.find(|name| name != "month") {
        return Err(unknown(&name));
    }
    let read = browser.store.overrides();
    let all = read.map_err(|error| Problem::store_away(&error))?;
    let of = |status: OverrideStatus| {
        let wanted = all.iter().filter(move |one| one.made.status == status);
        wanted.collect::<Vec<_>>()
    };
    let (mut active, mut scheduled) = (of(OverrideStatus::Active), of(OverrideStatus::Scheduled));
    // What ends first, and what begins first; what nobody ends is last.
    active.sort_by_key(|one| (one.made.until.is_none(), one.made.until, one.number));
    scheduled.sort_by_key(|one| (one.made.from, one.number));
    let mut ended = of(OverrideStatus::Ended);
    let ended_at = |one: &StoredOverride| one.ended.as_ref().map(|end| end.at);
    ended.sort_by_key(|one| std::cmp::Reverse((ended_at(one), one.number)));
    let more = ended.len().saturating_sub(MAX_ENDED);
    ended.truncate(MAX_ENDED);
    let group = |id, heading, all: Vec<&StoredOverride>| GroupView {
        id,
        heading,
        overrides: all.into_iter().map(view).collect(),
    };
    let mut days: BTreeMap<Date, Vec<InstantView>> = BTreeMap::new();
    for instant in instants(&all, now) {
        days.entry(date(instant.at)).or_default().push(instant);
    }
    let day = |(day, instants): (Date, Vec<InstantView>)| DayView {
        heading: day_heading(day),
        instants,
    };
    let page = OverridesPage {
        assets: ASSETS,
        here: "overrides",
        days: days.into_iter().map(day).collect(),
        groups: [
            group("active", "Active", active),
            group("scheduled", "Scheduled", scheduled),
            group("ended", "Ended", ended),
        ],
        more,
    };
    answer::html(StatusCode::OK, &page)
}

/// Returns the beginnings and ends that are to come, the next one first.
pub(super) fn instants(all: &[StoredOverride], now: Timestamp) -> Vec<InstantView> {
    let mut instants = Vec::new();
    for one in all.iter().filter(|one| one.ended.is_none()) {
        let (action, products, _) = in_words(one);
        let begins = Some(one.made.from).filter(|_| one.made.status == OverrideStatus::Scheduled);
        for (at, begins) in [(begins, true), (one.made.until, false)] {
            instants.extend(at.map(|at| InstantView {
                number: one.number,
                begins,
                time: at.strftime("%H:%M").to_string(),
                within: span(now, at),
                action,
                products: products.clone(),
                at,
            }));
        }
    }
    instants.sort_by_key(|instant| (instant.at, instant.number));
    instants
}

/// Returns what an override does, its products, and its values.
pub(super) fn in_words(one: &StoredOverride) -> (&'static str, String, String) {
    match Override::parse(one.clone()) {
        Ok(read) => {
            let action = match read.definition.kind {
                Kind::Disable => "Disable",
                Kind::Hide => "Hide",
                Kind::Set => "Set",
            };
            let values = match read.definition.kind {
                Kind::Set => read.definition.values_text(),
                Kind::Disable | Kind::Hide => String::new(),
            };
            (action, read.definition.products_summary(), values)
        }
        Err(_) => ("Unknown", "can’t be read".to_owned(), String::new()),
    }
}

fn view(one: &StoredOverride) -> OverrideView {
    let (action, products, values) = in_words(one);
    let made = &one.made;
    OverrideView {
        number: one.number,
        action,
        products,
        values,
        from: minute(&made.from),
        until: made.until.as_ref().map(minute),
        by: made.created_by.clone(),
        note: made.note.clone(),
        ended: (one.ended.as_ref()).map(|end| (minute(&end.at), end.by.clone(), end.note.clone())),
    }
}
