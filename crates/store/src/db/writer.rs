//! A transaction that lasts longer than a call.

use rusqlite::Connection;

use super::{Db, Tx};
use crate::StoreError;
use crate::fail_point::FailPoint;
use crate::postgres::{BEGIN, Lock, Session, WORK_TIMEOUT, begin_read, take_lock};
use crate::sqlite::{committed, during};

/// A transaction that writes much, on a connection of its own. Dropping it closes the connection, which rolls back
/// unless it was committed.
pub(crate) struct Writer {
    connection: Own,
    doing: &'static str,
}

enum Own {
    Sqlite(Connection),
    Postgres(Box<Session>),
}

impl Db<'_> {
    /// Begins a transaction that writes much. `begun` is its first work; if it is busy, the error has the process that
    /// holds the lock.
    pub(crate) fn begin_write<T>(
        self,
        lock: Lock,
        doing: &'static str,
        begun: impl FnOnce(Writer) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.begin_writing("", lock, doing, begun)
    }

    /// As [`begin_write`](Self::begin_write), to replace all rows by those of a checked copy. SQLite doesn't check their
    /// references again: for each deleted row, that takes memory and time.
    pub(crate) fn begin_replacement<T>(
        self,
        lock: Lock,
        doing: &'static str,
        begun: impl FnOnce(Writer) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.begin_writing("pragma foreign_keys = off;", lock, doing, begun)
    }

    fn begin_writing<T>(
        self,
        sqlite_setting: &str,
        lock: Lock,
        doing: &'static str,
        begun: impl FnOnce(Writer) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        match self {
            Self::Sqlite(store) => {
                let connection = store.connect_to_write()?;
                // Without a larger cache, pages of indexes would be written and read again for nearly each product of a
                // large load.
                let started = connection.execute_batch(&format!(
                    "{sqlite_setting}
                     pragma temp_store = memory;
                     pragma cache_size = -65536;
                     begin immediate;"
                ));
                let started = started.map_err(during(doing));
                let connection = Own::Sqlite(connection);
                store.with_lock_holder(started.and_then(|()| begun(Writer { connection, doing })))
            }
            Self::Postgres(store) => {
                let mut session = store.writer()?;
                // Read committed: after the lock is taken, each statement sees what other writers committed.
                session.run(doing, BEGIN)?;
                take_lock(&mut session, lock, store.lock_wait)?;
                let connection = Own::Postgres(Box::new(session));
                begun(Writer { connection, doing })
            }
        }
    }
}

impl Db<'_> {
    /// Begins a transaction that reads one state for long.
    pub(crate) fn begin_read(self, doing: &'static str) -> Result<Writer, StoreError> {
        let connection = match self {
            Self::Sqlite(store) => {
                let connection = store.connect()?;
                let begin =
                    "pragma temp_store = memory; pragma cache_size = -65536; begin deferred";
                connection.execute_batch(begin).map_err(during(doing))?;
                Own::Sqlite(connection)
            }
            Self::Postgres(store) => {
                let mut session = store.session(WORK_TIMEOUT)?;
                session.run(doing, &begin_read(WORK_TIMEOUT))?;
                Own::Postgres(Box::new(session))
            }
        };
        Ok(Writer { connection, doing })
    }
}

impl Writer {
    /// Returns the transaction.
    pub(crate) fn tx(&mut self) -> Tx<'_> {
        match &mut self.connection {
            Own::Sqlite(connection) => Tx::sqlite(connection, self.doing),
            Own::Postgres(session) => Tx::postgres(session, self.doing),
        }
    }

    /// Commits. `committed_at` is passed in SQLite only: PostgreSQL is another process.
    pub(crate) fn commit(self, committed_at: FailPoint) -> Result<(), StoreError> {
        match self.connection {
            Own::Sqlite(connection) => {
                committed(connection.execute_batch("commit"), committed_at, self.doing)
            }
            Own::Postgres(mut session) => session.commit(self.doing),
        }
    }
}
