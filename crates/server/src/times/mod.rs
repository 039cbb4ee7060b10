//! Times and durations, as operators write and read them.
//!
//! - `instant`: times at which something is to happen

pub(crate) mod instant;

use std::time::Duration;

use jiff::civil::{Date, Time};
use jiff::fmt::temporal::Pieces;
use jiff::tz::{Offset, TimeZone};
use jiff::{RoundMode, Span, Timestamp, TimestampRound, Unit};

/// Parses a time: `2027-01-31` (the start of that day in UTC), `2027-01-31T12:00:00Z`, or a duration from `now`, such
/// as `90d`.
pub(crate) fn parse_moment(text: &str, now: Timestamp) -> Result<Timestamp, String> {
    parse_time(text).map_or_else(|| after(text, now), Ok).map_err(|error| match is_too_late(text) {
        true => too_late(text),
        false if span(text).is_ok() => error,
        false => format!("`{text}` isn't a time; use a date (2027-01-31), a time (2027-01-31T12:00:00Z) or a span from now \
             (90d)"),
    })
}

/// Returns true for a date, or a time with an offset, that is well-formed and later than [`Timestamp::MAX`].
fn is_too_late(text: &str) -> bool {
    let Ok(pieces) = Pieces::parse(text) else {
        return false;
    };
    let time = pieces.time().unwrap_or(Time::midnight());
    let offset = pieces.to_numeric_offset().unwrap_or(Offset::UTC);
    let is_alone = pieces.time().is_none() == pieces.offset().is_none();
    let timestamp = offset.to_timestamp(pieces.date().to_datetime(time));
    is_alone && pieces.date().year() > 0 && timestamp.is_err()
}

/// Returns the error of a time later than the latest.
fn too_late(text: &str) -> String {
    let latest = to_second(Timestamp::MAX);
    format!("`{text}` is too late; the latest time is {latest}")
}

/// Parses a time: `2027-01-31` (the start of that day in UTC) or `2027-01-31T12:00:00Z`.
pub(crate) fn parse_time(text: &str) -> Option<Timestamp> {
    // The parser of dates also accepts times, and would ignore what follows the day.
    match (text.len(), text.parse::<Date>()) {
        (10, Ok(date)) => Some(date.to_zoned(TimeZone::UTC).ok()?.timestamp()),
        _ => text.parse().ok(),
    }
}

/// Returns the time a duration after `now`: `7d`, `12h`, `30m`, `10s`.
pub(crate) fn after(text: &str, now: Timestamp) -> Result<Timestamp, String> {
    let later = now.to_zoned(TimeZone::UTC).checked_add(span(text)?);
    later
        .map(|later| later.timestamp())
        .map_err(|_| too_late(text))
}

/// Returns the time a duration before `now`.
pub(crate) fn parse_past_moment(text: &str, now: Timestamp) -> Result<Timestamp, String> {
    let earlier = now.to_zoned(TimeZone::UTC).checked_sub(span(text)?);
    earlier
        .map(|earlier| earlier.timestamp())
        .map_err(|_| no_span(text))
}

fn span(text: &str) -> Result<Span, String> {
    match text.parse::<Span>() {
        Ok(span) if !span.is_negative() => Ok(span),
        _ => Err(no_span(text)),
    }
}

fn no_span(text: &str) -> String {
    format!("`{text}` isn't a time span; use one such as 7d, 12h, 30m or 10s")
}

/// Parses a pause: `30s`, `10m`, `1h`, at least a second.
pub(crate) fn parse_pause(text: &str) -> Result<Duration, String> {
    let span = parse_length(text)?;
    match span >= Duration::from_secs(1) {
        true => Ok(span),
        false => Err(format!("`{text}` is too short; the minimum is 1s")),
    }
}

/// Parses a duration: `0s`, `10s`, `5m`.
pub(crate) fn parse_length(text: &str) -> Result<Duration, String> {
    let start = Timestamp::UNIX_EPOCH;
    let end = after(text, start).map_err(|_| no_span(text))?;
    Ok(end.duration_since(start).unsigned_abs())
}

/// Truncates a time to the second, for lists.
pub(crate) fn to_second(moment: Timestamp) -> Timestamp {
    let to_second = TimestampRound::new()
        .smallest(Unit::Second)
        .mode(RoundMode::Trunc);
    moment.round(to_second).unwrap_or(moment)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_dates_times_or_durations() {
        let now: Timestamp = "2026-11-21T10:00:00Z".parse().unwrap();
        for (text, expected) in [
            ("2027-01-31", "2027-01-31T00:00:00Z"),
            ("2027-01-31T12:00:00Z", "2027-01-31T12:00:00Z"),
            ("2027-01-31T23:00:00+02:00", "2027-01-31T21:00:00Z"),
            ("90d", "2027-02-19T10:00:00Z"),
            ("12h", "2026-11-21T22:00:00Z"),
            ("10s", "2026-11-21T10:00:10Z"),
        ] {
            assert_eq!(parse_moment(text, now).unwrap().to_string(), expected);
        }
        for wrong in ["", "soon", "-5d", "2027-13-01", "7", "2027-01-31T12:00:00"] {
            assert!(parse_moment(wrong, now).is_err(), "{wrong}");
        }
        for late in ["9999-12-31", "9999-12-31T00:00:00Z", "9000y"] {
            let error = parse_moment(late, now).unwrap_err();
            assert!(
                error.ends_with("is too late; the latest time is 9999-12-30T22:00:00Z"),
                "{error}"
            );
        }
        assert!(parse_length("9000y").unwrap_err().contains("time span"));
        let then = parse_past_moment("90d", now).unwrap();
        assert_eq!(then.to_string(), "2026-08-23T10:00:00Z");
        for wrong in ["", "-5d", "7", "99999y"] {
            assert!(parse_past_moment(wrong, now).is_err(), "{wrong}");
        }
    }
}
