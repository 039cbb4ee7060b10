//! Stored entries: their columns, and the chain of their digests.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{AuditContext, AuditEntry, Change, FieldChange};
use crate::StoreError;
use crate::digest::RowHash;
use crate::values::from_millis;

/// A stored entry, one field per column.
pub(crate) struct AuditRow {
    pub(crate) number: i64,
    pub(crate) changed_at: i64,
    pub(crate) changed_by: String,
    pub(crate) note: Option<String>,
    pub(crate) action: String,
    pub(crate) subject_kind: String,
    pub(crate) subject: String,
    pub(crate) changes: String,
    pub(crate) digest: Vec<u8>,
}

impl AuditRow {
    /// Returns the digest of all columns but the confirmation, and of the digest of the entry before: a missing entry shows, too.
    fn own_digest(&self, before: Option<&[u8]>) -> [u8; 16] {
        let Self {
            number,
            changed_at,
            changed_by,
            note,
            action,
            subject_kind,
            subject,
            changes,
            digest: _,
        } = self;
        let mut hash = RowHash::default();
        hash.number(Some(*number));
        hash.number(Some(*changed_at));
        hash.bytes(before);
        hash.bytes(note.as_deref().map(str::as_bytes));
        for text in [changed_by, action, subject_kind, subject, changes] {
            hash.bytes(Some(text.as_bytes()));
        }
        hash.finish()
    }
}

/// Makes the entries of changes, each chained to the one before, and checks stored ones.
#[derive(Default)]
pub(crate) struct Chain {
    number: i64,
    digest: Option<Vec<u8>>,
}

impl Chain {
    /// Continues after the last entry, given by its number and its digest.
    pub(crate) fn after(last: Option<(i64, Vec<u8>)>) -> Self {
        last.map_or_else(Self::default, |(number, digest)| Self {
            number,
            digest: Some(digest),
        })
    }

    /// Returns the entry of a change.
    pub(crate) fn entry(
        &mut self,
        context: &AuditContext,
        change: Change,
        at: Timestamp,
    ) -> AuditRow {
        let fields = change.fields.iter().map(|change| {
            let FieldChange {
                field,
                before,
                after,
            } = change;
            json!({"field": field, "before": before, "after": after})
        });
        let mut row = AuditRow {
            number: self.number + 1,
            changed_at: at.as_millisecond(),
            changed_by: context.by.clone(),
            note: context.note.clone(),
            action: context.action.as_str().to_owned(),
            subject_kind: change.subject_kind.to_owned(),
            subject: change.subject,
            changes: fields.collect::<Value>().to_string(),
            digest: Vec::new(),
        };
        row.digest = row.own_digest(self.digest.as_deref()).into();
        self.follow(&row);
        row
    }

    /// Returns whether a stored entry is as it was written, and follows the one before.
    pub(crate) fn fits(&mut self, row: &AuditRow) -> bool {
        let fits =
            row.number == self.number + 1 && row.digest == row.own_digest(self.digest.as_deref());
        self.follow(row);
        fits
    }

    fn follow(&mut self, row: &AuditRow) {
        self.number = row.number;
        self.digest = Some(row.digest.clone());
    }
}

impl TryFrom<AuditRow> for AuditEntry {
    type Error = StoreError;

    fn try_from(row: AuditRow) -> Result<Self, StoreError> {
        let damaged = || {
            StoreError::Damaged(format!(
                "the audit log's entry {} is unreadable",
                row.number
            ))
        };
        let listed: Vec<Value> = serde_json::from_str(&row.changes).map_err(|_| damaged())?;
        let text = |change: &Value, name: &str| change[name].as_str().map(str::to_owned);
        let changes = listed.iter().map(|change| {
            Some(FieldChange {
                field: text(change, "field")?,
                before: text(change, "before"),
                after: text(change, "after"),
            })
        });
        Ok(Self {
            number: u64::try_from(row.number).map_err(|_| damaged())?,
            at: from_millis(row.changed_at)?,
            changes: changes.collect::<Option<_>>().ok_or_else(damaged)?,
            by: row.changed_by,
            note: row.note,
            action: row.action,
            subject_kind: row.subject_kind,
            subject: row.subject,
        })
    }
}
