//! Times for people, in UTC.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

/// Returns the date of a time.
pub(super) fn date(moment: Timestamp) -> Date {
    moment.to_zoned(TimeZone::UTC).date()
}

/// Formats a time, to the minute.
pub(super) fn minute(moment: &Timestamp) -> String {
    moment.strftime("%Y-%m-%d %H:%M UTC").to_string()
}

/// Formats a time, to the day.
pub(super) fn day(moment: &Timestamp) -> String {
    moment.strftime("%Y-%m-%d").to_string()
}

/// Formats a time in a column: the time of today, the day of this year, or the date.
pub(super) fn compact(moment: Timestamp, now: Timestamp) -> String {
    let (day, today) = (date(moment), date(now));
    let format = match () {
        () if day == today => "%H:%M",
        () if day.year() == today.year() => "%-d %b",
        () => "%Y-%m-%d",
    };
    moment.strftime(format).to_string()
}

/// Formats a day for a heading, such as `Thursday 26 November 2026`.
pub(super) fn day_heading(day: Date) -> String {
    day.strftime("%A %-d %B %Y").to_string()
}

/// Formats a span for people, in its greatest unit: `3 days`, `1 hour`, `less than a minute`.
pub(super) fn span(from: Timestamp, until: Timestamp) -> String {
    let seconds = until.as_second().saturating_sub(from.as_second()).max(0);
    let (count, unit) = match seconds {
        0..60 => return "less than a minute".to_owned(),
        60..3_600 => (seconds / 60, "minute"),
        3_600..86_400 => (seconds / 3_600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    match count {
        1 => format!("1 {unit}"),
        _ => format!("{count} {unit}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_as_short_as_they_are_near() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let now = at("2026-11-26T10:30:00Z");
        assert_eq!(compact(at("2026-11-26T00:05:00Z"), now), "00:05");
        assert_eq!(compact(at("2026-11-25T23:59:00Z"), now), "25 Nov");
        assert_eq!(compact(at("2025-12-31T23:59:00Z"), now), "2025-12-31");
        assert_eq!(minute(&now), "2026-11-26 10:30 UTC");
        assert_eq!(day(&now), "2026-11-26");
        assert_eq!(day_heading(date(now)), "Thursday 26 November 2026");
        for (later, said) in [
            ("2026-11-26T10:30:59Z", "less than a minute"),
            ("2026-11-26T10:31:00Z", "1 minute"),
            ("2026-11-26T13:30:00Z", "3 hours"),
            ("2026-11-28T10:30:00Z", "2 days"),
            ("2026-11-01T10:30:00Z", "less than a minute"),
        ] {
            assert_eq!(span(now, at(later)), said, "{later}");
        }
    }
}
