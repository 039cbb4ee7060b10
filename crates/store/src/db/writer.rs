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

/// References between rows that SQLite writes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum References {
    Checked,
    /// Those of a checked copy that replaces all rows: for each deleted row, a check takes memory and time.
    Trusted,
}

impl Db<'_> {
    /// Begins a transaction that writes much. `begun` is its first work.
    pub(crate) fn begin_write<T>(
        self,
        lock: Lock,
        references: References,
        doing: &'static str,
        begun: impl FnOnce(Writer) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        match self {
            Self::Sqlite(store) => {
                let connection = store.connect_to_write()?;
                // Without a larger cache, pages of indexes would be written and read again for nearly each product of a
                // large load.
                let checks = match references {
                    References::Checked => "on",
                    References::Trusted => "off",
                };
                let started = connection.execute_batch(&format!(
                    "pragma foreign_keys = {checks};
                     pragma temp_store = memory;
                     pragma cache_size = -65536;
                     begin immediate;"
                ));
                let started = started.map_err(during(doing));
                let connection = Own::Sqlite(connection);
                store.waited(started.and_then(|()| begun(Writer { connection, doing })))
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
