//! `vitrine export`: prints the catalog as records that load again.

use std::io::{BufWriter, Write};

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use vitrine_ingest::export;
use vitrine_ingest::export::csv::Reader;
use vitrine_store::record::StoredProduct;
use vitrine_store::{IfMissing, Store};

use super::history::NOTHING_LOADED;
use super::layer_args::LayerArgs;
use super::remote::ReaderArgs;
use super::revision_arg::{RevisionArg, moment};
use super::{CAN_NOT_WRITE, Outcome, StoreArgs, output, written};

const EXAMPLES: &str = "\
Examples:
  vitrine export > catalog.ndjson
  vitrine export --format csv > catalog.csv
  vitrine export --format csv --for-spreadsheets > for-people.csv
  vitrine export --effective > as-clients-see-it.ndjson
  vitrine export --at 12 | vitrine load --store sqlite:copy.db -";

/// Print the catalog as records that load again into the same catalog.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Export {
    /// Export this revision, or the one that was live at this time, not the live one.
    #[arg(long, value_name = "REVISION|TIME")]
    at: Option<RevisionArg>,
    /// Output format: one record a line, one array, or a table for spreadsheets.
    #[arg(long, value_name = "FORMAT", default_value = "ndjson")]
    format: RecordFormat,
    /// Export what clients see: with overrides, and without hidden products. By default what loads brought.
    #[arg(long)]
    effective: bool,
    #[command(flatten)]
    reader: ReaderArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum RecordFormat {
    Ndjson,
    Json,
    Csv,
}

impl Export {
    pub(super) fn run(&self, store: &StoreArgs) -> anyhow::Result<Outcome> {
        let reader = self.reader.of(self.format == RecordFormat::Csv);
        let store = store.open(IfMissing::Refuse)?;
        let moment = moment(&store, self.at)?;
        let out = BufWriter::new(output::stdout());
        let mut records = RecordWriter::new(self.format, reader, out);
        let layer = match self.effective {
            true => LayerArgs::EFFECTIVE,
            false => LayerArgs::BASE,
        };
        let read = layer.read(&store, moment, &mut |product| {
            records.write(&store, &product)
        });
        written(read.and_then(|revision| {
            revision.context(NOTHING_LOADED)?;
            records.finish()
        }))
    }
}

/// Writer of records, in the order in which they are given.
pub(super) struct RecordWriter<W> {
    format: RecordFormat,
    reader: Reader,
    out: W,
    is_empty: bool,
}

impl<W: Write> RecordWriter<W> {
    pub(super) fn new(format: RecordFormat, reader: Reader, out: W) -> Self {
        Self {
            format,
            reader,
            out,
            is_empty: true,
        }
    }

    /// Writes the record of a product. What comes before the first is written with it, so that nothing is printed if the
    /// products can't be read.
    pub(super) fn write(&mut self, store: &Store, product: &StoredProduct) -> anyhow::Result<()> {
        let record = export::record(store, product)?;
        let record = match self.format {
            RecordFormat::Ndjson | RecordFormat::Json => record.to_json(),
            RecordFormat::Csv => export::csv::row(record, self.reader)?,
        };
        match std::mem::take(&mut self.is_empty) {
            true => self.begin()?,
            false => self.put(match self.format {
                RecordFormat::Ndjson | RecordFormat::Csv => "\n",
                RecordFormat::Json => ",\n",
            })?,
        }
        self.put(&record)
    }

    /// Writes the end.
    pub(super) fn finish(mut self) -> anyhow::Result<()> {
        if self.is_empty {
            self.begin()?;
        }
        self.put(match self.format {
            RecordFormat::Json => "\n]\n",
            RecordFormat::Ndjson | RecordFormat::Csv if self.is_empty => "",
            RecordFormat::Ndjson | RecordFormat::Csv => "\n",
        })?;
        self.out.flush().context(CAN_NOT_WRITE)
    }

    fn begin(&mut self) -> anyhow::Result<()> {
        match self.format {
            RecordFormat::Ndjson => Ok(()),
            RecordFormat::Json => self.put("[\n"),
            RecordFormat::Csv => self.put(&(export::csv::header() + "\n")),
        }
    }

    fn put(&mut self, text: &str) -> anyhow::Result<()> {
        self.out.write_all(text.as_bytes()).context(CAN_NOT_WRITE)
    }
}
