//! Settings files: parses TOML into values of flags, or reports all faults with their places.

use std::collections::BTreeSet;
use std::fs::File as Opened;
use std::io::{self, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use clap::error::{ContextKind, ContextValue};
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::fault::{LineIndex, RefusedFile, SettingFault};
use super::secret::shown;
use super::template::example;
use super::{Setting, ValueKind};

/// Maximum length of a file, in bytes: a longer one must be a wrong file.
const MAX_BYTES: u64 = 1 << 20;

/// Contents of a settings file.
#[derive(Debug)]
pub(super) struct SettingsFile {
    pub(super) entries: Vec<FileEntry>,
    /// Warnings about dangerous settings.
    pub(super) warnings: Vec<String>,
}

/// A setting in a file.
#[derive(Debug)]
pub(super) struct FileEntry {
    pub(super) name: String,
    /// Values, as on the command line.
    pub(super) values: Vec<String>,
    pub(super) line: usize,
}

/// Reads a file. The outer error is that the file can't be read, the inner one its faults.
pub(super) fn read(
    path: &Path,
    settings: &[Setting],
) -> io::Result<Result<SettingsFile, RefusedFile>> {
    let opened = Opened::open(path)?;
    let mode = opened.metadata()?.permissions().mode();
    let mut bytes = Vec::new();
    opened.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(match entries(&bytes, settings) {
        Ok(entries) => Ok(SettingsFile {
            warnings: secret_warnings(path, &entries, mode),
            entries,
        }),
        Err(faults) => Err(RefusedFile {
            path: path.to_owned(),
            faults,
        }),
    })
}

/// Returns the settings in the bytes of a file.
///
/// # Errors
///
/// If the file has faults; returns all of them.
pub(super) fn entries(
    bytes: &[u8],
    settings: &[Setting],
) -> Result<Vec<FileEntry>, Vec<SettingFault>> {
    if bytes.len() as u64 > MAX_BYTES {
        return Err(vec![SettingFault {
            line: 0,
            column: 0,
            setting: None,
            what: format!("it is longer than {MAX_BYTES} bytes"),
            advice: "name a settings file, as `vitrine config default` prints it".to_owned(),
        }]);
    }
    text(bytes).and_then(|text| parse(text, settings))
}

fn text(bytes: &[u8]) -> Result<&str, Vec<SettingFault>> {
    std::str::from_utf8(bytes).map_err(|error| {
        let good = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
        let what = "this isn't UTF-8".to_owned();
        let advice = "save the file as UTF-8".to_owned();
        vec![LineIndex(&good).fault(&(good.len()..good.len()), None, what, advice)]
    })
}

/// Warns of secrets in a file that everybody can read.
fn secret_warnings(path: &Path, entries: &[FileEntry], mode: u32) -> Vec<String> {
    if mode & 0o004 == 0 {
        return Vec::new();
    }
    let is_secret = |entry: &&FileEntry| {
        let mut values = entry.values.iter();
        values.any(|value| shown(&entry.name, value) != *value)
    };
    let secrets = entries.iter().filter(is_secret);
    let warning = |entry: &FileEntry| {
        format!(
            "{path}:{line}: `{name}` contains a password, and every user of this machine can read the file; run `chmod \
             o-r {path}`",
            path = super::display_path(path),
            line = entry.line,
            name = entry.name,
        )
    };
    secrets.map(warning).collect()
}

/// Returns the settings in a text, or all faults of it.
fn parse(text: &str, settings: &[Setting]) -> Result<Vec<FileEntry>, Vec<SettingFault>> {
    let line_index = LineIndex(text);
    let (table, errors) = DeTable::parse_recoverable(text);
    let mut faults: Vec<SettingFault> = errors
        .iter()
        .map(|error| syntax(&line_index, error))
        .collect();
    faults.dedup_by_key(|fault| fault.line);
    // The content of a malformed line is guesswork.
    let unreadable: BTreeSet<usize> = faults.iter().map(|fault| fault.line).collect();
    let mut entries = Vec::new();
    let mut tables = vec![table.get_ref()];
    while let Some(table) = tables.pop() {
        for (key, value) in table {
            if unreadable.contains(&line_index.of(key.span().start).0) {
                continue;
            }
            match entry(&line_index, settings, key, value) {
                Ok(entry) => entries.push(entry),
                Err(found) => faults.extend(found),
            }
            // No table is valid, but settings in one may have faults, too.
            tables.extend(value.get_ref().as_table());
        }
    }
    if faults.is_empty() {
        return Ok(entries);
    }
    faults.sort_by_key(|fault| (fault.line, fault.column));
    Err(faults)
}

fn syntax(line_index: &LineIndex<'_>, error: &toml::de::Error) -> SettingFault {
    let span = error.span().unwrap_or_default();
    let mut lines = error.message().lines();
    let what = lines.next().unwrap_or_default();
    let expected: Vec<&str> = lines
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    if what == "duplicate key" {
        let key = line_index.0.get(span.clone()).unwrap_or_default();
        let what = format!("`{key}` is set twice");
        let advice = "remove one of the two".to_owned();
        return line_index.fault(&span, Some(key), what, advice);
    }
    let advice = match expected.as_slice() {
        [] => "write it as `name = value`, a text in quotes".to_owned(),
        expected => expected.join("; "),
    };
    line_index.fault(&span, None, format!("this isn't TOML: {what}"), advice)
}

fn entry(
    line_index: &LineIndex<'_>,
    settings: &[Setting],
    key: &Spanned<DeString<'_>>,
    value: &Spanned<DeValue<'_>>,
) -> Result<FileEntry, Vec<SettingFault>> {
    let name: &str = key.get_ref();
    if let DeValue::Table(_) = value.get_ref() {
        let what = format!("`{name}` is a table");
        let advice = "settings have no tables; write each as `name = value`".to_owned();
        return Err(vec![line_index.fault(
            &key.span(),
            Some(name),
            what,
            advice,
        )]);
    }
    let Some(setting) = settings.iter().find(|setting| setting.name == name) else {
        let what = format!("unknown setting `{name}`");
        let advice = suggestion(name, settings);
        return Err(vec![line_index.fault(
            &key.span(),
            Some(name),
            what,
            advice,
        )]);
    };
    let one = [value.clone()];
    let given: &[Spanned<DeValue<'_>>] = match value.get_ref() {
        DeValue::Array(values) if setting.takes_several() => values,
        _ => &one,
    };
    let (mut values, mut faults) = (Vec::new(), Vec::new());
    if given.is_empty() {
        let what = format!("`{name}` is an empty list");
        let advice = "name a value, or remove the line".to_owned();
        faults.push(line_index.fault(&value.span(), Some(name), what, advice));
    }
    for value in given {
        match check_value(setting, value.get_ref()) {
            Ok(value) => values.push(value),
            Err((what, advice)) => {
                faults.push(line_index.fault(&value.span(), Some(name), what, advice));
            }
        }
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    let (line, _) = line_index.of(key.span().start);
    Ok(FileEntry {
        name: setting.name.clone(),
        values,
        line,
    })
}

/// Suggests the setting that was probably meant.
fn suggestion(name: &str, settings: &[Setting]) -> String {
    let meant = name.to_lowercase().replace('-', "_");
    let candidates = settings.iter().map(|setting| {
        let likeness = strsim::jaro_winkler(&meant, &setting.name);
        (likeness, setting.name.as_str())
    });
    let nearest = candidates
        .filter(|(likeness, _)| *likeness > 0.75)
        .max_by(|left, right| left.0.total_cmp(&right.0));
    match nearest {
        Some((_, nearest)) => format!("did you mean `{nearest}`?"),
        None => "`vitrine config default` prints all settings".to_owned(),
    }
}

/// Returns a value as on the command line; or the fault, and the advice.
fn check_value(setting: &Setting, value: &DeValue<'_>) -> Result<String, (String, String)> {
    let name = &setting.name;
    let kind = setting.kind();
    let text = match (kind, value) {
        (ValueKind::Switch | ValueKind::Boolean, DeValue::Boolean(value)) => value.to_string(),
        (ValueKind::Number, DeValue::Integer(number)) => {
            match i128::from_str_radix(number.as_str(), number.radix()) {
                Ok(number) => number.to_string(),
                Err(_) => number.as_str().to_owned(),
            }
        }
        (ValueKind::Number, DeValue::Float(number)) => number.as_str().to_owned(),
        (ValueKind::Text, DeValue::String(text)) => text.clone().into_owned(),
        (kind, other) => {
            let what = format!("`{name}` is {}", type_name(other));
            return Err((what, format!("write {}", expected_value(setting, kind))));
        }
    };
    let Some(refusal) = setting.refusal(&text) else {
        return Ok(text);
    };
    let what = format!("`{name}` is `{}`", shown(name, &text));
    let what = match std::error::Error::source(&refusal) {
        // A parser's error may repeat the value, which may contain a password.
        Some(reason) if shown(name, &text) == text => format!("{what}: {reason}"),
        _ => what,
    };
    let suggested = match refusal.get(ContextKind::SuggestedValue) {
        Some(ContextValue::String(suggested)) => format!("; did you mean `{suggested}`?"),
        _ => String::new(),
    };
    let advice = match kind {
        // The value is in quotes already.
        ValueKind::Text if setting.argument.get_possible_values().is_empty() => {
            format!("give one such as {}", example(setting))
        }
        _ => format!("write {}", expected_value(setting, kind)),
    };
    Err((what, format!("{advice}{suggested}")))
}

fn type_name(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) | DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "a boolean",
        DeValue::Datetime(_) => "a time",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

/// Describes a value of the setting.
fn expected_value(setting: &Setting, kind: ValueKind) -> String {
    let possible = setting.argument.get_possible_values();
    let names = possible.iter().filter(|value| !value.is_hide_set());
    let names: Vec<String> = names
        .map(|value| format!("\"{}\"", value.get_name()))
        .collect();
    match kind {
        ValueKind::Switch | ValueKind::Boolean => "true or false, without quotes".to_owned(),
        ValueKind::Text if !names.is_empty() => format!("one of {}", names.join(", ")),
        ValueKind::Number => format!("a number without quotes, such as {}", example(setting)),
        ValueKind::Text => {
            let placeholder = setting.placeholder().unwrap_or("a text");
            format!("{placeholder} in quotes, such as {}", example(setting))
        }
    }
}
