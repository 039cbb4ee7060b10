//! Settings files: accepted values equal those of a TOML parser, and each fault has line, column and advice.

use std::fs;
use std::sync::LazyLock;

use tempfile::NamedTempFile;
use toml::de::DeTable;
use vitrine::cli::fuzzing::{FileFault, FileSetting, effective, names, read};

/// File for checks of whole settings.
static FILE: LazyLock<NamedTempFile> = LazyLock::new(|| NamedTempFile::new().expect("a file"));

/// Compares the settings read with those of a TOML parser.
pub fn check(bytes: &[u8]) {
    match read(bytes) {
        Ok(set) => {
            let text = std::str::from_utf8(bytes).expect("text");
            let table = DeTable::parse(text).expect("TOML");
            let mut keys: Vec<&str> = table.get_ref().keys().map(|key| &**key.get_ref()).collect();
            let mut found: Vec<&str> = set.iter().map(|set| set.name.as_str()).collect();
            keys.sort_unstable();
            found.sort_unstable();
            assert_eq!(keys, found, "{text}");
            set.iter().for_each(|set| check_set(set, text));
            check_again(&set);
            check_whole(bytes, &set);
        }
        Err(wrong) => {
            assert!(!wrong.is_empty());
            let places: Vec<_> = wrong
                .iter()
                .map(|wrong| (wrong.line, wrong.column))
                .collect();
            assert!(places.is_sorted(), "{wrong:?}");
            wrong.iter().for_each(|wrong| check_wrong(wrong, bytes));
        }
    }
}

fn check_set(set: &FileSetting, text: &str) {
    assert!(names().any(|name| name == set.name), "{set:?}");
    assert!(!set.values.is_empty(), "{set:?}");
    let line = text.split('\n').nth(set.line - 1).expect("a line");
    let key = line.trim_start().trim_start_matches(['"', '\'']);
    // A quoted key may have escapes.
    assert!(
        key.starts_with(&set.name) || key.contains('\\'),
        "{set:?} in {text}"
    );
}

/// Checks that settings, formatted by the program, are read as the same.
fn check_again(set: &[FileSetting]) {
    let lines: Vec<String> = set.iter().map(FileSetting::to_toml).collect();
    let again = read(lines.join("\n").as_bytes());
    let again = again.unwrap_or_else(|wrong| panic!("{wrong:?} in {lines:?}"));
    let said = |set: &[FileSetting]| -> Vec<(String, Vec<String>)> {
        let mut said: Vec<_> = set
            .iter()
            .map(|set| (set.name.clone(), set.values.clone()))
            .collect();
        said.sort();
        said
    };
    assert_eq!(said(&again), said(set));
}

/// Checks a file of valid settings: together they are in effect, or refused with a line.
fn check_whole(bytes: &[u8], set: &[FileSetting]) {
    fs::write(FILE.path(), bytes).expect("a file");
    match effective(FILE.path()) {
        Ok(values) => {
            assert_eq!(values.len(), set.len(), "{values:?} of {set:?}");
            for FileSetting { name, line, .. } in set {
                assert!(
                    values.contains(&(name.clone(), *line)),
                    "{name} in {values:?}"
                );
            }
        }
        Err(wrong) => {
            assert!(!wrong.is_empty());
            wrong.iter().for_each(|wrong| check_wrong(wrong, bytes));
        }
    }
}

fn check_wrong(wrong: &FileFault, bytes: &[u8]) {
    assert!(
        !wrong.what.is_empty() && !wrong.advice.is_empty(),
        "{wrong:?}"
    );
    let text = String::from_utf8_lossy(bytes);
    let lines: Vec<&str> = text.split('\n').collect();
    assert!(
        (1..=lines.len()).contains(&wrong.line),
        "{wrong:?} in {text}"
    );
    let line = lines[wrong.line - 1];
    // The position after the last character is that of something missing.
    assert!(
        (1..=line.chars().count() + 1).contains(&wrong.column),
        "{wrong:?} in {text}"
    );
}
