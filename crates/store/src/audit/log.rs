//! The stored log: writing entries in the transaction of a change, and reading them.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::{AuditContext, AuditEntry, AuditRow, Chain, Change, Confirmation, Standing};
use crate::StoreError;
use crate::db::{Column, Row, Tx, values};
use crate::fail_point::FailPoint;
use crate::keys;
use crate::operators::LoggedOperators;
use crate::values::text_digest;

pub(crate) const READING: &str = "reading the audit log";
const WRITING: &str = "writing the audit log";

/// Columns of an entry, in the order of [`audit_row`].
const COLUMNS: &str =
    "number, changed_at, changed_by, note, action, subject_kind, subject, changes, digest";

/// Returns the newest entries: of all, or of one subject.
pub(crate) fn read(
    tx: &mut Tx<'_>,
    subject: Option<&str>,
    limit: u32,
) -> Result<Vec<AuditEntry>, StoreError> {
    // One statement for each case, so that each uses its index.
    let (condition, values) = match subject {
        Some(subject) => ("where subject = $2", values![limit, subject].to_vec()),
        None => ("", values![limit].to_vec()),
    };
    let sql = format!(
        "select {COLUMNS} from vitrine.audit_entry {condition} order by number desc limit $1"
    );
    tx.rows(&sql, &values, |row| audit_row(row)?.try_into())
}

/// Writes an entry for each change. In PostgreSQL the caller holds the lock of keys.
pub(crate) fn write(
    tx: &mut Tx<'_>,
    context: &AuditContext,
    changes: Vec<Change>,
) -> Result<(), StoreError> {
    let tx = &mut tx.doing(WRITING);
    let mut confirmation = context.confirmation.as_ref();
    if let Some(confirmation) = confirmation.filter(|_| !changes.is_empty())
        && has_confirmation(tx, confirmation)?
    {
        return Err(StoreError::Confirmed);
    }
    let sql = "select number, digest from vitrine.audit_entry order by number desc limit 1";
    let last = tx.row(sql, &[], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let (mut chain, now) = (Chain::after(last), Timestamp::now());
    for change in changes {
        let row = chain.entry(context, change, now);
        insert(tx, &row, confirmation.take())?;
        FailPoint::AuditWritten.pass()?;
    }
    Ok(())
}

/// Returns true if the log has a confirmation.
pub(crate) fn has_confirmation(
    tx: &mut Tx<'_>,
    confirmation: &Confirmation,
) -> Result<bool, StoreError> {
    let sql = "select exists (select 1 from vitrine.audit_entry where confirmation = $1)";
    tx.value(sql, values![confirmation.as_str()])
}

/// Returns what the entries after `after` say of operators.
pub(crate) fn operators(tx: &mut Tx<'_>, after: u64) -> Result<LoggedOperators, StoreError> {
    let sql = "select coalesce(bool_or(subject_kind = 'operator'), false), \
                  coalesce(max(number), $1) from vitrine.audit_entry where number > $1";
    let found = tx.row(sql, values![after], |row| {
        Ok(LoggedOperators {
            found: row.get(0)?,
            last: row.count(1)?,
        })
    });
    let nothing = LoggedOperators {
        found: false,
        last: after,
    };
    Ok(found?.unwrap_or(nothing))
}

fn insert(
    tx: &mut Tx<'_>,
    row: &AuditRow,
    confirmation: Option<&Confirmation>,
) -> Result<(), StoreError> {
    let sql = format!(
        "insert into vitrine.audit_entry ({COLUMNS}, confirmation) \
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"
    );
    let values = values![
        row.number,
        row.changed_at,
        &row.changed_by,
        &row.note,
        &row.action,
        &row.subject_kind,
        &row.subject,
        &row.changes,
        &row.digest,
        confirmation.map(Confirmation::as_str),
    ];
    tx.execute(&sql, values).map(drop)
}

/// Calls `visit` with each entry in order.
pub(crate) fn each(tx: &mut Tx<'_>, mut visit: impl FnMut(&AuditRow)) -> Result<(), StoreError> {
    let sql = format!("select {COLUMNS} from vitrine.audit_entry order by number");
    tx.each(&sql, &[], |row| {
        visit(&audit_row(row)?);
        Ok(())
    })
}

/// Returns the state that a restore compares. Keys and texts with unreadable values are left out.
pub(crate) fn standing(tx: &mut Tx<'_>) -> Result<Standing, StoreError> {
    let sql = "select digest from vitrine.markdown_text where taken_down_at is not null";
    let mut taken_down = BTreeSet::new();
    tx.each(sql, &[], |row| {
        taken_down.extend(text_digest(row.get(0)?).ok());
        Ok(())
    })?;
    let revision: Option<i64> = tx.value("select revision_number from vitrine.state", &[])?;
    let assortments = "select name, number, id from vitrine.assortment_version \
                       where replaced_at is null and rules is not null";
    let overrides =
        "select number, definition, status from vitrine.catalog_override where status <> 'ended'";
    Ok(Standing {
        keys: keys::readable_records(tx)?,
        taken_down,
        assortments: by_first(tx, assortments)?,
        overrides: by_first(tx, overrides)?,
        revision: revision.and_then(|number| number.try_into().ok()),
    })
}

/// Returns the rows of a query by their first column.
fn by_first<N, A, B>(tx: &mut Tx<'_>, sql: &str) -> Result<BTreeMap<N, (A, B)>, StoreError>
where
    N: for<'r> Column<'r> + Ord,
    A: for<'r> Column<'r>,
    B: for<'r> Column<'r>,
{
    let rows = tx.rows(sql, &[], |row| {
        Ok((row.get(0)?, (row.get(1)?, row.get(2)?)))
    })?;
    Ok(rows.into_iter().collect())
}

fn audit_row(row: &Row<'_>) -> Result<AuditRow, StoreError> {
    Ok(AuditRow {
        number: row.get(0)?,
        changed_at: row.get(1)?,
        changed_by: row.get(2)?,
        note: row.get(3)?,
        action: row.get(4)?,
        subject_kind: row.get(5)?,
        subject: row.get(6)?,
        changes: row.get(7)?,
        digest: row.get(8)?,
    })
}
