//! `vitrine load`: replaces the catalog by what files hold.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use vitrine_store::IfMissing;

use super::{Outcome, OutputArgs, StoreArgs, print, print_json};
use crate::load::read::CSV_TEMPLATE;
use crate::load::{self, Input};

const EXAMPLES: &str = "\
Examples:
  vitrine load products.ndjson
  vitrine load part-1.json part-2.csv.gz more/
  curl -s https://feed.example/products | vitrine load -
  vitrine load --template csv > products.csv";

/// Load products: what the files hold becomes the whole catalog, in one transaction.
///
/// A file holds one product a line (NDJSON), an array of products, one product, a list response of
/// the API, or CSV; which, and whether it is compressed with gzip or zstd, is told by its content. Of
/// a directory all files are loaded. A product is the API's own product object. Its texts
/// come as addresses (description_markdown_url) or as Markdown (description_md). Where anything is
/// wrong, every fault is reported and nothing is changed.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Load {
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    output: OutputArgs,
    /// Print a file to fill in, with an example of each payout type, and load nothing.
    #[arg(long, value_enum, value_name = "FORMAT", conflicts_with = "files")]
    template: Option<Template>,
    /// The files and directories; `-` is standard input.
    #[arg(required_unless_present = "template", value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// A format that has a template.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Template {
    /// A table for spreadsheets.
    Csv,
}

impl Load {
    pub(super) fn run(&self) -> anyhow::Result<Outcome> {
        if let Some(Template::Csv) = self.template {
            print(CSV_TEMPLATE)?;
            return Ok(Outcome::Done);
        }
        let input = |path: &PathBuf| match path.as_os_str() == "-" {
            true => Input::Stdin,
            false => Input::File(path.clone()),
        };
        let inputs: Vec<Input> = self.files.iter().map(input).collect();
        let inputs = load::open(&inputs)?;
        let store = self.store.open(IfMissing::Create)?;
        let report = load::replace(&*store, inputs)?;
        let outcome = match report.has_faults() {
            true => Outcome::Refused,
            false => Outcome::Done,
        };
        match (self.output.json, outcome) {
            (true, _) => print_json(&report.to_json())?,
            (false, Outcome::Done) => print(&report.to_text())?,
            (false, Outcome::Refused) => io::stderr().write_all(report.to_text().as_bytes())?,
        }
        Ok(outcome)
    }
}
