//! File of rejected records with the reasons, ready to be corrected and loaded.
//!
//! Each record is a line of JSON. An object keeps its members, after a first member `_rejected` with the reasons; a row
//! of a table becomes the object that it was read as. Whatever isn't an object has only the reasons, which say where it
//! is. No payout type can have this name (docs/contract/resources.md#later-payout-types).

use std::fs::File;
use std::io::{self, BufWriter, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

use super::json::{Node, write_text};
use super::report::Finding;

/// Member with the reasons.
pub(super) const REASONS: &str = "_rejected";

/// Beginning of every file of rejected records.
const BEGINNING: &str = "{\"_rejected\":";

/// File under construction. It gets its name once it is complete, so that an interrupted or killed load leaves nothing
/// behind.
pub(super) struct RejectedFile {
    path: PathBuf,
    /// Unnamed file; created once there is something to write.
    file: Option<BufWriter<File>>,
}

impl RejectedFile {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, file: None }
    }

    /// Adds a rejected record; without its text if that couldn't be read.
    pub(super) fn add(&mut self, reasons: &[Finding], text: Option<&str>) -> anyhow::Result<()> {
        let line = line(reasons, text)?;
        let file = match &mut self.file {
            Some(file) => file,
            None => {
                check_place(&self.path)?;
                let file = tempfile::tempfile_in(directory_of(&self.path));
                let file = file.with_context(|| can_not_write(&self.path))?;
                self.file.insert(BufWriter::new(file))
            }
        };
        writeln!(file, "{line}").with_context(|| can_not_write(&self.path))
    }

    /// Names the file and syncs it to disk; returns its name, if there is a file.
    pub(super) fn finish(self) -> anyhow::Result<Option<PathBuf>> {
        let Self { path, file } = self;
        let Some(file) = file else {
            return Ok(None);
        };
        persist(file, &path).with_context(|| can_not_write(&path))?;
        Ok(Some(path))
    }
}

fn persist(file: BufWriter<File>, path: &Path) -> io::Result<()> {
    let mut file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.rewind()?;
    let directory = directory_of(path);
    // Hidden, so that no load of the directory reads it if the process is killed now.
    let mut named = tempfile::Builder::new();
    let named = named.prefix(".vitrine-").suffix(".partial");
    let mut named = named.tempfile_in(directory)?;
    io::copy(&mut file, &mut named)?;
    named.as_file().sync_all()?;
    named.persist(path)?;
    // So that the name survives a power failure.
    File::open(directory)?.sync_all()
}

/// Refuses a path with anything but rejected records of an earlier load: inputs, stores and devices aren't replaced.
fn check_place(path: &Path) -> anyhow::Result<()> {
    let is_free = match path.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => true,
        metadata => metadata
            .and_then(|metadata| Ok(metadata.is_file() && has_rejected(path)?))
            .with_context(|| can_not_write(path))?,
    };
    if !is_free {
        bail!(
            "{}: this file has no rejected records, and only such a file is replaced; name another one with --rejected",
            can_not_write(path)
        );
    }
    Ok(())
}

/// Returns true if a file begins with a rejected record, or is empty.
fn has_rejected(path: &Path) -> io::Result<bool> {
    let mut start = Vec::new();
    let file = File::open(path)?;
    file.take(BEGINNING.len() as u64).read_to_end(&mut start)?;
    Ok(start.is_empty() || start == BEGINNING.as_bytes())
}

fn can_not_write(path: &Path) -> String {
    format!("can't write the rejected records to {}", path.display())
}

/// Returns the directory of a path.
fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(directory) if !directory.as_os_str().is_empty() => directory,
        _ => Path::new("."),
    }
}

/// Returns the line of a rejected record.
fn line(reasons: &[Finding], text: Option<&str>) -> anyhow::Result<String> {
    let mut line = format!("{BEGINNING}{}", serde_json::to_string(reasons)?);
    if let Some((Node::Object(members), problems)) = text.map(Node::parse)
        && problems.is_empty()
    {
        for (key, value) in &members {
            if key != REASONS {
                line.push(',');
                write_text(key, &mut line);
                line.push(':');
                value.write_json(&mut line);
            }
        }
    }
    line.push('}');
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::report::Place;

    #[test]
    fn rejected_object_is_written_back_unchanged() {
        let place = Place::file("feed");
        let reason = Finding::fault(&place, "json", "expected JSON");
        for (text, is_object) in [
            (r#"{"code":"A","n":1.50,"x":[1e3,"é"]}"#, true),
            (r#"{"code":"A","code":"B"}"#, false),
            (r#"{"code":"A", "#, false),
            ("[1]", false),
        ] {
            let line = line(std::slice::from_ref(&reason), Some(text)).unwrap();
            let members: serde_json::Map<String, serde_json::Value> =
                serde_json::from_str(&line).unwrap();
            assert_eq!(members.len() > 1, is_object, "{line}");
            if is_object {
                assert!(line.ends_with(&text[1..]), "{line}");
                // Rejected again, it has only the new reasons.
                let again = super::line(&[], Some(&line)).unwrap();
                assert_eq!(again, format!("{{\"_rejected\":[],{}", &text[1..]));
            }
        }
    }
}
