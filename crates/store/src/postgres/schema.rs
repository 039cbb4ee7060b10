//! Recognising, creating and migrating the schema. `vitrine.schema_version` has the number of migrations that were applied.

use std::path::PathBuf;
use std::time::Duration;

use super::lock::{self, Lock};
use super::session::{Session, get};
use super::{Access, BEGIN, WORK_TIMEOUT};
use crate::fail_point::FailPoint;
use crate::{IfMissing, StoreError};

const OPENING: &str = "opening the store";
const MIGRATING: &str = "migrating the store";

/// All migrations in order.
const MIGRATIONS: &[&str] = &[include_str!("schema.sql")];

/// Maximum time to wait while another process creates or migrates the schema.
const MIGRATION_WAIT: Duration = Duration::from_secs(30);

/// Refuses other programs' schemas and other formats, and creates or migrates the schema if `access` allows it.
pub(super) fn ensure(session: &mut Session, access: Access, place: &str) -> Result<(), StoreError> {
    match (applied(session, place, MIGRATIONS)?, access) {
        (applied, _) if applied == MIGRATIONS.len() => Ok(()),
        (0, Access::ReadOnly | Access::Write(IfMissing::Refuse)) => Err(StoreError::Missing {
            place: place.to_owned(),
        }),
        (applied, Access::ReadOnly) => Err(other_format(place, applied.to_string(), MIGRATIONS)),
        (_, Access::Write(_)) => session.transaction(MIGRATING, BEGIN, |session| {
            migrate(session, place, MIGRATIONS).map(drop)
        }),
    }
}

/// Creates the schema in the open transaction, or fails if there is one.
pub(super) fn create(session: &mut Session, place: &str) -> Result<(), StoreError> {
    match migrate(session, place, MIGRATIONS)? {
        0 => Ok(()),
        _ => Err(StoreError::Exists {
            path: PathBuf::from(place),
        }),
    }
}

/// Applies all missing migrations in the open transaction. Returns the number of those that had been applied before.
fn migrate(session: &mut Session, place: &str, migrations: &[&str]) -> Result<usize, StoreError> {
    lock::take(session, Lock::Migration, MIGRATION_WAIT)?;
    session.set_timeout(WORK_TIMEOUT);
    // Again: another process may have been faster.
    let before = applied(session, place, migrations)?;
    if before == migrations.len() {
        return Ok(before);
    }
    if before == 0 {
        require_utf8(session, place)?;
    }
    // An empty schema was created for Vitrine: its role may not be allowed to create schemas, and even `if not exists`
    // would be refused.
    let sql = "select 1 where to_regnamespace('vitrine') is null";
    if before == 0 && session.row(MIGRATING, sql, &[])?.is_some() {
        session.run(MIGRATING, "create schema vitrine")?;
    }
    for migration in migrations.iter().skip(before) {
        session.run(MIGRATING, migration)?;
    }
    let sql = format!(
        "insert into vitrine.schema_version (version) values ({0}) \
         on conflict (only_row) do update set version = {0}",
        migrations.len()
    );
    session.run(MIGRATING, &sql)?;
    FailPoint::StoreMigrated.pass()?;
    Ok(before)
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

/// Returns the number of migrations that were applied, 0 if the schema is to be created. Refuses other programs' schemas, and
/// stores of other formats.
fn applied(session: &mut Session, place: &str, migrations: &[&str]) -> Result<usize, StoreError> {
    // In one statement: others may be creating it. An empty schema of this name may have been created for Vitrine by an
    // administrator.
    let sql = "select to_regclass('vitrine.schema_version') is not null, \
                  exists (select 1 from pg_catalog.pg_class \
                     where relnamespace = to_regnamespace('vitrine')), \
                  exists (select 1 from pg_catalog.pg_attribute \
                     where attrelid = to_regclass('vitrine.schema_version') and attname = 'oldest_release')";
    let Some(row) = session.row(OPENING, sql, &[])? else {
        return Ok(0);
    };
    let (is_ours, is_used, is_former): (bool, bool, bool) =
        (get(&row, 0)?, get(&row, 1)?, get(&row, 2)?);
    match (is_ours, is_used) {
        (true, _) => {}
        (false, false) => return Ok(0),
        (false, true) => {
            return Err(StoreError::NotAStore {
                place: place.to_owned(),
                reason: "its schema `vitrine` belongs to another program".to_owned(),
            });
        }
    }
    let sql = "select version from vitrine.schema_version";
    let Some(row) = session.row(OPENING, sql, &[])? else {
        return Err(StoreError::Damaged(
            "the version of its schema is missing".to_owned(),
        ));
    };
    let version: i32 = get(&row, 0)?;
    match usize::try_from(version) {
        // Formats from before the first release are called 0.1 to 0.9 here.
        _ if is_former => Err(other_format(place, format!("0.{version}"), migrations)),
        Ok(applied) if (1..=migrations.len()).contains(&applied) => Ok(applied),
        _ => Err(other_format(place, version.to_string(), migrations)),
    }
}

fn other_format(place: &str, found: String, migrations: &[&str]) -> StoreError {
    StoreError::OtherFormat {
        place: place.to_owned(),
        found,
        known: migrations.len(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use super::super::database::Database;
    use super::super::session::Background;
    use super::super::target::Target;
    use super::*;

    /// Returns the columns of each table of a schema.
    fn tables(sql: &str) -> BTreeMap<&str, Vec<&str>> {
        let mut tables = BTreeMap::new();
        for table in sql.split("create table ").skip(1) {
            let (name, rest) = table.split_once(" (\n").unwrap();
            let lines = rest.lines().take_while(|line| !line.starts_with(')'));
            let words = lines.filter_map(|line| line.split_whitespace().next());
            let columns = words.filter(|word| !["--", "primary"].contains(word));
            let name = name.strip_prefix("vitrine.").unwrap_or(name);
            tables.insert(name, columns.collect());
        }
        tables
    }

    #[test]
    fn both_databases_have_the_same_tables_and_columns() {
        let mut sqlite = tables(include_str!("../sqlite/schema.sql"));
        let mut postgres = tables(MIGRATIONS[0]);
        // What differs on purpose: where webhooks and the format are.
        assert!(postgres.remove("schema_version").is_some());
        for tables in [&mut sqlite, &mut postgres] {
            tables.retain(|name, _| !name.starts_with("webhook_"));
        }
        assert_eq!(sqlite, postgres);
    }

    #[test]
    fn second_migration_is_applied_to_a_store_with_data() {
        let Some(database) = Database::create() else {
            return;
        };
        let target = Target::parse(&database.url, None, database.url.clone()).unwrap();
        let background = Arc::new(Background::start().unwrap());
        let mut session = Session::open(&background, &Arc::new(target), WORK_TIMEOUT).unwrap();
        let mut migrate = |migrations: &[&str]| {
            session.transaction(MIGRATING, BEGIN, |session| {
                migrate(session, "here", migrations)
            })
        };
        assert_eq!(migrate(MIGRATIONS).unwrap(), 0);
        let id = database.run("select store_id from vitrine.state");
        let second = "alter table vitrine.state add column colour text not null default 'red'";
        // One that fails changes nothing.
        migrate(&[MIGRATIONS[0], second, "no SQL"]).unwrap_err();
        assert_eq!(migrate(&[MIGRATIONS[0], second]).unwrap(), 1);
        assert_eq!(migrate(&[MIGRATIONS[0], second]).unwrap(), 2);
        let after = database.run("select store_id || ' ' || colour from vitrine.state");
        assert_eq!(after, [format!("{} red", id[0])]);
        let refused = migrate(MIGRATIONS).unwrap_err();
        let is_newer =
            matches!(&refused, StoreError::OtherFormat { found, known: 1, .. } if found == "2");
        assert!(is_newer, "{refused}");
    }
}
