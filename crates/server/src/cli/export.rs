//! `vitrine export`: prints the catalog as records that load again.

use std::io::{self, BufWriter, Write};

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use vitrine_ingest::export;
use vitrine_store::record::StoredProduct;
use vitrine_store::{IfMissing, Store};

use super::history::NOTHING_LOADED;
use super::layer_args::LayerArgs;
use super::revision_arg::{RevisionArg, moment};
use super::{CanNotWrite, Outcome, StoreArgs, exit_with_usage_error, output, written};

const EXAMPLES: &str = "\
Examples:
  vitrine export > catalog.ndjson
  vitrine export --format csv > catalog.csv
  vitrine export --format xlsx > catalog.xlsx
  vitrine export --effective > as-clients-see-it.ndjson
  vitrine export --at 12 | vitrine load --store sqlite:copy.db -";

/// Print the catalog as records that load again into the same catalog.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Export {
    /// Export this revision, or the one that was live at this time, not the live one.
    #[arg(long, value_name = "REVISION|TIME")]
    at: Option<RevisionArg>,
    /// Output format: one record a line, one array, a table for programs, or a workbook.
    #[arg(long, value_name = "FORMAT", default_value = "ndjson")]
    format: RecordFormat,
    /// Export what clients see: with overrides, and without hidden products. By default what loads brought.
    #[arg(long)]
    effective: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum RecordFormat {
    Ndjson,
    Json,
    Csv,
    Xlsx,
}

impl Export {
    pub(super) fn run(&self, store: &StoreArgs) -> anyhow::Result<Outcome> {
        self.format.check_output();
        let store = store.open(IfMissing::Refuse)?;
        let moment = moment(&store, self.at)?;
        let out = BufWriter::new(output::stdout());
        let mut records = RecordWriter::new(self.format, out)?;
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

impl RecordFormat {
    /// Ends the program like a wrong command line if a terminal can't show the format.
    pub(super) fn check_output(self) {
        if self == Self::Xlsx && output::stdout().is_terminal() {
            exit_with_usage_error("a terminal can't show a workbook; add `> catalog.xlsx`");
        }
    }
}

/// Writer of records, in the order in which they are given.
pub(super) struct RecordWriter<W> {
    format: RecordFormat,
    out: W,
    is_empty: bool,
    /// The workbook, if that is the format.
    workbook: Option<export::Workbook>,
}

impl<W: Write> RecordWriter<W> {
    pub(super) fn new(format: RecordFormat, out: W) -> anyhow::Result<Self> {
        let workbook = match format {
            RecordFormat::Xlsx => Some(export::Workbook::new()?),
            RecordFormat::Ndjson | RecordFormat::Json | RecordFormat::Csv => None,
        };
        Ok(Self {
            format,
            out,
            is_empty: true,
            workbook,
        })
    }

    /// Writes the record of a product. What comes before the first is written with it, so that nothing is printed if the
    /// products can't be read.
    pub(super) fn write(&mut self, store: &Store, product: &StoredProduct) -> anyhow::Result<()> {
        let record = export::record(store, product)?;
        if let Some(workbook) = &mut self.workbook {
            return workbook.add(record);
        }
        let record = match self.format {
            RecordFormat::Csv => export::csv_row(record)?,
            _ => record.to_json(),
        };
        match std::mem::take(&mut self.is_empty) {
            true => self.begin()?,
            false => self.put(match self.format {
                RecordFormat::Json => ",\n",
                _ => "\n",
            })?,
        }
        self.put(&record)
    }

    /// Writes the end; of a workbook, all of it.
    pub(super) fn finish(mut self) -> anyhow::Result<()> {
        if let Some(workbook) = self.workbook.take() {
            io::copy(&mut workbook.finish()?, &mut self.out).context(CanNotWrite)?;
            return self.out.flush().context(CanNotWrite);
        }
        if self.is_empty {
            self.begin()?;
        }
        self.put(match self.format {
            RecordFormat::Json => "\n]\n",
            _ if self.is_empty => "",
            _ => "\n",
        })?;
        self.out.flush().context(CanNotWrite)
    }

    fn begin(&mut self) -> anyhow::Result<()> {
        match self.format {
            RecordFormat::Json => self.put("[\n"),
            RecordFormat::Csv => self.put(&(export::csv_header() + "\n")),
            RecordFormat::Ndjson | RecordFormat::Xlsx => Ok(()),
        }
    }

    fn put(&mut self, text: &str) -> anyhow::Result<()> {
        self.out.write_all(text.as_bytes()).context(CanNotWrite)
    }
}
