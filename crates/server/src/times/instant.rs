//! Times at which something is to happen, as operators write them: with a zone, since a local time alone is that of nobody.

use std::str::FromStr;

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::{AmbiguousOffset, TimeZone};

use super::{after, is_too_late, span, too_late};

/// A time, or a span from the time at which it is used.
#[derive(Debug, Clone)]
pub(crate) struct Instant(String);

impl Instant {
    /// Returns the time; a span is counted from `now`.
    pub(crate) fn from(&self, now: Timestamp) -> Timestamp {
        // It was parsed before; a span that ends out of range isn't over.
        parse_instant(&self.0, now).unwrap_or(Timestamp::MAX)
    }
}

impl FromStr for Instant {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        parse_instant(text, Timestamp::now()).map(|_| Self(text.to_owned()))
    }
}

/// Parses a time: `2026-12-01T09:00:00Z`, `2026-12-01 09:00 Europe/Berlin`, a day in a zone (its midnight), or a duration
/// from `now`, such as `2h`.
pub(crate) fn parse_instant(text: &str, now: Timestamp) -> Result<Timestamp, String> {
    let text = text.trim();
    // The parser would ignore a zone in brackets that contradicts the offset in front of it.
    if let Some(exact) = text
        .parse::<Timestamp>()
        .ok()
        .filter(|_| !text.ends_with(']'))
    {
        return Ok(exact);
    }
    if let Some((local, zone)) = split_zone(text)
        && let Some(local) = local_time(local)
    {
        return in_zone(text, local, zone);
    }
    if local_time(text).is_some() {
        return Err(format!(
            "`{text}` has no zone; add one, as in `{text} Europe/Berlin` or `{text} UTC`"
        ));
    }
    after(text, now).map_err(|error| match is_too_late(text) {
        true => too_late(text),
        false if span(text).is_ok() => error,
        false => format!(
            "`{text}` isn't a time; use a time with its zone (`2026-12-01 09:00 Europe/Berlin`), one in UTC \
             (2026-12-01T08:00:00Z), or a span from now (2h)"
        ),
    })
}

/// Splits the zone off: the last word, or what is in brackets.
fn split_zone(text: &str) -> Option<(&str, &str)> {
    if let Some((local, zone)) = text.strip_suffix(']').and_then(|text| text.split_once('[')) {
        return Some((local, zone));
    }
    let (local, zone) = text.rsplit_once(' ')?;
    zone.starts_with(|first: char| first.is_ascii_alphabetic())
        .then_some((local.trim_end(), zone))
}

/// Returns a date with a time, or the beginning of a day.
fn local_time(text: &str) -> Option<DateTime> {
    match text.len() {
        10 => Some(
            text.parse::<Date>()
                .ok()?
                .to_datetime(jiff::civil::Time::midnight()),
        ),
        // The parser would take a day alone, and ignore an offset behind the time.
        16.. if !text.get(10..)?.contains(['Z', 'z', '+', '-']) => text.parse().ok(),
        _ => None,
    }
}

fn in_zone(text: &str, local: DateTime, zone: &str) -> Result<Timestamp, String> {
    let found = TimeZone::get(zone).ok().filter(|zone| !zone.is_unknown());
    let zone = found.ok_or_else(|| {
        format!("`{zone}` is no time zone; use a name such as Europe/Berlin, or UTC")
    })?;
    let ambiguous = zone.to_ambiguous_timestamp(local);
    let readings = |before: jiff::tz::Offset, after: jiff::tz::Offset| {
        let reading = |offset: jiff::tz::Offset| {
            let read = offset.to_timestamp(local);
            read.map_or_else(|_| "out of range".to_owned(), |read| read.to_string())
        };
        format!("{} or {}", reading(before), reading(after))
    };
    match ambiguous.offset() {
        AmbiguousOffset::Gap { before, after } => Err(format!(
            "`{text}` doesn't exist: clocks are put forward over it; say which time is meant: {}",
            readings(after, before)
        )),
        AmbiguousOffset::Fold { before, after } => Err(format!(
            "`{text}` exists twice: clocks are put back over it; say which one is meant: {}",
            readings(before, after)
        )),
        AmbiguousOffset::Unambiguous { .. } => {
            ambiguous.unambiguous().map_err(|error| match local.year() {
                1.. => too_late(text),
                _ => format!("`{text}`: {error}"),
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<String, String> {
        let now = "2026-11-26T10:00:00Z".parse().unwrap();
        parse_instant(text, now).map(|time| time.to_string())
    }

    #[test]
    fn times_with_a_zone_are_understood() {
        for (text, expected) in [
            ("2026-12-01 09:00 Europe/Berlin", "2026-12-01T08:00:00Z"),
            ("2026-12-01T09:00 Europe/Berlin", "2026-12-01T08:00:00Z"),
            ("2026-12-01T09:00:30[Europe/Berlin]", "2026-12-01T08:00:30Z"),
            ("2027-07-01 09:00 Europe/Berlin", "2027-07-01T07:00:00Z"),
            ("2026-12-01 09:00 America/New_York", "2026-12-01T14:00:00Z"),
            ("2026-12-01 Asia/Kolkata", "2026-11-30T18:30:00Z"),
            ("2026-12-01 09:00 UTC", "2026-12-01T09:00:00Z"),
            ("2026-12-01T09:00:00+01:00", "2026-12-01T08:00:00Z"),
            ("2026-12-01T09:00:00Z", "2026-12-01T09:00:00Z"),
            ("2h", "2026-11-26T12:00:00Z"),
            ("7 days", "2026-12-03T10:00:00Z"),
        ] {
            assert_eq!(parse(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn times_without_a_zone_are_refused() {
        for text in ["2026-12-01", "2026-12-01 09:00", "2026-12-01T09:00:00"] {
            let error = parse(text).unwrap_err();
            assert!(error.contains("has no zone"), "{error}");
        }
        for text in [
            "2026-12-01T09:00-08:00 Europe/Berlin",
            "2026-12-01T09:00+02:00 Europe/Berlin",
            "2026-12-01T09:00Z Europe/Berlin",
            "2026-12-01T09:00:00+05:00[Europe/Berlin]",
            "2026-12-01T09:00:00Z[Europe/Berlin]",
            "2026-12-01 09:00 Etc/Unknown",
            "",
            "soon",
            "-2h",
            "2026-12-01 09:00 Berlin",
            "09:00 Europe/Berlin",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn times_beyond_the_latest_are_refused_with_it() {
        for text in [
            "9999-12-31T00:00:00Z",
            "9999-12-30T23:00:00+00:00",
            "9999-12-31 09:00 Europe/Berlin",
            "9999-12-31 UTC",
            "9999-12-31T09:00[America/New_York]",
            "9000 years",
        ] {
            let expected = format!("`{text}` is too late; the latest time is 9999-12-30T22:00:00Z");
            assert_eq!(parse(text), Err(expected));
        }
        let latest = "9999-12-30T22:00:00Z";
        assert_eq!(parse(latest).as_deref(), Ok(latest));
        let error = parse("9999-12-31 09:00").unwrap_err();
        assert!(error.contains("has no zone"), "{error}");
    }

    #[test]
    fn times_that_exist_twice_or_never_are_refused() {
        let error = parse("2026-10-25 02:30 Europe/Berlin").unwrap_err();
        assert!(
            error.contains("2026-10-25T00:30:00Z or 2026-10-25T01:30:00Z"),
            "{error}"
        );
        let error = parse("2027-03-28 02:30 Europe/Berlin").unwrap_err();
        assert!(
            error.contains("2027-03-28T00:30:00Z or 2027-03-28T01:30:00Z"),
            "{error}"
        );
    }
}
