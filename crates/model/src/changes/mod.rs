//! Changes of the catalog: what each revision did to each product, in memory beside the snapshot, so that a client with a
//! copy is told what differs since the state that it has (docs/contract/changes.md).
//!
//! A [`Journal`] has two logs: one of revisions, with the attributes of each changed product before and after, as
//! filters need them; and one of the states of texts, with the products that name a text that was taken down or put back.
//! It is immutable and shares its parts with its predecessor. The products themselves are in the snapshot.
//!
//! - `segment`: changes of neighbouring steps in sorted arrays, and building one; `log`: segments in order
//! - `update`: what a store's history adds
//! - `page`: the changes between two points, found by a `search` that merges the cursors of segments and of `rules` that
//!   changed
//! - `last_change`: the newest revision that changed a product
//! - `encoding`: bytes for a file

mod encoding;
mod last_change;
mod log;
mod page;
mod rules;
mod search;
mod segment;
mod update;

use std::cmp::Ordering;

use jiff::Timestamp;

use crate::content_hash::ContentHash;
use log::Log;

pub use last_change::{LastChange, LastChanges};
pub use page::{Change, ChangesPage, ChangesQuery, Work, first_page};
pub use update::JournalUpdate;

/// Random id of a state, in 16 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct StateId([u8; Self::LENGTH_BYTES]);

impl StateId {
    /// Length of an id, in bytes.
    pub const LENGTH_BYTES: usize = 16;

    /// Returns the id of a revision.
    #[must_use]
    pub fn of_revision(id: &str) -> Self {
        // Stores may write ids in any form; a hash has one length.
        Self(*ContentHash::of(id.as_bytes()).as_bytes())
    }

    /// Returns the id of a state of the texts, given the store's counter, which grows by random steps; ids ascend like it.
    #[must_use]
    pub fn of_texts(counter: u64) -> Self {
        let mut bytes = [0; Self::LENGTH_BYTES];
        bytes[..8].copy_from_slice(&counter.to_be_bytes());
        Self(bytes)
    }

    /// Returns the store's counter of a state of the texts.
    #[must_use]
    pub fn as_texts(self) -> u64 {
        self.0
            .first_chunk()
            .map_or(0, |bytes| u64::from_be_bytes(*bytes))
    }

    /// Returns the id of a version of an assortment.
    #[must_use]
    pub fn of_assortment(id: &str) -> Self {
        Self(*ContentHash::of(id.as_bytes()).as_bytes())
    }

    /// Returns the id with these bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; Self::LENGTH_BYTES]) -> Self {
        Self(bytes)
    }

    /// Returns the id's bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; Self::LENGTH_BYTES] {
        &self.0
    }
}

/// State of the catalog as clients see it, valid on all servers of a store (docs/contract/changes.md#tokens).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Position {
    /// Number of the revision, by which its id is found.
    pub number: u64,
    /// Id of the revision.
    pub revision: StateId,
    /// Id of the state of the texts.
    pub texts: StateId,
    /// Id of the version of the assortment; zero for everything.
    pub assortment: StateId,
}

impl Position {
    /// Length of its bytes.
    pub const LENGTH_BYTES: usize = 8 + 3 * StateId::LENGTH_BYTES;

    /// Returns its bytes, for storage.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; Self::LENGTH_BYTES] {
        let mut bytes = [0; Self::LENGTH_BYTES];
        let (number, ids) = bytes.split_at_mut(8);
        number.copy_from_slice(&self.number.to_le_bytes());
        let ids = ids.chunks_exact_mut(StateId::LENGTH_BYTES);
        for (place, id) in ids.zip([self.revision, self.texts, self.assortment]) {
            place.copy_from_slice(id.as_bytes());
        }
        bytes
    }

    /// Returns the position with these bytes.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; Self::LENGTH_BYTES]) -> Self {
        let (number, ids) = bytes.split_first_chunk().unwrap_or((&[0; 8], &[]));
        let (ids, _) = ids.as_chunks();
        let id = |index: usize| StateId(ids.get(index).copied().unwrap_or_default());
        Self {
            number: u64::from_le_bytes(*number),
            revision: id(0),
            texts: id(1),
            assortment: id(2),
        }
    }

    /// Returns false if another state can't lead to this one: the store was restored, or a failover lost that state.
    #[must_use]
    pub fn may_follow(&self, former: &Self) -> bool {
        let is_revision_after = match self.number.cmp(&former.number) {
            Ordering::Greater => true,
            Ordering::Equal => self.revision == former.revision,
            Ordering::Less => false,
        };
        is_revision_after && self.texts >= former.texts
    }
}

/// A state, reached by a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Step {
    id: StateId,
    /// Time of the step, in milliseconds since 1970; not before that of an earlier step. Zero if it is unknown.
    at: i64,
}

/// A position, as numbers of one journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Point {
    revision: u64,
    texts: u64,
}

impl Point {
    /// Returns the earlier one of each part.
    #[must_use]
    pub fn earlier(self, other: Self) -> Self {
        Self {
            revision: self.revision.min(other.revision),
            texts: self.texts.min(other.texts),
        }
    }

    /// Returns true if no part of `self` is after that of `other`.
    #[must_use]
    pub fn is_reached_by(self, other: Self) -> bool {
        self.revision <= other.revision && self.texts <= other.texts
    }
}

/// Changes of a store's catalog, from an oldest known state to the newest. Clones share memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Journal {
    revisions: Log,
    texts: Log,
}

impl Journal {
    /// Returns the number of the newest revision, and the id of the newest state of the texts.
    #[must_use]
    pub fn newest(&self) -> (u64, StateId) {
        (self.revisions.newest(), self.texts.newest_step().id)
    }

    /// Returns the point of a position; `None` if it is unknown.
    #[must_use]
    pub fn locate(&self, position: &Position) -> Option<Point> {
        let is_known = self.revisions.has(position.number, position.revision);
        let texts = self.texts.find(position.texts)?;
        is_known.then_some(Point {
            revision: position.number,
            texts,
        })
    }

    /// Returns true if a position is the newest one, with which the last update ended.
    #[must_use]
    pub fn ends_at(&self, position: &Position) -> bool {
        let newest = Point {
            revision: self.revisions.newest(),
            texts: self.texts.newest(),
        };
        self.locate(position) == Some(newest)
    }

    /// Returns the time at which the state of a point was replaced; `None` if it is the newest.
    #[must_use]
    pub fn replaced_at(&self, point: Point) -> Option<Timestamp> {
        let parts = [
            (&self.revisions, point.revision),
            (&self.texts, point.texts),
        ];
        let replaced = |(log, number): (&Log, u64)| Some(log.state(number.checked_add(1)?)?.at);
        let first = parts.into_iter().filter_map(replaced).min();
        Timestamp::from_millisecond(first?).ok()
    }

    /// Returns the time since which all states are known that weren't replaced until `kept_since`.
    #[must_use]
    pub fn known_since(&self, kept_since: Timestamp) -> Option<Timestamp> {
        let kept_since = kept_since.as_millisecond();
        let [revisions, texts] = [&self.revisions, &self.texts].map(|log| log.begin_at(kept_since));
        Timestamp::from_millisecond(revisions.max(texts)).ok()
    }

    /// Returns the number of recorded changes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.revisions.len() + self.texts.len()
    }

    /// Returns true if no change is recorded.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the memory of the recorded changes, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.revisions.size_bytes() + self.texts.size_bytes()
    }

    /// Drops the oldest changes beyond `max_bytes`, and those that were replaced before `kept_since`, in coarse steps.
    #[must_use]
    pub fn trimmed(mut self, max_bytes: usize, kept_since: Timestamp) -> Self {
        while self.bytes() > max_bytes {
            let larger = match self.texts.size_bytes() > self.revisions.size_bytes() {
                true => &mut self.texts,
                false => &mut self.revisions,
            };
            if !larger.drop_oldest() {
                break;
            }
        }
        let kept_since = kept_since.as_millisecond();
        self.revisions.drop_replaced_before(kept_since);
        self.texts.drop_replaced_before(kept_since);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn position_is_read_back_from_its_bytes() {
        let position = Position {
            number: 41,
            revision: StateId::from_bytes([1; 16]),
            texts: StateId::from_bytes([2; 16]),
            assortment: StateId::from_bytes([3; 16]),
        };
        assert_eq!(Position::from_bytes(&position.to_bytes()), position);
    }

    #[test]
    fn state_follows_earlier_ones_only() {
        let at = |number, id: &str, texts| Position {
            number,
            revision: StateId::of_revision(id),
            texts: StateId::of_texts(texts),
            assortment: StateId::default(),
        };
        let former = at(7, "seven", 20);
        for later in [former, at(8, "eight", 20), at(7, "seven", 300)] {
            assert!(later.may_follow(&former), "{later:?}");
        }
        for other in [
            at(6, "six", 20),
            at(7, "restored", 20),
            at(8, "eight", 19),
            at(6, "six", 21),
        ] {
            assert!(!other.may_follow(&former), "{other:?}");
        }
    }
}
