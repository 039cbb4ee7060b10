//! API version of requests to a source: the newest one that it has.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};

/// API version of a request, and of the copy made of its answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) enum SourceVersion {
    /// The version that all sources have: discounts of two digits.
    // State files without a version are of releases that asked for this one.
    #[default]
    #[serde(rename = "2024-02-05")]
    V2024_02_05,
    /// The newest version: discounts of up to six digits.
    #[serde(rename = "2026-12-01")]
    V2026_12_01,
}

impl SourceVersion {
    /// Returns the version's date.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::V2024_02_05 => "2024-02-05",
            Self::V2026_12_01 => "2026-12-01",
        }
    }
}

/// Version that all clones of a source ask for.
#[derive(Debug, Clone, Default)]
pub(super) struct SharedVersion {
    has_refused_newest: Arc<AtomicBool>,
}

impl SharedVersion {
    /// Returns the version to ask for.
    pub(super) fn get(&self) -> SourceVersion {
        match self.has_refused_newest.load(Ordering::Relaxed) {
            true => SourceVersion::V2024_02_05,
            false => SourceVersion::V2026_12_01,
        }
    }

    /// Notes that the source doesn't have the newest version.
    pub(super) fn fall_back(&self) {
        self.has_refused_newest.store(true, Ordering::Relaxed);
    }

    /// Asks for the newest version again.
    pub(super) fn look_again(&self) {
        self.has_refused_newest.store(false, Ordering::Relaxed);
    }
}
