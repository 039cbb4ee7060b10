//! A record of a key, for tests.

use jiff::Timestamp;

use super::{KeyKind, KeyRecord, NewKey};

/// Returns the record of a live key without expiry, pinned version or quota.
pub(super) fn record(key: &NewKey) -> KeyRecord {
    KeyRecord::new(key, KeyKind::Live, "test", Timestamp::UNIX_EPOCH)
}
