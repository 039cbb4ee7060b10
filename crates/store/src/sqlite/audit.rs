//! The audit log: writing entries in the transaction of a change, and reading them.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use rusqlite::types::FromSql;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};

use super::{during, keys};
use crate::StoreError;
use crate::audit::{AuditContext, AuditEntry, AuditRow, Chain, Change, Confirmation, Standing};
use crate::fail_point::FailPoint;
use crate::operators::LoggedOperators;
use crate::values::text_digest;

const READING: &str = "reading the audit log";
const WRITING: &str = "writing the audit log";

/// Columns of an entry, in the order of [`audit_row`].
const COLUMNS: &str =
    "number, changed_at, changed_by, note, action, subject_kind, subject, changes, digest";

/// See [`Store::audit`](crate::Store::audit).
pub(super) fn read(
    connection: &Connection,
    subject: Option<&str>,
    limit: u32,
) -> Result<Vec<AuditEntry>, StoreError> {
    // One statement for each case, so that each uses its index.
    let condition = match subject {
        Some(_) => "subject = ?1",
        None => "?1 is null",
    };
    let sql = format!(
        "select {COLUMNS} from audit_entry where {condition} order by number desc limit ?2"
    );
    let mut statement = connection.prepare(&sql).map_err(during(READING))?;
    let rows = statement
        .query_map((subject, limit), audit_row)
        .map_err(during(READING))?;
    rows.map(|row| row.map_err(during(READING))?.try_into())
        .collect()
}

/// Writes an entry for each change.
pub(super) fn write(
    transaction: &Connection,
    context: &AuditContext,
    changes: Vec<Change>,
) -> Result<(), StoreError> {
    if !changes.is_empty() {
        ensure_new(transaction, context)?;
    }
    let sql = "select number, digest from main.audit_entry order by number desc limit 1";
    let last = transaction
        .query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()
        .map_err(during(WRITING))?;
    let (mut chain, now) = (Chain::after(last), Timestamp::now());
    let mut confirmation = context.confirmation.as_ref();
    for change in changes {
        let row = chain.entry(context, change, now);
        insert(transaction, &row, confirmation.take()).map_err(during(WRITING))?;
        FailPoint::AuditWritten.pass()?;
    }
    Ok(())
}

/// Refuses a confirmation that the log has.
fn ensure_new(transaction: &Connection, context: &AuditContext) -> Result<(), StoreError> {
    match &context.confirmation {
        Some(confirmation) if has_confirmation(transaction, confirmation)? => {
            Err(StoreError::Confirmed)
        }
        _ => Ok(()),
    }
}

/// Returns true if the log has a confirmation.
pub(super) fn has_confirmation(
    connection: &Connection,
    confirmation: &Confirmation,
) -> Result<bool, StoreError> {
    let sql = "select exists (select 1 from main.audit_entry where confirmation = ?)";
    let found = connection.query_row(sql, [confirmation.as_str()], |row| row.get(0));
    found.map_err(during(READING))
}

/// See [`OperatorStore::logged_operators`](crate::operators::OperatorStore::logged_operators).
pub(super) fn operators(
    connection: &Connection,
    after: u64,
) -> Result<LoggedOperators, StoreError> {
    let sql = "select coalesce(max(subject_kind = 'operator'), 0), coalesce(max(number), ?1) \
               from audit_entry where number > ?1";
    let after = i64::try_from(after).unwrap_or(i64::MAX);
    let row = connection.query_row(sql, [after], |row| Ok((row.get(0)?, row.get(1)?)));
    let (found, last): (bool, i64) = row.map_err(during(READING))?;
    let last = u64::try_from(last).unwrap_or_default();
    Ok(LoggedOperators { found, last })
}

fn insert(
    transaction: &Connection,
    row: &AuditRow,
    confirmation: Option<&Confirmation>,
) -> rusqlite::Result<()> {
    let sql = format!(
        "insert into main.audit_entry ({COLUMNS}, confirmation) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
    );
    let values = params![
        row.number,
        row.changed_at,
        row.changed_by,
        row.note,
        row.action,
        row.subject_kind,
        row.subject,
        row.changes,
        row.digest,
        confirmation.map(Confirmation::as_str),
    ];
    transaction.prepare_cached(&sql)?.execute(values).map(drop)
}

/// Calls `visit` with each entry in order.
pub(super) fn each(
    transaction: &Transaction<'_>,
    mut visit: impl FnMut(&AuditRow),
) -> Result<(), StoreError> {
    let sql = format!("select {COLUMNS} from audit_entry order by number");
    let mut statement = transaction.prepare(&sql).map_err(during(READING))?;
    let rows = statement
        .query_map([], audit_row)
        .map_err(during(READING))?;
    for row in rows {
        visit(&row.map_err(during(READING))?);
    }
    Ok(())
}

/// Returns the state that a restore compares. Keys and texts with unreadable values are left out.
pub(super) fn standing(transaction: &Transaction<'_>) -> Result<Standing, StoreError> {
    let sql = "select digest from main.markdown_text where taken_down_at is not null";
    let mut statement = transaction.prepare(sql).map_err(during(READING))?;
    let digests = statement
        .query_map([], |row| row.get::<_, Vec<u8>>(0))
        .map_err(during(READING))?;
    let mut taken_down = BTreeSet::new();
    for digest in digests {
        taken_down.extend(text_digest(&digest.map_err(during(READING))?).ok());
    }
    let sql = "select revision_number from main.state";
    let revision: Option<Option<i64>> = transaction
        .query_row(sql, [], |row| row.get(0))
        .optional()
        .map_err(during(READING))?;
    let assortments = "select name, number, id from main.assortment_version \
                       where replaced_at is null and rules is not null";
    let overrides =
        "select number, definition, status from main.catalog_override where status <> 'ended'";
    Ok(Standing {
        keys: keys::readable_records(transaction)?,
        taken_down,
        assortments: by_name(transaction, assortments)?,
        overrides: by_name(transaction, overrides)?,
        revision: revision.flatten().and_then(|number| number.try_into().ok()),
    })
}

/// Returns the rows of a query by their first column.
fn by_name<N: FromSql + Ord, A: FromSql, B: FromSql>(
    transaction: &Transaction<'_>,
    sql: &str,
) -> Result<BTreeMap<N, (A, B)>, StoreError> {
    let mut statement = transaction.prepare(sql).map_err(during(READING))?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, (row.get(1)?, row.get(2)?))));
    rows.and_then(Iterator::collect).map_err(during(READING))
}

fn audit_row(row: &Row<'_>) -> rusqlite::Result<AuditRow> {
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
