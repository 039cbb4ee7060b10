//! The audit log: writing entries in the transaction of a change, and reading them.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use tokio_postgres::Row;

use super::keys;
use super::session::{Session, Typed, get};
use crate::StoreError;
use crate::audit::{AuditContext, AuditEntry, AuditRow, Chain, Change, Confirmation, Standing};
use crate::fail_point::FailPoint;
use crate::operators::LoggedOperators;
use crate::values::text_digest;

pub(super) const READING: &str = "reading the audit log";
const WRITING: &str = "writing the audit log";

/// Columns of an entry, in the order of [`audit_row`].
const COLUMNS: &str =
    "number, changed_at, changed_by, note, action, subject_kind, subject, changes, digest";

/// See [`Store::audit`](crate::Store::audit).
pub(super) fn read(
    session: &mut Session,
    subject: Option<&str>,
    limit: u32,
) -> Result<Vec<AuditEntry>, StoreError> {
    let sql = format!(
        "select {COLUMNS} from vitrine.audit_entry where $1 is null or subject = $1 \
         order by number desc limit $2"
    );
    let (subject, limit) = (subject.map(str::to_owned), i64::from(limit));
    let mut entries = Vec::new();
    session.each_row(READING, &sql, &[subject.param(), limit.param()], |row| {
        entries.push(audit_row(row)?.try_into()?);
        Ok(())
    })?;
    Ok(entries)
}

/// Writes an entry for each change. The caller holds the lock of keys.
pub(super) fn write(
    session: &mut Session,
    context: &AuditContext,
    changes: Vec<Change>,
) -> Result<(), StoreError> {
    if !changes.is_empty() {
        ensure_new(session, context)?;
    }
    let sql = "select number, digest from vitrine.audit_entry order by number desc limit 1";
    let last = match session.row(WRITING, sql, &[])? {
        Some(row) => Some((get(&row, 0)?, get::<&[u8]>(&row, 1)?.to_vec())),
        None => None,
    };
    let (mut chain, now) = (Chain::after(last), Timestamp::now());
    let mut confirmation = context.confirmation.as_ref();
    for change in changes {
        let row = chain.entry(context, change, now);
        insert(session, &row, confirmation.take())?;
        FailPoint::AuditWritten.pass()?;
    }
    Ok(())
}

/// Refuses a confirmation that the log has.
fn ensure_new(session: &mut Session, context: &AuditContext) -> Result<(), StoreError> {
    match &context.confirmation {
        Some(confirmation) if has_confirmation(session, confirmation)? => {
            Err(StoreError::Confirmed)
        }
        _ => Ok(()),
    }
}

/// Returns true if the log has a confirmation.
pub(super) fn has_confirmation(
    session: &mut Session,
    confirmation: &Confirmation,
) -> Result<bool, StoreError> {
    let sql = "select 1 from vitrine.audit_entry where confirmation = $1";
    let confirmation = confirmation.as_str().to_owned();
    let found = session.row(READING, sql, &[confirmation.param()])?;
    Ok(found.is_some())
}

/// See [`OperatorStore::logged_operators`](crate::operators::OperatorStore::logged_operators).
pub(super) fn operators(session: &mut Session, after: u64) -> Result<LoggedOperators, StoreError> {
    let sql = "select coalesce(bool_or(subject_kind = 'operator'), false), coalesce(max(number), $1) \
               from vitrine.audit_entry where number > $1";
    let after = i64::try_from(after).unwrap_or(i64::MAX);
    let row = session.row(READING, sql, &[after.param()])?;
    let (found, last) = match row {
        Some(row) => (get(&row, 0)?, get::<i64>(&row, 1)?),
        None => (false, after),
    };
    let last = u64::try_from(last).unwrap_or_default();
    Ok(LoggedOperators { found, last })
}

fn insert(
    session: &mut Session,
    row: &AuditRow,
    confirmation: Option<&Confirmation>,
) -> Result<(), StoreError> {
    let sql = format!(
        "insert into vitrine.audit_entry ({COLUMNS}, confirmation) \
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"
    );
    let digest = row.digest.as_slice();
    let confirmation = confirmation.map(|confirmation| confirmation.as_str().to_owned());
    let values = [
        row.number.param(),
        row.changed_at.param(),
        row.changed_by.param(),
        row.note.param(),
        row.action.param(),
        row.subject_kind.param(),
        row.subject.param(),
        row.changes.param(),
        digest.param(),
        confirmation.param(),
    ];
    session.execute(WRITING, &sql, &values).map(drop)
}

/// Calls `visit` with each entry in order.
pub(super) fn each(
    session: &mut Session,
    mut visit: impl FnMut(&AuditRow),
) -> Result<(), StoreError> {
    let sql = format!("select {COLUMNS} from vitrine.audit_entry order by number");
    session.each_row(READING, &sql, &[], |row| {
        visit(&audit_row(row)?);
        Ok(())
    })
}

/// Returns the state that a restore compares. Keys and texts with unreadable values are left out.
pub(super) fn standing(session: &mut Session) -> Result<Standing, StoreError> {
    let sql = "select digest from vitrine.markdown_text where taken_down_at is not null";
    let mut taken_down = BTreeSet::new();
    session.each_row(READING, sql, &[], |row| {
        taken_down.extend(text_digest(get(row, 0)?).ok());
        Ok(())
    })?;
    let sql = "select revision_number from vitrine.state";
    let state = session.row(READING, sql, &[])?;
    let revision: Option<i64> = state.map_or(Ok(None), |row| get(&row, 0))?;
    let mut assortments = BTreeMap::new();
    let sql = "select name, number, id from vitrine.assortment_version \
               where replaced_at is null and rules is not null";
    session.each_row(READING, sql, &[], |row| {
        assortments.insert(get(row, 0)?, (get(row, 1)?, get(row, 2)?));
        Ok(())
    })?;
    let mut overrides = BTreeMap::new();
    let sql =
        "select number, definition, status from vitrine.catalog_override where status <> 'ended'";
    session.each_row(READING, sql, &[], |row| {
        overrides.insert(get(row, 0)?, (get(row, 1)?, get(row, 2)?));
        Ok(())
    })?;
    Ok(Standing {
        keys: keys::readable_records(session)?,
        taken_down,
        assortments,
        overrides,
        revision: revision.and_then(|number| number.try_into().ok()),
    })
}

fn audit_row(row: &Row) -> Result<AuditRow, StoreError> {
    Ok(AuditRow {
        number: get(row, 0)?,
        changed_at: get(row, 1)?,
        changed_by: get(row, 2)?,
        note: get(row, 3)?,
        action: get(row, 4)?,
        subject_kind: get(row, 5)?,
        subject: get(row, 6)?,
        changes: get(row, 7)?,
        digest: get::<&[u8]>(row, 8)?.to_vec(),
    })
}
