//! The command line, the environment and the settings file become one.
//!
//! A setting that only the file sets is put on the command line as a flag, and that is parsed like any other:
//! so parsers hold for the file too. Rules between settings are `Serve::faults`.

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
    /// The command line.
    Flag,
    /// The environment.
    Environment,
    /// The settings file, in this line.
    File(usize),
    /// It is the default.
    Default,
    /// It has no value.
    Unset,
}

/// Value of a setting, and its source.
#[derive(Debug, Clone)]
pub(in crate::cli) struct SettingValue {
    pub(in crate::cli) setting: Setting,
    /// One text for each value, as it was given. May hold a secret.
    values: Vec<String>,
    pub(in crate::cli) source: SettingSource,
}

impl SettingValue {
    /// The values without what is secret in them.
    pub(in crate::cli) fn shown(&self) -> Vec<String> {
        let values = self.values.iter();
        values
            .map(|value| shown(&self.setting.name, value))
            .collect()
    }

    /// Returns true if the value differs from the one before.
    pub(in crate::cli) fn differs(&self, before: &Self) -> bool {
        self.values != before.values
    }

    /// The paths that it names.
    pub(in crate::cli) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.values.iter().map(Path::new)
    }

    /// The value, as the file writes it.
    pub(in crate::cli) fn to_toml(&self) -> Option<String> {
        format_values(self.setting.kind(), &self.shown())
    }
}

/// Reason for which a command can't start.
#[derive(Debug)]
pub(in crate::cli) enum StartupError {
    /// The command line is wrong, or asks for help.
    CommandLine(clap::Error),
    /// The settings file is wrong.
    Refused(RefusedFile),
    /// The settings file can't be read.
    Failed(anyhow::Error),
}

impl From<clap::Error> for StartupError {
    fn from(error: clap::Error) -> Self {
        Self::CommandLine(without_secrets(error))
    }
}

/// The arguments of the process; they can be read again when the file has changed.
#[derive(Debug, Clone)]
pub(in crate::cli) struct CommandLine {
    arguments: Vec<OsString>,
}

/// A command line that was read, with its environment and its file.
#[derive(Debug)]
pub(in crate::cli) struct LoadedSettings {
    pub(in crate::cli) cli: Cli,
    /// The settings of the server; empty if the command isn't `serve`.
    pub(in crate::cli) values: Vec<SettingValue>,
    /// The settings file.
    pub(in crate::cli) file: Option<PathBuf>,
    /// Warnings about the file.
    pub(in crate::cli) warnings: Vec<String>,
}

impl CommandLine {
    /// The process's own.
    pub(in crate::cli) fn of_process() -> Self {
        Self {
            arguments: std::env::args_os().collect(),
        }
    }

    /// The one that `vitrine serve` would have with these flags.
    pub(in crate::cli) fn of_server(file: Option<&Path>, flags: &[String]) -> Self {
        let mut arguments: Vec<OsString> = vec!["vitrine".into(), SERVE.into()];
        if let Some(file) = file {
            arguments.extend(["--config".into(), file.into()]);
        }
        arguments.extend(flags.iter().map(OsString::from));
        Self { arguments }
    }

    /// Reads it. The file is checked as a whole, even if the command takes only some settings from it.
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
        // Of the file, a command takes what it has.
        refuse_unused(&program, &given)?;
        let lines: Vec<&FileEntry> = wanted.iter().map(|(_, entry)| *entry).collect();
        Ok(LoadedSettings {
            values: values(&program, &matches, &lines),
            cli: Cli::from_arg_matches(&matches)?,
            file: Some(path),
            warnings: file.warnings,
        })
    }

    /// The settings file that flags or the environment name. `vitrine config` looks at it by itself.
    fn file(&self, program: &Command) -> Result<Option<PathBuf>, StartupError> {
        let strict = program.clone().try_get_matches_from(&self.arguments);
        let given = match strict {
            Ok(matches) => matches,
            // Help that was asked for; or a flag is missing, which the file may set.
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

    /// The arguments with these settings among them.
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
        // Behind `--` there are no flags.
        let mut arguments = self.arguments.clone();
        let end = arguments.iter().position(|argument| argument == "--");
        let end = end.unwrap_or(arguments.len());
        arguments.splice(end..end, flags.map(OsString::from));
        arguments
    }
}

/// Settings that a command other than `serve` takes from the file, beside those that all commands have.
const OF_COMMANDS: [(&str, &str); 1] = [("ready", "admin_listen")];

/// Returns the entries that count for the command: settings that it has, and that are set nowhere else.
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
