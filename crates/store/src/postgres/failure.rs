//! Conversion of errors of PostgreSQL and the network into the store's.

use std::time::Duration;

use tokio_postgres::error::SqlState;

use crate::StoreError;
use crate::error::Cause;

/// Cause of a failed call.
#[derive(Debug)]
pub(super) enum Failure {
    /// Error of the database, the connection or the client library.
    Postgres(tokio_postgres::Error),
    /// No answer for this long.
    Timeout(Duration),
}

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Postgres(error)
    }
}

impl Failure {
    /// Returns whether the connection can't be used any more.
    pub(super) fn breaks_connection(&self) -> bool {
        match self {
            Self::Timeout(_) => true,
            Self::Postgres(error) => match error.as_db_error() {
                Some(error) => is_unavailable(error.code()),
                None => true,
            },
        }
    }

    /// Returns the store's error. `doing` is the failed operation, `place` the address of the database.
    pub(super) fn during(self, doing: &'static str, place: &str) -> StoreError {
        let place = place.to_owned();
        let error = match self {
            Self::Timeout(limit) => {
                let seconds = limit.as_secs_f32();
                return StoreError::Unreachable {
                    place,
                    doing,
                    source: format!("no answer within {seconds} s").into(),
                };
            }
            Self::Postgres(error) => error,
        };
        let Some(said) = error.as_db_error() else {
            let is_wrong_value = error.to_string().contains("serializing");
            return match is_wrong_value {
                true => StoreError::Database {
                    doing,
                    source: cause(error),
                },
                false => StoreError::Unreachable {
                    place,
                    doing,
                    source: cause(error),
                },
            };
        };
        let code = said.code().clone();
        match code {
            code if is_unavailable(&code) => StoreError::Unreachable {
                place,
                doing,
                source: cause(error),
            },
            code if is_access_denied(&code) => StoreError::Refused {
                place,
                doing,
                source: cause(error),
            },
            // The store existed when the connection was opened.
            SqlState::UNDEFINED_TABLE | SqlState::INVALID_SCHEMA_NAME => {
                StoreError::Missing { place }
            }
            SqlState::LOCK_NOT_AVAILABLE => StoreError::Busy {
                waited_seconds: 0,
                holder: None,
            },
            SqlState::DISK_FULL => StoreError::Full,
            SqlState::IO_ERROR => StoreError::Disk {
                doing,
                source: cause(error),
            },
            SqlState::DATA_CORRUPTED | SqlState::INDEX_CORRUPTED => {
                StoreError::Damaged(said.message().to_owned())
            }
            // The second is a replica's error at the begin of a transaction that writes.
            SqlState::READ_ONLY_SQL_TRANSACTION | SqlState::FEATURE_NOT_SUPPORTED => {
                StoreError::ReadOnly { place }
            }
            _ => StoreError::Database {
                doing,
                source: cause(error),
            },
        }
    }
}

/// Converts the error of a commit: if the connection broke, the outcome is unknown.
pub(super) fn at_commit(error: StoreError) -> StoreError {
    match error {
        StoreError::Unreachable { doing, source, .. } => {
            StoreError::UnreachableAtCommit { doing, source }
        }
        StoreError::Disk { doing, source } => StoreError::DiskAtCommit { doing, source },
        other => other,
    }
}

/// Returns whether the server, or a pooler in front of it, is stopping, starting or out of resources: a retry may succeed.
fn is_unavailable(code: &SqlState) -> bool {
    // Broken connections, operator intervention, and insufficient resources (connections, memory).
    let is_such = ["08", "57P", "53"]
        .iter()
        .any(|class| code.code().starts_with(class));
    // The second is the end of a `statement_timeout`.
    let others = [
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::QUERY_CANCELED,
    ];
    let is_unavailable = is_such || others.contains(code);
    is_unavailable && *code != SqlState::DISK_FULL
}

/// Returns whether the database denies access: the user, the password, the name of the database or a grant is wrong.
fn is_access_denied(code: &SqlState) -> bool {
    code.code().starts_with("28")
        || [
            SqlState::INVALID_CATALOG_NAME,
            SqlState::INSUFFICIENT_PRIVILEGE,
        ]
        .contains(code)
}

/// Returns the cause without the client library's general message in front of it.
fn cause(error: tokio_postgres::Error) -> Cause {
    match error.as_db_error() {
        Some(said) => {
            let detail = said.detail().map(|detail| format!(" ({detail})"));
            let message = said.message().trim();
            format!(
                "{message}{}, SQLSTATE {}",
                detail.unwrap_or_default(),
                said.code().code()
            )
            .into()
        }
        None => Box::new(error),
    }
}
