//! Progress of a load.

/// Is told how far a load is. Calls are frequent and must be cheap.
pub trait Progress {
    /// Reading begins: so many bytes, if that is known.
    fn reading(&self, bytes: Option<u64>);
    /// So many more bytes were read.
    fn read(&self, bytes: u64);
    /// Applying begins: so many records.
    fn applying(&self, records: u64);
    /// One more record was applied.
    fn applied(&self);
    /// The load has ended.
    fn finish(&self);
}

/// Tells nobody.
#[derive(Debug, Clone, Copy)]
pub struct Silent;

impl Progress for Silent {
    fn reading(&self, _: Option<u64>) {}
    fn read(&self, _: u64) {}
    fn applying(&self, _: u64) {}
    fn applied(&self) {}
    fn finish(&self) {}
}
