//! The author of changes in tests.

use vitrine_store::audit::{AuditAction, AuditContext};

/// Returns a context by `tester`, without a note.
pub(crate) fn by_tester(action: AuditAction) -> AuditContext {
    AuditContext {
        by: "tester".to_owned(),
        note: None,
        action,
        confirmation: None,
    }
}

/// Returns the context of a change of keys.
pub(crate) fn set_key() -> AuditContext {
    by_tester(AuditAction::SetKey)
}

/// Returns the context of a text taken down or put back.
pub(crate) fn take_down() -> AuditContext {
    by_tester(AuditAction::TakeDownText)
}

/// Returns the context of a restore.
pub(crate) fn restore() -> AuditContext {
    by_tester(AuditAction::Restore)
}
