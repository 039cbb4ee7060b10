//! Operators of the console, their sessions and confirmations, and the store's methods about them.
//!
//! A session is valid while its operator has the stamp that it was begun with: each change of an operator replaces the stamp,
//! which ends all its sessions everywhere. Only a hash of a session's token is stored.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use jiff::Timestamp;
use vitrine_model::Invalid;

use crate::StoreError;
use crate::audit::{self, AuditContext, AuditPosition, operator_change};
use crate::check::{Findings, OPERATOR};
use crate::db::{Row, Tx, Value, values};
use crate::digest::RowHash;
use crate::fail_point::FailPoint;
use crate::named::named;
use crate::postgres::Lock;
use crate::values::from_millis;

const READING: &str = "reading the operators";
const WRITING: &str = "writing the operators";

/// Maximum time that a write of a session waits for another writer of an SQLite store.
const SESSION_WAIT: Duration = Duration::from_secs(5);

/// Columns of an operator.
const COLUMNS: &str = "o.name, o.role, o.password, o.stamp, o.created_at, o.digest";

/// Maximum number of sessions of an operator; a new one ends the oldest.
pub const MAX_SESSIONS: u32 = 20;

/// Maximum length of an operator's name, in bytes.
const MAX_NAME_BYTES: usize = 200;

named! {
    /// Role of an operator: what it may do. Each includes the ones before it.
    pub enum Role {
        /// Sees all pages.
        Viewer = "viewer",
        /// Changes products and assortments, too.
        Editor = "editor",
        /// Changes keys, webhooks, the live revision and operators, too.
        Owner = "owner",
    }
}

impl fmt::Display for Role {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

impl FromStr for Role {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let found = Self::ALL.into_iter().find(|role| role.as_str() == text);
        found.ok_or(Invalid::new("role", "`viewer`, `editor` or `owner`"))
    }
}

/// Name of an operator: one line without spaces at its ends, as people or proxies write it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OperatorName(String);

impl OperatorName {
    /// Returns the name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for OperatorName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl FromStr for OperatorName {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let is_name = !text.is_empty()
            && text.len() <= MAX_NAME_BYTES
            && text.trim() == text
            && !text.chars().any(char::is_control);
        match is_name {
            true => Ok(Self(text.to_owned())),
            false => Err(Invalid::new(
                "operator",
                "a name on one line, of at most 200 bytes",
            )),
        }
    }
}

/// Hash of a password, with its parameters and its salt: a PHC string. `Debug` doesn't show it.
#[derive(Clone, PartialEq, Eq)]
pub struct PasswordHash(String);

impl PasswordHash {
    /// Takes a PHC string.
    #[must_use]
    pub fn new(phc: String) -> Self {
        Self(phc)
    }

    /// Returns the PHC string.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for PasswordHash {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("PasswordHash(…)")
    }
}

/// An operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operator {
    /// Name.
    pub name: OperatorName,
    /// Role.
    pub role: Role,
    /// Hash of the password; without one, the operator signs in through a proxy only.
    pub password: Option<PasswordHash>,
    /// Random text that each change replaces.
    pub stamp: String,
    /// Time of creation.
    pub created_at: Timestamp,
}

/// Change of an operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperatorChange {
    /// New role; by default the old one.
    pub role: Option<Role>,
    /// New password, or none; by default the old one.
    pub password: Option<Option<PasswordHash>>,
    /// New stamp.
    pub stamp: String,
}

/// SHA-256 of a session's token.
pub type TokenHash = [u8; 32];

/// A session to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSession {
    /// Hash of its token.
    pub token_hash: TokenHash,
    /// Operator, with the stamp against which the sign-in was checked.
    pub operator: OperatorName,
    /// Stamp of the operator.
    pub stamp: String,
    /// Time of the sign-in.
    pub created_at: Timestamp,
}

/// A valid session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// Its operator, as it is now.
    pub operator: Operator,
    /// Time of the sign-in.
    pub created_at: Timestamp,
    /// Time of its last use, stored now and then.
    pub used_at: Timestamp,
}

/// Operators that a store has or had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HadOperators {
    /// True if there are operators, or an entry of the audit log that was read is about one.
    pub found: bool,
    /// Position of that moment in the log, for the next read.
    pub position: AuditPosition,
}

/// Refuses a change that takes the last owner away. A row that was changed by something other than Vitrine makes nobody an owner.
fn require_owner(
    tx: &mut Tx<'_>,
    before: Option<&Operator>,
    after: Option<&Operator>,
) -> Result<(), StoreError> {
    let owns = |operator: &Operator| operator.role == Role::Owner;
    let Some(changed) = before.filter(|before| owns(before)) else {
        return Ok(());
    };
    if after.is_some_and(owns) {
        return Ok(());
    }
    let mut owners = rows(tx, |row| Ok(operator(row).ok().filter(owns)))?;
    owners.retain(Option::is_some);
    match owners.as_slice() {
        [Some(last)] if last.name == changed.name => Err(StoreError::LastOwner {
            name: last.name.to_string(),
        }),
        _ => Ok(()),
    }
}

impl crate::Store {
    /// Returns whether there are operators.
    pub fn has_operators(&self) -> Result<bool, StoreError> {
        self.db().quick(READING, |tx| {
            tx.value("select exists (select 1 from vitrine.operator)", &[])
        })
    }

    /// Returns whether there are operators, or the audit log says that there were. It is read from `since` on, or as a whole if
    /// that isn't of this store's past.
    pub fn had_operators(&self, since: Option<&AuditPosition>) -> Result<HadOperators, StoreError> {
        let sql = "select exists (select 1 from vitrine.operator) or exists \
                      (select 1 from vitrine.audit_entry \
                       where number > $1 and subject_kind = 'operator')";
        self.db().quick(READING, |tx| {
            let after = match since {
                Some(since) => since.found_in(tx)?,
                None => None,
            };
            Ok(HadOperators {
                found: tx.value(sql, values![after.unwrap_or(0)])?,
                position: audit::position(tx)?,
            })
        })
    }

    /// Returns all operators, by name.
    pub fn operators(&self) -> Result<Vec<Operator>, StoreError> {
        self.db().quick(READING, |tx| rows(tx, operator))
    }

    /// Returns an operator.
    pub fn operator(&self, name: &OperatorName) -> Result<Option<Operator>, StoreError> {
        self.db().quick(READING, |tx| row_of(tx, name, operator))
    }

    /// Changes the operator of a name to what `decide` returns of it as it is, ends its sessions, and writes to the audit log; if
    /// nothing differs, nothing is written.
    ///
    /// # Errors
    ///
    /// [`StoreError::LastOwner`] if no owner would be left; if the store can't be written.
    pub fn change_operator(
        &self,
        name: &OperatorName,
        context: &AuditContext,
        decide: &mut dyn FnMut(Option<&Operator>) -> Option<Operator>,
    ) -> Result<(), StoreError> {
        let committed = FailPoint::OperatorsCommitted;
        self.db().write(Lock::Keys, committed, WRITING, |tx| {
            // Whatever its digest says: a new one is written.
            let before = row_of(tx, name, unverified)?;
            let after = decide(before.as_ref());
            if before == after {
                return Ok(());
            }
            require_owner(tx, before.as_ref(), after.as_ref())?;
            for sql in [
                "delete from vitrine.operator where name = $1",
                "delete from vitrine.operator_session where operator = $1",
            ] {
                tx.execute(sql, values![name.as_str()])?;
            }
            if let Some(operator) = &after {
                insert(tx, operator)?;
            }
            FailPoint::OperatorsWritten.pass()?;
            let change = operator_change(before.as_ref(), after.as_ref());
            audit::write(tx, context, vec![change])
        })
    }

    /// Adds an operator. Returns false, having changed nothing, if there is one of this name.
    pub fn add_operator(&self, new: &Operator, context: &AuditContext) -> Result<bool, StoreError> {
        let mut is_new = false;
        self.change_operator(&new.name, context, &mut |before| {
            is_new = before.is_none();
            Some(before.unwrap_or(new).clone())
        })?;
        Ok(is_new)
    }

    /// Changes an operator, and ends its sessions. Returns it as it is then; `None` if there is none.
    ///
    /// # Errors
    ///
    /// [`StoreError::LastOwner`] if no owner would be left; if the store can't be written.
    pub fn set_operator(
        &self,
        name: &OperatorName,
        change: &OperatorChange,
        context: &AuditContext,
    ) -> Result<Option<Operator>, StoreError> {
        let mut after = None;
        self.change_operator(name, context, &mut |before| {
            after = before.cloned().map(|before| Operator {
                role: change.role.unwrap_or(before.role),
                password: change.password.clone().unwrap_or(before.password),
                stamp: change.stamp.clone(),
                ..before
            });
            after.clone()
        })?;
        Ok(after)
    }

    /// Removes an operator, and ends its sessions. Returns whether there was one.
    ///
    /// # Errors
    ///
    /// [`StoreError::LastOwner`] if no owner would be left; if the store can't be written.
    pub fn remove_operator(
        &self,
        name: &OperatorName,
        context: &AuditContext,
    ) -> Result<bool, StoreError> {
        let mut was_there = false;
        self.change_operator(name, context, &mut |before| {
            was_there = before.is_some();
            None
        })?;
        Ok(was_there)
    }

    /// Runs a write of sessions.
    fn write_sessions(
        &self,
        wait: Duration,
        work: impl FnOnce(&mut Tx<'_>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let committed = FailPoint::OperatorsCommitted;
        let db = self.db();
        db.write_briefly(wait, committed, "writing the sessions", work)
    }

    /// Returns the session of a token; `None` if there is none, or it was ended.
    pub fn session(&self, token: &TokenHash) -> Result<Option<Session>, StoreError> {
        let sql = format!(
            "select {COLUMNS}, s.created_at, s.used_at from vitrine.operator_session s \
             join vitrine.operator o on o.name = s.operator and o.stamp = s.stamp \
             where s.token_hash = $1"
        );
        self.db().quick(READING, |tx| {
            tx.row(&sql, values![token], |row| {
                Ok(Session {
                    operator: operator(row)?,
                    created_at: from_millis(row.get(6)?)?,
                    used_at: from_millis(row.get(7)?)?,
                })
            })
        })
    }

    /// Stores a session. Deletes those begun before `expired_before`, those that were ended, and of the operator's sessions those beyond
    /// [`MAX_SESSIONS`]: first those from a clock that is ahead of this one, then the oldest.
    pub fn add_session(
        &self,
        new: &NewSession,
        expired_before: Timestamp,
    ) -> Result<(), StoreError> {
        let NewSession {
            token_hash,
            operator,
            stamp,
            created_at,
        } = new;
        let (operator, at) = (operator.as_str(), created_at.as_millisecond());
        self.write_sessions(SESSION_WAIT, |tx| {
            let sql = "delete from vitrine.operator_session where created_at < $1 or not exists \
                          (select 1 from vitrine.operator o where o.name = operator_session.operator \
                              and o.stamp = operator_session.stamp)";
            tx.execute(sql, values![expired_before.as_millisecond()])?;
            let sql = "insert into vitrine.operator_session \
                       (token_hash, operator, stamp, created_at, used_at) values ($1, $2, $3, $4, $4)";
            tx.execute(sql, values![token_hash, operator, stamp, at])?;
            let sql = "delete from vitrine.operator_session where operator = $1 and token_hash not in \
                          (select token_hash from vitrine.operator_session where operator = $1 \
                           order by created_at > $3, created_at desc, token_hash limit $2)";
            tx.execute(sql, values![operator, MAX_SESSIONS, at])
                .map(drop)
        })
    }

    /// Records the use of a session.
    ///
    /// # Errors
    ///
    /// If the store can't be written, or another process writes ([`StoreError::Busy`]): try again later.
    pub fn use_session(&self, token: &TokenHash, used_at: Timestamp) -> Result<(), StoreError> {
        let sql = "update vitrine.operator_session set used_at = greatest(used_at, $2) \
                   where token_hash = $1";
        self.write_sessions(Duration::ZERO, |tx| {
            tx.execute(sql, values![token, used_at.as_millisecond()])
                .map(drop)
        })
    }

    /// Ends a session.
    pub fn end_session(&self, token: &TokenHash) -> Result<(), StoreError> {
        let sql = "delete from vitrine.operator_session where token_hash = $1";
        self.write_sessions(SESSION_WAIT, |tx| tx.execute(sql, values![token]).map(drop))
    }

    /// Ends all sessions of an operator.
    pub fn end_sessions(&self, operator: &OperatorName) -> Result<(), StoreError> {
        let sql = "delete from vitrine.operator_session where operator = $1";
        self.write_sessions(SESSION_WAIT, |tx| {
            tx.execute(sql, values![operator.as_str()]).map(drop)
        })
    }
}

/// Returns what `read` makes of all stored rows, by name.
fn rows<T>(
    tx: &mut Tx<'_>,
    read: impl FnMut(&Row<'_>) -> Result<T, StoreError>,
) -> Result<Vec<T>, StoreError> {
    let sql = format!("select {COLUMNS} from vitrine.operator o order by o.name collate \"C\"");
    tx.rows(&sql, &[], read)
}

fn row_of(
    tx: &mut Tx<'_>,
    name: &OperatorName,
    read: fn(&Row<'_>) -> Result<Operator, StoreError>,
) -> Result<Option<Operator>, StoreError> {
    let sql = format!("select {COLUMNS} from vitrine.operator o where o.name = $1");
    tx.row(&sql, values![name.as_str()], read)
}

fn insert(tx: &mut Tx<'_>, operator: &Operator) -> Result<(), StoreError> {
    let Operator {
        name,
        role,
        password,
        stamp,
        created_at,
    } = operator;
    let password = password.as_ref().map(PasswordHash::as_str);
    let created_at = created_at.as_millisecond();
    let mut values = values![name.as_str(), role.as_str(), password, stamp, created_at].to_vec();
    let digest = RowHash::of(&values);
    values.push(Value::from(&digest));
    let sql = "insert into vitrine.operator (name, role, password, stamp, created_at, digest) \
               values ($1, $2, $3, $4, $5, $6)";
    tx.execute(sql, &values).map(drop)
}

fn unverified(row: &Row<'_>) -> Result<Operator, StoreError> {
    let (name, role): (&str, &str) = (row.get(0)?, row.get(1)?);
    let damaged = |what: &str| StoreError::Damaged(format!("operator {name}: invalid {what}"));
    Ok(Operator {
        name: name.parse().map_err(|_| damaged("name"))?,
        role: role.parse().map_err(|_| damaged("role"))?,
        password: row.get::<Option<String>>(2)?.map(PasswordHash::new),
        stamp: row.get(3)?,
        created_at: from_millis(row.get(4)?)?,
    })
}

/// Reads an operator. Refuses a row that isn't as it was written: it says who may do what.
fn operator(row: &Row<'_>) -> Result<Operator, StoreError> {
    let (name, role, stamp): (&str, &str, &str) = (row.get(0)?, row.get(1)?, row.get(3)?);
    let (password, created_at): (Option<&str>, i64) = (row.get(2)?, row.get(4)?);
    let digest = RowHash::of(values![name, role, password, stamp, created_at]);
    match row.get::<&[u8]>(5)? == digest {
        true => unverified(row),
        false => Err(StoreError::Damaged(format!(
            "operator {name}: was changed by something other than Vitrine; set it again: `vitrine operators set`"
        ))),
    }
}

/// Checks that each operator is as it was written, and can be read.
pub(crate) fn check(tx: &mut Tx<'_>, found: &mut Findings) -> Result<(), StoreError> {
    rows(tx, |row| {
        if let Err(error) = operator(row) {
            let place = format!("operator {}", row.lossy(0)?);
            found.add(&OPERATOR, place, error.to_string());
        }
        Ok(())
    })
    .map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn password_hash_is_not_in_debug_output() {
        let shown = format!("{:?}", PasswordHash::new("$argon2id$secret".to_owned()));
        assert!(!shown.contains("secret"), "{shown}");
    }

    #[test]
    fn operator_names_are_single_lines() {
        for fine in ["ines", "ines@partner.example", "Inês Müller"] {
            assert!(fine.parse::<OperatorName>().is_ok(), "{fine}");
        }
        let long = "a".repeat(201);
        for wrong in ["", " ines", "ines\n", "a\u{7}b", &long] {
            assert!(wrong.parse::<OperatorName>().is_err(), "{wrong:?}");
        }
    }
}
