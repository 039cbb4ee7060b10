//! Merges the command line, the environment and the settings file.
//!
//! A setting that only the file sets is added to the command line as a flag, which is then parsed like any other: so
//! the parsers check the file, too. `Serve::faults` has the rules between settings.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::parser::ValueSource;
use clap::{ArgMatches, Command, FromArgMatches as _};

use super::super::Cli;
use super::super::program::refuse_unused;
use super::fault::RefusedFile;
use super::file::{self, FileEntry};
use super::secret::{shown, without_secrets};
use super::template::format_values;
use super::{SERVE, Setting, ValueKind, all, program};

/// Source of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum SettingSource {
    /// Command line.
    Flag,
    /// Environment variable.
    Environment,
    /// Line of the settings file.
    File(usize),
    /// Default value.
    Default,
    /// No value.
    Unset,
}

/// Value of a setting, and its source.
#[derive(Debug, Clone)]
pub(in crate::cli) struct SettingValue {
    pub(in crate::cli) setting: Setting,
    /// Values as given. May contain a secret.
    values: Vec<String>,
    pub(in crate::cli) source: SettingSource,
}

impl SettingValue {
    /// Returns the values without secrets.
    pub(in crate::cli) fn shown(&self) -> Vec<String> {
        let values = self.values.iter();
        values
            .map(|value| shown(&self.setting.name, value))
            .collect()
    }

    /// Returns true if the value differs from an earlier one.
    pub(in crate::cli) fn differs(&self, before: &Self) -> bool {
        self.values != before.values
    }

    /// Returns the values as paths.
    pub(in crate::cli) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.values.iter().map(Path::new)
    }

    /// Formats the value for the file.
    pub(in crate::cli) fn to_toml(&self) -> Option<String> {
        format_values(self.setting.kind(), &self.shown())
    }
}

/// Error that keeps a command from starting.
#[derive(Debug)]
pub(in crate::cli) enum StartupError {
    /// The command line is wrong, or asks for help or the version.
    CommandLine(clap::Error),
    /// The settings file has faults.
    Refused(RefusedFile),
    /// The settings file can't be read.
    Failed(anyhow::Error),
}

impl From<clap::Error> for StartupError {
    fn from(error: clap::Error) -> Self {
        Self::CommandLine(without_secrets(error))
    }
}

/// Arguments of the process, which can be parsed again when the file has changed.
#[derive(Debug, Clone)]
pub(in crate::cli) struct CommandLine {
    arguments: Vec<OsString>,
}

/// A parsed command line, merged with its environment and its file.
#[derive(Debug)]
pub(in crate::cli) struct LoadedSettings {
    pub(in crate::cli) cli: Cli,
    /// Settings of the server; empty for commands other than `serve`.
    pub(in crate::cli) values: Vec<SettingValue>,
    /// Path of the settings file.
    pub(in crate::cli) file: Option<PathBuf>,
    /// Warnings about the file.
    pub(in crate::cli) warnings: Vec<String>,
}

impl CommandLine {
    /// Returns the command line of the process.
    pub(in crate::cli) fn of_process() -> Self {
        Self {
            arguments: std::env::args_os().collect(),
        }
    }

    /// Returns the command line of `vitrine serve` with these flags.
    pub(in crate::cli) fn of_server(file: Option<&Path>, flags: &[String]) -> Self {
        let mut arguments: Vec<OsString> = vec!["vitrine".into(), SERVE.into()];
        if let Some(file) = file {
            arguments.extend(["--config".into(), file.into()]);
        }
        arguments.extend(flags.iter().map(OsString::from));
        Self { arguments }
    }

    /// Parses it. The whole file is checked, even if the command uses only some of its settings.
    pub(in crate::cli) fn read(&self) -> Result<LoadedSettings, StartupError> {
        let program = program();
        let Some(path) = self.file(&program)? else {
            let matches = program.clone().try_get_matches_from(&self.arguments)?;
            refuse_unused(&program, &matches)?;
            return Ok(LoadedSettings {
                values: values(&program, &matches, &[]),
                cli: Cli::from_arg_matches(&matches)?,
                file: None,
                warnings: Vec::new(),
            });
        };
        let settings = all(&program);
        let read = file::read(&path, &settings).with_context(|| {
            format!(
                "can't read the settings file `{}`",
                super::display_path(&path)
            )
        });
        let file = read
            .map_err(StartupError::Failed)?
            .map_err(StartupError::Refused)?;
        let lenient = program.clone().ignore_errors(true);
        let given = lenient.try_get_matches_from(&self.arguments)?;
        let wanted = applicable_entries(&program, &settings, &given, &file.entries);
        let matches = program.clone().try_get_matches_from(self.with(&wanted))?;
        // A command uses only the settings that it has.
        refuse_unused(&program, &given)?;
        let lines: Vec<&FileEntry> = wanted.iter().map(|(_, entry)| *entry).collect();
        Ok(LoadedSettings {
            values: values(&program, &matches, &lines),
            cli: Cli::from_arg_matches(&matches)?,
            file: Some(path),
            warnings: file.warnings,
        })
    }

    /// Returns the settings file that flags or the environment name. `vitrine config` reads it by itself.
    fn file(&self, program: &Command) -> Result<Option<PathBuf>, StartupError> {
        let strict = program.clone().try_get_matches_from(&self.arguments);
        let given = match strict {
            Ok(matches) => matches,
            // Help was requested; or a required flag is missing, which the file may set.
            Err(error) if !error.use_stderr() => return Err(error.into()),
            Err(_) => {
                let lenient = program.clone().ignore_errors(true);
                lenient.try_get_matches_from(&self.arguments)?
            }
        };
        Ok(match given.subcommand() {
            Some(("config", _)) | None => None,
            Some((_, command)) => command.get_one::<PathBuf>("config").cloned(),
        })
    }

    /// Returns the arguments with these settings inserted.
    fn with(&self, wanted: &[(&Setting, &FileEntry)]) -> Vec<OsString> {
        let flags = wanted.iter().flat_map(|(setting, entry)| {
            let flag = setting.flag();
            let is_switch = setting.kind() == ValueKind::Switch;
            let values = entry.values.iter();
            values.filter_map(move |value| match (is_switch, value.as_str()) {
                (false, value) => Some(format!("{flag}={value}")),
                (true, "true") => Some(flag.clone()),
                (true, _) => None,
            })
        });
        // After `--` there are no flags.
        let mut arguments = self.arguments.clone();
        let end = arguments.iter().position(|argument| argument == "--");
        let end = end.unwrap_or(arguments.len());
        arguments.splice(end..end, flags.map(OsString::from));
        arguments
    }
}

/// Settings of the file that a command other than `serve` uses, beside those of all commands.
const OF_COMMANDS: [(&str, &str); 1] = [("ready", "admin_listen")];

/// Returns the entries that apply to the command: settings that it has, and that are set nowhere else.
fn applicable_entries<'s>(
    program: &Command,
    settings: &'s [Setting],
    given: &ArgMatches,
    entries: &'s [FileEntry],
) -> Vec<(&'s Setting, &'s FileEntry)> {
    let Some((name, given)) = given.subcommand() else {
        return Vec::new();
    };
    let is_set = |setting: &Setting| {
        let source = given.value_source(setting.argument.get_id().as_str());
        let in_environment = setting.argument.get_env().and_then(std::env::var_os);
        source == Some(ValueSource::CommandLine) || in_environment.is_some()
    };
    let has = |setting: &Setting| match name {
        SERVE => true,
        name if OF_COMMANDS.contains(&(name, &setting.name)) => true,
        _ => program.get_arguments().any(|argument| {
            argument.is_global_set() && argument.get_id() == setting.argument.get_id()
        }),
    };
    let found = entries.iter().filter_map(|entry| {
        let setting = settings.iter().find(|setting| setting.name == entry.name)?;
        Some((setting, entry))
    });
    found
        .filter(|(setting, _)| has(setting) && !is_set(setting))
        .collect()
}

/// Returns the settings in effect, if the command is `serve`.
fn values(program: &Command, matches: &ArgMatches, from_file: &[&FileEntry]) -> Vec<SettingValue> {
    let Some((SERVE, matches)) = matches.subcommand() else {
        return Vec::new();
    };
    let value = |setting: Setting| {
        let id = setting.argument.get_id().as_str();
        let values = match setting.kind() {
            ValueKind::Switch => vec![matches.get_flag(id).to_string()],
            _ => {
                let raw = matches.get_raw(id).into_iter().flatten();
                raw.map(|value| value.to_string_lossy().into_owned())
                    .collect()
            }
        };
        let line = from_file.iter().find(|entry| entry.name == setting.name);
        let source = match (line, matches.value_source(id)) {
            (Some(entry), _) => SettingSource::File(entry.line),
            (None, Some(ValueSource::CommandLine)) => SettingSource::Flag,
            (None, Some(ValueSource::EnvVariable)) => SettingSource::Environment,
            (None, Some(_)) => SettingSource::Default,
            (None, None) => SettingSource::Unset,
        };
        SettingValue {
            setting,
            values,
            source,
        }
    };
    all(program).into_iter().map(value).collect()
}
