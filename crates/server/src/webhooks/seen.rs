//! Positions of the catalog that a deliverer saw lately.

use std::collections::VecDeque;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;
use vitrine_model::changes::Position;

use crate::live::Feed;

/// Time after which every server shows a change: ten times the second that the contract promises.
pub(super) const SETTLED: Duration = Duration::from_secs(10);

/// Positions, oldest first: one that is older than [`SETTLED`], and the newer ones.
#[derive(Debug, Default)]
pub(super) struct Seen(VecDeque<(Instant, Position)>);

impl Seen {
    /// Adds the position of a feed. Returns true if that of before isn't a part of its history: the store lost changes.
    pub(super) fn add(&mut self, feed: &Feed) -> bool {
        let Self(seen) = self;
        // Without a journal nothing is known of before.
        let last = seen.back().map(|(_, position)| *position);
        if feed.journal.is_none() || last == Some(feed.position) {
            return false;
        }
        let is_lost = last.is_some_and(|last| feed.locate(&last, Timestamp::now()).is_none());
        if is_lost {
            seen.clear();
        }
        seen.push_back((Instant::now(), feed.position));
        is_lost
    }

    /// Returns a position that every server has reached by now, or the time until there is one.
    pub(super) fn anchor(&mut self) -> Result<Position, Duration> {
        let Self(seen) = self;
        while seen.get(1).is_some_and(|(at, _)| at.elapsed() >= SETTLED) {
            seen.pop_front();
        }
        let (at, position) = seen.front().ok_or(SETTLED)?;
        match SETTLED.checked_sub(at.elapsed()) {
            None | Some(Duration::ZERO) => Ok(*position),
            Some(left) => Err(left),
        }
    }
}
