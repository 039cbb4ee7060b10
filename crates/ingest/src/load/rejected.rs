//! Files of rejected records with the reasons, ready to be corrected and loaded.
//!
//! A row is written to a table with the same columns and dialect, after a first cell with the reasons. Everything else
//! is written as a line of JSON. An object keeps its members, after a first member `_rejected` with the reasons. Text
//! that isn't an object, or couldn't be written back unchanged, is in the member `_text`, which is loaded like an input
//! of its own. No payout type can have these names (docs/contract/resources.md#later-payout-types).

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use memchr::memmem;

use super::json::{Node, write_text};
use super::read::Table;
use super::report::Finding;
use super::whole_file::{self, WholeFile};
use crate::escape::single_line;

/// Member with the reasons.
pub(super) const REASONS: &str = "_rejected";

/// Member with text that isn't a record.
const TEXT: &str = "_text";

/// Maximum number in a file's name; then the search for a free name ends.
const MAX_NAMES: u32 = 10_000;

/// Maximum number of faults in the cell of a rejected row.
const MAX_REASONS: usize = 20;

/// Destination of rejected records. Existing files stay: the name gets a number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RejectedPath {
    /// A named file, for any format.
    Named(PathBuf),
    /// A file beside an input, with this start of its name; the format's extension is added.
    Beside(PathBuf),
}

/// Original form of a record.
#[derive(Clone, Copy)]
pub(super) enum Original<'o> {
    /// Text: JSON, or what was in its place.
    Text(&'o str),
    /// Row, in its table's dialect.
    Row(&'o Arc<Table>, &'o [u8]),
}

/// Files under construction: one for JSON, and one for each table format. They get their names at the end.
pub(super) struct RejectedFiles {
    path: RejectedPath,
    files: Vec<RejectedFile>,
}

struct RejectedFile {
    /// Dialect of its rows; `None` for lines of JSON.
    table: Option<Arc<Table>>,
    file: WholeFile,
}

impl RejectedFiles {
    /// Returns files that are created once there is something to write.
    pub(super) fn new(path: RejectedPath) -> Self {
        let files = Vec::new();
        Self { path, files }
    }

    /// Adds a rejected record.
    pub(super) fn add(
        &mut self,
        reasons: &[Finding],
        original: Original<'_>,
    ) -> anyhow::Result<()> {
        let (table, line) = match original {
            Original::Text(text) => (None, (line(reasons, text)? + "\n").into_bytes()),
            Original::Row(table, row) => (Some(table), table.line(&reasons_cell(reasons), row)),
        };
        self.write(table, &line)
            .with_context(|| can_not_write(&self.path))
    }

    fn write(&mut self, table: Option<&Arc<Table>>, line: &[u8]) -> io::Result<()> {
        let is_wanted = |file: &RejectedFile| file.table.as_ref() == table;
        let index = match self.files.iter().position(is_wanted) {
            Some(index) => index,
            None => {
                let mut file = WholeFile::create(self.path.path())?;
                if let Some(table) = table {
                    file.write_all(&table.beginning(REASONS))?;
                }
                let table = table.cloned();
                self.files.push(RejectedFile { table, file });
                self.files.len() - 1
            }
        };
        self.files[index].file.write_all(line)
    }

    /// Names the files and syncs them to disk; returns the names.
    pub(super) fn finish(self) -> anyhow::Result<Vec<PathBuf>> {
        let Self { path, files } = self;
        let persist = |RejectedFile { table, file }| {
            let extension = table.map_or("ndjson", |_| "csv");
            persist(file, &path, extension).with_context(|| can_not_write(&path))
        };
        files.into_iter().map(persist).collect()
    }
}

impl RejectedPath {
    fn path(&self) -> &Path {
        match self {
            Self::Named(path) | Self::Beside(path) => path,
        }
    }

    /// Returns the candidate of this number, from 1.
    fn numbered(&self, number: u32, extension: &str) -> PathBuf {
        let stem = match self {
            Self::Named(path) if number == 1 => return path.clone(),
            Self::Named(path) => path.with_extension(""),
            Self::Beside(path) => path.clone(),
        };
        let mut name = stem.into_os_string();
        if number > 1 {
            name.push(format!(".{number}"));
        }
        name.push(format!(".{extension}"));
        name.into()
    }
}

fn can_not_write(path: &RejectedPath) -> String {
    format!(
        "can't write the rejected records to {}",
        path.path().display()
    )
}

/// Names a file. Never replaces one: it may be open in an editor.
fn persist(file: WholeFile, path: &RejectedPath, extension: &str) -> io::Result<PathBuf> {
    let mut file = file.finish()?;
    for number in 1..MAX_NAMES {
        let path = path.numbered(number, extension);
        match file.persist_noclobber(&path) {
            Ok(_) => {
                whole_file::keep_name(&path)?;
                return Ok(path);
            }
            Err(failed) if failed.error.kind() == io::ErrorKind::AlreadyExists => {
                file = failed.file;
            }
            Err(failed) => return Err(failed.error),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Returns the cell with the reasons of a rejected row.
fn reasons_cell(reasons: &[Finding]) -> String {
    let reason = |found: &Finding| {
        let at = found.place.column.as_deref().unwrap_or(&found.pointer);
        format!("{at}: {} ({})", found.message, found.rule)
    };
    let mut told: Vec<String> = reasons.iter().take(MAX_REASONS).map(reason).collect();
    if let Some(more @ 1..) = reasons.len().checked_sub(MAX_REASONS) {
        told.push(format!("and {more} more"));
    }
    single_line(&told.join("; ")).into_owned()
}

/// Returns the line of a rejected record.
fn line(reasons: &[Finding], text: &str) -> anyhow::Result<String> {
    let mut line = format!("{{\"{REASONS}\":{}", serde_json::to_string(reasons)?);
    match Node::parse(text) {
        (Node::Object(members), problems) if problems.is_empty() => {
            for (key, value) in &members {
                if key != REASONS {
                    line.push(',');
                    write_text(key, &mut line);
                    line.push(':');
                    value.write_json(&mut line);
                }
            }
        }
        _ => {
            line.push_str(&format!(",\"{TEXT}\":"));
            write_text(text, &mut line);
        }
    }
    line.push('}');
    Ok(line)
}

/// Returns the text of a rejected record that consists of its `_text` only.
pub(super) fn text_within(json: &str) -> Option<String> {
    memmem::find(json.as_bytes(), TEXT.as_bytes())?;
    let (Node::Object(members), _) = Node::parse(json) else {
        return None;
    };
    let mut others = members
        .iter()
        .filter(|(key, _)| !matches!(key.as_ref(), REASONS | TEXT));
    match members.iter().find(|(key, _)| key == TEXT) {
        Some((_, Node::Text(text))) if others.next().is_none() => Some(text.clone().into_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::report::Place;

    #[test]
    fn rejected_record_is_written_back_unchanged() {
        let place = Place::file("feed");
        let reason = Finding::fault(&place, "json", "expected JSON");
        for (text, is_text) in [
            (r#"{"code":"A","n":1.50,"x":[1e3,"é"]}"#, false),
            (r#"{"code":"A","code":"B"}"#, true),
            (r#"{"code":"A", "#, true),
            ("[1]", true),
            ("a;b\n1;2", true),
        ] {
            let line = line(std::slice::from_ref(&reason), text).unwrap();
            let within = text_within(&line);
            assert_eq!(within.as_deref(), is_text.then_some(text), "{line}");
            if !is_text {
                assert!(line.ends_with(&text[1..]), "{line}");
                // Rejected again, it has only the new reasons.
                let again = super::line(&[], &line).unwrap();
                assert_eq!(again, format!("{{\"_rejected\":[],{}", &text[1..]));
            }
        }
    }
}
