//! Metrics of overrides that begin and end at a time.

use super::{Counter, Gauge};

/// Counters of the thread that applies them.
#[derive(Debug, Default)]
pub struct InstantMetrics {
    /// Time by which the earliest beginning or end of an override is overdue, in seconds.
    pub overdue_seconds: Gauge,
    /// Number of instants applied.
    pub applied: Counter,
    /// Number of those that exceeded a limit that loads have.
    pub exceeding: Counter,
}
