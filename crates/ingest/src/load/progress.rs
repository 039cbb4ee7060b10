//! Progress of a load.

/// Observer of a load's progress. Calls are frequent and must be cheap.
pub trait Progress {
    /// Reading begins, of `bytes` if that is known.
    fn reading(&self, bytes: Option<u64>);
    /// More bytes were read.
    fn read(&self, bytes: u64);
    /// Applying begins, of this number of records.
    fn applying(&self, records: u64);
    /// A record was applied.
    fn applied(&self);
    /// The load has ended.
    fn finish(&self);
}

/// Observer that does nothing.
#[derive(Debug, Clone, Copy)]
pub struct Silent;

impl Progress for Silent {
    fn reading(&self, _: Option<u64>) {}
    fn read(&self, _: u64) {}
    fn applying(&self, _: u64) {}
    fn applied(&self) {}
    fn finish(&self) {}
}
