//! Commands of the program, one file each: `--store` for all, `--json` for programs, documented exit codes.

mod admin_port;
mod assortments;
mod audit;
mod backup;
mod check;
mod completions;
mod config;
mod confirm;
mod cors;
mod deliver;
mod demo;
mod diff;
mod edges;
#[cfg(test)]
mod examples;
mod export;
mod follow_settings;
mod generate;
mod history;
mod keys;
mod layer_args;
mod limits;
mod load;
mod logging;
mod man;
mod mirror;
mod openapi;
mod operators;
mod output;
mod overrides;
mod plain_text;
mod products;
mod program;
mod progress;
mod proxies;
mod prune;
mod ready;
mod reload;
mod restore;
mod revision_arg;
mod rollback;
mod selection_args;
mod serve;
mod settings;
mod shutdown;
mod state_dir;
mod store_args;
mod texts;
mod tick;
mod webhook_settings;
mod webhooks;

use std::fmt;
use std::fs::File;
use std::io::{self, Read as _, Write};
use std::path::Path;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Args, Parser, Subcommand};
use vitrine_ingest::escape::single_line;
use vitrine_store::StoreError;

use crate::times::{self as time, instant};
#[cfg(feature = "fuzzing")]
pub use settings::fuzzing;
use settings::{CommandLine, ConfigArgs, LoadedSettings, StartupError};
use store_args::StoreArgs;

/// Maximum length of a secret's file that is read, in bytes: a wrong file may be endless.
const MAX_SECRET_BYTES: u64 = 64 << 10;

const EXAMPLES: &str = "\
Examples:
  vitrine demo
  vitrine load products.ndjson
  vitrine keys create --label partner
  vitrine serve --public-url https://catalog.example

Exit codes:
  0  done
  1  failed: a file, the store or the network; the message says what to do
  2  the command line was wrong
  3  the input was refused: nothing was changed, the report says why
  4  done in part: the report lists what was skipped";

/// The catalog server for payouts.
#[derive(Debug, Parser)]
#[command(name = "vitrine", version, after_help = EXAMPLES, max_term_width = 100)]
struct Cli {
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    config: ConfigArgs,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(Box<serve::Serve>),
    #[command(subcommand)]
    Config(config::Config),
    Ready(ready::Ready),
    Demo(demo::Demo),
    Load(load::Load),
    Mirror(mirror::MirrorCommand),
    #[command(subcommand)]
    Keys(keys::Keys),
    #[command(subcommand)]
    Assortments(assortments::Assortments),
    #[command(subcommand)]
    Webhooks(webhooks::Webhooks),
    #[command(subcommand)]
    Operators(operators::Operators),
    Deliver(deliver::Deliver),
    #[command(subcommand)]
    Texts(texts::Texts),
    Audit(audit::Audit),
    #[command(flatten)]
    Act(overrides::Act),
    #[command(subcommand)]
    Overrides(overrides::Overrides),
    Tick(tick::Tick),
    Products(products::Products),
    History(history::History),
    Show(history::Show),
    Diff(diff::Diff),
    Rollback(rollback::Rollback),
    Export(export::Export),
    Prune(prune::Prune),
    Check(check::Check),
    Backup(backup::Backup),
    Restore(restore::Restore),
    Generate(generate::Generate),
    Openapi(openapi::Openapi),
    Completions(completions::Completions),
    Man(man::Man),
}

impl Command {
    /// Returns true if the command writes everything in one transaction.
    fn is_one_transaction(&self) -> bool {
        match self {
            Self::Load(_)
            | Self::Mirror(_)
            | Self::Texts(_)
            | Self::Rollback(_)
            | Self::Act(_)
            | Self::Backup(_)
            | Self::Restore(_) => true,
            Self::Keys(keys) => keys.writes(),
            Self::Assortments(assortments) => assortments.writes(),
            Self::Webhooks(webhooks) => webhooks.writes(),
            Self::Operators(operators) => operators.writes(),
            Self::Overrides(overrides) => overrides.writes(),
            _ => false,
        }
    }
}

/// Detail of a printed plan.
#[derive(Debug, Clone, Copy, Default, Args)]
struct PlanArgs {
    /// List every product that differs, on a terminal too; by default only the first 20 of each kind.
    #[arg(long)]
    all: bool,
}

/// Format of what is printed.
#[derive(Debug, Clone, Copy, Args)]
struct OutputArgs {
    /// Print JSON, for programs.
    #[arg(long)]
    json: bool,
}

/// Outcome of a command that didn't fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Done,
    Refused,
    /// A part was done; the report says what was left out.
    Partial,
    /// Faults were found and printed.
    Faulty,
}

/// Runs the program: parses the command line, runs the command, prints its error.
#[must_use]
pub fn main() -> ExitCode {
    // After a panic of this thread, too.
    let _finish = logging::FinishOnDrop;
    let command_line = CommandLine::of_process();
    let outcome = match command_line.read() {
        Ok(read) => run(command_line, read),
        Err(error) => report_startup_error(error),
    };
    match outcome {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::Refused) => ExitCode::from(3),
        Ok(Outcome::Partial) => ExitCode::from(4),
        Ok(Outcome::Faulty) => ExitCode::FAILURE,
        Err(error) => {
            let _ = print_error(&error);
            ExitCode::FAILURE
        }
    }
}

/// Runs the command.
fn run(command_line: CommandLine, read: LoadedSettings) -> anyhow::Result<Outcome> {
    let Cli {
        store,
        config,
        command,
    } = read.cli;
    let is_one_transaction = command.is_one_transaction();
    let outcome = match command {
        Command::Serve(serve) => {
            let reload = reload::Reload::install(command_line, read.values)?;
            serve.run(&store, reload, &read.warnings)
        }
        Command::Config(command) => command.run(&config),
        Command::Ready(ready) => ready.run(),
        Command::Demo(demo) => demo.run(),
        Command::Load(load) => load.run(&store),
        Command::Mirror(mirror) => mirror.run(&store),
        Command::Keys(keys) => keys.run(&store),
        Command::Assortments(assortments) => assortments.run(&store),
        Command::Webhooks(webhooks) => webhooks.run(&store),
        Command::Operators(operators) => operators.run(&store),
        Command::Deliver(deliver) => deliver.run(&store),
        Command::Texts(texts) => texts.run(&store),
        Command::Audit(audit) => audit.run(&store),
        Command::Generate(generate) => generate.run(),
        Command::Act(act) => act.run(&store),
        Command::Overrides(overrides) => overrides.run(&store),
        Command::Tick(tick) => tick.run(&store),
        Command::Products(products) => products.run(&store),
        Command::History(history) => history.run(&store),
        Command::Show(show) => show.run(&store),
        Command::Diff(diff) => diff.run(&store),
        Command::Export(export) => export.run(&store),
        Command::Prune(prune) => prune.run(&store),
        Command::Rollback(rollback) => rollback.run(&store),
        Command::Openapi(openapi) => openapi.run(),
        Command::Completions(completions) => completions.run(),
        Command::Man(man) => man.run(),
        Command::Check(check) => check.run(&store),
        Command::Backup(backup) => backup.run(&store),
        Command::Restore(restore) => restore.run(&store),
    };
    match is_one_transaction {
        true => outcome.map_err(nothing_was_changed),
        false => outcome,
    }
}

/// Handles unusable settings. A wrong command line ends the program.
fn report_startup_error(error: StartupError) -> anyhow::Result<Outcome> {
    match error {
        StartupError::CommandLine(error) => error.exit(),
        StartupError::Failed(error) => Err(error),
        StartupError::Refused(refusal) => {
            let faults = refusal.faults.len();
            writeln!(
                output::stderr(),
                "{refusal}vitrine: the settings are refused; faults: {faults}"
            )?;
            Ok(Outcome::Refused)
        }
    }
}

/// Ends the program like the command line's parser, because of incompatible arguments.
fn exit_with_usage_error(message: &str) -> ! {
    clap::Error::raw(ErrorKind::ArgumentConflict, format!("{message}\n")).exit()
}

/// Prints an error and its causes on one line of standard error: a log message if the log is JSON. No error holds a key.
fn print_error(error: &anyhow::Error) -> io::Result<()> {
    let error = format!("{error:#}");
    let error = single_line(&error);
    if logging::is_json() {
        tracing::error!("{error}");
        return Ok(());
    }
    writeln!(logging::Messages, "vitrine: {error}")
}

/// Adds to a store's error that its transaction was rolled back.
fn nothing_was_changed(error: anyhow::Error) -> anyhow::Error {
    let rolled_back = error.chain().any(|cause| {
        let cause = cause.downcast_ref::<StoreError>();
        cause.is_some_and(StoreError::rolled_back)
    });
    match rolled_back {
        true => error.context("nothing was changed"),
        false => error,
    }
}

/// Returns the value of an environment variable; an empty one counts as unset.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Reads a secret from a file, without the final line break that editors add.
fn read_secret(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let most = MAX_SECRET_BYTES + 1;
    let read = File::open(path)?.take(most).read_to_string(&mut text)?;
    if read as u64 == most {
        let message = format!("it holds more than {MAX_SECRET_BYTES} bytes, so no secret");
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    }
    text.truncate(text.trim_end_matches(['\r', '\n']).len());
    Ok(text)
}

/// Prints to standard output; a closed pipe (`| head`) isn't an error.
fn print(text: &str) -> io::Result<()> {
    match output::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        outcome => outcome,
    }
}

/// Failure to write to standard output, as context of its error.
#[derive(Debug, Clone, Copy)]
struct CanNotWrite;

impl fmt::Display for CanNotWrite {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("can't write to standard output")
    }
}

/// Returns the outcome of a command that wrote to standard output in parts; a closed pipe isn't an error.
fn written(outcome: anyhow::Result<()>) -> anyhow::Result<Outcome> {
    // A server's connection can break as a pipe does.
    let is_broken_pipe = |error: &anyhow::Error| {
        let cause = error.root_cause().downcast_ref::<io::Error>();
        error.downcast_ref::<CanNotWrite>().is_some()
            && cause.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    };
    match outcome {
        Err(error) if is_broken_pipe(&error) => Ok(Outcome::Done),
        outcome => outcome.map(|()| Outcome::Done),
    }
}

/// Prints JSON to standard output, indented on a terminal.
fn print_json(value: &serde_json::Value) -> io::Result<()> {
    if output::stdout().is_terminal() {
        print(&format!("{value:#}\n"))
    } else {
        print(&format!("{value}\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_output_counts_as_broken_pipe() {
        let broken = || anyhow::Error::new(io::Error::from(io::ErrorKind::BrokenPipe));
        let error = broken()
            .context(CanNotWrite)
            .context("https://catalog.example");
        assert_eq!(written(Err(error)).unwrap(), Outcome::Done);
        let full = io::Error::from(io::ErrorKind::StorageFull);
        for error in [
            broken(),
            broken().context("https://catalog.example"),
            anyhow::Error::new(full).context(CanNotWrite),
        ] {
            assert!(written(Err(error)).is_err());
        }
    }
}
