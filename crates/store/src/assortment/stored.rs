//! The stored versions: reading them, alone or together with the keys, and writing them.

use jiff::Timestamp;

use super::{
    AssortmentVersion, Current, LiveAssortments, NewAssortment, ensure_limits, ensure_unused,
    live_number, next_version, unknown_ids, version_number,
};
use crate::StoreError;
use crate::audit::{AuditContext, accepted_assortments, assortment_change, log};
use crate::catalog::state;
use crate::check::StoredAssortment;
use crate::db::{Db, Row, Tx, Value, values};
use crate::fail_point::FailPoint;
use crate::keys;
use crate::postgres::Lock;
use crate::values::{from_millis, random_step};

const READING: &str = "reading the assortments";
const WRITING: &str = "writing an assortment";

/// Columns of a version, in the order in which [`version`] reads them.
const VERSION: &str = "name, number, id, created_at, changed_by, note, rules";

/// SQL condition for live versions.
const IS_LIVE: &str = "replaced_at is null and rules is not null";

/// See [`Store::read_assortments`](crate::Store::read_assortments).
pub(super) fn read(db: Db<'_>, known: &[(String, String)]) -> Result<LiveAssortments, StoreError> {
    let sql =
        format!("select name, id from vitrine.assortment_version where {IS_LIVE} order by name");
    db.read(READING, |tx| {
        let names = tx.rows(&sql, &[], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let unknown = unknown_ids(&names, known);
        let changed = match unknown.is_empty() {
            true => Vec::new(),
            false => versions(tx, "id = any($1) order by name", values![&unknown[..]])?,
        };
        Ok(LiveAssortments {
            state: state(tx)?,
            keys: keys::records(tx)?,
            changed,
            names,
        })
    })
}

/// Returns the live versions, by name.
pub(crate) fn live(tx: &mut Tx<'_>) -> Result<Vec<AssortmentVersion>, StoreError> {
    versions(tx, &format!("{IS_LIVE} order by name"), &[])
}

/// Reads the versions that a condition selects, followed by what else a query may have.
pub(super) fn select(
    db: Db<'_>,
    rest: &str,
    values: &[Value<'_>],
) -> Result<Vec<AssortmentVersion>, StoreError> {
    db.read(READING, |tx| versions(tx, rest, values))
}

/// See [`Store::assortments`](crate::Store::assortments).
pub(super) fn read_live(db: Db<'_>) -> Result<Vec<AssortmentVersion>, StoreError> {
    db.read(READING, live)
}

fn versions(
    tx: &mut Tx<'_>,
    rest: &str,
    values: &[Value<'_>],
) -> Result<Vec<AssortmentVersion>, StoreError> {
    let sql = format!("select {VERSION} from vitrine.assortment_version where {rest}");
    tx.rows(&sql, values, version)
}

fn version(row: &Row<'_>) -> Result<AssortmentVersion, StoreError> {
    Ok(AssortmentVersion {
        name: row.get(0)?,
        number: version_number(row.get(1)?)?,
        id: row.get(2)?,
        created_at: from_millis(row.get(3)?)?,
        by: row.get(4)?,
        note: row.get(5)?,
        rules: row.get(6)?,
    })
}

/// Returns whether there is a live assortment of this name.
pub(crate) fn is_live(tx: &mut Tx<'_>, name: &str) -> Result<bool, StoreError> {
    let sql = format!(
        "select exists (select 1 from vitrine.assortment_version where name = $1 and {IS_LIVE})"
    );
    tx.value(&sql, values![name])
}

/// See [`Store::set_assortment`](crate::Store::set_assortment).
pub(super) fn set(
    db: Db<'_>,
    new: &NewAssortment,
    expected: Option<&str>,
) -> Result<AssortmentVersion, StoreError> {
    // With the lock of keys: they must go on naming live assortments.
    db.write(Lock::Keys, FailPoint::AssortmentsCommitted, WRITING, |tx| {
        let current = current(tx, &new.name)?;
        let version = next_version(new, current.as_ref(), expected)?;
        if new.rules.is_none() {
            ensure_unused(&new.name, users(tx, &new.name)?)?;
        }
        write(tx, &version, new.codes.into())?;
        if new.rules.is_some() {
            let sql = format!(
                "select count(*), coalesce(sum(codes), 0)::bigint \
                 from vitrine.assortment_version where {IS_LIVE}"
            );
            tx.row(&sql, &[], |row| ensure_limits(row.count(0)?, row.count(1)?))?;
        }
        let change = assortment_change(live_number(current.as_ref()), &version);
        log::write(tx, &new.context(), vec![change])?;
        count(tx)?;
        FailPoint::AssortmentsCounted.pass()?;
        tx.notify()?;
        Ok(version)
    })
}

fn current(tx: &mut Tx<'_>, name: &str) -> Result<Option<Current>, StoreError> {
    let sql = "select number, id, created_at, rules is not null \
               from vitrine.assortment_version where name = $1 and replaced_at is null";
    tx.row(sql, values![name], |row| {
        Ok(Current {
            number: version_number(row.get(0)?)?,
            id: row.get(1)?,
            created_at: row.get(2)?,
            is_live: row.get(3)?,
        })
    })
}

/// Returns the prefixes of the keys that use an assortment and aren't revoked.
fn users(tx: &mut Tx<'_>, name: &str) -> Result<Vec<String>, StoreError> {
    let sql = "select prefix from vitrine.api_key where assortment = $1 and revoked_at is null \
               order by created_at, prefix";
    tx.rows(sql, values![name], |row| row.get(0))
}

fn write(tx: &mut Tx<'_>, version: &AssortmentVersion, codes: i64) -> Result<(), StoreError> {
    let created_at = version.created_at.as_millisecond();
    let sql = "update vitrine.assortment_version set replaced_at = $2 \
               where name = $1 and replaced_at is null";
    tx.execute(sql, values![&version.name, created_at])?;
    FailPoint::AssortmentsReplaced.pass()?;
    let sql = "insert into vitrine.assortment_version \
               (name, number, id, created_at, changed_by, note, codes, digest, rules) \
               values ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
    let digest = super::digest(version, codes);
    let values = values![
        &version.name,
        version.number,
        &version.id,
        created_at,
        &version.by,
        &version.note,
        codes,
        &digest,
        &version.rules,
    ];
    tx.execute(sql, values)?;
    FailPoint::AssortmentsWritten.pass()?;
    Ok(())
}

/// Increments the counter by a random step, as [`keys::count`] does that of keys.
fn count(tx: &mut Tx<'_>) -> Result<(), StoreError> {
    let sql = "update vitrine.state set assortments_counter = assortments_counter + $1";
    tx.execute(sql, values![random_step()?]).map(drop)
}

/// Increments the counter, and accepts the assortments as they are: later than before, whatever the clock says.
pub(crate) fn accept(tx: &mut Tx<'_>) -> Result<(), StoreError> {
    count(tx)?;
    let sql = "update vitrine.state \
               set assortments_accepted = greatest(coalesce(assortments_accepted, 0) + 1, $1)";
    tx.execute(sql, values![Timestamp::now().as_millisecond()])?;
    FailPoint::AssortmentsAccepted.pass()?;
    Ok(())
}

/// See [`Store::accept_assortments`](crate::Store::accept_assortments).
pub(super) fn accept_now(db: Db<'_>, context: &AuditContext) -> Result<(), StoreError> {
    db.write(Lock::Keys, FailPoint::AssortmentsCommitted, WRITING, |tx| {
        accept(tx)?;
        log::write(tx, context, vec![accepted_assortments()])?;
        tx.notify()
    })
}

/// Calls `visit` with name and number of each version, and with the stored version or the error of reading it.
pub(crate) fn each(
    tx: &mut Tx<'_>,
    mut visit: impl FnMut((&str, i64), Result<StoredAssortment, StoreError>),
) -> Result<(), StoreError> {
    let sql = format!(
        "select {VERSION}, replaced_at is null, \
           number = max(number) over (partition by name), codes, digest \
         from vitrine.assortment_version order by name, number"
    );
    tx.each(&sql, &[], |row| {
        visit((row.get(0)?, row.get(1)?), stored(row));
        Ok(())
    })
}

fn stored(row: &Row<'_>) -> Result<StoredAssortment, StoreError> {
    Ok(StoredAssortment {
        version: version(row)?,
        is_current: row.get(7)?,
        is_newest: row.get(8)?,
        codes: row.get(9)?,
        digest: row.get(10)?,
    })
}
