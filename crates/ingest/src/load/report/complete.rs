//! Complete report in a file, to which findings are written as they come, so that none has to be kept in memory.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use serde::Serialize;

use super::finding::{Finding, Severity};
use crate::load::whole_file::WholeFile;

/// Beginning of every complete report.
const BEGINNING: &str = "{\"findings\":[";

/// A report under construction. It gets its name at the end.
#[derive(Debug)]
pub struct CompleteReport {
    path: PathBuf,
    file: WholeFile,
    is_empty: bool,
    /// First error, returned at the end: adding findings can't fail.
    failure: Option<io::Error>,
}

impl CompleteReport {
    /// Creates the report for `path`.
    ///
    /// # Errors
    ///
    /// If the file can't be created, or another file is there that isn't a report.
    pub fn create(path: &Path) -> anyhow::Result<Self> {
        check_place(path)?;
        let file = WholeFile::create(path).with_context(|| can_not_write(path))?;
        let mut report = Self {
            path: path.to_owned(),
            file,
            is_empty: true,
            failure: None,
        };
        report.attempt(|file| file.write_all(BEGINNING.as_bytes()));
        Ok(report)
    }

    /// Adds a finding.
    pub fn add(&mut self, finding: &Finding) {
        #[derive(Serialize)]
        struct Listed<'f> {
            severity: Severity,
            #[serde(flatten)]
            finding: &'f Finding,
        }
        let separator: &[u8] = if self.is_empty { b"\n" } else { b",\n" };
        self.is_empty = false;
        let severity = finding.severity;
        self.attempt(|file| {
            file.write_all(separator)?;
            Ok(serde_json::to_writer(file, &Listed { severity, finding })?)
        });
    }

    fn attempt(&mut self, write: impl FnOnce(&mut WholeFile) -> io::Result<()>) {
        if self.failure.is_none() {
            self.failure = write(&mut self.file).err();
        }
    }

    /// Writes the findings added so far.
    ///
    /// # Errors
    ///
    /// If the file can't be written.
    pub fn flush(&mut self) -> anyhow::Result<()> {
        self.attempt(Write::flush);
        let failure = self.failure.take().map_or(Ok(()), Err);
        failure.with_context(|| can_not_write(&self.path))
    }

    /// Ends the report with the members of the object `summary`, and names the file.
    ///
    /// # Errors
    ///
    /// If the file couldn't be written.
    pub fn finish(mut self, summary: &serde_json::Value) -> anyhow::Result<()> {
        // Without the brace of the object, since the report has begun with one.
        let summary = summary.to_string();
        self.attempt(|file| writeln!(file, "\n],{}", summary.trim_start_matches('{')));
        let path = self.path;
        let written = match self.failure {
            Some(failure) => Err(failure),
            None => self.file.finish(),
        };
        let file = written.with_context(|| can_not_write(&path))?;
        // The rejected records may have been written there meanwhile.
        check_place(&path)?;
        file.persist(&path)
            .map_err(|failed| failed.error)
            .with_context(|| can_not_write(&path))?;
        Ok(())
    }
}

/// Refuses a path with another file than a report: inputs, stores and devices aren't replaced.
fn check_place(path: &Path) -> anyhow::Result<()> {
    let is_free = match path.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => true,
        Err(error) => return Err(error).with_context(|| can_not_write(path)),
        Ok(metadata) => {
            metadata.is_file() && is_report(path).with_context(|| can_not_write(path))?
        }
    };
    if !is_free {
        bail!(
            "{}: this file isn't a report, and only a report is replaced; use another name",
            can_not_write(path)
        );
    }
    Ok(())
}

/// Returns true if a file is a complete report or empty.
fn is_report(path: &Path) -> io::Result<bool> {
    let mut start = Vec::new();
    let file = File::open(path)?;
    file.take(BEGINNING.len() as u64).read_to_end(&mut start)?;
    Ok(start.is_empty() || start == BEGINNING.as_bytes())
}

fn can_not_write(path: &Path) -> String {
    format!("can't write the report {}", path.display())
}
