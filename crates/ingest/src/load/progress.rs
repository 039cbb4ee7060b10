//! Progress of a load.

/// Observer of a load's progress. Calls are frequent and must be cheap.
pub trait Progress {
    /// Reading and checking begin, of `bytes` if that is known.
    fn reading(&self, bytes: Option<u64>);
    /// More bytes were read.
    fn read(&self, bytes: u64);
    /// A record was checked.
    fn checked(&self);
    /// Writing begins, of this number of records.
    fn writing(&self, records: u64);
    /// More records were written, or found unchanged.
    fn wrote(&self, records: u64);
    /// The commit begins.
    fn committing(&self);
    /// The load has ended.
    fn finish(&self);
}

/// Observer that does nothing.
#[derive(Debug, Clone, Copy)]
pub struct Silent;

impl Progress for Silent {
    fn reading(&self, _: Option<u64>) {}
    fn read(&self, _: u64) {}
    fn checked(&self) {}
    fn writing(&self, _: u64) {}
    fn wrote(&self, _: u64) {}
    fn committing(&self) {}
    fn finish(&self) {}
}
