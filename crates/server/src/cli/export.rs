//! `vitrine export`: prints the catalog as records that load again.

use std::io::{BufWriter, Write};

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use vitrine_ingest::export;
use vitrine_ingest::export::csv::Reader;
use vitrine_store::{IfMissing, Store};

use super::history::{NOTHING_LOADED, moment};
use super::remote::ReaderArgs;
use super::{CAN_NOT_WRITE, Outcome, StoreArgs, output, written};

const EXAMPLES: &str = "\
Examples:
  vitrine export > catalog.ndjson
  vitrine export --format csv > catalog.csv
  vitrine export --format csv --for-spreadsheets > for-people.csv
  vitrine export --at 12 | vitrine load --store sqlite:copy.db -";

/// Print the catalog as records that load again into the same catalog.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Export {
    /// Export this revision, not the live one.
    #[arg(long, value_name = "REVISION")]
    at: Option<u64>,
    /// Output format: one record a line, one array, or a table for spreadsheets.
    #[arg(long, value_name = "FORMAT", default_value = "ndjson")]
    format: FormatArg,
    #[command(flatten)]
    reader: ReaderArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FormatArg {
    Ndjson,
    Json,
    Csv,
}

impl Export {
    pub(super) fn run(&self, store: &StoreArgs) -> anyhow::Result<Outcome> {
        let reader = self.reader.of(self.format == FormatArg::Csv);
        let store = store.open(IfMissing::Refuse)?;
        written(self.write(&*store, reader, BufWriter::new(output::stdout())))
    }

    fn write(&self, store: &dyn Store, reader: Reader, mut out: impl Write) -> anyhow::Result<()> {
        let start = match self.format {
            FormatArg::Ndjson => String::new(),
            FormatArg::Json => "[\n".to_owned(),
            FormatArg::Csv => format!("{}\n", export::csv::header()),
        };
        let between = match self.format {
            FormatArg::Ndjson | FormatArg::Csv => "\n",
            FormatArg::Json => ",\n",
        };
        let moment = moment(store, self.at)?;
        // Written with the first product, so that nothing is printed if the revision doesn't exist.
        let mut separator = start.as_str();
        let mut is_empty = true;
        let revision = store.read_products(moment, &mut |product| {
            let record = export::record(store, &product)?;
            let record = match self.format {
                FormatArg::Ndjson | FormatArg::Json => record.to_json(),
                FormatArg::Csv => export::csv::row(record, reader)?,
            };
            write!(out, "{separator}{record}").context(CAN_NOT_WRITE)?;
            separator = between;
            is_empty = false;
            Ok(())
        })?;
        revision.context(NOTHING_LOADED)?;
        if is_empty {
            out.write_all(start.as_bytes()).context(CAN_NOT_WRITE)?;
        }
        let end = match self.format {
            FormatArg::Json => "\n]\n",
            FormatArg::Ndjson | FormatArg::Csv if is_empty => "",
            FormatArg::Ndjson | FormatArg::Csv => "\n",
        };
        out.write_all(end.as_bytes()).context(CAN_NOT_WRITE)?;
        out.flush().context(CAN_NOT_WRITE)
    }
}
