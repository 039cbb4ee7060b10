//! Restoring a backup: it replaces catalog, history, texts, keys and assortments, in one transaction. (PostgreSQL's own tools
//! back up a PostgreSQL store; a backup of an SQLite store moves into it.)

use std::path::Path;

use jiff::Timestamp;
use rusqlite::types::ValueRef;
use vitrine_model::revision::Revision;

use crate::audit::{self, AuditContext, created, restored};
use crate::db::{Db, References, Tx, Value, values};
use crate::fail_point::FailPoint;
use crate::postgres::Lock;
use crate::record::Moment;
use crate::sqlite::{VerifiedCopy, during};
use crate::values::{KeyRow, random_id};
use crate::webhooks::place::{pause, read_backup, restore_file, restore_in};
use crate::{StoreError, assortment, keys, moments, texts};

const RESTORING: &str = "restoring the store";

/// Tables that a restore replaces, each after those that it refers to. The state isn't among them.
const TABLES: [&str; 11] = [
    "revision",
    "product_version",
    "product_document",
    "markdown_text",
    "product_text",
    "catalog_override",
    "product_base",
    "fetched_text",
    "text_change",
    "api_key",
    "assortment_version",
];

/// Tables that a restore keeps, and that a new store gets from the backup.
const KEPT: [&str; 3] = ["audit_entry", "api_key_day", "operator"];

impl crate::Store {
    /// Replaces catalog, history, texts, keys and assortments with those of a backup, in one transaction, so that servers
    /// see the old state or the new one. The live revision gets a new id, by which servers notice; the store keeps its own
    /// id. Keys that were revoked or rotated here and texts that were taken down stay so. The restored assortments count as
    /// accepted; see [`plan_restore`](Self::plan_restore). The audit log, the days of keys and the operators stay; the
    /// log gets an entry for the restore, and for each key and text that it changes. All sessions of operators end. Returns the
    /// live revision.
    ///
    /// # Errors
    ///
    /// If the file is no store, has another format or fails [`check`](Self::check), or the store can't be
    /// written. Nothing was changed then.
    pub fn restore(
        &self,
        path: &Path,
        context: &AuditContext,
    ) -> Result<Option<Revision>, StoreError> {
        let db = self.db();
        let backup = match db {
            Db::Sqlite(store) => VerifiedCopy::beside(&store.path, path)?,
            Db::Postgres(_) => VerifiedCopy::temporary(path)?,
        };
        let endpoints = read_backup(&backup.connection)?;
        db.begin_write(
            Lock::Everything,
            References::Trusted,
            RESTORING,
            |mut writer| {
                FailPoint::RestoreBegun.pass()?;
                let tx = &mut writer.tx();
                let before = audit::standing(tx)?;
                let revision = replace(tx, &backup)?;
                tx.execute("delete from vitrine.operator_session", &[])?;
                let changes = restored(path, &before, &audit::standing(tx)?);
                audit::write(tx, context, changes)?;
                tx.notify()?;
                let Db::Sqlite(store) = db else {
                    restore_in(tx, &endpoints)?;
                    writer.commit(FailPoint::RestoreCommitted)?;
                    return Ok(revision);
                };
                // First: after a crash in between, those that are replaced below notify nobody of the restored catalog.
                let store_id: String = tx.value("select store_id from vitrine.state", &[])?;
                pause(&store.path, &store_id)?;
                writer.commit(FailPoint::RestoreCommitted)?;
                restore_file(&store.path, &store_id, &endpoints)?;
                Ok(revision)
            },
        )
    }
}

/// Fills a new store from a backup, whose audit log, days of keys and operators it gets, too.
pub(crate) fn fill(
    tx: &mut Tx<'_>,
    backup: &VerifiedCopy,
    path: &Path,
    context: &AuditContext,
) -> Result<Option<Revision>, StoreError> {
    let revision = replace(tx, backup)?;
    for table in &KEPT {
        copy(tx, backup, table)?;
    }
    let after = audit::standing(tx)?;
    audit::write(tx, context, created(path, &after))?;
    tx.notify()?;
    Ok(revision)
}

/// Replaces all rows with the backup's. The id of the store stays, and so do revocations and rotations of keys and texts
/// taken down: a restore mustn't undo these. The live revision gets an id that no server has seen, and keeps its former id
/// beside it.
fn replace(tx: &mut Tx<'_>, backup: &VerifiedCopy) -> Result<Option<Revision>, StoreError> {
    // Those with unreadable values can't be kept.
    let kept: Vec<KeyRow> = (keys::rows(tx)?.into_iter())
        .filter_map(|(_, row)| row.ok())
        .collect();
    let sql = "select digest, markdown, taken_down_at from vitrine.markdown_text \
               where taken_down_at is not null";
    let taken_down: Vec<TakenDown> =
        tx.rows(sql, &[], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    tx.execute(
        "update vitrine.state set revision_number = null, revision_id = null, oldest_readable = null",
        &[],
    )?;
    for table in TABLES.iter().rev() {
        tx.execute(&format!("delete from vitrine.{table} /*scan*/"), &[])?;
    }
    for table in &TABLES {
        copy(tx, backup, table)?;
        FailPoint::RestoreTableReplaced.pass()?;
    }
    copy_last_uses(tx, backup)?;
    let sql = "select revision_number, oldest_readable, texts_counter from vitrine.state";
    let from = &mut Tx::sqlite(&backup.connection, RESTORING);
    let state = from.row(sql, &[], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let (live, oldest, texts): (Option<i64>, Option<i64>, i64) = state.unwrap_or_default();
    let id = live.map(|_| random_id()).transpose()?;
    let sql = "update vitrine.revision set former_id = id, id = $2 where number = $1";
    tx.execute(sql, values![live, &id])?;
    let sql = "update vitrine.state set revision_number = $1, revision_id = $2, \
               oldest_readable = $3";
    tx.execute(sql, values![live, &id, oldest])?;
    FailPoint::RestoreIdGiven.pass()?;
    keep_texts_down(tx, &taken_down, texts)?;
    keys::count(tx)?;
    assortment::accept(tx)?;
    keep_keys(tx, &kept)?;
    keys::renew_digests(tx)?;
    FailPoint::RestoreReplaced.pass()?;
    moments::revision(tx, Moment::Live)
}

/// Keeps revocations and rotations, and the earlier end of two.
fn keep_keys(tx: &mut Tx<'_>, kept: &[KeyRow]) -> Result<(), StoreError> {
    let sql = "update vitrine.api_key set revoked_at = coalesce(revoked_at, $3), \
                  rotated_at = coalesce($4, rotated_at), \
                  expires_at = case when $2 < expires_at then $2 else coalesce(expires_at, $2) end \
               where prefix = $1";
    let values = kept
        .iter()
        .map(|key| values![&key.prefix, key.expires_at, key.revoked_at, key.rotated_at].to_vec());
    tx.execute_each(sql, &values.collect::<Vec<_>>()).map(drop)
}

/// A text that stays taken down: its digest, its Markdown and the time.
type TakenDown = (Vec<u8>, Vec<u8>, i64);

/// Takes texts down again. To the texts the restore is one step, from the counter of the backup's texts.
fn keep_texts_down(tx: &mut Tx<'_>, all: &[TakenDown], before: i64) -> Result<(), StoreError> {
    let (now, counter) = (Timestamp::now().as_millisecond(), texts::count(tx, before)?);
    let step = "insert into vitrine.text_change \
                (counter, counter_before, digest, is_taken_down, changed_at)";
    let mut is_recorded = false;
    for (digest, markdown, at) in all {
        let sql = format!(
            "{step} select $1, $2, digest, true, $3 from vitrine.markdown_text \
             where digest = $4 and taken_down_at is null"
        );
        is_recorded |= tx.execute(&sql, values![counter, before, now, digest])? > 0;
        let sql = "insert into vitrine.markdown_text as x (digest, markdown, taken_down_at) \
                   values ($1, $2, $3) on conflict (digest) do update \
                   set taken_down_at = coalesce(x.taken_down_at, excluded.taken_down_at)";
        tx.execute(sql, values![digest, markdown, *at])?;
    }
    if !is_recorded {
        // A step that changed no text.
        let sql = format!("{step} values ($1, $2, $4, false, $3)");
        tx.execute(&sql, values![counter, before, now, &[][..] as &[u8]])?;
    }
    Ok(())
}

/// Copies the last uses of keys, which servers may be recording, and deletes those of keys that are gone.
fn copy_last_uses(tx: &mut Tx<'_>, backup: &VerifiedCopy) -> Result<(), StoreError> {
    let from = &mut Tx::sqlite(&backup.connection, RESTORING);
    let sql = "select prefix, last_used_at from vitrine.api_key_use /*scan*/ order by prefix";
    let uses: Vec<(String, i64)> = from.rows(sql, &[], |row| Ok((row.get(0)?, row.get(1)?)))?;
    keys::write_uses(tx, &uses)?;
    let sql = "delete from vitrine.api_key_use /*scan*/ \
               where prefix not in (select prefix from vitrine.api_key)";
    tx.execute(sql, &[]).map(drop)
}

/// Copies the rows of a table, which has the same columns in both databases.
fn copy(tx: &mut Tx<'_>, backup: &VerifiedCopy, table: &str) -> Result<(), StoreError> {
    let failed = during(RESTORING);
    let sql = format!("select * from {table}");
    let mut statement = backup.connection.prepare(&sql).map_err(&failed)?;
    let columns: Vec<&str> = statement.column_names().collect();
    let columns = columns.join(", ");
    let is_name = |byte: u8| byte.is_ascii_lowercase() || b"_, ".contains(&byte);
    if !columns.bytes().all(is_name) {
        return Err(StoreError::Damaged(format!("an unknown column of {table}")));
    }
    let is_boolean: Vec<bool> = columns
        .split(", ")
        .map(|name| name.starts_with("is_"))
        .collect();
    let mut rows = statement.query([]).map_err(&failed)?;
    let into = format!("vitrine.{table} ({columns})");
    tx.insert_rows(&into, |insert| {
        while let Some(row) = rows.next().map_err(&failed)? {
            let values = is_boolean.iter().enumerate().map(|(index, is_boolean)| {
                let damaged = |what| StoreError::Damaged(format!("{what} in {table}"));
                Ok(match row.get_ref(index).map_err(&failed)? {
                    ValueRef::Null => Value::Text(None),
                    // SQLite has numbers for booleans, whose names begin like this.
                    ValueRef::Integer(number) if *is_boolean => (number != 0).into(),
                    ValueRef::Integer(number) => number.into(),
                    ValueRef::Blob(bytes) => bytes.into(),
                    ValueRef::Text(text) => std::str::from_utf8(text)
                        .map_err(|_| damaged("a text that isn't UTF-8"))?
                        .into(),
                    ValueRef::Real(_) => return Err(damaged("a fraction")),
                })
            });
            insert.row(&values.collect::<Result<Vec<Value<'_>>, StoreError>>()?)?;
        }
        Ok(())
    })
}
