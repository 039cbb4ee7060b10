//! `vitrine config check`: finds all faults of a settings file before a server starts with it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use serde_json::json;
use vitrine_ingest::escape::single_line;

use super::super::settings::{
    CommandLine, ConfigArgs, LoadedSettings, RefusedFile, SettingFault, SettingSource,
    SettingValue, StartupError,
};
use super::super::{
    Command, Outcome, OutputArgs, exit_with_usage_error, print, print_json, report_startup_error,
};

const EXAMPLES: &str = "\
Examples:
  vitrine config check vitrine.toml
  vitrine config check --json vitrine.toml

Exit codes:
  0  no faults; there may be warnings
  1  the file can't be read
  3  faults";

/// Check a settings file: each fault is reported with its line and what to do.
///
/// The environment is looked at too, since it goes before the file. Files that settings name must be there
/// and readable by whoever runs this. Nothing is started, opened for writing or connected to.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::cli) struct Check {
    /// The file; by default the one that `--config` or VITRINE_CONFIG names.
    file: Option<PathBuf>,
    #[command(flatten)]
    output: OutputArgs,
}

impl Check {
    pub(super) fn run(&self, config: &ConfigArgs) -> Result<Outcome> {
        let Some(file) = self.file.as_deref().or(config.config.as_deref()) else {
            exit_with_usage_error("no settings file to check; name one, or set VITRINE_CONFIG");
        };
        let (faults, warnings) = match CommandLine::of_server(Some(file), &[]).read() {
            Ok(read) => (start_faults(&read), read.warnings),
            Err(StartupError::Refused(refusal)) => (refusal.faults, Vec::new()),
            Err(error) => return report_startup_error(error),
        };
        let is_clean = faults.is_empty();
        let refusal = RefusedFile {
            path: file.to_owned(),
            faults,
        };
        if self.output.json {
            print_json(&to_json(&refusal, &warnings))?;
        } else {
            let mut text = refusal.to_string();
            for warning in &warnings {
                text.push_str(&format!("warning: {}\n", single_line(warning)));
            }
            text.push_str(&match refusal.faults.len() {
                0 => "the settings have no faults\n".to_owned(),
                faults => format!("faults: {faults}\n"),
            });
            print(&text)?;
        }
        Ok(match is_clean {
            true => Outcome::Done,
            false => Outcome::Refused,
        })
    }
}

/// Returns the faults that would occur at the start.
fn start_faults(read: &LoadedSettings) -> Vec<SettingFault> {
    let mut faults: Vec<SettingFault> = read.values.iter().flat_map(path_faults).collect();
    let names = faults.iter().map(|fault| fault.setting.clone());
    let missing_names: Vec<Option<String>> = names.collect();
    if let Command::Serve(serve) = &read.cli.command {
        let mut push = |(name, what): (&str, String)| {
            let mut values = read.values.iter();
            let value = values.find(|value| value.setting.name == name);
            let advice = "see its help in `vitrine config default`".to_owned();
            faults.push(fault(value, what, advice));
        };
        serve
            .faults(&read.cli.store)
            .into_iter()
            .for_each(&mut push);
        // A missing file was reported already.
        let is_told = |name: &str| {
            let mut told = missing_names.iter();
            told.any(|told| told.as_deref() == Some(name))
        };
        let certificate = serve.check_certificate().err();
        certificate
            .filter(|(name, _)| !is_told(name))
            .map(&mut push);
    }
    faults.sort_by_key(|fault| fault.line);
    faults
}

/// Returns the faults of missing files and directories.
fn path_faults(value: &SettingValue) -> Vec<SettingFault> {
    let (is_file, is_directory) = (
        value.setting.names_a_file(),
        value.setting.names_a_directory(),
    );
    if !is_file && !is_directory {
        return Vec::new();
    }
    let wrong = |path: &Path| match (is_file, fs::metadata(path)) {
        (true, Ok(found)) if found.is_dir() => Some("is a directory".to_owned()),
        (true, _) => File::open(path)
            .err()
            .map(|error| format!("can't be read: {error}")),
        (false, Ok(found)) if !found.is_dir() => Some("isn't a directory".to_owned()),
        // A missing directory is created at the start.
        (false, _) => None,
    };
    let faults = value.paths().filter_map(|path| {
        let name = &value.setting.name;
        let what = format!("`{name}` is `{}`, which {}", path.display(), wrong(path)?);
        let advice = "name a file that the server can read".to_owned();
        Some(fault(Some(value), what, advice))
    });
    faults.collect()
}

fn fault(value: Option<&SettingValue>, what: String, advice: String) -> SettingFault {
    let line = match value.map(|value| value.source) {
        Some(SettingSource::File(line)) => line,
        _ => 0,
    };
    SettingFault {
        line,
        column: 1,
        setting: value.map(|value| value.setting.name.clone()),
        what,
        advice,
    }
}

fn to_json(refusal: &RefusedFile, warnings: &[String]) -> serde_json::Value {
    let faults = refusal.faults.iter().map(|fault| {
        json!({
            "setting": fault.setting,
            "line": (fault.line > 0).then_some(fault.line),
            "column": (fault.line > 0).then_some(fault.column),
            "what": fault.what,
            "advice": fault.advice,
        })
    });
    json!({
        "file": refusal.path.display().to_string(),
        "clean": refusal.faults.is_empty(),
        "faults": faults.collect::<Vec<_>>(),
        "warnings": warnings,
    })
}
