//! A connection to the database, driven by a thread of the store's own, on which the callers' threads wait with a
//! time limit.
//!
//! Nothing here outlives a transaction: no named statement, no setting, no lock of a session. So a pooler may give
//! each transaction another connection (PgBouncer's transaction mode).

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{ReadyChunks, StreamExt};
use futures_util::{FutureExt, SinkExt};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row, RowStream, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::failure::{Failure, at_commit};
use super::target::Target;
use crate::StoreError;

/// How many rows are handed over at once at most.
const CHUNK: usize = 256;

/// The thread that drives connections. Callers don't drive them themselves: they may be inside of another runtime,
/// and a connection that nobody waits on must notice that it broke all the same.
pub(super) struct Background(Option<Runtime>);

impl Background {
    pub(super) fn start() -> Result<Self, StoreError> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("postgres")
            .enable_all()
            .build();
        runtime
            .map(|runtime| Self(Some(runtime)))
            .map_err(|source| StoreError::Database {
                doing: "starting the database's thread",
                source: source.into(),
            })
    }

    fn runtime(&self) -> Option<&Runtime> {
        self.0.as_ref()
    }

    /// Waits for `work`, `limit` at most.
    pub(super) fn wait<T>(
        &self,
        limit: Duration,
        work: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, Failure> {
        match self.wait_long(async { tokio::time::timeout(limit, work).await }) {
            Ok(outcome) => outcome.map_err(Failure::Postgres),
            Err(_) => Err(Failure::Silence(limit)),
        }
    }

    /// Waits for `work`, which knows limits of its own.
    fn wait_long<T>(&self, work: impl Future<Output = T>) -> T {
        let _inside = self.runtime().map(Runtime::enter);
        block_on(work)
    }

    /// Does `work` on the thread.
    pub(super) fn start_task(
        &self,
        work: impl Future<Output = ()> + Send + 'static,
    ) -> Option<JoinHandle<()>> {
        self.runtime().map(|runtime| runtime.spawn(work))
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        // Not to be waited for: a look-up of a name may take long.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// Runs a future on this thread, which sleeps while it waits.
fn block_on<T>(work: impl Future<Output = T>) -> T {
    struct Unpark(std::thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut work = pin!(work);
    loop {
        match work.as_mut().poll(&mut context) {
            Poll::Ready(outcome) => return outcome,
            Poll::Pending => std::thread::park(),
        }
    }
}

/// What drives a connection.
pub(super) type Driver = tokio_postgres::Connection<
    Socket,
    <MakeRustlsConnect as tokio_postgres::tls::MakeTlsConnect<Socket>>::Stream,
>;

/// A value of a statement, with its type: statements aren't described before they are run.
pub(super) type Param<'a> = (&'a (dyn ToSql + Sync), Type);

/// What can be a value of a statement.
pub(super) trait Typed: ToSql + Sync + Sized {
    const TYPE: Type;

    fn param(&self) -> Param<'_> {
        (self, Self::TYPE)
    }
}

macro_rules! typed {
    ($($own:ty => $one:ident, $many:ident;)*) => {
        $(impl Typed for $own {
            const TYPE: Type = Type::$one;
        }
        impl Typed for Option<$own> {
            const TYPE: Type = Type::$one;
        }
        impl Typed for Vec<$own> {
            const TYPE: Type = Type::$many;
        })*
    };
}

typed! {
    i32 => INT4, INT4_ARRAY;
    i64 => INT8, INT8_ARRAY;
    bool => BOOL, BOOL_ARRAY;
    String => TEXT, TEXT_ARRAY;
    &str => TEXT, TEXT_ARRAY;
    &[u8] => BYTEA, BYTEA_ARRAY;
}

/// A connection.
pub(super) struct Session {
    background: Arc<Background>,
    client: Client,
    target: Arc<Target>,
    /// How long one answer may take.
    limit: Duration,
    /// How long the next rows of one answer may take.
    rows_limit: Duration,
    is_broken: bool,
    /// What drives the connection. None once it was given up.
    driver: Option<JoinHandle<()>>,
}

impl Drop for Session {
    fn drop(&mut self) {
        if self.is_broken && !self.client.is_closed() {
            self.give_up();
        }
    }
}

impl Session {
    /// Connects. Answers may take `limit`.
    pub(super) fn open(
        background: &Arc<Background>,
        target: &Arc<Target>,
        limit: Duration,
    ) -> Result<Self, StoreError> {
        let (client, driver) = background
            .wait_long(target.connect())
            .map_err(|failure| failure.during("connecting", &target.place))?;
        // What it ends with, the next call is told of.
        let driver = background.start_task(driver.map(drop));
        Ok(Self {
            background: Arc::clone(background),
            client,
            target: Arc::clone(target),
            limit,
            rows_limit: limit,
            is_broken: false,
            driver,
        })
    }

    /// Answers may take `limit` from now on.
    pub(super) fn within(&mut self, limit: Duration) {
        self.limit = limit;
        self.rows_limit = limit;
    }

    /// Answers may take `limit` to begin from now on; their next rows as long as they might before.
    pub(super) fn begins_within(&mut self, limit: Duration) {
        self.limit = limit;
    }

    pub(super) fn is_usable(&self) -> bool {
        !self.is_broken && !self.client.is_closed()
    }

    fn ask<T>(
        &mut self,
        doing: &'static str,
        ask: impl AsyncFnOnce(&Client) -> Result<T, tokio_postgres::Error>,
    ) -> Result<T, StoreError> {
        self.ask_within(self.limit, doing, ask)
    }

    fn ask_within<T>(
        &mut self,
        limit: Duration,
        doing: &'static str,
        ask: impl AsyncFnOnce(&Client) -> Result<T, tokio_postgres::Error>,
    ) -> Result<T, StoreError> {
        let outcome = self.background.wait(limit, ask(&self.client));
        outcome.map_err(|failure| {
            self.is_broken |= failure.breaks_connection();
            if matches!(failure, Failure::Silence(_)) {
                self.give_up();
            }
            failure.during(doing, &self.target.place)
        })
    }

    /// Tells the server to give up what it was asked, and doesn't wait for that: else those who were given up would
    /// gather there. Then closes the connection: else it would stay for as long as the server is silent.
    fn give_up(&mut self) {
        let Some(driver) = self.driver.take() else {
            return;
        };
        let (token, target) = (self.client.cancel_token(), Arc::clone(&self.target));
        self.background.start_task(async move {
            let told = token.cancel_query(target.tls.clone());
            // A server that doesn't answer doesn't hear this, either.
            let _ = tokio::time::timeout(target.connect_limit, told).await;
            driver.abort();
        });
    }

    /// Runs statements without values, one after the other.
    pub(super) fn run(&mut self, doing: &'static str, sql: &str) -> Result<(), StoreError> {
        self.ask(doing, async |client| client.batch_execute(sql).await)
    }

    /// Runs a statement. Returns how many rows it touched.
    pub(super) fn execute(
        &mut self,
        doing: &'static str,
        sql: &str,
        params: &[Param<'_>],
    ) -> Result<u64, StoreError> {
        self.ask(doing, async |client| {
            client.execute_typed(sql, params).await
        })
    }

    /// All rows that a statement gives.
    pub(super) fn rows(
        &mut self,
        doing: &'static str,
        sql: &str,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, StoreError> {
        self.ask(doing, async |client| client.query_typed(sql, params).await)
    }

    /// The one row that a statement gives, if it gives one.
    pub(super) fn row(
        &mut self,
        doing: &'static str,
        sql: &str,
        params: &[Param<'_>],
    ) -> Result<Option<Row>, StoreError> {
        Ok(self.rows(doing, sql, params)?.into_iter().next())
    }

    /// The number that a statement gives.
    pub(super) fn number(
        &mut self,
        doing: &'static str,
        sql: &str,
        params: &[Param<'_>],
    ) -> Result<i64, StoreError> {
        match self.row(doing, sql, params)? {
            Some(row) => get(&row, 0),
            None => Err(StoreError::Damaged(format!("no row while {doing}"))),
        }
    }

    /// Calls `visit` with each row that a statement gives, while more of them come: the whole is never held.
    pub(super) fn each_row(
        &mut self,
        doing: &'static str,
        sql: &str,
        params: &[Param<'_>],
        mut visit: impl FnMut(&Row) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let params = params.iter().map(|(value, kind)| (*value, kind.clone()));
        let rows = self.ask(doing, async |client| {
            client.query_typed_raw(sql, params).await
        })?;
        let mut chunks: ReadyChunks<Pin<Box<RowStream>>> = Box::pin(rows).ready_chunks(CHUNK);
        let outcome = loop {
            let next = self.ask_within(self.rows_limit, doing, async |_| {
                let chunk = chunks.next().await.unwrap_or_default();
                chunk.into_iter().collect::<Result<Vec<Row>, _>>()
            });
            match next {
                Err(error) => break Err(error),
                Ok(rows) if rows.is_empty() => return Ok(()),
                // Visitors may take their time: this thread waits for nothing meanwhile.
                Ok(rows) => {
                    if let Err(error) = rows.iter().try_for_each(&mut visit) {
                        break Err(error);
                    }
                }
            }
        };
        // The rest is still coming.
        self.is_broken = true;
        outcome
    }

    /// Runs `COPY … FROM STDIN` with these bytes.
    pub(super) fn copy_in(
        &mut self,
        doing: &'static str,
        sql: &str,
        bytes: Bytes,
    ) -> Result<(), StoreError> {
        self.ask(doing, async |client| {
            // The client library gives this statement a name, and takes it back before the transaction ends.
            let mut sink = pin!(client.copy_in::<_, Bytes>(sql).await?);
            sink.send(bytes).await?;
            sink.finish().await.map(drop)
        })
    }

    /// Does `work` in a transaction, which begins as `begin` says. Where it fails, nothing was changed.
    pub(super) fn transaction<T>(
        &mut self,
        doing: &'static str,
        begin: &str,
        work: impl FnOnce(&mut Self) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.run(doing, begin)?;
        match work(self) {
            Ok(done) => {
                self.commit(doing)?;
                Ok(done)
            }
            Err(error) => {
                if self.is_usable() && self.run(doing, "rollback").is_err() {
                    self.is_broken = true;
                }
                Err(error)
            }
        }
    }

    /// Commits.
    pub(super) fn commit(&mut self, doing: &'static str) -> Result<(), StoreError> {
        let outcome = self.run(doing, "commit").map_err(at_commit);
        self.is_broken |= outcome.is_err();
        outcome
    }
}

/// A column of a row.
pub(super) fn get<'r, T: tokio_postgres::types::FromSql<'r>>(
    row: &'r Row,
    column: usize,
) -> Result<T, StoreError> {
    row.try_get(column)
        .map_err(|error| StoreError::Damaged(format!("column {column}: {error}")))
}

/// A column that counts something.
pub(super) fn count(row: &Row, column: usize) -> Result<u64, StoreError> {
    let number: i64 = get(row, column)?;
    u64::try_from(number).map_err(|_| StoreError::Damaged(format!("a count of {number}")))
}

/// A number as the database takes it.
pub(super) fn number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
