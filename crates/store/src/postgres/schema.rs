//! How a database is recognised, and how its schema is made and brought up to date.
//!
//! Two releases run side by side on one database: see docs/decisions/0007-two-releases-on-one-database.md.

use std::time::Duration;

use super::keys;
use super::lock::{self, Lock};
use super::session::{Session, get};
use super::{Access, BEGIN, READING, WORKING};
use crate::fail_point::FailPoint;
use crate::{IfMissing, StoreError};

const OPENING: &str = "opening the store";
const MIGRATING: &str = "migrating the store";

/// Every migration in order, each with the oldest release, told by the newest schema that it knows, that can still
/// work with what it leaves.
const MIGRATIONS: [(&str, i32); 2] = [
    (include_str!("migrations/0001.sql"), 1),
    (include_str!("migrations/0002.sql"), 1),
];

/// The newest schema that this release knows.
const KNOWN: i32 = MIGRATIONS.len() as i32;

/// How long another process may take to make or migrate the schema, before it isn't waited for any longer.
const PATIENCE: Duration = Duration::from_secs(30);

/// Refuses what is no store of ours, and makes or migrates one where `access` allows it.
pub(super) fn ensure(session: &mut Session, access: Access, place: &str) -> Result<(), StoreError> {
    let found = found(session, place)?;
    match (found, access) {
        (Some(found), _) if found >= KNOWN => Ok(()),
        (Some(found), Access::ReadOnly) => Err(StoreError::OlderSchema {
            place: place.to_owned(),
            found: found.unsigned_abs(),
            known: KNOWN.unsigned_abs(),
        }),
        (None, Access::ReadOnly | Access::Write(IfMissing::Refuse)) => Err(StoreError::Missing {
            place: place.to_owned(),
        }),
        (_, Access::Write(_)) => session.transaction(MIGRATING, BEGIN, |session| {
            migrate(session, place).map(drop)
        }),
    }
}

/// Makes or migrates the schema in the transaction that is open. Returns whether it was there.
pub(super) fn migrate(session: &mut Session, place: &str) -> Result<bool, StoreError> {
    session.within(PATIENCE + READING);
    lock::take(session, Lock::Migration, PATIENCE)?;
    session.within(WORKING);
    // Looked at again: another process may have been faster.
    let found = found(session, place)?;
    // Where it stands empty, it was made for us: who may write there may perhaps make no schemas, and even
    // `if not exists` would be refused.
    let sql = "select 1 where to_regnamespace('vitrine') is null";
    if found.is_none() && session.row(MIGRATING, sql, &[])?.is_some() {
        session.run(MIGRATING, "create schema vitrine")?;
    }
    let had = found.unwrap_or_default();
    for (migration, _) in MIGRATIONS.iter().skip(had.unsigned_abs() as usize) {
        session.run(MIGRATING, migration)?;
    }
    if had < KNOWN {
        keys::write_digests(session)?;
        let oldest = MIGRATIONS.last().map_or(KNOWN, |(_, oldest)| *oldest);
        let sql = format!(
            "delete from vitrine.schema_version; \
             insert into vitrine.schema_version (version, oldest_release) values ({KNOWN}, {oldest})"
        );
        session.run(MIGRATING, &sql)?;
    }
    FailPoint::StoreMigrated.pass()?;
    Ok(found.is_some())
}

/// The schema that the database has; none where it is to be made. What this release can't work with is refused.
fn found(session: &mut Session, place: &str) -> Result<Option<i32>, StoreError> {
    // As of one statement: others may be making it. A schema of this name that holds nothing may have been made
    // for us, by whoever may make schemas here.
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
                reason: "its schema `vitrine` is another program's".to_owned(),
            }),
        };
    }
    let sql = "select version, oldest_release from vitrine.schema_version";
    let Some(row) = session.row(OPENING, sql, &[])? else {
        return Err(StoreError::Damaged("its schema has no version".to_owned()));
    };
    let (version, oldest): (i32, i32) = (get(&row, 0)?, get(&row, 1)?);
    if oldest > KNOWN {
        return Err(StoreError::NewerSchema {
            place: place.to_owned(),
            found: version.unsigned_abs(),
            known: KNOWN.unsigned_abs(),
        });
    }
    Ok(Some(version))
}
