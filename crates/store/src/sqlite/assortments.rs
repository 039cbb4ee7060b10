//! Assortments: reading them, alone or together with the keys, and writing their versions.

use jiff::Timestamp;
use rusqlite::{
    Connection, OptionalExtension, Params, Row, Transaction, TransactionBehavior, params,
};

use super::{SqliteStore, audit, catalog, committed, during, keys};
use crate::StoreError;
use crate::assortment::{
    self, AssortmentStore, AssortmentVersion, Current, LiveAssortments, NewAssortment, View,
    version_number,
};
use crate::audit::{AuditContext, accepted_assortments, assortment_change};
use crate::check::StoredAssortment;
use crate::fail_point::FailPoint;
use crate::values::from_millis;

const READING: &str = "reading the assortments";
const WRITING: &str = "writing an assortment";

/// Columns of a version, in the order in which [`version`] reads them.
const VERSION: &str = "name, number, id, created_at, changed_by, note, rules";

/// SQL condition for live versions.
const IS_LIVE: &str = "replaced_at is null and rules is not null";

/// SQL that steps the counter, at random: copies that were changed separately mustn't have the same number.
const COUNT: &str =
    "update state set assortments_counter = assortments_counter + 1 + (random() & 0xffffffff)";

impl AssortmentStore for SqliteStore {
    fn read_assortments(&self, known: &[(String, String)]) -> Result<LiveAssortments, StoreError> {
        read(&mut self.connect()?, known)
    }

    fn assortments(&self) -> Result<Vec<AssortmentVersion>, StoreError> {
        live(&self.connect()?)
    }

    fn assortment_versions(
        &self,
        name: &str,
        limit: u32,
    ) -> Result<Vec<AssortmentVersion>, StoreError> {
        let rest = "name = ?1 order by number desc limit ?2";
        versions(&self.connect()?, rest, (name, limit))
    }

    fn assortment_history(
        &self,
        since: Timestamp,
        limit: u32,
    ) -> Result<Vec<AssortmentVersion>, StoreError> {
        let rest = "replaced_at is null or replaced_at >= ?1 \
                    order by created_at desc, name, number desc limit ?2";
        versions(&self.connect()?, rest, (since.as_millisecond(), limit))
    }

    fn set_assortment(
        &self,
        new: &NewAssortment,
        expected: Option<&str>,
    ) -> Result<AssortmentVersion, StoreError> {
        self.with_lock_holder(set(&mut self.connect_to_change()?, new, expected))
    }

    fn accept_assortments(&self, context: &AuditContext) -> Result<(), StoreError> {
        self.with_lock_holder(accept(&mut self.connect_to_change()?, context))
    }
}

fn read(
    connection: &mut Connection,
    known: &[(String, String)],
) -> Result<LiveAssortments, StoreError> {
    let transaction = connection.transaction().map_err(during(READING))?;
    let names = live_names(&transaction).map_err(during(READING))?;
    let mut changed = Vec::new();
    for id in assortment::unknown_ids(&names, known) {
        changed.extend(versions(&transaction, "id = ?", [id])?);
    }
    Ok(LiveAssortments {
        state: catalog::state(&transaction)?,
        keys: keys::records(&transaction)?,
        names,
        changed,
    })
}

fn live_names(connection: &Connection) -> rusqlite::Result<Vec<(String, String)>> {
    let sql = format!("select name, id from assortment_version where {IS_LIVE} order by name");
    let mut statement = connection.prepare(&sql)?;
    let names = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    names.collect()
}

fn live(connection: &Connection) -> Result<Vec<AssortmentVersion>, StoreError> {
    versions(connection, &format!("{IS_LIVE} order by name"), [])
}

/// Returns the versions that a condition selects, followed by what else a query may have.
fn versions(
    connection: &Connection,
    rest: &str,
    params: impl Params,
) -> Result<Vec<AssortmentVersion>, StoreError> {
    let sql = format!("select {VERSION} from assortment_version where {rest}");
    let mut statement = connection.prepare_cached(&sql).map_err(during(READING))?;
    let mut rows = statement.query(params).map_err(during(READING))?;
    let mut versions = Vec::new();
    while let Some(row) = rows.next().map_err(during(READING))? {
        versions.push(version(row)?);
    }
    Ok(versions)
}

fn version(row: &Row<'_>) -> Result<AssortmentVersion, StoreError> {
    let failed = during(READING);
    let created_at: i64 = row.get(3).map_err(&failed)?;
    Ok(AssortmentVersion {
        name: row.get(0).map_err(&failed)?,
        number: version_number(row.get(1).map_err(&failed)?)?,
        id: row.get(2).map_err(&failed)?,
        created_at: from_millis(created_at)?,
        by: row.get(4).map_err(&failed)?,
        note: row.get(5).map_err(&failed)?,
        rules: row.get(6).map_err(&failed)?,
    })
}

/// Returns the keys and the live assortments.
pub(super) fn view(connection: &mut Connection) -> Result<View, StoreError> {
    let transaction = connection.transaction().map_err(during(READING))?;
    Ok(View::new(keys::records(&transaction)?, live(&transaction)?))
}

/// Returns whether there is a live assortment of this name.
pub(super) fn is_live(transaction: &Transaction<'_>, name: &str) -> Result<bool, StoreError> {
    let sql =
        format!("select exists (select * from assortment_version where name = ? and {IS_LIVE})");
    transaction
        .query_row(&sql, [name], |row| row.get(0))
        .map_err(during(READING))
}

fn set(
    connection: &mut Connection,
    new: &NewAssortment,
    expected: Option<&str>,
) -> Result<AssortmentVersion, StoreError> {
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(during(WRITING))?;
    let current = current(&transaction, &new.name)?;
    let version = assortment::next_version(new, current.as_ref(), expected)?;
    if new.rules.is_none() {
        assortment::ensure_unused(&new.name, users(&transaction, &new.name)?)?;
    }
    write(&transaction, &version, new.codes.into()).map_err(during(WRITING))?;
    if new.rules.is_some() {
        let sql = format!(
            "select count(*), coalesce(sum(codes), 0) from assortment_version where {IS_LIVE}"
        );
        let counts = transaction.query_row(&sql, [], |row| Ok((row.get(0)?, row.get(1)?)));
        let (assortments, codes) = counts.map_err(during(WRITING))?;
        assortment::ensure_limits(assortments, codes)?;
    }
    let change = assortment_change(assortment::live_number(current.as_ref()), &version);
    audit::write(&transaction, &new.context(), vec![change])?;
    transaction.execute(COUNT, []).map_err(during(WRITING))?;
    FailPoint::AssortmentsCounted.pass()?;
    committed(
        transaction.commit(),
        FailPoint::AssortmentsCommitted,
        WRITING,
    )?;
    Ok(version)
}

fn current(transaction: &Transaction<'_>, name: &str) -> Result<Option<Current>, StoreError> {
    let sql = "select number, id, created_at, rules is not null from assortment_version \
               where name = ? and replaced_at is null";
    let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?));
    let found = transaction.query_row(sql, [name], read).optional();
    let Some((number, id, created_at, is_live)) = found.map_err(during(READING))? else {
        return Ok(None);
    };
    Ok(Some(Current {
        number: version_number(number)?,
        id,
        created_at,
        is_live,
    }))
}

/// Returns the prefixes of the keys that use an assortment and aren't revoked.
fn users(transaction: &Transaction<'_>, name: &str) -> Result<Vec<String>, StoreError> {
    let sql = "select prefix from api_key where assortment = ? and revoked_at is null \
               order by created_at, prefix";
    let mut statement = transaction.prepare(sql).map_err(during(READING))?;
    let prefixes = statement.query_map([name], |row| row.get(0));
    prefixes
        .and_then(Iterator::collect)
        .map_err(during(READING))
}

fn write(
    transaction: &Transaction<'_>,
    version: &AssortmentVersion,
    codes: i64,
) -> rusqlite::Result<()> {
    let created_at = version.created_at.as_millisecond();
    transaction.execute(
        "update assortment_version set replaced_at = ?2 where name = ?1 and replaced_at is null",
        (&version.name, created_at),
    )?;
    FailPoint::AssortmentsReplaced.pass()?;
    transaction.execute(
        "insert into assortment_version \
         (name, number, id, created_at, changed_by, note, codes, digest, rules) \
         values (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        params![
            version.name,
            version.number,
            version.id,
            created_at,
            version.by,
            version.note,
            codes,
            assortment::digest(version, codes),
            version.rules,
        ],
    )?;
    FailPoint::AssortmentsWritten.pass()?;
    Ok(())
}

fn accept(connection: &mut Connection, context: &AuditContext) -> Result<(), StoreError> {
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(during(WRITING))?;
    transaction.execute(COUNT, []).map_err(during(WRITING))?;
    let sql =
        "update state set assortments_accepted = max(coalesce(assortments_accepted, 0) + 1, ?)";
    let now = Timestamp::now().as_millisecond();
    transaction.execute(sql, [now]).map_err(during(WRITING))?;
    FailPoint::AssortmentsAccepted.pass()?;
    audit::write(&transaction, context, vec![accepted_assortments()])?;
    committed(
        transaction.commit(),
        FailPoint::AssortmentsCommitted,
        WRITING,
    )
}

/// Calls `visit` with name and number of each version, and with the stored version or the error of reading it.
pub(super) fn each(
    transaction: &Transaction<'_>,
    mut visit: impl FnMut((&str, i64), Result<StoredAssortment, StoreError>),
) -> Result<(), StoreError> {
    let sql = format!(
        "select {VERSION}, replaced_at is null, \
           number = max(number) over (partition by name), codes, digest \
         from assortment_version order by name, number"
    );
    let mut statement = transaction.prepare(&sql).map_err(during(READING))?;
    let mut rows = statement.query([]).map_err(during(READING))?;
    while let Some(row) = rows.next().map_err(during(READING))? {
        let name = row.get_ref(0).map_err(during(READING))?;
        let name = String::from_utf8_lossy(name.as_bytes().unwrap_or_default());
        let number = row.get(1).map_err(during(READING))?;
        visit((&name, number), stored(row));
    }
    Ok(())
}

fn stored(row: &Row<'_>) -> Result<StoredAssortment, StoreError> {
    let version = version(row)?;
    let rest = || {
        Ok(StoredAssortment {
            version,
            is_current: row.get(7)?,
            is_newest: row.get(8)?,
            codes: row.get(9)?,
            digest: row.get(10)?,
        })
    };
    rest().map_err(during(READING))
}
