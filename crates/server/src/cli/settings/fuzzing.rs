//! Settings files without files, for the targets in `fuzz/`: see the feature `fuzzing`.

use std::path::Path;
use std::sync::LazyLock;

use super::template::format_values;
use super::{CommandLine, Setting, SettingSource, StartupError, ValueKind, all, file, program};

static SETTINGS: LazyLock<Vec<Setting>> = LazyLock::new(|| all(&program()));

/// A setting in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSetting {
    /// Key.
    pub name: String,
    /// Values, as on the command line.
    pub values: Vec<String>,
    /// Line of the key, from 1.
    pub line: usize,
}

impl FileSetting {
    /// Returns the line that sets this.
    #[must_use]
    pub fn to_toml(&self) -> String {
        let setting = SETTINGS.iter().find(|setting| setting.name == self.name);
        let kind = setting.map_or(ValueKind::Number, Setting::kind);
        let values = format_values(kind, &self.values).unwrap_or_default();
        format!("{} = {values}", self.name)
    }
}

/// Fault of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileFault {
    /// Line, from 1; 0 for faults without one.
    pub line: usize,
    /// Character in the line, from 1.
    pub column: usize,
    /// Key of the setting.
    pub setting: Option<String>,
    /// The fault.
    pub what: String,
    /// The remedy.
    pub advice: String,
}

impl From<super::SettingFault> for FileFault {
    fn from(fault: super::SettingFault) -> Self {
        let super::SettingFault {
            line,
            column,
            setting,
            what,
            advice,
        } = fault;
        Self {
            line,
            column,
            setting,
            what,
            advice,
        }
    }
}

/// Returns the names of all settings.
pub fn names() -> impl Iterator<Item = &'static str> {
    SETTINGS.iter().map(|setting| setting.name.as_str())
}

/// Parses the settings in a file of these bytes.
///
/// # Errors
///
/// If the file has faults; returns all of them.
pub fn read(bytes: &[u8]) -> Result<Vec<FileSetting>, Vec<FileFault>> {
    let set = |entry: file::FileEntry| FileSetting {
        name: entry.name,
        values: entry.values,
        line: entry.line,
    };
    match file::entries(bytes, &SETTINGS) {
        Ok(entries) => Ok(entries.into_iter().map(set).collect()),
        Err(faults) => Err(faults.into_iter().map(FileFault::from).collect()),
    }
}

/// Returns names and lines of the server settings in the file at `path` that are in effect.
///
/// # Errors
///
/// If the file has faults; returns all of them. Rules between settings are checked later.
pub fn effective(path: &Path) -> Result<Vec<(String, usize)>, Vec<FileFault>> {
    match CommandLine::of_server(Some(path), &[]).read() {
        Ok(read) => {
            let from_file = |value: super::SettingValue| match value.source {
                SettingSource::File(line) => Some((value.setting.name, line)),
                _ => None,
            };
            Ok(read.values.into_iter().filter_map(from_file).collect())
        }
        Err(StartupError::Refused(refusal)) => {
            Err(refusal.faults.into_iter().map(FileFault::from).collect())
        }
        Err(stop) => panic!("a settings file is refused as a whole, without a line: {stop:?}"),
    }
}
