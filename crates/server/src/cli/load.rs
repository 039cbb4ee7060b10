//! `vitrine load`: makes what files hold the catalog, or a part of it.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::{anyhow, bail};
use clap::{Args, ValueEnum};
use vitrine_store::IfMissing;

use super::{Outcome, OutputArgs, StoreArgs, print, print_json};
use crate::load::apply::{Intent, Mode};
use crate::load::read::CSV_TEMPLATE;
use crate::load::report::Report;
use crate::load::{self, Input, Settings};

const EXAMPLES: &str = "\
Examples:
  vitrine load products.ndjson
  vitrine load part-1.json part-2.csv.gz more/
  vitrine load --dry-run products.ndjson
  vitrine load --mode merge --retire OLD-GB new.json
  curl -s https://feed.example/products | vitrine load -
  vitrine load --template csv > products.csv";

/// Load products: what the files hold becomes the whole catalog, in one transaction; or, with
/// `--mode merge`, a part of it.
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
    output: OutputArgs,
    /// What becomes of live products that the files don't name.
    #[arg(long, value_name = "MODE", default_value = "replace")]
    mode: ModeArg,
    /// With `--mode merge`: retire this product. Give it once for each.
    #[arg(long, value_name = "CODE")]
    retire: Vec<String>,
    /// Show what would change, field by field, and change nothing.
    #[arg(long)]
    dry_run: bool,
    /// What the history is to say of this load.
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ModeArg {
    /// They are retired: the files are the whole catalog.
    Replace,
    /// They stay.
    Merge,
}

impl Load {
    pub(super) fn run(&self, store: &StoreArgs) -> anyhow::Result<Outcome> {
        if let Some(Template::Csv) = self.template {
            print(CSV_TEMPLATE)?;
            return Ok(Outcome::Done);
        }
        let settings = self.settings()?;
        let input = |path: &PathBuf| match path.as_os_str() == "-" {
            true => Input::Stdin,
            false => Input::File(path.clone()),
        };
        let inputs: Vec<Input> = self.files.iter().map(input).collect();
        let inputs = load::open(&inputs)?;
        let store = store.open(IfMissing::Create)?;
        let report = load::load(&*store, inputs, settings)?;
        print_report(&report, self.output)
    }

    fn settings(&self) -> anyhow::Result<Settings> {
        let retire = self
            .retire
            .iter()
            .map(|code| {
                code.parse()
                    .map_err(|invalid| anyhow!("--retire is `{code}`; expected {invalid}"))
            })
            .collect::<anyhow::Result<Vec<_>>>()?;
        let mode = match self.mode {
            ModeArg::Merge => Mode::Merge { retire },
            ModeArg::Replace if retire.is_empty() => Mode::Replace,
            ModeArg::Replace => bail!(
                "--retire goes with `--mode merge`: with `--mode replace` whatever the files don't name is retired"
            ),
        };
        Ok(Settings {
            mode,
            intent: match self.dry_run {
                true => Intent::DryRun,
                false => Intent::Apply,
            },
            by: operator(),
            note: self.note.clone(),
        })
    }
}

/// Prints what a load came to: to standard error where it was refused.
pub(super) fn print_report(report: &Report, output: OutputArgs) -> anyhow::Result<Outcome> {
    let outcome = match report.has_faults() {
        true => Outcome::Refused,
        false => Outcome::Done,
    };
    match (output.json, outcome) {
        (true, _) => print_json(&report.to_json())?,
        (false, Outcome::Done) => print(&report.to_text())?,
        (false, _) => io::stderr().write_all(report.to_text().as_bytes())?,
    }
    Ok(outcome)
}

/// Who runs the program, for the history.
pub(super) fn operator() -> String {
    ["SUDO_USER", "USER", "LOGNAME"]
        .into_iter()
        .find_map(|name| std::env::var(name).ok().filter(|user| !user.is_empty()))
        .unwrap_or_else(|| "unknown".to_owned())
}
