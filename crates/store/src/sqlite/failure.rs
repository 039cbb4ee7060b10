//! Conversion of SQLite's errors into the store's.

use rusqlite::ErrorCode;

use crate::StoreError;
use crate::fail_point::FailPoint;

/// Converts SQLite's errors, adding the failed operation.
pub(crate) fn during(doing: &'static str) -> impl Fn(rusqlite::Error) -> StoreError {
    move |source| match source.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Busy {
            waited_seconds: 0,
            holder: None,
        },
        Some(ErrorCode::DiskFull) => StoreError::Full,
        Some(ErrorCode::DatabaseCorrupt) => StoreError::Damaged(source.to_string()),
        // `CannotOpen` and `ReadOnly`: out of descriptors, for one. If SQLite can't open for writing, it opens for reading.
        Some(ErrorCode::SystemIoFailure | ErrorCode::CannotOpen | ErrorCode::ReadOnly) => {
            StoreError::Disk {
                doing,
                source: source.into(),
            }
        }
        _ => StoreError::Database {
            doing,
            source: source.into(),
        },
    }
}

/// Converts the result of a commit. If the disk failed, the end of the log may be on it all the same and take effect when
/// the store is opened after a crash: nobody can say that nothing was changed.
pub(crate) fn committed(
    outcome: rusqlite::Result<()>,
    point: FailPoint,
    doing: &'static str,
) -> Result<(), StoreError> {
    let outcome = outcome.and_then(|()| Ok(point.pass()?));
    outcome.map_err(during(doing)).map_err(|error| match error {
        StoreError::Disk { doing, source } => StoreError::DiskAtCommit { doing, source },
        other => other,
    })
}
