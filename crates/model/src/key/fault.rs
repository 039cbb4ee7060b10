//! Validation of key records that were read from outside.

use super::{KeyRecord, NewKey};
use crate::version::{ApiVersion, VersionError};

/// Length of the part of a prefix that names the key: 64 bits in base 62.
const NAME_BYTES: usize = 11;

impl KeyRecord {
    /// Returns the first fault of the record, if it has any.
    #[must_use]
    pub fn fault(&self) -> Option<&'static str> {
        let name = self.prefix.strip_prefix(NewKey::START);
        let name = name.and_then(|name| name.strip_prefix(self.kind.infix()));
        let is_name = |name: &str| {
            name.len() == NAME_BYTES && name.bytes().all(|byte| byte.is_ascii_alphanumeric())
        };
        if !name.is_some_and(is_name) {
            return Some("its prefix isn't one of a key of its kind");
        }
        if self.label.trim().is_empty() || self.label.chars().any(char::is_control) {
            return Some("its label is empty or has control characters");
        }
        let version = self.api_version.as_deref().map(str::parse::<ApiVersion>);
        if let Some(Err(VersionError::Unknown)) = version {
            return Some("it is pinned to a version that never was");
        }
        None
    }
}
