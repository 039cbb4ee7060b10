//! A record of a key, for tests.

use jiff::Timestamp;

use super::{KeyKind, KeyRecord, NewKey};

/// Returns the record of a live key without expiry, pinned version or quota.
pub(super) fn record(key: &NewKey) -> KeyRecord {
    KeyRecord {
        prefix: key.prefix().to_owned(),
        label: "test".to_owned(),
        secret_hash: key.secret_hash(),
        kind: KeyKind::Live,
        api_version: None,
        quota: None,
        assortment: None,
        created_at: Timestamp::UNIX_EPOCH,
        expires_at: None,
        revoked_at: None,
        rotated_at: None,
        last_used_at: None,
    }
}
