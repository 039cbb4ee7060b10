//! A month of the overrides: what begins and ends on each day, in UTC.

use std::collections::BTreeMap;

use jiff::civil::Date;
use jiff::{Timestamp, ToSpan as _};
use vitrine_store::overrides::StoredOverride;

use super::answer::Problem;
use super::overrides::in_words;
use super::query::{pairs, refused, repeated, unknown};
use super::times::date;

/// Maximum number of beginnings and ends that a day shows.
const MAX_EVENTS: usize = 6;

/// Years that can be looked at.
const YEARS: std::ops::RangeInclusive<i16> = 2000..=2199;

/// A month.
pub(super) struct Month {
    /// Such as `December 2026`.
    pub(super) title: String,
    pub(super) weeks: Vec<Vec<Day>>,
    /// Name and URL of the months before and after, where they can be looked at.
    pub(super) previous: Option<(String, String)>,
    pub(super) next: Option<(String, String)>,
    /// True if nothing begins or ends in it.
    pub(super) is_empty: bool,
}

/// A day of a month's weeks, perhaps one of the neighbouring months.
pub(super) struct Day {
    pub(super) date: Date,
    /// Day of the month, and the whole for readers who see only this day.
    pub(super) number: i8,
    pub(super) heading: String,
    pub(super) is_outside: bool,
    pub(super) is_today: bool,
    pub(super) events: Vec<Event>,
    /// Number of events that aren't shown.
    pub(super) more: usize,
}

/// A beginning or an end of an override.
pub(super) struct Event {
    pub(super) number: u64,
    pub(super) begins: bool,
    pub(super) at: Timestamp,
    pub(super) time: String,
    pub(super) action: &'static str,
    pub(super) products: String,
}

/// Reads the month of a URL's query, `month=2026-12`; by default that of now. Returns its first day.
pub(super) fn wanted(query: Option<&str>, now: Timestamp) -> Result<Date, Problem> {
    let mut wanted = None;
    for (name, value) in pairs(query)? {
        if name != "month" {
            return Err(unknown(&name));
        }
        let first = format!("{value}-01").parse::<Date>().ok();
        let first = first.filter(|first| value.len() == 7 && YEARS.contains(&first.year()));
        let first = first.ok_or_else(|| refused("month", "isn't a month such as `2026-12`"))?;
        if wanted.replace(first).is_some() {
            return Err(repeated("month"));
        }
    }
    Ok(wanted.unwrap_or_else(|| date(now).first_of_month()))
}

impl Month {
    /// Returns the month that begins on `first`, with what begins and ends in its weeks.
    pub(super) fn of(all: &[StoredOverride], first: Date, now: Timestamp) -> Self {
        let mut by_day: BTreeMap<Date, Vec<Event>> = BTreeMap::new();
        let before = first.weekday().to_monday_zero_offset();
        let start = first.saturating_sub(i64::from(before).days());
        let weeks = (before + first.days_in_month()).unsigned_abs().div_ceil(7);
        let after = start.saturating_add(i64::from(weeks).weeks());
        for event in events(all) {
            let day = date(event.at);
            if (start..after).contains(&day) {
                by_day.entry(day).or_default().push(event);
            }
        }
        let is_empty = !by_day.keys().any(|day| day.first_of_month() == first);
        let today = date(now);
        let mut day = |offset: u8| {
            let date = start.saturating_add(i64::from(offset).days());
            let mut events = by_day.remove(&date).unwrap_or_default();
            events.sort_by_key(|event| (event.at, event.number));
            let more = events.len().saturating_sub(MAX_EVENTS);
            events.truncate(MAX_EVENTS);
            Day {
                date,
                number: date.day(),
                heading: date.strftime("%a %-d %b").to_string(),
                is_outside: date.first_of_month() != first,
                is_today: date == today,
                events,
                more,
            }
        };
        let mut week = |number: u8| (7 * number..7 * (number + 1)).map(&mut day).collect();
        Self {
            title: title(first),
            weeks: (0..weeks).map(&mut week).collect(),
            previous: link(first.saturating_sub(1.month())),
            next: link(first.saturating_add(1.month())),
            is_empty,
        }
    }
}

fn title(first: Date) -> String {
    first.strftime("%B %Y").to_string()
}

fn link(first: Date) -> Option<(String, String)> {
    let address = first.strftime("/overrides?month=%Y-%m#month").to_string();
    YEARS
        .contains(&first.year())
        .then(|| (title(first), address))
}

/// Returns all beginnings and ends: those that were, and those to come.
fn events(all: &[StoredOverride]) -> Vec<Event> {
    let mut events = Vec::new();
    for one in all {
        let (action, products, _) = in_words(one);
        let ended = one.ended.as_ref().map(|end| end.at);
        let until = ended.or(one.made.until);
        // One that was ended before it began did nothing.
        let from = Some(one.made.from).filter(|from| ended.is_none_or(|ended| *from < ended));
        let until = until.filter(|_| from.is_some());
        for (at, begins) in [(from, true), (until, false)] {
            events.extend(at.map(|at| Event {
                number: one.number,
                begins,
                at,
                time: at.strftime("%H:%M").to_string(),
                action,
                products: products.clone(),
            }));
        }
    }
    events
}

#[cfg(test)]
mod tests {
    use super::*;

    fn month(text: &str) -> Month {
        let now = "2026-11-26T10:00:00Z".parse().unwrap();
        Month::of(&[], wanted(Some(text), now).ok().unwrap(), now)
    }

    #[test]
    fn weeks_begin_on_monday_and_cover_the_month() {
        for (query, first, last, weeks) in [
            ("month=2026-12", "2026-11-30", "2027-01-03", 5),
            ("month=2026-11", "2026-10-26", "2026-12-06", 6),
            ("month=2027-02", "2027-02-01", "2027-02-28", 4),
            ("", "2026-10-26", "2026-12-06", 6),
        ] {
            let month = month(query);
            let days: Vec<&Day> = month.weeks.iter().flatten().collect();
            let ends = [days[0], days[days.len() - 1]].map(|day| day.date.to_string());
            assert_eq!(ends, [first, last], "{query}");
            assert_eq!(month.weeks.len(), weeks, "{query}");
            assert!(month.weeks.iter().all(|week| week.len() == 7), "{query}");
            assert!(month.is_empty);
        }
        assert!(month("month=2000-01").previous.is_none());
        let (title, address) = month("month=2026-12").next.unwrap();
        assert_eq!(
            (&*title, &*address),
            ("January 2027", "/overrides?month=2027-01#month")
        );
    }

    #[test]
    fn months_that_are_none_are_refused() {
        let now = Timestamp::UNIX_EPOCH;
        for wrong in [
            "month=2026-13",
            "month=2026-1",
            "month=1999-12",
            "month=",
            "day=1",
            "month=2026-12&month=2026-11",
        ] {
            assert!(wanted(Some(wrong), now).is_err(), "{wrong}");
        }
    }
}
