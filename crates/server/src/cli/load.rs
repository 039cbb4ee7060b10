//! `vitrine load`: loads products from files.

use std::ffi::OsStr;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, anyhow};
use clap::{Args, ValueEnum};
use tempfile::TempDir;
use vitrine_ingest::export::Workbook;
use vitrine_ingest::load::apply::{Intent, Mode, Retirement};
use vitrine_ingest::load::guard::Allowance;
use vitrine_ingest::load::plan::Listing;
use vitrine_ingest::load::read::CSV_TEMPLATE;
use vitrine_ingest::load::report::{Place, Report, Verdict, shown};
use vitrine_ingest::load::{self, Input, LoadSettings, OnError};
use vitrine_store::{IfMissing, Store, StoreError};

use super::export::RecordFormat;
use super::plain_text::PlainText;
use super::progress::Bars;
use super::store_args::temporary;
use super::{
    Outcome, OutputArgs, PlanArgs, StoreArgs, exit_with_usage_error, output, print, print_json,
    variable,
};

const EXAMPLES: &str = "\
Examples:
  vitrine load products.ndjson
  vitrine load part-1.json part-2.csv.gz more/
  vitrine load --dry-run products.ndjson
  vitrine load --mode merge --retire OLD-GB new.json
  vitrine load --mode patch discounts.csv
  vitrine load --texts texts/ products.ndjson
  vitrine load --on-error skip products.ndjson
  vitrine load --allow retire=60% smaller.ndjson
  curl -s https://feed.example/products | vitrine load -
  vitrine load --template xlsx > products.xlsx";

/// Load products from files: they become the whole catalog in one transaction; with `--mode merge`, a part of it, and with
/// `--mode patch`, changed fields.
///
/// A file contains one product a line (NDJSON), an array of products, one product, a list response of the API, or
/// CSV or a workbook (XLSX), optionally compressed with gzip or zstd; the format is detected by content. All files of a directory are
/// loaded. A product is the API's own product object. Its texts are addresses (description_markdown_url) or
/// Markdown (description_md). A record is the whole product, and a missing column empties its field (texts excepted),
/// except with `--mode patch`. If there is any fault, all faults are reported and nothing is changed.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Load {
    #[command(flatten)]
    output: OutputArgs,
    /// Effect on live products missing from the input.
    #[arg(long, value_name = "MODE", default_value = "replace")]
    mode: ModeArg,
    /// With `--mode merge` or `patch`: retire this product. Give it once for each.
    #[arg(long, value_name = "CODE")]
    retire: Vec<String>,
    /// With `--mode merge` or `patch`: retire the products whose codes are in this file, one a line.
    #[arg(long, value_name = "FILE")]
    retire_file: Option<PathBuf>,
    /// Effect of a record with a fault.
    #[arg(long, value_name = "WHAT", default_value = "reject")]
    on_error: OnErrorArg,
    /// With `--on-error skip`: file for rejected records with their reasons, in place of those of an earlier load; by
    /// default NAME.rejected.ndjson beside the first input.
    #[arg(long, value_name = "FILE")]
    rejected: Option<PathBuf>,
    /// Raise a limit of the guard: `retire`, `not-orderable`, `states` (out of LIVE), `emptied-lists` (20% of the live
    /// products each), `emptied-fields` (20% of those with a value there), `currencies`, `amounts` or `discounts` changed tenfold (5% each). Give it once for each.
    #[arg(long, value_name = "NAME=PERCENT%")]
    allow: Vec<Allowance>,
    /// Load this sheet of a workbook. By default the first.
    #[arg(long, value_name = "NAME")]
    sheet: Option<String>,
    /// Load the Markdown below this directory (CODE/description.md, CODE/terms_consumer.md and so on) with
    /// the products.
    #[arg(long, value_name = "DIRECTORY")]
    texts: Option<PathBuf>,
    /// Show what would change, field by field, and change nothing.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    plan: PlanArgs,
    /// Note for the history.
    #[arg(long, value_name = "TEXT", value_parser = PlainText)]
    note: Option<String>,
    /// Print a file to fill in, with an example of each payout type, and load nothing.
    #[arg(long, value_enum, value_name = "FORMAT", conflicts_with = "files")]
    template: Option<Template>,
    /// Files and directories; `-` is standard input.
    #[arg(required_unless_present_any = ["template", "retire", "retire_file"], value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// A format that has a template.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Template {
    /// A table of a program.
    Csv,
    /// A workbook for spreadsheets.
    Xlsx,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ModeArg {
    /// Retire them: the files are the whole catalog.
    Replace,
    /// Keep them.
    Merge,
    /// Keep them; a record holds only what changes of a live product.
    Patch,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OnErrorArg {
    /// Refuse the load: nothing is changed.
    Reject,
    /// Load the records without faults. A product with a rejected record stays as it is.
    Skip,
}

impl Load {
    pub(super) fn run(&self, store: &StoreArgs) -> anyhow::Result<Outcome> {
        match self.template {
            Some(Template::Csv) => {
                print(CSV_TEMPLATE)?;
                return Ok(Outcome::Done);
            }
            Some(Template::Xlsx) => {
                RecordFormat::Xlsx.check_output();
                io::copy(&mut Workbook::template()?.finish()?, &mut output::stdout())?;
                return Ok(Outcome::Done);
            }
            None => {}
        }
        let settings = self.settings()?;
        let input = |path: &PathBuf| match path.as_os_str() == "-" {
            true => Input::Stdin,
            false => Input::File(path.clone()),
        };
        let inputs: Vec<Input> = self.files.iter().map(input).collect();
        let inputs = load::open(&inputs, |what| {
            // A message that can't be printed stops nothing.
            let _ = writeln!(output::stderr(), "vitrine: {what}");
        })?;
        let (store, _directory) = self.store(store)?;
        let report = load::load(&store, inputs, settings, &Bars::new(self.output))?;
        print_report(&report, self.output, self.plan)
    }

    /// Opens the store; for a dry run without one, an empty store in a temporary directory.
    fn store(&self, store: &StoreArgs) -> anyhow::Result<(Arc<Store>, Option<TempDir>)> {
        if self.mode == ModeArg::Patch {
            // There is nothing to patch in a new one.
            return Ok((store.open(IfMissing::Refuse)?, None));
        }
        if !self.dry_run {
            return Ok((store.open(IfMissing::Create)?, None));
        }
        match store.open(IfMissing::Refuse) {
            Err(StoreError::Missing { .. }) => {
                let (store, directory) = temporary()?;
                Ok((store, Some(directory)))
            }
            opened => Ok((opened?, None)),
        }
    }

    fn settings(&self) -> anyhow::Result<LoadSettings> {
        let retires = !self.retire.is_empty() || self.retire_file.is_some();
        let mode = match self.mode {
            ModeArg::Merge => Mode::Merge {
                retire: self.retirements()?,
            },
            ModeArg::Patch => Mode::Patch {
                retire: self.retirements()?,
            },
            ModeArg::Replace if !retires => Mode::Replace,
            ModeArg::Replace => exit_with_usage_error(
                "--retire and --retire-file need `--mode merge` or `--mode patch`: with `--mode replace` all products missing from the \
                 files are retired",
            ),
        };
        let intent = match self.dry_run {
            true => Intent::DryRun,
            false => Intent::Apply,
        };
        let on_error = match self.on_error {
            OnErrorArg::Skip => OnError::Skip {
                rejected: (intent == Intent::Apply).then(|| self.rejected_file()),
            },
            OnErrorArg::Reject if self.rejected.is_none() => OnError::Reject,
            OnErrorArg::Reject => exit_with_usage_error("--rejected needs `--on-error skip`"),
        };
        Ok(LoadSettings {
            mode,
            intent,
            on_error,
            allowances: self.allow.clone(),
            sheet: self.sheet.clone(),
            texts: self.texts.clone(),
            note: self.note.clone(),
            ..LoadSettings::replace(operator())
        })
    }

    fn retirements(&self) -> anyhow::Result<Vec<Retirement>> {
        let retirement = |code: &str, place: Place| match code.parse() {
            Ok(code) => Ok(Retirement { code, place }),
            Err(invalid) => Err(anyhow!("{place} is `{}`; expected {invalid}", shown(code))),
        };
        let named = self.retire.iter();
        let mut retire = named
            .map(|code| retirement(code, Place::file("--retire")))
            .collect::<anyhow::Result<Vec<_>>>()?;
        if let Some(path) = &self.retire_file {
            let name = path.display().to_string();
            let text = std::fs::read_to_string(path);
            let text = text.with_context(|| format!("can't read {name}"))?;
            let lines = text.trim_start_matches('\u{feff}').lines().zip(1..);
            for (line, number) in lines.filter(|(line, _)| !line.trim().is_empty()) {
                let line_number = Some(number);
                let place = Place {
                    line: line_number,
                    ..Place::file(&name)
                };
                retire.push(retirement(line.trim(), place)?);
            }
        }
        Ok(retire)
    }

    /// Returns the path for rejected records: the given one, or one beside the first input. For a directory it is
    /// outside of it, so that the next load doesn't read the file.
    fn rejected_file(&self) -> PathBuf {
        if let Some(path) = &self.rejected {
            return path.clone();
        }
        let first = self.files.first().map(PathBuf::as_path);
        let path = first
            .filter(|path| path.as_os_str() != "-")
            .unwrap_or(Path::new("stdin"));
        // For `.` and `..`, the directory's real name is used.
        let path = match path.file_name() {
            Some(_) => path.to_owned(),
            None => path.canonicalize().unwrap_or_else(|_| path.to_owned()),
        };
        let name = path.file_name().unwrap_or(OsStr::new("input"));
        let name = name.to_string_lossy();
        let mut stem = name.as_ref();
        for ending in [".gz", ".zst", ".ndjson", ".jsonl", ".json", ".csv", ".xlsx"] {
            stem = stem.strip_suffix(ending).unwrap_or(stem);
        }
        path.with_file_name(format!("{stem}.rejected.ndjson"))
    }
}

/// Prints the report of a load: to standard error if it was refused.
pub(super) fn print_report(
    report: &Report,
    output_args: OutputArgs,
    plan: PlanArgs,
) -> anyhow::Result<Outcome> {
    let outcome = match report.verdict() {
        Verdict::Done => Outcome::Done,
        Verdict::Partial => Outcome::Partial,
        Verdict::Refused => Outcome::Refused,
    };
    match output_args.json {
        true => print_json(&report.to_json())?,
        false => print_by_outcome(outcome, plan, |listing| report.to_text(listing))?,
    }
    Ok(outcome)
}

/// Prints the text of a report, in the detail that fits: to standard error if nothing was done.
pub(super) fn print_by_outcome(
    outcome: Outcome,
    plan: PlanArgs,
    to_text: impl FnOnce(Listing) -> String,
) -> io::Result<()> {
    match outcome {
        Outcome::Done | Outcome::Partial => print(&to_text(output::stdout().listing(plan.all))),
        Outcome::Refused | Outcome::Faulty => {
            let mut out = output::stderr();
            let text = to_text(out.listing(plan.all));
            out.write_all(text.as_bytes())
        }
    }
}

/// Returns the user who runs the program, for the history.
pub(super) fn operator() -> String {
    ["SUDO_USER", "USER", "LOGNAME"]
        .into_iter()
        .find_map(variable)
        .unwrap_or_else(|| "unknown".to_owned())
}
