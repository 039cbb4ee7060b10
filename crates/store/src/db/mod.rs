//! One way to run SQL on both databases.
//!
//! Statements are written once, as PostgreSQL takes them; [`dialect`] translates the few differences for SQLite. [`Db`]
//! opens transactions on a store's connections, and a [`Tx`] runs statements in one. Errors say what was being done.
//!
//! - `scans`: a look at plans of statements, in tests
//! - `row`: a row of a result; `value`: a parameter; `dialect`: SQL of the two databases
//! - `insert`: many rows at once, with `copy`, PostgreSQL's format of rows; `writer`: a transaction that lasts

mod copy;
mod dialect;
mod insert;
mod row;
#[cfg(feature = "fail-points")]
mod scans;
mod value;
mod writer;

use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use rusqlite::{CachedStatement, Connection, TransactionBehavior};

#[cfg(test)]
pub(crate) use self::dialect::sqlite as sqlite_sql;
pub(crate) use self::row::{Column, Row};
pub(crate) use self::value::{Value, values};
pub(crate) use self::writer::{References, Writer};
use crate::StoreError;
use crate::fail_point::FailPoint;
pub(crate) use crate::postgres::WORK_TIMEOUT;
use crate::postgres::{
    BEGIN, Lock, PostgresStore, READ_TIMEOUT, SORT_TIMEOUT, Session, begin_quick, begin_read,
    take_lock,
};
use crate::sqlite::{SqliteStore, committed, during};

/// Database of a store.
#[derive(Clone, Copy)]
pub(crate) enum Db<'s> {
    Sqlite(&'s SqliteStore),
    Postgres(&'s PostgresStore),
}

/// Begins a transaction that waits only a moment for rows that others write.
const BEGIN_BRIEF: &str = "begin isolation level read committed read write; \
    set local statement_timeout = '1h'; set local lock_timeout = 100";

impl<'s> Db<'s> {
    /// Returns whether the store can only be read.
    pub(crate) fn is_read_only(self) -> bool {
        match self {
            Self::Sqlite(_) => false,
            Self::Postgres(store) => store.is_read_only(),
        }
    }

    /// Reads a row or two on the held connection, as of one moment.
    pub(crate) fn quick<T>(
        self,
        doing: &'static str,
        work: impl FnOnce(&mut Tx<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        match self {
            Self::Sqlite(_) => self.quick_rows(doing, work),
            Self::Postgres(store) => {
                store.quick(|session| read(session, begin_quick(store.quick_timeout), doing, work))
            }
        }
    }

    /// Reads many rows on the held connection, as of one moment: time limits are for the next rows.
    pub(crate) fn quick_rows<T>(
        self,
        doing: &'static str,
        work: impl FnOnce(&mut Tx<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        match self {
            Self::Sqlite(store) => store.quick(|connection| {
                let transaction = connection.transaction().map_err(during(doing))?;
                work(&mut Tx::sqlite(&transaction, doing))
            }),
            Self::Postgres(store) => {
                store.quick(|session| read(session, begin_read(READ_TIMEOUT), doing, work))
            }
        }
    }

    /// Reads on a separate connection, as of one moment. A server waits for `READ_TIMEOUT` for the next rows.
    pub(crate) fn read<T>(
        self,
        doing: &'static str,
        work: impl FnOnce(&mut Tx<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.read_within(READ_TIMEOUT, doing, work)
    }

    /// As [`read`](Self::read), with a time limit of PostgreSQL for the next rows.
    pub(crate) fn read_within<T>(
        self,
        limit: Duration,
        doing: &'static str,
        work: impl FnOnce(&mut Tx<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        match self {
            Self::Sqlite(store) => {
                let mut connection = store.connect_to_change()?;
                let transaction = connection.transaction().map_err(during(doing))?;
                work(&mut Tx::sqlite(&transaction, doing))
            }
            Self::Postgres(store) => {
                read(&mut store.session(limit)?, begin_read(limit), doing, work)
            }
        }
    }

    /// Runs a transaction that writes, on a separate connection: see [`WriteConnection::write`].
    pub(crate) fn write<T>(
        self,
        lock: Lock,
        committed_at: FailPoint,
        doing: &'static str,
        work: impl FnOnce(&mut Tx<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.writer()?
            .write_until(lock, Some(committed_at), doing, work)
    }

    /// Opens a separate connection for several transactions that write.
    pub(crate) fn writer(self) -> Result<WriteConnection<'s>, StoreError> {
        Ok(match self {
            Self::Sqlite(store) => WriteConnection::Sqlite(store, store.connect_to_change()?),
            Self::Postgres(store) => WriteConnection::Postgres(store, store.writer()?),
        })
    }

    /// Runs a transaction that writes rows which others write for moments only, and that servers can repeat: fails with
    /// [`StoreError::Busy`] after `wait` in SQLite, and after a moment in PostgreSQL.
    pub(crate) fn write_briefly(
        self,
        wait: Duration,
        committed_at: FailPoint,
        doing: &'static str,
        work: impl FnOnce(&mut Tx<'_>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        match self {
            Self::Sqlite(store) => {
                let mut connection = store.connect_to_change()?;
                let wait = wait.min(store.lock_wait);
                connection.busy_timeout(wait).map_err(during(doing))?;
                write(&mut connection, Some(committed_at), doing, work)
            }
            Self::Postgres(store) => write_quickly(store, BEGIN_BRIEF, doing, work),
        }
    }
}

/// Clock of leases, which nobody sets: the database's in PostgreSQL, that of the machine since its start in SQLite.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LeaseClock {
    /// SQL for the present time in milliseconds, in statements whose parameter `$1` is `value`.
    pub(crate) now: &'static str,
    pub(crate) value: i64,
    /// Start of the machine: times of another start can't be compared.
    pub(crate) id: &'static str,
}

impl LeaseClock {
    fn of_machine() -> Result<Self, StoreError> {
        static BOOT: OnceLock<String> = OnceLock::new();
        let id = match BOOT.get() {
            Some(id) => id,
            None => {
                let path = Path::new("/proc/sys/kernel/random/boot_id");
                let read = std::fs::read_to_string(path).map_err(|source| StoreError::File {
                    doing: "read",
                    path: path.to_owned(),
                    source,
                });
                let id = read?.trim_end().to_owned();
                BOOT.get_or_init(|| id)
            }
        };
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        Ok(Self {
            now: "$1",
            value: now.tv_sec * 1_000 + now.tv_nsec / 1_000_000,
            id,
        })
    }
}

/// A separate connection for writing.
pub(crate) enum WriteConnection<'s> {
    Sqlite(&'s SqliteStore, Connection),
    Postgres(&'s PostgresStore, Session),
}

impl WriteConnection<'_> {
    /// Runs a transaction that writes. Waits for another writer: of the same subject in PostgreSQL, of any in SQLite.
    pub(crate) fn write<T>(
        &mut self,
        lock: Lock,
        doing: &'static str,
        work: impl FnOnce(&mut Tx<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.write_until(lock, None, doing, work)
    }

    fn write_until<T>(
        &mut self,
        lock: Lock,
        committed_at: Option<FailPoint>,
        doing: &'static str,
        work: impl FnOnce(&mut Tx<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        match self {
            Self::Sqlite(store, connection) => {
                store.waited(write(connection, committed_at, doing, work))
            }
            Self::Postgres(store, session) => session.transaction(doing, BEGIN, |session| {
                take_lock(session, lock, store.lock_wait)?;
                work(&mut Tx::postgres(session, doing))
            }),
        }
    }
}

/// Runs a transaction of PostgreSQL that reads.
fn read<T>(
    session: &mut Session,
    begin: String,
    doing: &'static str,
    work: impl FnOnce(&mut Tx<'_>) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    session.read(begin, |session| work(&mut Tx::postgres(session, doing)))
}

/// Runs a short transaction of PostgreSQL that writes, on the held connection.
pub(crate) fn write_quickly<T>(
    store: &PostgresStore,
    begin: &str,
    doing: &'static str,
    work: impl FnOnce(&mut Tx<'_>) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    store.quick(|session| {
        session.transaction(doing, begin, |session| {
            work(&mut Tx::postgres(session, doing))
        })
    })
}

/// Runs a transaction of SQLite that writes.
pub(crate) fn write<T>(
    connection: &mut Connection,
    committed_at: Option<FailPoint>,
    doing: &'static str,
    work: impl FnOnce(&mut Tx<'_>) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(during(doing))?;
    let done = work(&mut Tx::sqlite(&transaction, doing))?;
    match committed_at {
        Some(point) => committed(transaction.commit(), point, doing)?,
        None => transaction.commit().map_err(during(doing))?,
    }
    Ok(done)
}

/// Ways in which PostgreSQL finds rows from now on in a transaction. For SQLite, each statement says it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Plan {
    /// As it thinks best.
    Best,
    /// In the order of an index, without sorting: the first rows come at once, and nothing is sorted on the server's
    /// disk. 200,000 products in random order took 0.6 s, and 1.5 to 2.1 s with a sort.
    IndexOrder,
    /// By indexes. For a minute after a load, PostgreSQL's statistics don't tell how few rows match, and it would scan
    /// whole tables. A disabled plan counts as so expensive that PostgreSQL would compile the statement first (`jit`),
    /// for a tenth of a second or more.
    IndexLookups,
    /// Groups are made of sorted rows, and then looked up one by one: all that is looked up is never sorted itself.
    SortedGroups,
}

impl Plan {
    fn settings(self) -> &'static str {
        match self {
            Self::Best => {
                "set local enable_sort = on; set local enable_seqscan = on; \
                 set local enable_hashjoin = on; set local enable_mergejoin = on; \
                 set local enable_hashagg = on"
            }
            Self::IndexOrder => "set local enable_sort = off",
            Self::IndexLookups => {
                "set local enable_seqscan = off; set local enable_hashjoin = off; \
                 set local enable_mergejoin = off; set local jit = off"
            }
            Self::SortedGroups => "set local enable_hashagg = off",
        }
    }
}

/// Statements on one connection: in a transaction, unless they only read SQLite's file of webhooks.
pub(crate) struct Tx<'c> {
    connection: On<'c>,
    /// Operation, for errors.
    doing: &'static str,
}

enum On<'c> {
    Sqlite(&'c Connection),
    Postgres(&'c mut Session),
}

/// Returns a statement for SQLite, which the connection keeps.
fn prepare<'c>(
    connection: &'c Connection,
    sql: &str,
    doing: &'static str,
) -> Result<CachedStatement<'c>, StoreError> {
    let sql = dialect::sqlite(sql);
    connection.prepare_cached(&sql).map_err(during(doing))
}

impl<'c> Tx<'c> {
    pub(crate) fn sqlite(connection: &'c Connection, doing: &'static str) -> Self {
        Self {
            connection: On::Sqlite(connection),
            doing,
        }
    }

    pub(crate) fn postgres(session: &'c mut Session, doing: &'static str) -> Self {
        Self {
            connection: On::Postgres(session),
            doing,
        }
    }

    /// Returns the same connection, for a part that says something else of what it does.
    pub(crate) fn doing(&mut self, doing: &'static str) -> Tx<'_> {
        match &mut self.connection {
            On::Sqlite(connection) => Tx::sqlite(connection, doing),
            On::Postgres(session) => Tx::postgres(session, doing),
        }
    }

    #[cfg(not(feature = "fail-points"))]
    #[expect(clippy::unused_self, reason = "tests look at plans")]
    fn refuse_scans(&mut self, _sql: &str, _values: &[Value<'_>]) {}

    /// Runs a statement. Returns the number of affected rows.
    pub(crate) fn execute(&mut self, sql: &str, values: &[Value<'_>]) -> Result<u64, StoreError> {
        self.refuse_scans(sql, values);
        match &mut self.connection {
            On::Sqlite(connection) => prepare(connection, sql, self.doing)?
                .execute(rusqlite::params_from_iter(values))
                .map(|rows| rows as u64)
                .map_err(during(self.doing)),
            On::Postgres(session) => session.execute(self.doing, sql, &value::params(values)),
        }
    }

    /// Runs a query. Returns what `read` makes of its first row, if there is one.
    pub(crate) fn row<T>(
        &mut self,
        sql: &str,
        values: &[Value<'_>],
        read: impl FnOnce(&Row<'_>) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        self.refuse_scans(sql, values);
        match &mut self.connection {
            On::Sqlite(connection) => {
                let failed = during(self.doing);
                let mut statement = prepare(connection, sql, self.doing)?;
                let values = rusqlite::params_from_iter(values);
                let mut rows = statement.query(values).map_err(&failed)?;
                let row = rows.next().map_err(&failed)?;
                row.map(|row| read(&Row::Sqlite(row))).transpose()
            }
            On::Postgres(session) => {
                let row = session.row(self.doing, sql, &value::params(values))?;
                row.map(|row| read(&Row::Postgres(&row))).transpose()
            }
        }
    }

    /// Runs a query for one value, which it always has.
    pub(crate) fn value<T: for<'r> Column<'r>>(
        &mut self,
        sql: &str,
        values: &[Value<'_>],
    ) -> Result<T, StoreError> {
        let doing = self.doing;
        let found = self.row(sql, values, |row| row.get(0))?;
        found.ok_or_else(|| StoreError::Damaged(format!("a query returned no row ({doing})")))
    }

    /// Runs a query. Returns what `read` makes of each row.
    pub(crate) fn rows<T>(
        &mut self,
        sql: &str,
        values: &[Value<'_>],
        mut read: impl FnMut(&Row<'_>) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let mut found = Vec::new();
        self.each(sql, values, |row| {
            found.push(read(row)?);
            Ok(())
        })?;
        Ok(found)
    }

    /// Runs a query and calls `visit` with each row as it arrives: the rows are never all in memory.
    pub(crate) fn each(
        &mut self,
        sql: &str,
        values: &[Value<'_>],
        mut visit: impl FnMut(&Row<'_>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.refuse_scans(sql, values);
        match &mut self.connection {
            On::Sqlite(connection) => {
                let failed = during(self.doing);
                let mut statement = prepare(connection, sql, self.doing)?;
                let values = rusqlite::params_from_iter(values);
                let mut rows = statement.query(values).map_err(&failed)?;
                while let Some(row) = rows.next().map_err(&failed)? {
                    visit(&Row::Sqlite(row))?;
                }
                Ok(())
            }
            On::Postgres(session) => {
                session.each_row(self.doing, sql, &value::params(values), |row| {
                    visit(&Row::Postgres(row))
                })
            }
        }
    }

    /// Runs a statement once for each of these lists of parameters: in PostgreSQL without waiting in between. Returns the
    /// number of affected rows.
    pub(crate) fn execute_each(
        &mut self,
        sql: &str,
        lists: &[Vec<Value<'_>>],
    ) -> Result<u64, StoreError> {
        if let Some(values) = lists.first() {
            self.refuse_scans(sql, values);
        }
        match &mut self.connection {
            On::Sqlite(connection) => {
                let failed = during(self.doing);
                let mut statement = prepare(connection, sql, self.doing)?;
                let mut affected = 0;
                for values in lists {
                    let values = rusqlite::params_from_iter(values);
                    affected += statement.execute(values).map_err(&failed)? as u64;
                }
                Ok(affected)
            }
            On::Postgres(session) => {
                let lists: Vec<_> = lists.iter().map(|values| value::params(values)).collect();
                session.execute_each(self.doing, sql, &lists)
            }
        }
    }

    /// Returns the clock of leases.
    pub(crate) fn lease_clock(&self) -> Result<LeaseClock, StoreError> {
        match &self.connection {
            On::Sqlite(_) => LeaseClock::of_machine(),
            On::Postgres(_) => Ok(LeaseClock {
                now: "(extract(epoch from clock_timestamp()) * 1000)::bigint",
                value: 0,
                id: "",
            }),
        }
    }

    /// Returns whether statements can go on after an error.
    pub(crate) fn is_usable(&self) -> bool {
        match &self.connection {
            On::Sqlite(_) => true,
            On::Postgres(session) => session.is_usable(),
        }
    }

    /// Tells PostgreSQL how to find rows from now on in this transaction.
    pub(crate) fn plan(&mut self, plan: Plan) -> Result<(), StoreError> {
        match &mut self.connection {
            On::Sqlite(_) => Ok(()),
            On::Postgres(session) => session.run(self.doing, plan.settings()),
        }
    }

    /// From now on, waits longer for the first row of an answer of PostgreSQL, which may have to sort first.
    pub(crate) fn wait_for_sorts(&mut self) {
        if let On::Postgres(session) = &mut self.connection {
            session.set_first_row_timeout(SORT_TIMEOUT);
        }
    }

    /// Takes a further lock of PostgreSQL until the end of the transaction. In SQLite, a writer has locked everything.
    pub(crate) fn lock(&mut self, lock: Lock, wait: Duration) -> Result<(), StoreError> {
        match &mut self.connection {
            On::Sqlite(_) => Ok(()),
            On::Postgres(session) => take_lock(session, lock, wait),
        }
    }

    /// Wakes the servers that listen, once the transaction is committed. Those of SQLite poll only.
    pub(crate) fn notify(&mut self) -> Result<(), StoreError> {
        match &mut self.connection {
            On::Sqlite(_) => Ok(()),
            On::Postgres(session) => session.run(self.doing, "select pg_notify('vitrine', '')"),
        }
    }
}

/// Returns the free space in an SQLite file that later writes reuse, in bytes.
pub(crate) fn free_bytes(tx: &mut Tx<'_>) -> Result<u64, StoreError> {
    let sql = "select freelist_count * page_size from pragma_freelist_count, pragma_page_size";
    match &tx.connection {
        On::Sqlite(_) => tx.value(sql, &[]).map(i64::unsigned_abs),
        On::Postgres(_) => Ok(0),
    }
}
