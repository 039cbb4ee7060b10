//! The address of a store: which kind it is, and where. It may hold a password, which it never shows.

use std::convert::Infallible;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use vitrine_model::revision::Revision;

use crate::postgres::{Access, PostgresStore, Target};
use crate::{IfMissing, Store, StoreError, sqlite};

/// Where a store is, such as `sqlite:vitrine.db` or `postgres://vitrine@db.example/catalog`.
#[derive(Clone, PartialEq, Eq)]
pub struct StoreAddress {
    url: String,
    /// Instead of one in the address.
    password: Option<String>,
}

impl StoreAddress {
    /// The address with a password that isn't part of it. An SQLite store has no use for one.
    #[must_use]
    pub fn with_password(self, password: String) -> Self {
        Self {
            password: Some(password),
            ..self
        }
    }

    /// Whether it is a PostgreSQL's, as far as its beginning tells.
    #[must_use]
    pub fn is_postgres(&self) -> bool {
        matches!(
            self.url.split_once(':'),
            Some(("postgres" | "postgresql", _))
        )
    }

    /// Opens the store and brings its schema up to date. Writers wait for another one for `patience`, a day at
    /// most, before they fail with [`StoreError::Busy`].
    ///
    /// # Errors
    ///
    /// Where the address is no store's, or the store can't be opened.
    pub fn open(
        &self,
        if_missing: IfMissing,
        patience: Duration,
    ) -> Result<Arc<dyn Store>, StoreError> {
        // More than the 24 days that SQLite can count would be none at all to it.
        let patience = patience.min(Duration::from_secs(24 * 60 * 60));
        Ok(match self.kind()? {
            Kind::Sqlite(path) => Arc::new(sqlite::SqliteStore::open(path, if_missing, patience)?),
            Kind::Postgres(target) => {
                let access = Access::Write(if_missing);
                let store = PostgresStore::for_command(*target, access, patience)?;
                store.connect_now()?;
                Arc::new(store)
            }
        })
    }

    /// The store as it is, for [`Store::check`]: nothing of an SQLite file is set up or changed.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub fn open_to_check(&self, patience: Duration) -> Result<Arc<dyn Store>, StoreError> {
        match self.kind()? {
            Kind::Sqlite(path) => Ok(Arc::new(sqlite::SqliteStore::unopened(path, patience)?)),
            Kind::Postgres(_) => self.open(IfMissing::Refuse, patience),
        }
    }

    /// As [`open`](Self::open), for a server. The state that a database is in is no error here, whatever it is:
    /// calls on the store say it, until one finds another. Whether it is worth to wait for that,
    /// [`StoreError::may_come_back`] tells.
    ///
    /// # Errors
    ///
    /// Where the address or what goes with it can't be used, or an SQLite store can't be opened and that won't
    /// mend itself.
    pub fn open_to_follow(
        &self,
        if_missing: IfMissing,
        patience: Duration,
    ) -> Result<Arc<dyn Store>, StoreError> {
        match self.kind()? {
            Kind::Postgres(target) => follow(*target, Access::Write(if_missing), patience),
            Kind::Sqlite(path) => match self.open(if_missing, patience) {
                Err(error) if error.may_come_back() => {
                    Ok(Arc::new(sqlite::SqliteStore::unopened(path, patience)?))
                }
                outcome => outcome,
            },
        }
    }

    /// As [`open_to_follow`](Self::open_to_follow), for a store where nothing is ever written: a read replica of
    /// another. When keys were used isn't written down, and everything else that would write is refused
    /// ([`StoreError::ReadOnly`]).
    ///
    /// # Errors
    ///
    /// As [`open_to_follow`](Self::open_to_follow); and where the address is no PostgreSQL's.
    pub fn open_replica(&self) -> Result<Arc<dyn Store>, StoreError> {
        match self.kind()? {
            Kind::Sqlite(_) => Err(StoreError::WrongAddress {
                place: self.to_string(),
                reason: "only a PostgreSQL store has replicas; give `postgres://…`".to_owned(),
            }),
            Kind::Postgres(target) => follow(*target, Access::ReadOnly, Duration::ZERO),
        }
    }

    /// Makes the store, where there is none, out of a backup. It is whole from its first moment: a server that
    /// waits for it never sees an empty one. Returns its live revision.
    ///
    /// # Errors
    ///
    /// As [`Store::restore`]; and where something of a store is there ([`StoreError::Exists`]).
    pub fn create_from(&self, backup: &Path) -> Result<Option<Revision>, StoreError> {
        match self.kind()? {
            Kind::Sqlite(path) => sqlite::create_from(&path, backup),
            Kind::Postgres(target) => PostgresStore::create_from(*target, backup),
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
            _ => Err(StoreError::UnknownAddress {
                url: self.to_string(),
            }),
        }
    }
}

fn follow(
    target: Target,
    access: Access,
    patience: Duration,
) -> Result<Arc<dyn Store>, StoreError> {
    let store = PostgresStore::new(target, access, patience)?;
    // What is to be made or migrated is, where that can be done now. What can't, the next call says again.
    let _ = store.connect_now();
    Ok(Arc::new(store))
}

/// The options of a PostgreSQL's address that are shown. Any other may be a password under a mistyped name.
const SHOWN: [&str; 17] = [
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

    /// Takes any text: what is wrong with it is said where it is opened.
    fn from_str(url: &str) -> Result<Self, Infallible> {
        Ok(Self {
            url: url.to_owned(),
            password: None,
        })
    }
}

impl fmt::Display for StoreAddress {
    /// The address without its password. What comes before an `@` may hold one in any spelling, and what is
    /// mistyped may hold one in a place where none belongs: more is left out rather than less.
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
            // No user's name: the `@` belongs to something else.
            Some(user) if user.contains(['?', '&', '=', '/']) => return out.write_str("…"),
            Some(user) => write!(out, "{user}@")?,
            None => {}
        }
        let end = rest.find('/').unwrap_or(rest.len());
        for (index, host) in rest[..end].split(',').enumerate() {
            let separator = if index == 0 { "" } else { "," };
            if !has_a_port_or_none(host) {
                // `user:password`, and the host was forgotten.
                return write!(out, "{separator}…");
            }
            write!(out, "{separator}{host}")?;
        }
        out.write_str(&rest[end..])?;
        let shown = query
            .split('&')
            .filter(|pair| SHOWN.contains(&pair.split('=').next().unwrap_or_default()));
        for (index, pair) in shown.enumerate() {
            write!(out, "{}{pair}", if index == 0 { '?' } else { '&' })?;
        }
        Ok(())
    }
}

/// Whether what stands behind the name of a host, or its address in brackets, is a port or nothing.
fn has_a_port_or_none(host: &str) -> bool {
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
    fn a_password_is_never_shown() {
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
