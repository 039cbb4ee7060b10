//! Timeouts, and the beginnings of transactions.

use std::time::Duration;

/// Interval between polls of a shared database: half of the second that the contract promises.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Timeout of a call for a row or two.
pub(super) const QUICK_TIMEOUT: Duration = Duration::from_secs(1);

/// Timeout of a call for a row or two in a command, which has nothing else to do on a busy machine.
pub(super) const COMMAND_TIMEOUT: Duration = Duration::from_secs(10);

/// Timeout for the next rows of a large read by a server, which can retry.
pub(crate) const READ_TIMEOUT: Duration = Duration::from_secs(5);

/// Timeout for the first row of a large read that is sorted first.
pub(crate) const SORT_TIMEOUT: Duration = Duration::from_secs(60);

/// Timeout of a statement of a command that reads or writes much. A broken network is noticed long before.
pub(crate) const WORK_TIMEOUT: Duration = Duration::from_secs(60 * 60);

/// Begins a transaction that writes.
pub(crate) const BEGIN: &str =
    "begin isolation level read committed read write; set local statement_timeout = '1h'";

/// Returns what begins a transaction for a row or two, read as of one moment.
pub(crate) fn begin_quick(limit: Duration) -> String {
    let limit = limit.as_millis();
    format!(
        "begin isolation level repeatable read read only; set local statement_timeout = {limit}"
    )
}

/// Returns what begins a transaction that reads much, as of one moment, whatever timeout the role or the database has set.
/// `limit` is the timeout for the next rows. The server's own are longer: they end what a lost client has left behind.
pub(crate) fn begin_read(limit: Duration) -> String {
    let lock = (limit + Duration::from_secs(1)).as_millis();
    let minutes = if limit > READ_TIMEOUT { 60 } else { 10 };
    format!(
        "begin isolation level repeatable read read only; \
         set local lock_timeout = {lock}; set local statement_timeout = '{minutes}min'"
    )
}
