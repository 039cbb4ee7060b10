//! Settings of a server and their sources, in order of precedence: flags, environment, settings file, defaults.
//!
//! The single table of settings is the command line of `vitrine serve`, as clap describes it. Keys of the file are its
//! flags with `_` for `-`, their parsers check the file's values, and the manual is generated from their help.
//!
//! - `file`: parser of settings files
//! - `fault`: faults of a file
//! - `sources`: merges command line, environment and file
//! - `template`: the manual, `vitrine.default.toml`
//! - `secret`: hides secrets in values

mod fault;
mod file;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod secret;
mod sources;
mod template;

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use clap::builder::ValueParser;
use clap::{Arg, ArgAction, Args, Command, ValueHint, value_parser};

pub(super) use fault::{RefusedFile, SettingFault};
pub(super) use sources::{CommandLine, LoadedSettings, SettingSource, SettingValue, StartupError};
pub(super) use template::template;

use super::program::program;

/// The command whose flags are the settings.
const SERVE: &str = "serve";

/// Path of the settings file, if there is one.
#[derive(Debug, Args)]
#[command(next_help_heading = "Settings file")]
pub(super) struct ConfigArgs {
    /// Settings file, as `vitrine config default` prints it. Flags and the environment take precedence. Commands other
    /// than `serve` read from it the settings that they share: the store, and for `ready` the admin port.
    #[arg(
        long = "config",
        global = true,
        env = "VITRINE_CONFIG",
        value_name = "FILE"
    )]
    pub(super) config: Option<PathBuf>,
}

/// Type of a value in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ValueKind {
    /// `true` or `false`, for a flag without a value.
    Switch,
    /// `true` or `false`, for a flag with that value.
    Boolean,
    /// A number without quotes.
    Number,
    /// A text in quotes.
    Text,
}

/// Parsers of flags with numbers.
static NUMBERS: LazyLock<[ValueParser; 8]> = LazyLock::new(|| {
    [
        value_parser!(u8).into(),
        value_parser!(u16).into(),
        value_parser!(u32).into(),
        value_parser!(u64).into(),
        value_parser!(i32).into(),
        value_parser!(i64).into(),
        value_parser!(usize).into(),
        value_parser!(f64).into(),
    ]
});

/// A setting: a flag of `vitrine serve`.
#[derive(Debug, Clone)]
pub(super) struct Setting {
    /// Key in the file.
    pub(super) name: String,
    argument: Arg,
}

impl Setting {
    /// Returns the flag, as on the command line.
    pub(super) fn flag(&self) -> String {
        format!("--{}", self.name.replace('_', "-"))
    }

    /// Returns its environment variable.
    pub(super) fn variable(&self) -> Option<&str> {
        self.argument.get_env()?.to_str()
    }

    /// Returns its default values; empty without a default.
    fn defaults(&self) -> Vec<String> {
        let defaults = self.argument.get_default_values().iter();
        defaults
            .map(|value| value.to_string_lossy().into_owned())
            .collect()
    }

    fn takes_several(&self) -> bool {
        matches!(self.argument.get_action(), ArgAction::Append)
    }

    fn kind(&self) -> ValueKind {
        if !self.argument.get_action().takes_values() {
            return ValueKind::Switch;
        }
        let made = self.argument.get_value_parser().type_id();
        let is_number = |text: &String| text.parse::<f64>().is_ok();
        if made == value_parser!(bool).type_id() {
            ValueKind::Boolean
        } else if NUMBERS.iter().any(|number| number.type_id() == made)
            && self.defaults().iter().all(is_number)
        {
            ValueKind::Number
        } else {
            ValueKind::Text
        }
    }

    /// Returns the error of the flag's parser if it refuses a value.
    fn refusal(&self, value: &str) -> Option<clap::Error> {
        if self.kind() == ValueKind::Switch {
            return None;
        }
        let mut argument = Arg::new("value")
            .long("value")
            .value_parser(self.argument.get_value_parser().clone())
            .action(self.argument.get_action().clone());
        if let Some(delimiter) = self.argument.get_value_delimiter() {
            argument = argument.value_delimiter(delimiter);
        }
        Command::new("value")
            .no_binary_name(true)
            .arg(argument)
            .try_get_matches_from([format!("--value={value}")])
            .err()
    }

    /// Returns the placeholder in the help, such as `FILE`.
    fn placeholder(&self) -> Option<&str> {
        let names = self.argument.get_value_names()?;
        names.first().map(AsRef::as_ref)
    }

    /// Returns true if it names a file that must exist: one that may be made later has the hint `AnyPath`.
    pub(super) fn names_a_file(&self) -> bool {
        let hint = self.argument.get_value_hint();
        let is_file = self.placeholder() == Some("FILE")
            || hint == ValueHint::FilePath
            || self.name.ends_with("_file");
        is_file && hint != ValueHint::AnyPath
    }

    /// Returns true if it names a directory.
    pub(super) fn names_a_directory(&self) -> bool {
        self.placeholder() == Some("DIR") || self.argument.get_value_hint() == ValueHint::DirPath
    }
}

/// Returns all settings, in the order of the help; `root` is the whole program, built.
fn all(root: &Command) -> Vec<Setting> {
    let serve = root.find_subcommand(SERVE);
    let arguments = serve.into_iter().flat_map(Command::get_arguments);
    let is_setting = |argument: &&Arg| {
        !argument.is_hide_set()
            && !matches!(
                argument.get_long(),
                None | Some("help" | "version" | "config")
            )
    };
    arguments
        .filter(is_setting)
        .filter_map(|argument| {
            Some(Setting {
                name: argument.get_long()?.replace('-', "_"),
                argument: argument.clone(),
            })
        })
        .collect()
}

/// Formats a path for messages.
fn display_path(path: &Path) -> String {
    path.display().to_string()
}
