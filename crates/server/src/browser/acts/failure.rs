//! Failures of acts, in words for operators.

use http::StatusCode;
use vitrine_ingest::escape::single_line;
use vitrine_store::StoreError;

use crate::error_chain::ErrorChain;

fn cause(error: &anyhow::Error) -> Option<&StoreError> {
    error.chain().find_map(|cause| cause.downcast_ref())
}

/// Returns what the operator is told of a failure. `command` does the same on a machine that may write to the store.
pub(super) fn failure(error: &anyhow::Error, command: &str) -> (StatusCode, String) {
    match cause(error) {
        Some(StoreError::Refused { .. } | StoreError::ReadOnly { .. }) => {
            tracing::warn!(error = %ErrorChain(error.as_ref()), "the role of the database may not do what an operator asked for");
            let why = format!(
                "This server's role in the database may not do that; nothing was changed. Run `{command}` with a role that may, or grant it: see docs/operate/console.md."
            );
            (StatusCode::FORBIDDEN, why)
        }
        Some(StoreError::Busy { .. }) => {
            let why = format!("{error:#}");
            (
                StatusCode::SERVICE_UNAVAILABLE,
                single_line(&why).into_owned(),
            )
        }
        Some(
            StoreError::Database { .. }
            | StoreError::Damaged(_)
            | StoreError::Disk { .. }
            | StoreError::Unreachable { .. },
        ) => {
            tracing::error!(error = %ErrorChain(error.as_ref()), "an act of an operator failed");
            let why = "The store failed; nothing was changed. See the server's log for the cause.";
            (StatusCode::SERVICE_UNAVAILABLE, why.to_owned())
        }
        Some(
            StoreError::AssortmentChanged { .. }
            | StoreError::AssortmentInUse { .. }
            | StoreError::LastOwner { .. }
            | StoreError::Confirmed,
        ) => {
            let why = format!("{error:#}");
            (StatusCode::CONFLICT, single_line(&why).into_owned())
        }
        Some(_) | None => {
            let why = format!("{error:#}");
            (StatusCode::BAD_REQUEST, single_line(&why).into_owned())
        }
    }
}
