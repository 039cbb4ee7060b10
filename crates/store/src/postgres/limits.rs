//! Timeouts, and the beginnings of transactions.

use std::time::Duration;

/// Interval between polls of a shared database: half of the second that the contract promises.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Timeout of a call for a row or two.
pub(super) const QUICK_TIMEOUT: Duration = Duration::from_secs(1);

/// Timeout of a call for a row or two in a command, which has nothing else to do on a busy machine.
pub(super) const COMMAND_TIMEOUT: Duration = Duration::from_secs(10);

/// Timeout for the next rows of a large read by a server, which can retry.
pub(super) const READ_TIMEOUT: Duration = Duration::from_secs(5);

/// Timeout for the first row of a large read that is sorted first.
pub(super) const SORT_TIMEOUT: Duration = Duration::from_secs(60);

/// Timeout of a statement of a command that reads or writes much. A broken network is noticed long before.
pub(super) const WORK_TIMEOUT: Duration = Duration::from_secs(60 * 60);

/// Begins a read-only transaction as of one moment, without the role's or the database's timeout.
pub(super) const BEGIN_READ: &str =
    "begin isolation level repeatable read read only; set local statement_timeout = 0";

/// Begins a transaction that writes, whatever the role or the database has set. Timeouts are on this side.
pub(super) const BEGIN: &str =
    "begin isolation level read committed read write; set local statement_timeout = 0";
