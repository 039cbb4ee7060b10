//! Recognising, creating and migrating the schema.
//!
//! A migration only adds what the release before ignores, so that two releases share a database during an upgrade.
//! `vitrine.schema_version` has the schema's number and the oldest release that can use it.

use std::time::Duration;

use super::keys;
use super::lock::{self, Lock};
use super::session::{Session, get};
use super::{Access, BEGIN, WORK_TIMEOUT};
use crate::fail_point::FailPoint;
use crate::{IfMissing, StoreError};

const OPENING: &str = "opening the store";
const MIGRATING: &str = "migrating the store";

/// All migrations in order, each with the oldest release that still works after it, named by the newest schema that the
/// release supports.
const MIGRATIONS: [(&str, i32); 9] = [
    (include_str!("migrations/0001.sql"), 1),
    (include_str!("migrations/0002.sql"), 1),
    (include_str!("migrations/0003.sql"), 1),
    (include_str!("migrations/0004.sql"), 1),
    (include_str!("migrations/0005.sql"), 1),
    (include_str!("migrations/0006.sql"), 1),
    (include_str!("migrations/0007.sql"), 1),
    (include_str!("migrations/0008.sql"), 1),
    (include_str!("migrations/0009.sql"), 1),
];

/// Schema that added digests to keys. Later migrations mustn't write them: a digest that doesn't match is a finding.
const KEY_DIGESTS: i32 = 2;

/// Newest schema that this release supports.
pub(super) const SCHEMA: i32 = MIGRATIONS.len() as i32;

/// Maximum time to wait while another process creates or migrates the schema.
const MIGRATION_WAIT: Duration = Duration::from_secs(30);

/// Refuses other programs' schemas, and creates or migrates the schema if `access` allows it.
pub(super) fn ensure(session: &mut Session, access: Access, place: &str) -> Result<(), StoreError> {
    let found = found(session, place)?;
    match (found, access) {
        (Some(found), _) if found >= SCHEMA => Ok(()),
        (Some(found), Access::ReadOnly) => Err(StoreError::OlderSchema {
            place: place.to_owned(),
            found: found.unsigned_abs(),
            known: SCHEMA.unsigned_abs(),
        }),
        (None, Access::ReadOnly | Access::Write(IfMissing::Refuse)) => Err(StoreError::Missing {
            place: place.to_owned(),
        }),
        (_, Access::Write(_)) => session.transaction(MIGRATING, BEGIN, |session| {
            migrate(session, place).map(drop)
        }),
    }
}

/// Creates or migrates the schema in the open transaction. Returns whether it existed.
pub(super) fn migrate(session: &mut Session, place: &str) -> Result<bool, StoreError> {
    lock::take(session, Lock::Migration, MIGRATION_WAIT)?;
    session.set_timeout(WORK_TIMEOUT);
    // Again: another process may have been faster.
    let found = found(session, place)?;
    if found.is_none() {
        require_utf8(session, place)?;
    }
    // An empty schema was created for Vitrine: its role may not be allowed to create schemas, and even `if not exists`
    // would be refused.
    let sql = "select 1 where to_regnamespace('vitrine') is null";
    if found.is_none() && session.row(MIGRATING, sql, &[])?.is_some() {
        session.run(MIGRATING, "create schema vitrine")?;
    }
    let had = found.unwrap_or_default();
    for (migration, _) in MIGRATIONS.iter().skip(had.unsigned_abs() as usize) {
        session.run(MIGRATING, migration)?;
    }
    if had < KEY_DIGESTS {
        keys::write_digests(session)?;
    }
    if had < SCHEMA {
        let oldest = MIGRATIONS.last().map_or(SCHEMA, |(_, oldest)| *oldest);
        let sql = format!(
            "delete from vitrine.schema_version; \
             insert into vitrine.schema_version (version, oldest_release) values ({SCHEMA}, {oldest})"
        );
        session.run(MIGRATING, &sql)?;
    }
    FailPoint::StoreMigrated.pass()?;
    Ok(found.is_some())
}

/// Refuses a database that can't store all texts.
fn require_utf8(session: &mut Session, place: &str) -> Result<(), StoreError> {
    let sql = "select pg_encoding_to_char(encoding) from pg_catalog.pg_database \
               where datname = current_database()";
    let row = session.row(MIGRATING, sql, &[])?;
    let encoding: &str = row.as_ref().map_or(Ok("UTF8"), |row| get(row, 0))?;
    match encoding {
        "UTF8" => Ok(()),
        encoding => Err(StoreError::WrongAddress {
            place: place.to_owned(),
            reason: format!(
                "the database's encoding is {encoding}; create one with UTF8: `createdb --encoding=UTF8 --template=template0 NAME`"
            ),
        }),
    }
}

/// Returns the version of the database's schema; none if it is to be created. Refuses schemas that this release doesn't
/// support.
fn found(session: &mut Session, place: &str) -> Result<Option<i32>, StoreError> {
    // In one statement: others may be creating it. An empty schema of this name may have been created for Vitrine by an
    // administrator.
    let sql = "select to_regclass('vitrine.schema_version') is not null, \
               exists (select 1 from pg_catalog.pg_class \
                  where relnamespace = to_regnamespace('vitrine'))";
    let Some(row) = session.row(OPENING, sql, &[])? else {
        return Ok(None);
    };
    let (is_ours, is_used): (bool, bool) = (get(&row, 0)?, get(&row, 1)?);
    if !is_ours {
        return match is_used {
            false => Ok(None),
            true => Err(StoreError::NotAStore {
                place: place.to_owned(),
                reason: "its schema `vitrine` belongs to another program".to_owned(),
            }),
        };
    }
    let sql = "select version, oldest_release from vitrine.schema_version";
    let Some(row) = session.row(OPENING, sql, &[])? else {
        return Err(StoreError::Damaged(
            "the version of its schema is missing".to_owned(),
        ));
    };
    let (version, oldest): (i32, i32) = (get(&row, 0)?, get(&row, 1)?);
    if oldest > SCHEMA {
        return Err(StoreError::NewerSchema {
            place: place.to_owned(),
            found: version.unsigned_abs(),
            known: SCHEMA.unsigned_abs(),
        });
    }
    Ok(Some(version))
}
