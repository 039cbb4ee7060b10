//! The name of one published state of the catalog.

use jiff::Timestamp;

/// A revision: a number for people, a random id for programs.
///
/// Compare revisions by id only: numbers repeat after a store was restored from a backup.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Revision {
    /// Counts up by one with every publish of one store.
    pub number: u64,
    /// 128 random bits in hexadecimal digits.
    pub id: String,
    /// When it was published.
    pub created_at: Timestamp,
}
