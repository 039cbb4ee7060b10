//! The identity of one published state of the catalog.

use jiff::Timestamp;

/// A revision: a number for people, a random id for programs.
///
/// Compare revisions by id only: numbers repeat after a store was restored from a backup.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Revision {
    /// Number, incremented by each publish of a store.
    pub number: u64,
    /// 128 random bits in hexadecimal digits.
    pub id: String,
    /// Time of publication.
    pub created_at: Timestamp,
}
