//! Operators of the console and their sessions. Sessions are written on connections of their own: polls never wait for them.

use std::time::Duration;

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, TransactionBehavior, params};

use super::{SqliteStore, audit, committed, during};
use crate::StoreError;
use crate::audit::{AuditContext, Confirmation, operator_change};
use crate::fail_point::FailPoint;
use crate::operators::{
    LoggedOperators, MAX_SESSIONS, NewSession, Operator, OperatorName, OperatorRow, OperatorStore,
    Session, TokenHash, require_owner,
};
use crate::values::from_millis;

const READING: &str = "reading the operators";
const WRITING: &str = "writing the operators";
const SESSIONS: &str = "writing the sessions";

/// Maximum time that a write of a session waits for another writer.
const SESSION_WAIT: Duration = Duration::from_secs(5);

/// Columns of an operator, in the order of [`operator_row`].
const COLUMNS: &str = "o.name, o.role, o.password, o.stamp, o.created_at, o.digest";

impl SqliteStore {
    /// Runs a write of sessions in a transaction, on a connection of its own.
    fn on_sessions(
        &self,
        wait: Duration,
        work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<()>,
    ) -> Result<(), StoreError> {
        let mut connection = self.connect()?;
        let wait = wait.min(self.lock_wait);
        connection.busy_timeout(wait).map_err(during(SESSIONS))?;
        let transaction = connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(during(SESSIONS))?;
        work(&transaction).map_err(during(SESSIONS))?;
        transaction.commit().map_err(during(SESSIONS))
    }
}

impl OperatorStore for SqliteStore {
    fn has_operators(&self) -> Result<bool, StoreError> {
        let sql = "select exists (select 1 from operator)";
        let quick = self.quick()?;
        let found = quick.connection.query_row(sql, [], |row| row.get(0));
        found.map_err(during(READING))
    }

    fn logged_operators(&self, after: u64) -> Result<LoggedOperators, StoreError> {
        audit::operators(&self.quick()?.connection, after)
    }

    fn operators(&self) -> Result<Vec<Operator>, StoreError> {
        let sql = format!("select {COLUMNS} from operator o order by o.name");
        let quick = self.quick()?;
        let mut statement = quick.connection.prepare(&sql).map_err(during(READING))?;
        let rows = statement
            .query_map([], operator_row)
            .map_err(during(READING))?;
        rows.map(|row| row.map_err(during(READING))?.try_into())
            .collect()
    }

    fn operator(&self, name: &OperatorName) -> Result<Option<Operator>, StoreError> {
        one(&self.quick()?.connection, name)
    }

    fn change_operator(
        &self,
        name: &OperatorName,
        context: &AuditContext,
        decide: &mut dyn FnMut(Option<&Operator>) -> Option<Operator>,
    ) -> Result<(), StoreError> {
        let connection = &mut self.connect_to_change()?;
        let mut change = || {
            let transaction = connection
                .transaction_with_behavior(TransactionBehavior::Immediate)
                .map_err(during(WRITING))?;
            let before = row_of(&transaction, name)?;
            let before = before.map(OperatorRow::unverified).transpose()?;
            let after = decide(before.as_ref());
            if before == after {
                return Ok(());
            }
            require_owner(before.as_ref(), after.as_ref(), || {
                let mut rows = Vec::new();
                each(&transaction, |row| rows.push(row))?;
                Ok(rows)
            })?;
            match &after {
                Some(operator) => put(&transaction, operator),
                None => transaction
                    .execute("delete from operator where name = ?", [name.as_str()])
                    .map(drop),
            }
            .map_err(during(WRITING))?;
            transaction
                .execute(
                    "delete from operator_session where operator = ?",
                    [name.as_str()],
                )
                .map_err(during(WRITING))?;
            FailPoint::OperatorsWritten.pass()?;
            let change = operator_change(before.as_ref(), after.as_ref());
            audit::write(&transaction, context, vec![change])?;
            committed(transaction.commit(), FailPoint::OperatorsCommitted, WRITING)
        };
        self.with_lock_holder(change())
    }

    fn is_confirmed(&self, confirmation: &Confirmation) -> Result<bool, StoreError> {
        audit::has_confirmation(&self.quick()?.connection, confirmation)
    }

    fn session(&self, token: &TokenHash) -> Result<Option<Session>, StoreError> {
        let sql = format!(
            "select {COLUMNS}, s.created_at, s.used_at from operator_session s \
             join operator o on o.name = s.operator and o.stamp = s.stamp where s.token_hash = ?"
        );
        let quick = self.quick()?;
        let mut statement = quick
            .connection
            .prepare_cached(&sql)
            .map_err(during(READING))?;
        let found = statement
            .query_row([token.as_slice()], |row| {
                Ok((operator_row(row)?, row.get(6)?, row.get(7)?))
            })
            .optional()
            .map_err(during(READING))?;
        let session = |(operator, created_at, used_at): (OperatorRow, i64, i64)| {
            Ok(Session {
                operator: operator.try_into()?,
                created_at: from_millis(created_at)?,
                used_at: from_millis(used_at)?,
            })
        };
        found.map(session).transpose()
    }

    fn add_session(&self, new: &NewSession, expired_before: Timestamp) -> Result<(), StoreError> {
        let NewSession {
            token_hash,
            operator,
            stamp,
            created_at,
        } = new;
        self.on_sessions(SESSION_WAIT, |transaction| {
            transaction.execute(
                "delete from operator_session where created_at < ? or not exists \
                    (select 1 from operator o where o.name = operator and o.stamp = operator_session.stamp)",
                [expired_before.as_millisecond()],
            )?;
            let at = created_at.as_millisecond();
            transaction.execute(
                "insert into operator_session values (?, ?, ?, ?, ?)",
                params![token_hash.as_slice(), operator.as_str(), stamp, at, at],
            )?;
            transaction.execute(
                "delete from operator_session where operator = ?1 and token_hash not in \
                    (select token_hash from operator_session where operator = ?1 \
                     order by created_at > ?3, created_at desc, token_hash limit ?2)",
                params![operator.as_str(), MAX_SESSIONS, at],
            )?;
            Ok(())
        })
    }

    fn use_session(&self, token: &TokenHash, used_at: Timestamp) -> Result<(), StoreError> {
        self.on_sessions(Duration::ZERO, |transaction| {
            let sql =
                "update operator_session set used_at = max(used_at, ?2) where token_hash = ?1";
            let values = params![token.as_slice(), used_at.as_millisecond()];
            transaction.execute(sql, values).map(drop)
        })
    }

    fn end_session(&self, token: &TokenHash) -> Result<(), StoreError> {
        self.on_sessions(SESSION_WAIT, |transaction| {
            let sql = "delete from operator_session where token_hash = ?";
            transaction.execute(sql, [token.as_slice()]).map(drop)
        })
    }

    fn end_sessions(&self, operator: &OperatorName) -> Result<(), StoreError> {
        self.on_sessions(SESSION_WAIT, |transaction| {
            let sql = "delete from operator_session where operator = ?";
            transaction.execute(sql, [operator.as_str()]).map(drop)
        })
    }
}

/// Calls `visit` with each stored row of an operator.
pub(super) fn each(
    connection: &Connection,
    mut visit: impl FnMut(OperatorRow),
) -> Result<(), StoreError> {
    let sql = format!("select {COLUMNS} from operator o order by o.name");
    let mut statement = connection.prepare(&sql).map_err(during(READING))?;
    let rows = statement.query_map([], operator_row);
    for row in rows.map_err(during(READING))? {
        visit(row.map_err(during(READING))?);
    }
    Ok(())
}

fn one(connection: &Connection, name: &OperatorName) -> Result<Option<Operator>, StoreError> {
    row_of(connection, name)?
        .map(Operator::try_from)
        .transpose()
}

fn row_of(connection: &Connection, name: &OperatorName) -> Result<Option<OperatorRow>, StoreError> {
    let sql = format!("select {COLUMNS} from operator o where o.name = ?");
    let mut statement = connection.prepare_cached(&sql).map_err(during(READING))?;
    let found = statement.query_row([name.as_str()], operator_row);
    found.optional().map_err(during(READING))
}

fn put(transaction: &Transaction<'_>, operator: &Operator) -> rusqlite::Result<()> {
    let OperatorRow {
        name,
        role,
        password,
        stamp,
        created_at,
        stored_digest,
    } = operator.into();
    transaction
        .execute(
            "insert or replace into operator values (?, ?, ?, ?, ?, ?)",
            params![name, role, password, stamp, created_at, stored_digest],
        )
        .map(drop)
}

fn operator_row(row: &Row<'_>) -> rusqlite::Result<OperatorRow> {
    Ok(OperatorRow {
        name: row.get(0)?,
        role: row.get(1)?,
        password: row.get(2)?,
        stamp: row.get(3)?,
        created_at: row.get(4)?,
        stored_digest: row.get(5)?,
    })
}
