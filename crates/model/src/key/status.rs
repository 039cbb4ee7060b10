//! The status of a key at a moment.

use jiff::Timestamp;

use super::KeyRecord;

/// Status of a key at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyStatus {
    /// Accepted.
    Active,
    /// Accepted until it expires; it has a successor.
    Rotated,
    /// Refused, because it expired.
    Expired,
    /// Refused, because it was revoked.
    Revoked,
}

impl KeyStatus {
    /// Returns the status in a word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Rotated => "rotated",
            Self::Expired => "expired",
            Self::Revoked => "revoked",
        }
    }
}

impl KeyRecord {
    /// Returns the key's status at `now`.
    #[must_use]
    pub fn status(&self, now: Timestamp) -> KeyStatus {
        let has_expired = self.expires_at.is_some_and(|expires| expires <= now);
        match (self.revoked_at, has_expired, self.rotated_at) {
            (Some(_), _, _) => KeyStatus::Revoked,
            (None, true, _) => KeyStatus::Expired,
            (None, false, Some(_)) => KeyStatus::Rotated,
            (None, false, None) => KeyStatus::Active,
        }
    }

    /// Returns whether the key is accepted at `now`.
    #[must_use]
    pub fn is_active(&self, now: Timestamp) -> bool {
        matches!(self.status(now), KeyStatus::Active | KeyStatus::Rotated)
    }
}
