//! What PostgreSQL and the network say, in the store's words.

use std::time::Duration;

use tokio_postgres::error::SqlState;

use crate::StoreError;
use crate::error::Cause;

/// Why a call came to nothing.
#[derive(Debug)]
pub(super) enum Failure {
    /// The database, the connection, or the client library said so.
    Postgres(tokio_postgres::Error),
    /// No answer came for so long.
    Silence(Duration),
    /// The host's name has no address.
    Name(std::io::Error),
}

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Postgres(error)
    }
}

impl Failure {
    /// Whether the connection is of no use any more.
    pub(super) fn breaks_connection(&self) -> bool {
        match self {
            Self::Silence(_) | Self::Name(_) => true,
            Self::Postgres(error) => match error.as_db_error() {
                Some(error) => is_going_away(error.code()),
                None => true,
            },
        }
    }

    /// The store's error: what was being done, and at which place.
    pub(super) fn during(self, doing: &'static str, place: &str) -> StoreError {
        let place = place.to_owned();
        let error = match self {
            Self::Silence(limit) => {
                let seconds = limit.as_secs_f32();
                return StoreError::Unreachable {
                    place,
                    doing,
                    source: format!("no answer within {seconds} s").into(),
                };
            }
            Self::Name(error) => {
                return StoreError::Unreachable {
                    place,
                    doing,
                    source: error.into(),
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
            code if is_going_away(&code) => StoreError::Unreachable {
                place,
                doing,
                source: cause(error),
            },
            code if is_refusal(&code) => StoreError::Refused {
                place,
                doing,
                source: cause(error),
            },
            // It was there when the connection was made.
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
            // The second is what a replica says to a transaction that is begun to write.
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

/// The error of a commit. Where the connection broke, nobody can say what became of it.
pub(super) fn at_commit(error: StoreError) -> StoreError {
    match error {
        StoreError::Unreachable { doing, source, .. } => {
            StoreError::UnreachableAtCommit { doing, source }
        }
        StoreError::Disk { doing, source } => StoreError::DiskAtCommit { doing, source },
        other => other,
    }
}

/// Whether the server, or a pooler before it, goes away, comes up or has no room: another try may mend it.
fn is_going_away(code: &SqlState) -> bool {
    // Broken connections, operators who intervene, and resources that are used up (connections, memory).
    let is_such = ["08", "57P", "53"]
        .iter()
        .any(|class| code.code().starts_with(class));
    let is_going_away = is_such || *code == SqlState::T_R_SERIALIZATION_FAILURE;
    is_going_away && *code != SqlState::DISK_FULL
}

/// Whether the user isn't let in, or not to what is asked for: its password, the database's name or a grant is
/// another than it was thought to be, for now.
fn is_refusal(code: &SqlState) -> bool {
    code.code().starts_with("28")
        || [
            SqlState::INVALID_CATALOG_NAME,
            SqlState::INSUFFICIENT_PRIVILEGE,
        ]
        .contains(code)
}

/// The error without its outermost words, which say less than what stands behind them.
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
