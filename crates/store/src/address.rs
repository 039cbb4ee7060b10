//! The address of a store: its kind and its place. It may hold a password, which it never shows.

use std::convert::Infallible;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use vitrine_model::revision::Revision;

use crate::audit::AuditContext;
use crate::postgres::{Access, PostgresStore, Target};
use crate::sqlite::{SqliteStore, create_from};
use crate::{Store, StoreError};

/// Action if the store doesn't exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfMissing {
    /// Create an empty one.
    Create,
    /// Fail with [`StoreError::Missing`].
    Refuse,
}

/// Address of a store, such as `sqlite:vitrine.db` or `postgres://vitrine@db.example/catalog`.
#[derive(Clone, PartialEq, Eq)]
pub struct StoreAddress {
    url: String,
    /// Takes precedence over a password in the address.
    password: Option<String>,
}

impl StoreAddress {
    /// Adds a password that isn't part of the address. An SQLite store ignores it.
    #[must_use]
    pub fn with_password(self, password: String) -> Self {
        Self {
            password: Some(password),
            ..self
        }
    }

    /// Returns whether the scheme is that of PostgreSQL.
    #[must_use]
    pub fn is_postgres(&self) -> bool {
        matches!(
            self.url.split_once(':'),
            Some(("postgres" | "postgresql", _))
        )
    }

    /// Opens the store and migrates its schema. Writers wait up to `lock_wait`, and a day at most, for another writer,
    /// then fail with [`StoreError::Busy`].
    ///
    /// # Errors
    ///
    /// If the address names no store, or the store can't be opened.
    pub fn open(
        &self,
        if_missing: IfMissing,
        lock_wait: Duration,
    ) -> Result<Arc<Store>, StoreError> {
        Ok(match self.kind()? {
            Kind::Sqlite(path) => SqliteStore::open(path, if_missing, lock_wait)?.into(),
            Kind::Postgres(target) => {
                let access = Access::Write(if_missing);
                let store = PostgresStore::for_command(*target, access, lock_wait)?;
                store.connect_now()?;
                store.into()
            }
        })
    }

    /// Opens the store for [`Store::check`]: an SQLite file isn't changed.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub fn open_to_check(&self, lock_wait: Duration) -> Result<Arc<Store>, StoreError> {
        match self.kind()? {
            Kind::Sqlite(path) => Ok(SqliteStore::lazy(path, lock_wait).into()),
            Kind::Postgres(_) => self.open(IfMissing::Refuse, lock_wait),
        }
    }

    /// Opens the store for a server. A database in whatever state is no error here: calls on the store fail until it
    /// is usable. [`StoreError::may_come_back`] tells which of their errors are worth waiting for.
    ///
    /// # Errors
    ///
    /// If the address or a file that it names can't be used, or an SQLite store can't be opened for a reason that
    /// doesn't pass.
    pub fn open_to_follow(
        &self,
        if_missing: IfMissing,
        lock_wait: Duration,
    ) -> Result<Arc<Store>, StoreError> {
        match self.kind()? {
            Kind::Postgres(target) => follow(*target, Access::Write(if_missing), lock_wait),
            Kind::Sqlite(path) => match self.open(if_missing, lock_wait) {
                Err(error) if error.may_come_back() => {
                    Ok(SqliteStore::lazy(path, lock_wait).into())
                }
                outcome => outcome,
            },
        }
    }

    /// Opens the store for actions of operators on a server, beside the handle that follows. An SQLite file is open only during a call:
    /// SQLite forgets a lock that the system didn't give back only when a process has closed all connections to the file, and an
    /// idle one would keep the server from that.
    ///
    /// # Errors
    ///
    /// As [`open_to_follow`](Self::open_to_follow).
    pub fn open_for_acts(&self, lock_wait: Duration) -> Result<Arc<Store>, StoreError> {
        match self.kind()? {
            Kind::Sqlite(path) => {
                let mut store = SqliteStore::lazy(path, lock_wait);
                store.stays_open = false;
                Ok(store.into())
            }
            Kind::Postgres(_) => self.open_to_follow(IfMissing::Refuse, lock_wait),
        }
    }

    /// Opens a read replica for a server, as [`open_to_follow`](Self::open_to_follow) does. The last use of keys isn't
    /// recorded, and all other writes are refused ([`StoreError::ReadOnly`]).
    ///
    /// # Errors
    ///
    /// As [`open_to_follow`](Self::open_to_follow), and if the address isn't that of PostgreSQL.
    pub fn open_replica(&self) -> Result<Arc<Store>, StoreError> {
        match self.kind()? {
            Kind::Sqlite(_) => Err(StoreError::WrongAddress {
                place: self.to_string(),
                reason: "only a PostgreSQL store has replicas; give `postgres://…`".to_owned(),
            }),
            Kind::Postgres(target) => follow(*target, Access::ReadOnly, Duration::ZERO),
        }
    }

    /// Creates the store from a backup, in one step: a server that waits for it never sees it empty. It has the backup's
    /// audit log, with an entry for this. Returns its live revision.
    ///
    /// # Errors
    ///
    /// As [`Store::restore`], and if a store or a part of one exists there ([`StoreError::Exists`]).
    pub fn create_from(
        &self,
        backup: &Path,
        context: &AuditContext,
    ) -> Result<Option<Revision>, StoreError> {
        match self.kind()? {
            Kind::Sqlite(path) => create_from(&path, backup, context),
            Kind::Postgres(target) => PostgresStore::create_from(*target, backup, context),
        }
    }

    fn kind(&self) -> Result<Kind, StoreError> {
        match self.url.split_once(':') {
            Some(("sqlite", path)) if !path.is_empty() => Ok(Kind::Sqlite(PathBuf::from(path))),
            Some(("postgres" | "postgresql", rest)) if rest.starts_with("//") => {
                let place = self.to_string();
                let target = Target::parse(&self.url, self.password.as_deref(), place)?;
                Ok(Kind::Postgres(Box::new(target)))
            }
            _ => Err(StoreError::WrongAddress {
                place: self.to_string(),
                reason: "use `sqlite:PATH`, such as `sqlite:vitrine.db`, or `postgres://USER@HOST/DATABASE`"
                    .to_owned(),
            }),
        }
    }
}

fn follow(target: Target, access: Access, lock_wait: Duration) -> Result<Arc<Store>, StoreError> {
    let store = PostgresStore::new(target, access, lock_wait)?;
    // Creates or migrates the store if that is possible now. If not, the next call reports why.
    let _ = store.connect_now();
    Ok(store.into())
}

/// Options of a PostgreSQL address that are shown. Any other may be a password under a mistyped name.
const SHOWN_OPTIONS: [&str; 17] = [
    "application_name",
    "channel_binding",
    "connect_timeout",
    "dbname",
    "host",
    "hostaddr",
    "keepalives",
    "keepalives_idle",
    "keepalives_interval",
    "keepalives_retries",
    "load_balance_hosts",
    "port",
    "sslmode",
    "sslrootcert",
    "target_session_attrs",
    "tcp_user_timeout",
    "user",
];

enum Kind {
    Sqlite(PathBuf),
    Postgres(Box<Target>),
}

impl FromStr for StoreAddress {
    type Err = Infallible;

    /// Accepts any text: opening the store reports what is wrong with it.
    fn from_str(url: &str) -> Result<Self, Infallible> {
        Ok(Self {
            url: url.to_owned(),
            password: None,
        })
    }
}

impl fmt::Display for StoreAddress {
    /// Formats the address without its password. Text before an `@` may be one in any spelling, and a mistyped address
    /// may have one anywhere: if in doubt, more is left out.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((scheme, rest)) = self.url.split_once("://") else {
            return match self.url.starts_with("sqlite:") || !self.url.contains(['@', ':', '=']) {
                true => out.write_str(&self.url),
                false => out.write_str("…"),
            };
        };
        let (user, rest) = match rest.rsplit_once('@') {
            Some((user, rest)) => (user.split(':').next(), rest),
            None => (None, rest),
        };
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        write!(out, "{scheme}://")?;
        match user {
            // Not a user name: the `@` belongs to something else.
            Some(user) if user.contains(['?', '&', '=', '/']) => return out.write_str("…"),
            Some(user) => write!(out, "{user}@")?,
            None => {}
        }
        let end = rest.find('/').unwrap_or(rest.len());
        for (index, host) in rest[..end].split(',').enumerate() {
            let separator = if index == 0 { "" } else { "," };
            if !has_valid_port(host) {
                // `user:password` without a host.
                return write!(out, "{separator}…");
            }
            write!(out, "{separator}{host}")?;
        }
        out.write_str(&rest[end..])?;
        let shown = query
            .split('&')
            .filter(|pair| SHOWN_OPTIONS.contains(&pair.split('=').next().unwrap_or_default()));
        for (index, pair) in shown.enumerate() {
            write!(out, "{}{pair}", if index == 0 { '?' } else { '&' })?;
        }
        Ok(())
    }
}

/// Returns whether the name of a host, or its address in brackets, is followed by a port or by nothing.
fn has_valid_port(host: &str) -> bool {
    let name_end = match host.starts_with('[') {
        true => host.find(']').map(|bracket| bracket + 1),
        false => Some(host.find(':').unwrap_or(host.len())),
    };
    name_end.is_some_and(|end| {
        let port = &host[end..];
        port.is_empty()
            || port
                .strip_prefix(':')
                .is_some_and(|port| port.bytes().all(|byte| byte.is_ascii_digit()))
    })
}

impl fmt::Debug for StoreAddress {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "StoreAddress({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn password_is_never_shown() {
        for (url, shown) in [
            ("sqlite:a@b.db", "sqlite:a@b.db"),
            ("postgres://h/d", "postgres://h/d"),
            ("postgres://u@h:1/d", "postgres://u@h:1/d"),
            (
                "postgres://u:secret@h/d?sslmode=require",
                "postgres://u@h/d?sslmode=require",
            ),
            ("postgres://u:se@cr/et?@h/d", "postgres://u@h/d"),
            ("postgre://u:secret@h/d", "postgre://u@h/d"),
            (
                "postgres://h/d?password=secret&user=u",
                "postgres://h/d?user=u",
            ),
            (
                "postgres://h/d?user=u&pass%77ord=secret",
                "postgres://h/d?user=u",
            ),
            (
                "postgres://h/d?passwd=secret&sslmode=require&pass=secret",
                "postgres://h/d?sslmode=require",
            ),
            ("postgres://h/d?password=sec@ret", "postgres://…"),
            ("postgres:u:secret@h", "…"),
            ("postgresql:u:secret", "…"),
            ("host=h password=secret", "…"),
            ("vitrine.db", "vitrine.db"),
            ("postgres://u:secret/d", "postgres://…"),
            ("postgres://u:sec/ret?user=u", "postgres://…"),
            (
                "postgres://u@h:1,[::1]:2,g/d",
                "postgres://u@h:1,[::1]:2,g/d",
            ),
            ("postgres://h,u:secret/d", "postgres://h,…"),
        ] {
            let address = StoreAddress::from_str(url)
                .unwrap()
                .with_password("secret".to_owned());
            assert_eq!(address.to_string(), shown);
            assert_eq!(format!("{address:?}"), format!("StoreAddress({shown})"));
        }
    }
}
