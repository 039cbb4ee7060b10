//! Records that were rejected, in a file, beside their reasons: ready to be mended and loaded.
//!
//! A row of a table comes back as a row, in a table of the same columns and dialect, behind a first cell with the reasons.
//! Anything else is a line of JSON. An object keeps its members after a first one, `_rejected`, with the reasons. What is no
//! object that could be written back to the letter stands in the member `_text`, which is read as an input
//! of its own. No payout type can be named like these (docs/contract/resources.md#later-payout-types), so nothing else
//! means them.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;

use super::json::{Node, write_text};
use super::read::Table;
use super::report::Finding;
use super::whole_file::{self, WholeFile};
use crate::escape::single_line;

/// The member with the reasons.
pub(super) const REASONS: &str = "_rejected";

/// The member with the text of what was no record.
const TEXT: &str = "_text";

/// Number in a file's name at which the search for a free name gives up.
const MAX_NAMES: u32 = 10_000;

/// Maximum number of faults that the cell of a rejected row tells.
const MAX_REASONS: usize = 20;

/// Destination of rejected records. Existing files stay: the name gets a number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RejectedPath {
    /// A file that was named, whatever it will hold.
    Named(PathBuf),
    /// Beside an input, with its name up to here; the format's extension is added.
    Beside(PathBuf),
}

/// A record as it stood in its input.
#[derive(Clone, Copy)]
pub(super) enum Original<'o> {
    /// JSON, or what was in the place of it.
    Text(&'o str),
    /// A row of a table, as the table writes it.
    Row(&'o Arc<Table>, &'o [u8]),
}

/// The files, while they are written: one for JSON, and one for each kind of table. They have names once they are
/// whole.
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
    /// Files that are made when there is something to write.
    pub(super) fn new(path: RejectedPath) -> Self {
        let files = Vec::new();
        Self { path, files }
    }

    /// Adds what was rejected.
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

    /// Gives the files their names and puts them onto the disk; returns the names.
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

/// Never over a file that is there: someone may be mending it.
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

/// Returns the cell that says why a row was rejected.
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

/// The line of a rejected record.
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

/// Returns the text of a rejected record that has nothing else: it is an input of its own.
pub(super) fn text_within(json: &str) -> Option<String> {
    if !json.contains(TEXT) {
        return None;
    }
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
    fn what_was_rejected_is_kept_to_the_letter() {
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
                // Rejected once more, it has the new reasons only.
                let again = super::line(&[], &line).unwrap();
                assert_eq!(again, format!("{{\"_rejected\":[],{}", &text[1..]));
            }
        }
    }
}
