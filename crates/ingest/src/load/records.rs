//! Records to load, on their way from the spool to the store.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};

use vitrine_model::code::ProductCode;
use vitrine_store::prepared::{PreparedProduct, RecordDigest};

use super::first_places::FirstPlaces;
use super::known_records::KnownRecords;
use super::read::columns::Stated;
use super::reading::duplicate;
use super::rejected::RejectedFile;
use super::rendered::{Packer, RecordTexts, RenderedRecord};
use super::report::{Place, Report};
use super::spool::Entry;
use super::spooled::Spooled;
use super::waiting::{KnownRecord, WaitingRecord};

/// Maximum number of records that are put together.
const MAX_FEW: usize = 256;

/// Length of documents from which on no more records are put together, in bytes.
const MAX_FEW_BYTES: usize = 1 << 20;

/// Maximum number of such batches read ahead of the store's writes.
const READ_AHEAD: usize = 2;

/// A record that is ready to be put.
pub(super) enum ReadyRecord {
    /// Known to lead to a product that was live.
    Known(KnownRecord),
    Rendered(Box<PreparedRecord>),
}

/// A record whose product is ready to be put.
pub(super) struct PreparedRecord {
    pub(super) product: PreparedProduct,
    pub(super) texts: RecordTexts,
}

impl PreparedRecord {
    fn new(record: RenderedRecord, digest: Option<RecordDigest>) -> anyhow::Result<Self> {
        let RenderedRecord { product, texts } = record;
        let mut product = PreparedProduct::new(product)?;
        product.set_record(digest);
        Ok(Self { product, texts })
    }
}

impl ReadyRecord {
    pub(super) fn code(&self) -> &ProductCode {
        match self {
            Self::Known(known) => &known.code,
            Self::Rendered(record) => record.product.code(),
        }
    }

    /// Returns the digest by which the record is known next time.
    pub(super) fn digest(&self) -> Option<RecordDigest> {
        match self {
            Self::Known(known) => Some(known.digest),
            Self::Rendered(record) => record.product.record(),
        }
    }

    /// Renders a known record after all.
    pub(super) fn rendered(self) -> anyhow::Result<PreparedRecord> {
        match self {
            Self::Known(known) => {
                let digest = Some(known.digest);
                PreparedRecord::new(known.render(&mut Packer::default())?, digest)
            }
            Self::Rendered(record) => Ok(*record),
        }
    }

    fn len_bytes(&self) -> usize {
        match self {
            Self::Known(known) => known.json.len(),
            Self::Rendered(record) => record.product.product().document.len(),
        }
    }
}

/// True if it pays to pack documents beside the thread that writes: not if most products turn out to be unchanged.
pub(super) struct Packing {
    pub(super) is_wanted: AtomicBool,
}

/// Records to load.
pub(super) struct Records {
    /// Number of records, including those rejected later.
    pub(super) count: u64,
    pub(super) spooled: Spooled,
    /// Codes whose live version stays, because one of their records was rejected; with the places of the first record
    /// and of the rejected one.
    pub(super) kept: HashMap<String, [Place; 2]>,
    pub(super) rejected: Option<RejectedFile>,
    pub(super) known: Arc<KnownRecords>,
    /// Fields that any record has.
    pub(super) stated: Arc<Stated>,
    /// Codes in the inputs.
    pub(super) codes: FirstPlaces,
}

impl Records {
    /// Returns the codes whose live version stays.
    pub(super) fn kept(&self) -> impl Iterator<Item = &str> {
        self.kept.keys().map(String::as_str)
    }

    /// Returns true if the live version of a product stays.
    pub(super) fn keeps(&self, code: &ProductCode) -> bool {
        self.kept.contains_key(code.as_str())
    }

    /// Calls `put` with a few records at a time. A record whose code has a rejected record as well is rejected, too:
    /// it's unknown which of them is right.
    ///
    /// Another thread decompresses and prepares the records while the store writes.
    pub(super) fn each_few(
        &mut self,
        report: &mut Report,
        packing: &Packing,
        mut put: impl FnMut(Vec<ReadyRecord>, &mut Report) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let Self {
            spooled,
            kept,
            rejected,
            ..
        } = self;
        std::thread::scope(|scope| {
            let (sender, receiver) = mpsc::sync_channel(READ_AHEAD);
            scope.spawn(move || {
                let mut records =
                    spooled.map(|entry| entry.and_then(|one| read_back(one, packing)));
                loop {
                    let batch = batch(&mut records);
                    let is_last = !matches!(&batch, Ok(batch) if !batch.is_empty());
                    // The receiver is gone if `put` failed.
                    if sender.send(batch).is_err() || is_last {
                        break;
                    }
                }
            });
            for batch in receiver {
                let mut few = Vec::new();
                for (record, json) in batch? {
                    let code = record.code().as_str();
                    let Some([first, other]) = kept.get(code) else {
                        few.push(record);
                        continue;
                    };
                    let finding = duplicate(first, code, other);
                    report.rejected.records += 1;
                    if let Some(file) = rejected {
                        file.add(std::slice::from_ref(&finding), json.as_deref())?;
                    }
                    report.add(finding);
                }
                put(few, report)?;
            }
            Ok(())
        })
    }

    /// Syncs the rejected records to disk. Call it before a commit, so that nothing is lost.
    pub(super) fn finish(&mut self, report: &mut Report) -> anyhow::Result<()> {
        if let Some(file) = self.rejected.take() {
            report.rejected.file = file.finish()?;
        }
        Ok(())
    }
}

/// A record with its JSON, if that was kept.
type ReadBack = (ReadyRecord, Option<String>);

/// Returns the next records; none at the end.
fn batch(
    records: &mut impl Iterator<Item = anyhow::Result<ReadBack>>,
) -> anyhow::Result<Vec<ReadBack>> {
    let mut batch = Vec::new();
    let mut bytes = 0;
    while batch.len() < MAX_FEW && bytes < MAX_FEW_BYTES {
        let Some(record) = records.next() else {
            break;
        };
        let record = record?;
        bytes += record.0.len_bytes();
        batch.push(record);
    }
    Ok(batch)
}

fn read_back(entry: Entry, packing: &Packing) -> anyhow::Result<ReadBack> {
    let ready = match WaitingRecord::read(&entry.code, &entry.record)? {
        WaitingRecord::Known(known) => ReadyRecord::Known(known),
        WaitingRecord::Rendered(record, digest) => {
            let mut record = PreparedRecord::new(record, digest)?;
            if packing.is_wanted.load(Ordering::Relaxed) {
                record.product.pack()?;
            }
            ReadyRecord::Rendered(Box::new(record))
        }
    };
    Ok((ready, entry.json))
}
