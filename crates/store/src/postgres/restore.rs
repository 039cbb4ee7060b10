//! Moving from SQLite to PostgreSQL: a backup of an SQLite store replaces all data, in one transaction. (PostgreSQL's own
//! tools back up a PostgreSQL store.)

use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use rusqlite::types::ValueRef;
use vitrine_model::revision::Revision;

use super::BEGIN;
use super::NOTIFY;
use super::copy::{Rows, Value};
use super::history;
use super::lock::{self, Lock};
use super::schema;
use super::session::{Session, Typed};
use crate::audit::{AuditContext, Standing, created, log, named, restored};
use crate::db::Tx;
use crate::record::Moment;
use crate::values::random_id;
use crate::webhooks::backup::{read_backup, restore_in};
use crate::{StoreError, assortment, keys, sqlite, texts};

const RESTORING: &str = "restoring the store";

/// Size of a batch, in bytes.
const BATCH_BYTES: usize = 1 << 20;

/// A table: its name in PostgreSQL, what is selected from in SQLite, its columns, and the boolean ones among them.
struct Table {
    sqlite: &'static str,
    postgres: &'static str,
    columns: &'static str,
    booleans: &'static [&'static str],
}

/// Tables that a restore replaces, each after those that it refers to. The state isn't among them.
const TABLES: [Table; 12] = [
    Table {
        sqlite: "revision",
        postgres: "revision",
        columns: "number, id, former_id, created_at, created, changed, retired, unchanged, published_by, note, source_digest",
        booleans: &[],
    },
    Table {
        sqlite: "(select v.*, unpack_document(d.document) as document from product_version v \
                 join product_document d on d.product_version_id = v.id)",
        postgres: "product_version",
        columns: "id, code, from_revision, until_revision, digest, content_start, content_end, discount_multiplier, is_orderable, countries, categories, document",
        booleans: &["is_orderable"],
    },
    Table {
        sqlite: "markdown_text",
        postgres: "markdown_text",
        columns: "digest, markdown, taken_down_at",
        booleans: &[],
    },
    Table {
        sqlite: "product_text",
        postgres: "product_text",
        columns: "product_version_id, name, digest, source_url",
        booleans: &[],
    },
    Table {
        sqlite: "catalog_override",
        postgres: "catalog_override",
        columns: "number, definition, from_at, until_at, created_at, created_by, note, status, ended_at, ended_by, end_note",
        booleans: &[],
    },
    Table {
        sqlite: "(select id, code, from_revision, until_revision, base_digest(code, product) as digest, product \
                 from (select *, base_json(code, document, content_start, content_end, discount_multiplier, \
                    is_orderable, countries, categories, own_texts) as product from base_version))",
        postgres: "base_version",
        columns: "id, code, from_revision, until_revision, digest, product",
        booleans: &[],
    },
    Table {
        sqlite: "base_text",
        postgres: "base_text",
        columns: "base_version_id, digest",
        booleans: &[],
    },
    Table {
        sqlite: "fetched_text",
        postgres: "fetched_text",
        columns: "url, digest, etag, last_modified, fetched_at",
        booleans: &[],
    },
    Table {
        sqlite: "text_change",
        postgres: "text_change",
        columns: "counter, counter_before, digest, is_taken_down, changed_at",
        booleans: &["is_taken_down"],
    },
    Table {
        sqlite: "api_key",
        postgres: "api_key",
        columns: "prefix, label, secret_hash, is_test, api_version, quota_requests, quota_seconds, assortment, created_at, expires_at, revoked_at, rotated_at, digest",
        booleans: &["is_test"],
    },
    Table {
        sqlite: "assortment_version",
        postgres: "assortment_version",
        columns: "name, number, id, created_at, replaced_at, changed_by, note, codes, digest, rules",
        booleans: &[],
    },
    Table {
        sqlite: "api_key_use",
        postgres: "api_key_use",
        columns: "prefix, last_used_at",
        booleans: &[],
    },
];

/// Tables that a restore keeps, and that a new store gets from the backup.
const KEPT: [Table; 3] = [
    Table {
        sqlite: "audit_entry",
        postgres: "audit_entry",
        columns: "number, changed_at, changed_by, note, action, subject_kind, subject, changes, digest, confirmation",
        booleans: &[],
    },
    Table {
        sqlite: "api_key_day",
        postgres: "api_key_day",
        columns: "day, prefix, requests, charged",
        booleans: &[],
    },
    Table {
        sqlite: "operator",
        postgres: "operator",
        columns: "name, role, password, stamp, created_at, digest",
        booleans: &[],
    },
];

/// See [`Store::restore`](crate::Store::restore).
pub(super) fn restore(
    session: &mut Session,
    path: &Path,
    context: &AuditContext,
    lock_wait: Duration,
) -> Result<Option<Revision>, StoreError> {
    let backup = Backup::open(path)?;
    session.transaction(RESTORING, BEGIN, |session| {
        lock::take(session, Lock::Catalog, lock_wait)?;
        lock::take(session, Lock::Keys, lock_wait)?;
        let before = standing(session)?;
        let revision = replace(session, &backup)?;
        session.run(RESTORING, "delete from vitrine.operator_session")?;
        restore_in(
            &mut Tx::postgres(session, RESTORING),
            &read_backup(&backup.connection)?,
        )?;
        let changes = restored(&named(path), &before, &standing(session)?);
        log::write(
            &mut Tx::postgres(session, "writing the audit log"),
            context,
            changes,
        )?;
        Ok(revision)
    })
}

/// See [`StoreAddress::create_from`](crate::StoreAddress::create_from).
pub(super) fn create_from(
    session: &mut Session,
    place: &str,
    path: &Path,
    context: &AuditContext,
) -> Result<Option<Revision>, StoreError> {
    let backup = Backup::open(path)?;
    session.transaction(RESTORING, BEGIN, |session| {
        schema::create(session, place)?;
        let revision = replace(session, &backup)?;
        for table in &KEPT {
            copy(session, &backup, table)?;
        }
        restore_in(
            &mut Tx::postgres(session, RESTORING),
            &read_backup(&backup.connection)?,
        )?;
        let after = standing(session)?;
        log::write(
            &mut Tx::postgres(session, "writing the audit log"),
            context,
            created(&named(path), &after),
        )?;
        Ok(revision)
    })
}

fn standing(session: &mut Session) -> Result<Standing, StoreError> {
    log::standing(&mut Tx::postgres(session, RESTORING))
}

/// A checked copy of a backup.
struct Backup {
    connection: rusqlite::Connection,
    /// Temporary directory of the copy, removed when this is dropped.
    _directory: tempfile::TempDir,
}

impl Backup {
    fn open(path: &Path) -> Result<Self, StoreError> {
        let directory = tempfile::tempdir().map_err(|source| StoreError::File {
            doing: "create",
            path: std::env::temp_dir(),
            source,
        })?;
        let copy = directory.path().join("copy.db");
        Ok(Self {
            connection: sqlite::checked_copy(path, &copy)?,
            _directory: directory,
        })
    }

    /// Calls `take` with the values of each row of a table.
    fn each_row(
        &self,
        table: &Table,
        mut take: impl FnMut(&[Value<'_>]) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let failed = |source: rusqlite::Error| StoreError::Database {
            doing: RESTORING,
            source: source.into(),
        };
        let names: Vec<&str> = table.columns.split(", ").collect();
        let sql = format!("select {} from {}", table.columns, table.sqlite);
        let mut statement = self.connection.prepare(&sql).map_err(failed)?;
        let mut rows = statement.query([]).map_err(failed)?;
        while let Some(row) = rows.next().map_err(failed)? {
            let mut values = Vec::with_capacity(names.len());
            for (column, name) in names.iter().enumerate() {
                values.push(match row.get_ref(column).map_err(failed)? {
                    ValueRef::Null => Value::Null,
                    ValueRef::Integer(number) if table.booleans.contains(name) => {
                        Value::Bool(number != 0)
                    }
                    ValueRef::Integer(number) => Value::Number(number),
                    ValueRef::Blob(bytes) => Value::Bytes(bytes),
                    // PostgreSQL refuses invalid UTF-8.
                    ValueRef::Text(text) => Value::Bytes(text),
                    ValueRef::Real(_) => {
                        return Err(StoreError::Damaged(format!("a fraction in column {name}")));
                    }
                });
            }
            take(&values)?;
        }
        Ok(())
    }
}

/// Replaces all rows with the backup's. The id of the store stays, and so do revocations and rotations of keys and texts
/// taken down: a restore mustn't undo these. The live revision gets an id that no server has seen, and keeps its former id
/// beside it.
fn replace(session: &mut Session, backup: &Backup) -> Result<Option<Revision>, StoreError> {
    // Servers that record the use of keys fail and retry later: a use recorded meanwhile would fail the copy.
    let sql = "lock table vitrine.api_key_use in share row exclusive mode";
    session.run(RESTORING, sql)?;
    session.run(
        RESTORING,
        "create temp table kept_key on commit drop as \
            select prefix, expires_at, revoked_at, rotated_at from vitrine.api_key; \
         create temp table taken_down on commit drop as \
            select * from vitrine.markdown_text where taken_down_at is not null; \
         update vitrine.state set revision_number = null, revision_id = null, oldest_readable = null",
    )?;
    for table in TABLES.iter().rev() {
        session.run(
            RESTORING,
            &format!("delete from vitrine.{}", table.postgres),
        )?;
    }
    for table in &TABLES {
        copy(session, backup, table)?;
    }
    let sql = "select revision_number, oldest_readable, texts_counter from state";
    let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
    let state: rusqlite::Result<(Option<i64>, Option<i64>, i64)> =
        backup.connection.query_row(sql, [], read);
    let (live, oldest, texts) = state.map_err(|source| StoreError::Database {
        doing: RESTORING,
        source: source.into(),
    })?;
    let id = live.map(|_| random_id()).transpose()?;
    let sql = "update vitrine.revision set former_id = id, id = $2 where number = $1";
    session.execute(RESTORING, sql, &[live.param(), id.param()])?;
    let sql = "update vitrine.state set revision_number = $1, revision_id = $2, \
               oldest_readable = $3";
    session.execute(RESTORING, sql, &[live.param(), id.param(), oldest.param()])?;
    record_texts(session, texts)?;
    keys::count(&mut Tx::postgres(session, RESTORING))?;
    assortment::accept(&mut Tx::postgres(session, RESTORING))?;
    let sql = "update vitrine.api_key k set revoked_at = coalesce(k.revoked_at, kept.revoked_at), \
                  rotated_at = coalesce(kept.rotated_at, k.rotated_at), \
                  expires_at = least(k.expires_at, kept.expires_at) \
               from kept_key kept where kept.prefix = k.prefix";
    session.run(RESTORING, sql)?;
    session.run(
        RESTORING,
        "insert into vitrine.markdown_text as x (digest, markdown, taken_down_at) \
            select digest, markdown, taken_down_at from taken_down \
            on conflict (digest) do update \
            set taken_down_at = coalesce(x.taken_down_at, excluded.taken_down_at)",
    )?;
    keys::renew_digests(&mut Tx::postgres(session, RESTORING))?;
    session.run(RESTORING, NOTIFY)?;
    history::revision(session, Moment::Live)
}

/// Steps the counter of texts from that of the backup, and records which texts the restore keeps taken down. Call it before
/// their status is set.
fn record_texts(session: &mut Session, before: i64) -> Result<(), StoreError> {
    let now = Timestamp::now().as_millisecond();
    let counter = texts::count(&mut Tx::postgres(session, RESTORING), before)?;
    let row = [counter.param(), before.param(), now.param()];
    let sql = "insert into vitrine.text_change \
               (counter, counter_before, digest, is_taken_down, changed_at) \
               select $1, $2, x.digest, true, $3 from taken_down \
               join vitrine.markdown_text x on x.digest = taken_down.digest \
               where x.taken_down_at is null";
    if session.execute(RESTORING, sql, &row)? == 0 {
        let sql = "insert into vitrine.text_change \
                   (counter, counter_before, digest, is_taken_down, changed_at) \
                   values ($1, $2, '', false, $3)";
        session.execute(RESTORING, sql, &row)?;
    }
    Ok(())
}

fn copy(session: &mut Session, backup: &Backup, table: &Table) -> Result<(), StoreError> {
    let sql = format!(
        "copy vitrine.{} ({}) from stdin (format binary)",
        table.postgres, table.columns
    );
    let mut rows = Rows::default();
    backup.each_row(table, |values| {
        rows.push(values);
        match rows.len_bytes() > BATCH_BYTES {
            true => session.copy_in(RESTORING, &sql, rows.take()),
            false => Ok(()),
        }
    })?;
    match rows.is_empty() {
        true => Ok(()),
        false => session.copy_in(RESTORING, &sql, rows.take()),
    }
}
