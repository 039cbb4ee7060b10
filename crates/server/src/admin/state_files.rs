//! Files of the state directory, for `/readyz`.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;

use crate::metrics::state_files::{StateFileKind, StateFileWrites, StateFiles};

/// File of the state directory.
#[derive(Debug, Serialize)]
pub(super) struct WrittenFile {
    /// Seconds since it was last written; null if there is none. A catalog that doesn't change isn't written again.
    age_seconds: Option<u64>,
    /// True if the last write failed; it is tried again.
    failing: bool,
}

/// Returns the files by name; `None` without a state directory.
pub(super) fn written(
    files: &StateFiles,
    now: Timestamp,
) -> Option<BTreeMap<&'static str, WrittenFile>> {
    let now = now.as_duration().as_secs_f64();
    let described = |(file, writes): (StateFileKind, &StateFileWrites)| {
        let written = WrittenFile {
            age_seconds: writes.written().map(|written| (now - written) as u64),
            failing: writes.is_failing(),
        };
        (file.name(), written)
    };
    Some(files.all()?.into_iter().map(described).collect())
}
