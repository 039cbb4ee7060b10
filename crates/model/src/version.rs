//! The dated API versions: those served and those removed.

use std::fmt;
use std::str::FromStr;

/// A served version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum ApiVersion {
    /// 2024-02-05, the default.
    #[default]
    V2024_02_05,
    /// 2026-12-01: discounts exactly as loaded, cut at six digits.
    V2026_12_01,
}

/// Error of a date that isn't a served version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum VersionError {
    /// The version was served once and is removed.
    #[error("this API version was removed")]
    Removed,
    /// The version never existed.
    #[error("there is no such API version")]
    Unknown,
}

impl ApiVersion {
    /// All served versions, newest first.
    pub const SERVED: [Self; 2] = [Self::V2026_12_01, Self::V2024_02_05];
    /// Versions that were served once.
    pub const REMOVED: [&'static str; 2] = ["2023-07-27", "2023-01-16"];

    /// Returns the version's date.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V2024_02_05 => "2024-02-05",
            Self::V2026_12_01 => "2026-12-01",
        }
    }
}

impl FromStr for ApiVersion {
    type Err = VersionError;

    fn from_str(text: &str) -> Result<Self, VersionError> {
        let served = Self::SERVED
            .into_iter()
            .find(|version| version.as_str() == text);
        match served {
            Some(version) => Ok(version),
            None if Self::REMOVED.contains(&text) => Err(VersionError::Removed),
            None => Err(VersionError::Unknown),
        }
    }
}

impl fmt::Display for ApiVersion {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_parse_to_served_removed_or_unknown() {
        for version in ApiVersion::SERVED {
            assert_eq!(version.to_string().parse(), Ok(version));
        }
        assert_eq!("2024-02-05".parse(), Ok(ApiVersion::V2024_02_05));
        assert_eq!("2026-12-01".parse(), Ok(ApiVersion::V2026_12_01));
        for removed in ApiVersion::REMOVED {
            assert_eq!(removed.parse::<ApiVersion>(), Err(VersionError::Removed));
        }
        for unknown in ["", "2024-02-06", "2024-2-5", "latest", " 2024-02-05"] {
            assert_eq!(unknown.parse::<ApiVersion>(), Err(VersionError::Unknown));
        }
    }
}
