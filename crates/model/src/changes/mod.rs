//! Changes of the catalog: what each revision did to each product, in memory beside the snapshot, so that a client with a
//! copy is told what differs since the state that it has (docs/contract/changes.md).
//!
//! A [`Journal`] has two logs: one of revisions, with the attributes of each changed product before and after, as
//! filters need them; and one of the states of texts, with the products that name a text that was taken down or put back.
//! It is immutable and shares its parts with its predecessor. The products themselves are in the snapshot.
//!
//! - `facts`: attributes of products, encoded; `segment`: changes of neighbouring steps, with `strings` and `maxima`;
//!   `builder`: building one; `log`: segments in order
//! - `update`: what a store's history adds; `page`: the changes between two points, by a `cursor` for each segment
//! - `encoding`: bytes for a file

mod builder;
mod cursor;
mod encoding;
mod facts;
mod log;
mod maxima;
mod page;
mod segment;
mod strings;
mod update;

use jiff::Timestamp;

use crate::content_hash::ContentHash;
use log::Log;

pub use facts::Facts;
pub use page::{Change, ChangesPage, ChangesQuery, first_page};
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Position {
    /// Number of the revision, by which its id is found.
    pub number: u64,
    /// Id of the revision.
    pub revision: StateId,
    /// Id of the state of the texts.
    pub texts: StateId,
}

/// A state, reached by a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Step {
    id: StateId,
    /// Time of publication, in milliseconds since 1970; unknown for texts.
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
        (self.revisions.newest(), self.texts.newest_id())
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

    /// Returns the time at which the state of a point was replaced; `None` if it is the newest.
    #[must_use]
    pub fn replaced_at(&self, point: Point) -> Option<Timestamp> {
        let next = self.revisions.state(point.revision.checked_add(1)?)?;
        Timestamp::from_millisecond(next.at).ok()
    }

    /// Returns the time at which the oldest known state was published.
    #[must_use]
    pub fn oldest_published_at(&self) -> Option<Timestamp> {
        Timestamp::from_millisecond(self.revisions.base.at).ok()
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
        self
    }
}
