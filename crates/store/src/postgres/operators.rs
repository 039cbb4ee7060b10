//! Operators of the console and their sessions.

use jiff::Timestamp;
use tokio_postgres::Row;

use super::lock::{self, Lock};
use super::session::{Session as Connection, Typed, get};
use super::{BEGIN, PostgresStore, audit};
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

/// Columns of an operator, in the order of [`operator_row`].
const COLUMNS: &str = "o.name, o.role, o.password, o.stamp, o.created_at, o.digest";

impl PostgresStore {
    /// Runs a write of sessions. Other writers hold their rows for moments only.
    fn on_sessions(
        &self,
        work: impl FnOnce(&mut Connection) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let begin = format!("{BEGIN}; set local lock_timeout = 100");
        self.quick(|session| session.transaction(SESSIONS, &begin, work))
    }
}

impl OperatorStore for PostgresStore {
    fn has_operators(&self) -> Result<bool, StoreError> {
        let sql = "select exists (select 1 from vitrine.operator)";
        let row = self.quick(|session| session.row(READING, sql, &[]))?;
        row.map_or(Ok(false), |row| get(&row, 0))
    }

    fn logged_operators(&self, after: u64) -> Result<LoggedOperators, StoreError> {
        self.quick(|session| audit::operators(session, after))
    }

    fn operators(&self) -> Result<Vec<Operator>, StoreError> {
        self.quick(|session| {
            let mut found = Vec::new();
            each(session, |row| found.push(row))?;
            found.into_iter().map(Operator::try_from).collect()
        })
    }

    fn operator(&self, name: &OperatorName) -> Result<Option<Operator>, StoreError> {
        self.quick(|session| one(session, name))
    }

    fn change_operator(
        &self,
        name: &OperatorName,
        context: &AuditContext,
        decide: &mut dyn FnMut(Option<&Operator>) -> Option<Operator>,
    ) -> Result<(), StoreError> {
        self.writer()?.transaction(WRITING, BEGIN, |session| {
            lock::take(session, Lock::Keys, self.lock_wait)?;
            let before = row_of(session, name)?;
            let before = before.map(OperatorRow::unverified).transpose()?;
            let after = decide(before.as_ref());
            if before == after {
                return Ok(());
            }
            require_owner(before.as_ref(), after.as_ref(), || {
                let mut rows = Vec::new();
                each(session, |row| rows.push(row))?;
                Ok(rows)
            })?;
            for sql in [
                "delete from vitrine.operator where name = $1",
                "delete from vitrine.operator_session where operator = $1",
            ] {
                session.execute(WRITING, sql, &[name.as_str().param()])?;
            }
            if let Some(operator) = &after {
                put(session, operator)?;
            }
            FailPoint::OperatorsWritten.pass()?;
            let change = operator_change(before.as_ref(), after.as_ref());
            audit::write(session, context, vec![change])
        })
    }

    fn is_confirmed(&self, confirmation: &Confirmation) -> Result<bool, StoreError> {
        self.quick(|session| audit::has_confirmation(session, confirmation))
    }

    fn session(&self, token: &TokenHash) -> Result<Option<Session>, StoreError> {
        let sql = format!(
            "select {COLUMNS}, s.created_at, s.used_at from vitrine.operator_session s \
             join vitrine.operator o on o.name = s.operator and o.stamp = s.stamp \
             where s.token_hash = $1"
        );
        self.quick(|session| {
            let Some(row) = session.row(READING, &sql, &[token.as_slice().param()])? else {
                return Ok(None);
            };
            Ok(Some(Session {
                operator: operator_row(&row)?.try_into()?,
                created_at: from_millis(get(&row, 6)?)?,
                used_at: from_millis(get(&row, 7)?)?,
            }))
        })
    }

    fn add_session(&self, new: &NewSession, expired_before: Timestamp) -> Result<(), StoreError> {
        let NewSession {
            token_hash,
            operator,
            stamp,
            created_at,
        } = new;
        let (expired, at) = (expired_before.as_millisecond(), created_at.as_millisecond());
        let (token, operator) = (token_hash.as_slice(), operator.as_str());
        self.on_sessions(|session| {
            let sql = "delete from vitrine.operator_session s where s.created_at < $1 or not exists \
                          (select 1 from vitrine.operator o where o.name = s.operator and o.stamp = s.stamp)";
            session.execute(SESSIONS, sql, &[expired.param()])?;
            let sql = "insert into vitrine.operator_session \
                       (token_hash, operator, stamp, created_at, used_at) values ($1, $2, $3, $4, $4)";
            let values = [
                token.param(),
                operator.param(),
                stamp.param(),
                at.param(),
            ];
            session.execute(SESSIONS, sql, &values)?;
            let sql = "delete from vitrine.operator_session where operator = $1 and token_hash not in \
                          (select token_hash from vitrine.operator_session where operator = $1 \
                           order by created_at > $3, created_at desc, token_hash limit $2)";
            let kept = i64::from(MAX_SESSIONS);
            let values = [operator.param(), kept.param(), at.param()];
            session.execute(SESSIONS, sql, &values).map(drop)
        })
    }

    fn use_session(&self, token: &TokenHash, used_at: Timestamp) -> Result<(), StoreError> {
        let sql = "update vitrine.operator_session set used_at = greatest(used_at, $2) \
                   where token_hash = $1";
        let (token, used_at) = (token.as_slice(), used_at.as_millisecond());
        let values = [token.param(), used_at.param()];
        self.on_sessions(|session| session.execute(SESSIONS, sql, &values).map(drop))
    }

    fn end_session(&self, token: &TokenHash) -> Result<(), StoreError> {
        let sql = "delete from vitrine.operator_session where token_hash = $1";
        let token = token.as_slice();
        let values = [token.param()];
        self.on_sessions(|session| session.execute(SESSIONS, sql, &values).map(drop))
    }

    fn end_sessions(&self, operator: &OperatorName) -> Result<(), StoreError> {
        let sql = "delete from vitrine.operator_session where operator = $1";
        let operator = operator.as_str();
        let values = [operator.param()];
        self.on_sessions(|session| session.execute(SESSIONS, sql, &values).map(drop))
    }
}

/// Calls `visit` with each stored row of an operator.
pub(super) fn each(
    session: &mut Connection,
    mut visit: impl FnMut(OperatorRow),
) -> Result<(), StoreError> {
    let sql = format!("select {COLUMNS} from vitrine.operator o order by o.name collate \"C\"");
    session.each_row(READING, &sql, &[], |row| {
        visit(operator_row(row)?);
        Ok(())
    })
}

fn one(session: &mut Connection, name: &OperatorName) -> Result<Option<Operator>, StoreError> {
    row_of(session, name)?.map(Operator::try_from).transpose()
}

fn row_of(
    session: &mut Connection,
    name: &OperatorName,
) -> Result<Option<OperatorRow>, StoreError> {
    let sql = format!("select {COLUMNS} from vitrine.operator o where o.name = $1");
    let row = session.row(READING, &sql, &[name.as_str().param()])?;
    row.map(|row| operator_row(&row)).transpose()
}

fn put(session: &mut Connection, operator: &Operator) -> Result<(), StoreError> {
    let OperatorRow {
        name,
        role,
        password,
        stamp,
        created_at,
        stored_digest,
    } = operator.into();
    let sql = "insert into vitrine.operator (name, role, password, stamp, created_at, digest) \
               values ($1, $2, $3, $4, $5, $6)";
    let digest = stored_digest.as_slice();
    let values = [
        name.param(),
        role.param(),
        password.param(),
        stamp.param(),
        created_at.param(),
        digest.param(),
    ];
    session.execute(WRITING, sql, &values).map(drop)
}

fn operator_row(row: &Row) -> Result<OperatorRow, StoreError> {
    Ok(OperatorRow {
        name: get(row, 0)?,
        role: get(row, 1)?,
        password: get(row, 2)?,
        stamp: get(row, 3)?,
        created_at: get(row, 4)?,
        stored_digest: get::<&[u8]>(row, 5)?.to_vec(),
    })
}
