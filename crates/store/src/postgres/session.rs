//! A connection to the database, driven by a background thread; callers wait for answers with a timeout. And its failures, as
//! the store's.
//!
//! Nothing outlives a transaction: no named statement, no setting, no session lock. So a pooler may give each transaction
//! another connection (PgBouncer's transaction mode).

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{ReadyChunks, StreamExt};
use futures_util::{FutureExt, SinkExt};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row, RowStream, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::target::Target;
use crate::StoreError;

/// Maximum number of rows handed over at once.
const CHUNK: usize = 256;

/// The thread that drives connections. Callers don't drive them: they may be inside another runtime, and an idle
/// connection must notice, too, that it broke.
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
                doing: "starting the thread for the database",
                source: source.into(),
            })
    }

    fn runtime(&self) -> Option<&Runtime> {
        self.0.as_ref()
    }

    /// Waits for `work`, at most `limit`.
    pub(super) fn wait<T>(
        &self,
        limit: Duration,
        work: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, Failure> {
        match self.wait_unbounded(async { tokio::time::timeout(limit, work).await }) {
            Ok(outcome) => outcome.map_err(Failure::Postgres),
            Err(_) => Err(Failure::Timeout(limit)),
        }
    }

    /// Waits for `work`, which has timeouts of its own.
    fn wait_unbounded<T>(&self, work: impl Future<Output = T>) -> T {
        let _inside = self.runtime().map(Runtime::enter);
        block_on(work)
    }

    /// Runs `work` on the thread.
    pub(super) fn start_task(
        &self,
        work: impl Future<Output = ()> + Send + 'static,
    ) -> Option<JoinHandle<()>> {
        self.runtime().map(|runtime| runtime.spawn(work))
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        // Without waiting: resolving a name may take long.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// Runs a future on this thread, which is parked while it waits.
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

/// Future that drives a connection.
pub(super) type Driver = tokio_postgres::Connection<
    Socket,
    <MakeRustlsConnect as tokio_postgres::tls::MakeTlsConnect<Socket>>::Stream,
>;

/// A parameter with its type: statements aren't described before they run.
pub(crate) type Param<'a> = (&'a (dyn ToSql + Sync), Type);

/// A connection.
pub(crate) struct Session {
    background: Arc<Background>,
    client: Client,
    target: Arc<Target>,
    /// Timeout of an answer.
    limit: Duration,
    /// Timeout for the next rows of an answer.
    rows_limit: Duration,
    is_broken: bool,
    /// Beginning of a transaction that reads. It is sent with the first statement, which saves a round trip.
    begin: Option<String>,
    /// Task that drives the connection; none after a timeout.
    driver: Option<JoinHandle<()>>,
}

impl Drop for Session {
    fn drop(&mut self) {
        // A server that still sends rows notices that this closes. Otherwise the library would read them to their end.
        if let Some(driver) = self.driver.take().filter(|_| self.is_broken) {
            driver.abort();
        }
    }
}

impl Session {
    /// Connects. `limit` is the timeout of answers.
    pub(super) fn open(
        background: &Arc<Background>,
        target: &Arc<Target>,
        limit: Duration,
    ) -> Result<Self, StoreError> {
        let (client, driver) = background
            .wait_unbounded(target.connect())
            .map_err(|failure| failure.during("connecting", &target.place))?;
        // The next call reports its error.
        let driver = background.start_task(driver.map(drop));
        Ok(Self {
            background: Arc::clone(background),
            client,
            target: Arc::clone(target),
            limit,
            rows_limit: limit,
            is_broken: false,
            begin: None,
            driver,
        })
    }

    /// Sets the timeout of answers.
    pub(crate) fn set_timeout(&mut self, limit: Duration) {
        self.limit = limit;
        self.rows_limit = limit;
    }

    /// Sets the timeout of the first row of answers; that of the next rows stays.
    pub(crate) fn set_first_row_timeout(&mut self, limit: Duration) {
        self.limit = limit;
    }

    pub(crate) fn is_usable(&self) -> bool {
        !self.is_broken && !self.client.is_closed()
    }

    fn call<T>(
        &mut self,
        doing: &'static str,
        statement: impl AsyncFnOnce(&Client) -> Result<T, tokio_postgres::Error>,
    ) -> Result<T, StoreError> {
        self.call_within(self.limit, doing, statement)
    }

    fn call_within<T>(
        &mut self,
        limit: Duration,
        doing: &'static str,
        statement: impl AsyncFnOnce(&Client) -> Result<T, tokio_postgres::Error>,
    ) -> Result<T, StoreError> {
        let begin = self.begin.take();
        let outcome = self.background.wait(limit, async {
            let statement = statement(&self.client);
            match begin {
                // Both are on their way before an answer is awaited.
                Some(begin) => {
                    let begin = self.client.batch_execute(&begin);
                    Ok(futures_util::future::try_join(begin, statement).await?.1)
                }
                None => statement.await,
            }
        });
        outcome.map_err(|failure| {
            self.is_broken |= failure.breaks_connection();
            if matches!(failure, Failure::Timeout(_))
                && let Some(driver) = self.driver.take()
            {
                // Otherwise it would stay open while the server doesn't answer. `statement_timeout` ends the statement.
                driver.abort();
            }
            failure.during(doing, &self.target.place)
        })
    }

    /// Runs statements without parameters, one after the other.
    pub(crate) fn run(&mut self, doing: &'static str, sql: &str) -> Result<(), StoreError> {
        self.call(doing, async |client| client.batch_execute(sql).await)
    }

    /// As [`run`](Self::run), with another timeout.
    pub(super) fn run_within(
        &mut self,
        limit: Duration,
        doing: &'static str,
        sql: &str,
    ) -> Result<(), StoreError> {
        self.call_within(limit, doing, async |client| client.batch_execute(sql).await)
    }

    /// Runs a statement. Returns the number of affected rows.
    pub(crate) fn execute(
        &mut self,
        doing: &'static str,
        sql: &str,
        params: &[Param<'_>],
    ) -> Result<u64, StoreError> {
        self.call(doing, async |client| {
            client.execute_typed(sql, params).await
        })
    }

    /// Runs a statement once for each of these lists of parameters, without waiting for one before the next is sent. Returns
    /// the number of affected rows.
    pub(crate) fn execute_each(
        &mut self,
        doing: &'static str,
        sql: &str,
        lists: &[Vec<Param<'_>>],
    ) -> Result<u64, StoreError> {
        self.call(doing, async |client| {
            let all = lists.iter().map(|params| client.execute_typed(sql, params));
            let counts = futures_util::future::try_join_all(all).await?;
            Ok(counts.into_iter().sum())
        })
    }

    /// Runs a query. Returns its first row, if there is one.
    pub(crate) fn row(
        &mut self,
        doing: &'static str,
        sql: &str,
        params: &[Param<'_>],
    ) -> Result<Option<Row>, StoreError> {
        Ok(self.rows(doing, sql, params)?.into_iter().next())
    }

    /// Runs a query. Returns its rows.
    pub(crate) fn rows(
        &mut self,
        doing: &'static str,
        sql: &str,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, StoreError> {
        self.call(doing, async |client| client.query_typed(sql, params).await)
    }

    /// Runs a query and calls `visit` with each row while others arrive: the rows are never all in memory.
    pub(crate) fn each_row(
        &mut self,
        doing: &'static str,
        sql: &str,
        params: &[Param<'_>],
        mut visit: impl FnMut(&Row) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let params = params.iter().map(|(value, kind)| (*value, kind.clone()));
        let rows = self.call(doing, async |client| {
            client.query_typed_raw(sql, params).await
        })?;
        let mut chunks: ReadyChunks<Pin<Box<RowStream>>> = Box::pin(rows).ready_chunks(CHUNK);
        let outcome = loop {
            let next = self.call_within(self.rows_limit, doing, async |_| {
                let chunk = chunks.next().await.unwrap_or_default();
                chunk.into_iter().collect::<Result<Vec<Row>, _>>()
            });
            match next {
                Err(error) => break Err(error),
                Ok(rows) if rows.is_empty() => return Ok(()),
                // Without a timeout: visitors may take long.
                Ok(rows) => {
                    if let Err(error) = rows.iter().try_for_each(&mut visit) {
                        break Err(error);
                    }
                }
            }
        };
        // More rows are on their way.
        self.is_broken = true;
        outcome
    }

    /// Runs `COPY … FROM STDIN` with these bytes.
    pub(crate) fn copy_in(
        &mut self,
        doing: &'static str,
        sql: &str,
        bytes: Bytes,
    ) -> Result<(), StoreError> {
        self.call(doing, async |client| {
            // The client library names this statement, and drops it before the transaction ends.
            let mut sink = pin!(client.copy_in::<_, Bytes>(sql).await?);
            sink.send(bytes).await?;
            sink.finish().await.map(drop)
        })
    }

    /// Runs `work` in a transaction, which the statement `begin` begins; rolls back if it fails.
    pub(crate) fn transaction<T>(
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

    /// Runs `work` in a transaction that only reads, which the statement `begin` begins. A read of one statement takes one
    /// round trip.
    pub(crate) fn read<T>(
        &mut self,
        begin: String,
        work: impl FnOnce(&mut Self) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.begin = Some(begin);
        let outcome = work(self);
        let has_begun = self.begin.take().is_none();
        if has_begun && self.is_usable() {
            // Sent without waiting for the answer: there is nothing to commit, and the next statement comes after it.
            let sent = self.client.batch_execute("commit").now_or_never();
            self.is_broken |= matches!(sent, Some(Err(_)));
        }
        outcome
    }

    /// Commits.
    pub(crate) fn commit(&mut self, doing: &'static str) -> Result<(), StoreError> {
        let outcome = self.run(doing, "commit").map_err(at_commit);
        self.is_broken |= outcome.is_err();
        outcome
    }
}

/// Returns a column of a row.
pub(super) fn get<'r, T: tokio_postgres::types::FromSql<'r>>(
    row: &'r Row,
    column: usize,
) -> Result<T, StoreError> {
    row.try_get(column)
        .map_err(|error| StoreError::Damaged(format!("column {column}: {error}")))
}

/// Cause of a failed call.
#[derive(Debug)]
pub(super) enum Failure {
    /// Error of the database, the connection or the client library.
    Postgres(tokio_postgres::Error),
    /// No answer for this long.
    Timeout(Duration),
}

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Postgres(error)
    }
}

impl Failure {
    /// Returns whether the connection can't be used any more.
    fn breaks_connection(&self) -> bool {
        match self {
            Self::Timeout(_) => true,
            Self::Postgres(error) => match error.as_db_error() {
                Some(error) => is_unavailable(error.code()),
                None => true,
            },
        }
    }

    /// Returns the store's error. `doing` is the failed operation, `place` the address of the database.
    fn during(self, doing: &'static str, place: &str) -> StoreError {
        let place = place.to_owned();
        let error = match self {
            Self::Timeout(limit) => {
                let source = format!("no answer within {} s", limit.as_secs_f32()).into();
                return StoreError::Unreachable {
                    place,
                    doing,
                    source,
                };
            }
            Self::Postgres(error) => error,
        };
        let Some(said) = error.as_db_error() else {
            let is_wrong_value = error.to_string().contains("serializing");
            let source = error.into();
            return match is_wrong_value {
                true => StoreError::Database { doing, source },
                false => StoreError::Unreachable {
                    place,
                    doing,
                    source,
                },
            };
        };
        // Without the client library's general message in front of it.
        let detail = said.detail().map(|detail| format!(" ({detail})"));
        let detail = detail.unwrap_or_default();
        let (message, code) = (said.message().trim(), said.code());
        let source = format!("{message}{detail}, SQLSTATE {}", code.code()).into();
        match code.clone() {
            code if is_unavailable(&code) => StoreError::Unreachable {
                place,
                doing,
                source,
            },
            code if is_access_denied(&code) => StoreError::Refused {
                place,
                doing,
                source,
            },
            // The store existed when the connection was opened.
            SqlState::UNDEFINED_TABLE | SqlState::INVALID_SCHEMA_NAME => {
                StoreError::Missing { place }
            }
            SqlState::LOCK_NOT_AVAILABLE => StoreError::Busy {
                waited_seconds: 0,
                holder: None,
            },
            SqlState::DISK_FULL => StoreError::Full,
            SqlState::IO_ERROR => StoreError::Disk { doing, source },
            SqlState::DATA_CORRUPTED | SqlState::INDEX_CORRUPTED => {
                StoreError::Damaged(said.message().to_owned())
            }
            // The second is a replica's error at the begin of a transaction that writes.
            SqlState::READ_ONLY_SQL_TRANSACTION | SqlState::FEATURE_NOT_SUPPORTED => {
                StoreError::ReadOnly { place }
            }
            _ => StoreError::Database { doing, source },
        }
    }
}

/// Converts the error of a commit: if the connection broke, the outcome is unknown.
fn at_commit(error: StoreError) -> StoreError {
    match error {
        StoreError::Unreachable { doing, source, .. } => {
            StoreError::UnreachableAtCommit { doing, source }
        }
        StoreError::Disk { doing, source } => StoreError::DiskAtCommit { doing, source },
        other => other,
    }
}

/// Returns whether the server, or a pooler in front of it, is stopping, starting or out of resources: a retry may succeed.
fn is_unavailable(code: &SqlState) -> bool {
    // Broken connections, operator intervention, and insufficient resources (connections, memory).
    let is_such = ["08", "57P", "53"]
        .iter()
        .any(|class| code.code().starts_with(class));
    // The second is the end of a `statement_timeout`.
    let others = [
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::QUERY_CANCELED,
    ];
    let is_unavailable = is_such || others.contains(code);
    is_unavailable && *code != SqlState::DISK_FULL
}

/// Returns whether the database denies access: the user, the password, the name of the database or a grant is wrong.
fn is_access_denied(code: &SqlState) -> bool {
    code.code().starts_with("28")
        || [
            SqlState::INVALID_CATALOG_NAME,
            SqlState::INSUFFICIENT_PRIVILEGE,
        ]
        .contains(code)
}
