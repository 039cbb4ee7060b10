//! Records that were rejected, in a file, beside their reasons: ready to be mended and loaded.
//!
//! Each is a line. An object keeps its members after a first one, `_rejected`, with the reasons. What is no
//! object that could be written back to the letter stands in the member `_text`, which is read as an input
//! of its own. No payout type can be named like these (docs/contract/resources.md#later-payout-types), so nothing else
//! means them.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::json::{Node, write_text};
use super::report::Finding;
use super::whole_file::{self, WholeFile};

/// The member with the reasons.
pub(super) const REASONS: &str = "_rejected";

/// The member with the text of what was no record.
const TEXT: &str = "_text";

/// How many names are tried before giving up.
const MOST_NAMES: u32 = 10_000;

/// The file, while it is written. It has a name once it is whole.
pub(super) struct RejectedFile {
    /// The name; another number is put into it where something stands there.
    path: PathBuf,
    file: Option<WholeFile>,
}

impl RejectedFile {
    /// A file that is made when there is something to write.
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, file: None }
    }

    /// Adds what was rejected.
    pub(super) fn add(&mut self, reasons: &[Finding], text: &str) -> anyhow::Result<()> {
        let line = line(reasons, text)?;
        self.write(&line).with_context(|| can_not_write(&self.path))
    }

    fn write(&mut self, line: &str) -> io::Result<()> {
        let file = match self.file.take() {
            Some(file) => file,
            None => WholeFile::create(&self.path)?,
        };
        writeln!(self.file.insert(file), "{line}")
    }

    /// Gives the file its name and puts it onto the disk; returns the name, if there is a file.
    pub(super) fn finish(self) -> anyhow::Result<Option<PathBuf>> {
        let Some(file) = self.file else {
            return Ok(None);
        };
        persist(file, &self.path)
            .map(Some)
            .with_context(|| can_not_write(&self.path))
    }
}

fn can_not_write(path: &Path) -> String {
    format!("can't write the rejected records to {}", path.display())
}

/// Never over a file that is there: someone may be mending it.
fn persist(file: WholeFile, path: &Path) -> io::Result<PathBuf> {
    let mut file = file.finish()?;
    let stem = path.with_extension("");
    for number in 1..MOST_NAMES {
        let path = match number {
            1 => path.to_owned(),
            _ => PathBuf::from(format!("{}.{number}.ndjson", stem.display())),
        };
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

/// What a rejected record's text says, if that is all there is of it: it is an input of its own.
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
