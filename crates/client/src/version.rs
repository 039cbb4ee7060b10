//! The dated API versions that requests can ask for.

use serde::{Deserialize, Serialize};

/// A dated API version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub enum ApiVersion {
    /// 2024-02-05.
    #[default]
    #[serde(rename = "2024-02-05")]
    V2024_02_05,
    /// 2026-12-01: discounts have two to six digits, exact. Otherwise as 2024-02-05.
    #[serde(rename = "2026-12-01")]
    V2026_12_01,
}

impl ApiVersion {
    /// Returns the version's date.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V2024_02_05 => "2024-02-05",
            Self::V2026_12_01 => "2026-12-01",
        }
    }
}
