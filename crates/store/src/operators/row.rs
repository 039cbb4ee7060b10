//! Stored operators: their columns, and the digest of them.

use super::{Operator, PasswordHash};
use crate::StoreError;
use crate::digest::RowHash;
use crate::values::from_millis;

/// A stored operator, one field per column.
pub(crate) struct OperatorRow {
    pub(crate) name: String,
    pub(crate) role: String,
    pub(crate) password: Option<String>,
    pub(crate) stamp: String,
    pub(crate) created_at: i64,
    pub(crate) stored_digest: Vec<u8>,
}

impl OperatorRow {
    /// Returns the digest of all other columns.
    pub(crate) fn digest(&self) -> [u8; 16] {
        let Self {
            name,
            role,
            password,
            stamp,
            created_at,
            stored_digest: _,
        } = self;
        let mut hash = RowHash::default();
        for text in [Some(name), Some(role), password.as_ref(), Some(stamp)] {
            hash.bytes(text.map(String::as_bytes));
        }
        hash.number(Some(*created_at));
        hash.finish()
    }

    /// Returns the operator, whatever the digest says: for a change, which writes a new one.
    pub(crate) fn unverified(self) -> Result<Operator, StoreError> {
        let damaged = |what: &str| StoreError::Damaged(format!("operator {}: {what}", self.name));
        Ok(Operator {
            name: self.name.parse().map_err(|_| damaged("invalid name"))?,
            role: self.role.parse().map_err(|_| damaged("invalid role"))?,
            created_at: from_millis(self.created_at)?,
            password: self.password.map(PasswordHash::new),
            stamp: self.stamp,
        })
    }
}

impl From<&Operator> for OperatorRow {
    fn from(operator: &Operator) -> Self {
        let Operator {
            name,
            role,
            password,
            stamp,
            created_at,
        } = operator;
        let mut row = Self {
            name: name.as_str().to_owned(),
            role: role.as_str().to_owned(),
            password: password.as_ref().map(|hash| hash.as_str().to_owned()),
            stamp: stamp.clone(),
            created_at: created_at.as_millisecond(),
            stored_digest: Vec::new(),
        };
        row.stored_digest = row.digest().into();
        row
    }
}

impl TryFrom<OperatorRow> for Operator {
    type Error = StoreError;

    /// Refuses a row that isn't as it was written: it says who may do what.
    fn try_from(row: OperatorRow) -> Result<Self, StoreError> {
        let damaged = |what: &str| StoreError::Damaged(format!("operator {}: {what}", row.name));
        match row.stored_digest == row.digest() {
            true => row.unverified(),
            false => Err(damaged(
                "was changed by something other than Vitrine; set it again: `vitrine operators set`",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::super::Role;
    use super::*;

    #[test]
    fn altered_operator_row_is_damaged() {
        let operator = Operator {
            name: "ines".parse().unwrap(),
            role: Role::Viewer,
            password: None,
            stamp: "s".to_owned(),
            created_at: Timestamp::UNIX_EPOCH,
        };
        let row = OperatorRow::from(&operator);
        assert_eq!(Operator::try_from(row).unwrap(), operator);
        let row = OperatorRow {
            role: "owner".to_owned(),
            ..OperatorRow::from(&operator)
        };
        assert!(matches!(
            Operator::try_from(row),
            Err(StoreError::Damaged(_))
        ));
    }
}
