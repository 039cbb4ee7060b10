//! Writes of the files in the state directory.

use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use jiff::Timestamp;

use super::values::{Counter, Gauge};

/// File of the state directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StateFileKind {
    /// The catalog.
    Snapshot,
    /// The journal of changes.
    Changes,
    /// The keys, with what they see.
    Keys,
}

impl StateFileKind {
    /// All files.
    pub const ALL: [Self; 3] = [Self::Snapshot, Self::Changes, Self::Keys];

    /// Returns its name in metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Snapshot => "snapshot",
            Self::Changes => "changes",
            Self::Keys => "keys",
        }
    }

    /// Returns its name in messages.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Snapshot => "snapshot file",
            Self::Changes => "file of changes",
            Self::Keys => "keys file",
        }
    }

    /// Returns its name in the directory.
    #[must_use]
    pub fn file_name(self) -> &'static str {
        match self {
            Self::Snapshot => "catalog.snapshot",
            Self::Changes => "changes",
            Self::Keys => "keys",
        }
    }

    /// Returns the prefix of the names of incomplete files.
    #[must_use]
    pub fn partial_prefix(self) -> String {
        format!(".{}.", self.file_name())
    }
}

/// Writes of one file.
#[derive(Debug, Default)]
pub struct StateFileWrites {
    /// Number of failed writes.
    pub failures: Counter,
    /// Time of the last write, perhaps of an earlier run; 0 before the first.
    written: Gauge,
    failing: AtomicBool,
}

impl StateFileWrites {
    /// Counts a write. Returns true if it failed and the one before didn't.
    pub fn record(&self, outcome: &io::Result<()>) -> bool {
        match outcome {
            Ok(()) => self.written.set_moment(Timestamp::now()),
            Err(_) => self.failures.increment(),
        }
        !self.failing.swap(outcome.is_err(), Ordering::Relaxed) && outcome.is_err()
    }

    /// Records the write of an earlier run.
    pub fn found(&self, written: Timestamp) {
        self.written.set_moment(written);
    }

    /// Returns the time of the last write, in seconds since 1970; `None` before the first.
    #[must_use]
    pub fn written(&self) -> Option<f64> {
        Some(self.written.get()).filter(|written| *written > 0.0)
    }

    /// Returns true if the last write failed.
    #[must_use]
    pub fn is_failing(&self) -> bool {
        self.failing.load(Ordering::Relaxed)
    }
}

/// Writes of all files; empty without a state directory.
#[derive(Debug, Default)]
pub struct StateFiles(OnceLock<[StateFileWrites; StateFileKind::ALL.len()]>);

impl StateFiles {
    /// Returns the writes of a file of the directory that the server has.
    pub fn of(&self, file: StateFileKind) -> &StateFileWrites {
        &self.0.get_or_init(Default::default)[file as usize]
    }

    /// Returns the writes of each file; `None` without a state directory.
    #[must_use]
    pub fn all(&self) -> Option<[(StateFileKind, &StateFileWrites); StateFileKind::ALL.len()]> {
        let files = self.0.get()?;
        Some(StateFileKind::ALL.map(|file| (file, &files[file as usize])))
    }
}
