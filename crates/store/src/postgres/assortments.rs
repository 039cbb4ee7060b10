//! Assortments: reading them, alone or together with the keys, and writing their versions.

use std::time::Duration;

use jiff::Timestamp;
use tokio_postgres::Row;

use super::lock::{self, Lock};
use super::session::{Param, Session, Typed, count, get};
use super::texts::NOTIFY;
use super::{BEGIN, PostgresStore, READ_TIMEOUT, audit, keys};
use crate::StoreError;
use crate::assortment::{
    self, AssortmentStore, AssortmentVersion, Current, LiveAssortments, NewAssortment,
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

/// Increments the counter of assortments by a random step, as [`keys::COUNT_KEYS`] does that of keys.
const COUNT: &str = "update vitrine.state \
    set assortments_counter = assortments_counter + 1 + floor(random() * 4294967296)::bigint";

/// Accepts the assortments at the time $1, or later if that isn't later than before.
const ACCEPT: &str = "update vitrine.state \
    set assortments_accepted = greatest(coalesce(assortments_accepted, 0) + 1, $1)";

impl AssortmentStore for PostgresStore {
    fn read_assortments(&self, known: &[(String, String)]) -> Result<LiveAssortments, StoreError> {
        self.read(READING, READ_TIMEOUT, |session| read(session, known))
    }

    fn assortments(&self) -> Result<Vec<AssortmentVersion>, StoreError> {
        let rest = format!("{IS_LIVE} order by name");
        self.read(READING, READ_TIMEOUT, |session| {
            versions(session, &rest, &[])
        })
    }

    fn assortment_versions(
        &self,
        name: &str,
        limit: u32,
    ) -> Result<Vec<AssortmentVersion>, StoreError> {
        let rest = "name = $1 order by number desc limit $2";
        self.read(READING, READ_TIMEOUT, |session| {
            versions(session, rest, &[name.param(), i64::from(limit).param()])
        })
    }

    fn assortment_history(
        &self,
        since: Timestamp,
        limit: u32,
    ) -> Result<Vec<AssortmentVersion>, StoreError> {
        let rest = "replaced_at is null or replaced_at >= $1 \
                    order by created_at desc, name, number desc limit $2";
        let params = (since.as_millisecond(), i64::from(limit));
        self.read(READING, READ_TIMEOUT, |session| {
            versions(session, rest, &[params.0.param(), params.1.param()])
        })
    }

    fn set_assortment(
        &self,
        new: &NewAssortment,
        expected: Option<&str>,
    ) -> Result<AssortmentVersion, StoreError> {
        set(&mut self.writer()?, new, expected, self.lock_wait)
    }

    fn accept_assortments(&self, context: &AuditContext) -> Result<(), StoreError> {
        self.writer()?.transaction(WRITING, BEGIN, |session| {
            lock::take(session, Lock::Keys, self.lock_wait)?;
            accept(session)?;
            audit::write(session, context, vec![accepted_assortments()])?;
            session.run(WRITING, NOTIFY)
        })
    }
}

fn read(session: &mut Session, known: &[(String, String)]) -> Result<LiveAssortments, StoreError> {
    let sql =
        format!("select name, id from vitrine.assortment_version where {IS_LIVE} order by name");
    let mut names = Vec::new();
    session.each_row(READING, &sql, &[], |row| {
        names.push((get(row, 0)?, get(row, 1)?));
        Ok(())
    })?;
    let (state, keys) = keys::read(session)?;
    let unknown = assortment::unknown_ids(&names, known);
    let changed = match unknown.is_empty() {
        true => Vec::new(),
        false => versions(session, "id = any($1) order by name", &[unknown.param()])?,
    };
    Ok(LiveAssortments {
        state,
        keys,
        names,
        changed,
    })
}

/// Returns the versions that a condition selects, followed by what else a query may have.
fn versions(
    session: &mut Session,
    rest: &str,
    params: &[Param<'_>],
) -> Result<Vec<AssortmentVersion>, StoreError> {
    let sql = format!("select {VERSION} from vitrine.assortment_version where {rest}");
    let mut versions = Vec::new();
    session.each_row(READING, &sql, params, |row| {
        versions.push(version(row)?);
        Ok(())
    })?;
    Ok(versions)
}

fn version(row: &Row) -> Result<AssortmentVersion, StoreError> {
    Ok(AssortmentVersion {
        name: get(row, 0)?,
        number: version_number(get(row, 1)?)?,
        id: get(row, 2)?,
        created_at: from_millis(get(row, 3)?)?,
        by: get(row, 4)?,
        note: get(row, 5)?,
        rules: get(row, 6)?,
    })
}

/// Returns whether there is a live assortment of this name.
pub(super) fn is_live(session: &mut Session, name: &str) -> Result<bool, StoreError> {
    let sql = format!("select 1 from vitrine.assortment_version where name = $1 and {IS_LIVE}");
    Ok(session.row(READING, &sql, &[name.param()])?.is_some())
}

fn set(
    session: &mut Session,
    new: &NewAssortment,
    expected: Option<&str>,
    lock_wait: Duration,
) -> Result<AssortmentVersion, StoreError> {
    session.transaction(WRITING, BEGIN, |session| {
        // The keys must go on naming live assortments.
        lock::take(session, Lock::Keys, lock_wait)?;
        let current = current(session, &new.name)?;
        let version = assortment::next_version(new, current.as_ref(), expected)?;
        if new.rules.is_none() {
            assortment::ensure_unused(&new.name, users(session, &new.name)?)?;
        }
        write(session, &version, new.codes.into())?;
        if new.rules.is_some() {
            ensure_limits(session)?;
        }
        let change = assortment_change(assortment::live_number(current.as_ref()), &version);
        audit::write(session, &new.context(), vec![change])?;
        session.run(WRITING, COUNT)?;
        FailPoint::AssortmentsCounted.pass()?;
        session.run(WRITING, NOTIFY)?;
        Ok(version)
    })
}

fn current(session: &mut Session, name: &str) -> Result<Option<Current>, StoreError> {
    let sql = "select number, id, created_at, rules is not null from vitrine.assortment_version \
               where name = $1 and replaced_at is null";
    let Some(row) = session.row(WRITING, sql, &[name.param()])? else {
        return Ok(None);
    };
    Ok(Some(Current {
        number: version_number(get(&row, 0)?)?,
        id: get(&row, 1)?,
        created_at: get(&row, 2)?,
        is_live: get(&row, 3)?,
    }))
}

/// Returns the prefixes of the keys that use an assortment and aren't revoked.
fn users(session: &mut Session, name: &str) -> Result<Vec<String>, StoreError> {
    let sql = "select prefix from vitrine.api_key \
               where assortment = $1 and revoked_at is null order by created_at, prefix";
    let rows = session.rows(WRITING, sql, &[name.param()])?;
    rows.iter().map(|row| get(row, 0)).collect()
}

fn write(session: &mut Session, version: &AssortmentVersion, codes: i64) -> Result<(), StoreError> {
    let created_at = version.created_at.as_millisecond();
    let sql = "update vitrine.assortment_version set replaced_at = $2 \
               where name = $1 and replaced_at is null";
    session.execute(WRITING, sql, &[version.name.param(), created_at.param()])?;
    FailPoint::AssortmentsReplaced.pass()?;
    let sql = "insert into vitrine.assortment_version \
               (name, number, id, created_at, changed_by, note, codes, digest, rules) \
               values ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
    let number = i64::from(version.number);
    let digest = assortment::digest(version, codes);
    let digest = digest.as_slice();
    let values = [
        version.name.param(),
        number.param(),
        version.id.param(),
        created_at.param(),
        version.by.param(),
        version.note.param(),
        codes.param(),
        digest.param(),
        version.rules.param(),
    ];
    session.execute(WRITING, sql, &values)?;
    FailPoint::AssortmentsWritten.pass()?;
    Ok(())
}

fn ensure_limits(session: &mut Session) -> Result<(), StoreError> {
    let sql = format!(
        "select count(*), coalesce(sum(codes), 0)::bigint from vitrine.assortment_version \
         where {IS_LIVE}"
    );
    match session.row(WRITING, &sql, &[])? {
        Some(row) => assortment::ensure_limits(count(&row, 0)?, count(&row, 1)?),
        None => Ok(()),
    }
}

/// Steps the counter of assortments, and accepts them as they are.
pub(super) fn accept(session: &mut Session) -> Result<(), StoreError> {
    session.run(WRITING, COUNT)?;
    let now = Timestamp::now().as_millisecond();
    session.execute(WRITING, ACCEPT, &[now.param()])?;
    FailPoint::AssortmentsAccepted.pass()?;
    Ok(())
}

/// Calls `visit` with name and number of each version, and with the stored version or the error of reading it.
pub(super) fn each(
    session: &mut Session,
    mut visit: impl FnMut((&str, i64), Result<StoredAssortment, StoreError>),
) -> Result<(), StoreError> {
    let sql = format!(
        "select {VERSION}, replaced_at is null, \
           number = max(number) over (partition by name), codes, digest \
         from vitrine.assortment_version order by name, number"
    );
    session.each_row(READING, &sql, &[], |row| {
        visit((get(row, 0)?, get(row, 1)?), stored(row));
        Ok(())
    })
}

fn stored(row: &Row) -> Result<StoredAssortment, StoreError> {
    Ok(StoredAssortment {
        version: version(row)?,
        is_current: get(row, 7)?,
        is_newest: get(row, 8)?,
        codes: get(row, 9)?,
        digest: get::<&[u8]>(row, 10)?.to_vec(),
    })
}
