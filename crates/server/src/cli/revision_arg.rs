//! Revisions as operators name them.

use std::str::FromStr;

use anyhow::{Context as _, bail};
use jiff::Timestamp;
use vitrine_store::Store;
use vitrine_store::record::{Moment, PublishedRevision};

use super::history::NOTHING_LOADED;
use super::time::{parse_past_moment, parse_time, to_second};

/// A revision, by its number or by a time at which it was live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RevisionArg {
    Number(u64),
    Time(Timestamp),
}

impl FromStr for RevisionArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(number) = text.parse() {
            return Ok(Self::Number(number));
        }
        let time = parse_time(text).or_else(|| parse_past_moment(text, Timestamp::now()).ok());
        time.map(Self::Time).ok_or_else(|| {
            format!(
                "`{text}` is no revision; use its number (12), a date (2027-01-31), a time (2027-01-31T12:00:00Z) or \
                 how long ago it was live (2h)"
            )
        })
    }
}

impl RevisionArg {
    /// Returns the revision.
    ///
    /// # Errors
    ///
    /// If there is no such revision, or the store can't be read.
    pub(super) fn find(self, store: &Store) -> anyhow::Result<PublishedRevision> {
        let found = match self {
            Self::Number(number) => store.revision(number)?,
            Self::Time(time) => store.revision_at(time)?,
        };
        if let Some(found) = found {
            return Ok(found);
        }
        let newest = store.revisions(1)?;
        let newest = newest.first().context(NOTHING_LOADED)?.revision.number;
        match self {
            Self::Number(number) => bail!(
                "there is no revision {number}; the newest is {newest}, see `vitrine history`"
            ),
            Self::Time(time) => bail!(
                "nothing was live at {}; see `vitrine history`",
                to_second(time)
            ),
        }
    }

    /// Returns the moment of the revision.
    ///
    /// # Errors
    ///
    /// As [`find`](Self::find).
    pub(super) fn moment(self, store: &Store) -> anyhow::Result<Moment> {
        Ok(Moment::Revision(self.find(store)?.revision.number))
    }
}

/// Returns the moment of a revision, by default of the live one.
///
/// # Errors
///
/// As [`RevisionArg::find`].
pub(super) fn moment(store: &Store, at: Option<RevisionArg>) -> anyhow::Result<Moment> {
    at.map_or(Ok(Moment::Live), |revision| revision.moment(store))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn revisions_are_numbers_or_times() {
        let parsed = |text: &str| text.parse::<RevisionArg>();
        assert_eq!(parsed("12"), Ok(RevisionArg::Number(12)));
        let time = "2027-01-31T00:00:00Z".parse().unwrap();
        assert_eq!(parsed("2027-01-31"), Ok(RevisionArg::Time(time)));
        assert!(matches!(parsed("2h"), Ok(RevisionArg::Time(_))));
        for wrong in ["", "-1", "soon", "2027-13-01", "2027-01-31T12:00:00"] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
    }
}
