//! The audit log: an entry for each change of a key, of an assortment, of a text's status, of an override or of an operator, and for
//! each rollback and restore. The stores write entries
//! in the transaction of the change, by comparing what was there before with what is there after.
//!
//! - `changes`, `published`: comparing; `row`: stored entries, and the chain of their digests; `log`: writing and reading them

mod changes;
pub(crate) mod log;
mod published;
mod row;

use jiff::Timestamp;
use sha2::{Digest as _, Sha256};
use vitrine_model::hexadecimal::Hexadecimal;

pub(crate) use changes::{
    Change, Standing, accepted_assortments, assortment_change, created, named, operator_change,
    restored, text_change, webhook_change, written_keys,
};
pub use published::PublishedChange;
pub(crate) use published::published_change;
pub(crate) use row::{AuditRow, Chain};

/// Author, reason and kind of a change, for the audit log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditContext {
    /// Name of the author.
    pub by: String,
    /// Reason, in the author's words.
    pub note: Option<String>,
    /// Command.
    pub action: AuditAction,
    /// Confirmation by an operator in the console, at most once in a log: a change with one that the log has is refused.
    pub confirmation: Option<Confirmation>,
}

/// SHA-256 of the random name of a confirmation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confirmation(String);

impl Confirmation {
    /// Returns the confirmation of a name.
    #[must_use]
    pub fn of(name: &str) -> Self {
        Self(Hexadecimal(&Sha256::digest(name)).to_string())
    }

    /// Returns it as it is stored.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// Act that changes keys, assortments, texts, webhooks, overrides, operators or everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuditAction {
    /// Creation of a key.
    CreateKey,
    /// Change of a key in use.
    SetKey,
    /// Creation of a key's successor.
    RotateKey,
    /// Revocation of keys.
    RevokeKey,
    /// New version of an assortment.
    SetAssortment,
    /// Removal of an assortment.
    RemoveAssortment,
    /// Acceptance of the assortments that the store has.
    AcceptAssortments,
    /// Taking a text down.
    TakeDownText,
    /// Putting a text back.
    PutBackText,
    /// Creation of a webhook endpoint.
    CreateWebhook,
    /// Pausing a webhook endpoint.
    PauseWebhook,
    /// Enabling a webhook endpoint.
    EnableWebhook,
    /// An attempt of a webhook endpoint before its time.
    RetryWebhook,
    /// New secret of a webhook endpoint.
    RotateWebhook,
    /// Test event of a webhook endpoint.
    TestWebhook,
    /// Going back to an earlier position of a webhook endpoint.
    ReplayWebhook,
    /// Deletion of a webhook endpoint.
    DeleteWebhook,
    /// New override.
    MakeOverride,
    /// End of an override, by an operator.
    EndOverride,
    /// An old revision made live again.
    RollBack,
    /// Creation of an operator.
    AddOperator,
    /// Change of an operator.
    SetOperator,
    /// Removal of an operator.
    RemoveOperator,
    /// Restore of a backup.
    Restore,
}

impl AuditAction {
    /// Returns its name in the log.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::CreateKey | Self::CreateWebhook | Self::MakeOverride => "create",
            Self::SetKey | Self::SetOperator => "set",
            Self::RotateKey | Self::RotateWebhook => "rotate",
            Self::RevokeKey => "revoke",
            Self::SetAssortment => "set",
            Self::RemoveAssortment | Self::RemoveOperator => "remove",
            Self::AcceptAssortments => "accept",
            Self::TakeDownText => "take-down",
            Self::PutBackText => "put-back",
            Self::PauseWebhook => "pause",
            Self::EnableWebhook => "enable",
            Self::RetryWebhook => "retry",
            Self::TestWebhook => "test",
            Self::ReplayWebhook => "replay",
            Self::DeleteWebhook => "delete",
            Self::EndOverride => "end",
            Self::RollBack => "roll-back",
            Self::AddOperator => "add",
            Self::Restore => "restore",
        }
    }
}

/// An entry of the audit log. Action and kinds are texts: a newer release may have written others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    /// Number, from 1.
    pub number: u64,
    /// Time of the change.
    pub at: Timestamp,
    /// Name of the author.
    pub by: String,
    /// Reason, in the author's words.
    pub note: Option<String>,
    /// Name of the [`AuditAction`].
    pub action: String,
    /// Kind of the subject: `key`, `assortment`, `text`, `webhook`, `override`, `operator` or `store`.
    pub subject_kind: String,
    /// Prefix of a key, name of an assortment or an operator, digest of a text, id of an endpoint, number of an override, path of
    /// the backup, or `catalog`.
    pub subject: String,
    /// Fields that changed.
    pub changes: Vec<FieldChange>,
}

/// A field that changed. Values are texts, as commands print them; none was or is unset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldChange {
    /// Name of the field.
    pub field: String,
    /// Value before.
    pub before: Option<String>,
    /// Value after.
    pub after: Option<String>,
}
