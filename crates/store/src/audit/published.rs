//! Changes by acts that publish: of overrides, and of the live revision.

use super::changes::{Change, differences};
use crate::overrides::OverrideStatus;

/// Change by an act that publishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PublishedChange {
    /// An override: its number, and its status before and after.
    Override {
        /// Number.
        number: u64,
        /// Status before; none if it was made.
        before: Option<OverrideStatus>,
        /// Status after.
        after: OverrideStatus,
    },
    /// The live revision.
    Revision {
        /// Number of the revision that was live, if there was one.
        before: Option<u64>,
        /// Number of the revision that is live again.
        after: u64,
    },
}

/// Returns the change by an act that publishes.
pub(crate) fn published_change(change: PublishedChange) -> Change {
    let (kind, subject, field, before, after) = match change {
        PublishedChange::Override {
            number,
            before,
            after,
        } => {
            let status = |status: OverrideStatus| status.as_str().to_owned();
            (
                "override",
                number.to_string(),
                "status",
                before.map(status),
                status(after),
            )
        }
        PublishedChange::Revision { before, after } => {
            let before = before.map(|number| number.to_string());
            (
                "store",
                "catalog".to_owned(),
                "revision",
                before,
                after.to_string(),
            )
        }
    };
    Change {
        subject_kind: kind,
        subject,
        fields: differences(&[field], [before], [Some(after)]),
    }
}
