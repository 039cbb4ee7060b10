//! `vitrine config show`: prints the settings in effect, with their sources.

use std::path::Path;

use anyhow::Result;
use clap::Args;
use serde_json::{Value as Json, json};
use vitrine_ingest::escape::single_line;

use super::super::settings::{
    CommandLine, ConfigArgs, LoadedSettings, SettingSource, SettingValue,
};
use super::super::{Outcome, OutputArgs, print, print_json, report_startup_error};

const EXAMPLES: &str = "\
Examples:
  vitrine config show
  vitrine config show --config vitrine.toml
  vitrine config show --config vitrine.toml -- --listen 0.0.0.0:8080";

/// Print what `vitrine serve` would run with, and where each value comes from. Passwords are hidden.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::cli) struct Show {
    #[command(flatten)]
    output: OutputArgs,
    /// Flags of `vitrine serve`, behind `--`.
    #[arg(last = true, value_name = "FLAGS")]
    flags: Vec<String>,
}

impl Show {
    pub(super) fn run(&self, config: &ConfigArgs) -> Result<Outcome> {
        let read = CommandLine::of_server(config.config.as_deref(), &self.flags).read();
        let LoadedSettings { values, file, .. } = match read {
            Ok(read) => read,
            Err(error) => return report_startup_error(error),
        };
        if self.output.json {
            let settings: Vec<Json> = values
                .iter()
                .map(|value| to_json(value, file.as_deref()))
                .collect();
            print_json(&json!({"settings": settings}))?;
            return Ok(Outcome::Done);
        }
        let lines: Vec<(String, String)> = values
            .iter()
            .map(|value| to_text(value, file.as_deref()))
            .collect();
        let width = lines.iter().map(|(left, _)| left.chars().count());
        let width = width.filter(|width| *width <= 50).max().unwrap_or(0);
        let lines = lines
            .iter()
            .map(|(left, right)| format!("{left:width$}  # {right}\n"));
        print(&lines.collect::<String>())?;
        Ok(Outcome::Done)
    }
}

/// Returns a line that the file could hold, and the source of its value.
fn to_text(value: &SettingValue, file: Option<&Path>) -> (String, String) {
    let name = &value.setting.name;
    let line = match value.to_toml() {
        Some(value) => format!("{name} = {}", single_line(&value)),
        None => format!("#{name}"),
    };
    let source = match value.source {
        SettingSource::Flag => value.setting.flag(),
        SettingSource::Environment => value.setting.variable().unwrap_or_default().to_owned(),
        SettingSource::File(line) => {
            let file = file.map(|file| file.display().to_string());
            format!("{}:{line}", single_line(&file.unwrap_or_default()))
        }
        SettingSource::Default => "default".to_owned(),
        SettingSource::Unset => "not set".to_owned(),
    };
    (line, source)
}

fn to_json(value: &SettingValue, file: Option<&Path>) -> Json {
    let (source, line) = match value.source {
        SettingSource::Flag => ("flag", None),
        SettingSource::Environment => ("environment", None),
        SettingSource::File(line) => ("file", Some(line)),
        SettingSource::Default => ("default", None),
        SettingSource::Unset => ("unset", None),
    };
    json!({
        "setting": value.setting.name,
        "values": value.shown(),
        "source": source,
        "variable": value.setting.variable(),
        "file": line.and(file).map(|file| file.display().to_string()),
        "line": line,
    })
}
