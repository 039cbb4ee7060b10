//! The complete report in a file: every finding as it comes, so that none has to be kept in memory.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::Serialize;
use tempfile::NamedTempFile;

use super::finding::{Finding, Severity};

/// A report that is being written. It has its name once it is whole.
#[derive(Debug)]
pub struct CompleteReport {
    path: PathBuf,
    file: BufWriter<NamedTempFile>,
    is_empty: bool,
    /// The first failure; said at the end, since findings can't stop for it.
    failure: Option<io::Error>,
}

impl CompleteReport {
    /// Begins the report that will stand at `path`.
    ///
    /// # Errors
    ///
    /// Where no file can be made there.
    pub fn create(path: &Path) -> anyhow::Result<Self> {
        let file = super::unfinished(path).with_context(|| can_not_write(path))?;
        let mut report = Self {
            path: path.to_owned(),
            file: BufWriter::new(file),
            is_empty: true,
            failure: None,
        };
        report.attempt(|file| file.write_all(b"{\"findings\":["));
        Ok(report)
    }

    /// Takes a finding.
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

    fn attempt(&mut self, write: impl FnOnce(&mut BufWriter<NamedTempFile>) -> io::Result<()>) {
        if self.failure.is_none() {
            self.failure = write(&mut self.file).err();
        }
    }

    /// Ends the report with the members of `summary`, an object, and gives the file its name.
    ///
    /// # Errors
    ///
    /// Where the file couldn't be written.
    pub fn finish(mut self, summary: &serde_json::Value) -> anyhow::Result<()> {
        // An object's text begins with a brace, which here stands at the beginning already.
        let summary = summary.to_string();
        self.attempt(|file| writeln!(file, "\n],{}", summary.trim_start_matches('{')));
        let path = self.path;
        let written = match self.failure {
            Some(failure) => Err(failure),
            None => self
                .file
                .into_inner()
                .map_err(io::IntoInnerError::into_error),
        };
        let file = written.with_context(|| can_not_write(&path))?;
        file.persist(&path)
            .map_err(|failed| failed.error)
            .with_context(|| can_not_write(&path))?;
        Ok(())
    }
}

fn can_not_write(path: &Path) -> String {
    format!("can't write the report {}", path.display())
}
