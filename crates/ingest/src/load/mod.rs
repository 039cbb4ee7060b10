//! Loading: from files to a revision, in three independent steps.
//!
//! - [`read`]: splits inputs into records; detects formats by content
//! - `patch`: merges a patch into the live product
//! - [`check`]: turns a record into a valid product, or findings; `checking` does so on all cores, and packs valid records (`staged`);
//!   `reading` takes all inputs, and keeps these as `records`; `rejected` ones go into a file
//! - [`apply`]: publishes products as one revision, or nothing; [`plan`] and [`difference`] list the changes, and
//!   [`guard`] refuses suspicious ones
//!
//! [`report`] has the findings. One fault means that nothing is applied, unless faults are skipped. [`texts`] are
//! Markdown files for products that are loaded or live.

pub mod apply;
pub mod check;
mod checking;
pub mod difference;
mod directory;
mod first_places;
pub mod guard;
mod held_texts;
pub mod json;
mod patch;
pub mod plan;
pub(crate) mod pointer;
pub mod progress;
pub mod read;
mod reading;
mod records;
mod rejected;
pub mod report;
mod staged;
pub(crate) mod stored_texts;
pub mod texts;

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, bail};
use sha2::{Digest, Sha256};
use vitrine_store::Store;

use apply::{Intent, Mode, Order};
use guard::Allowance;
use progress::Progress;
use read::Shape;
use reading::Reading;
use report::Report;

use crate::overrides;

pub use reading::OnError;

/// Input of a load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// Standard input.
    Stdin,
    /// A file, or all files below a directory.
    File(PathBuf),
    /// Bytes compiled into the program, with their name.
    Embedded(&'static str, &'static [u8]),
}

impl Input {
    /// Returns the name of the input in reports.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Stdin => "standard input".to_owned(),
            Self::File(path) => path.display().to_string(),
            Self::Embedded(name, _) => (*name).to_owned(),
        }
    }

    fn open(&self, on_wait: OnWait) -> anyhow::Result<Vec<Opened>> {
        let (bytes, length): (Box<dyn Read>, _) = match self {
            Self::Stdin => (Box::new(io::stdin().lock()), None),
            Self::File(path) if is_address(path) => {
                let url = path.display();
                bail!(
                    "{url} is an address, and a load reads files; use a pipe: curl -fsS '{url}' | vitrine load -"
                );
            }
            Self::File(path) => {
                let can_not = || format!("can't read {}", path.display());
                let file = open_file(path, on_wait).with_context(can_not)?;
                let metadata = file.metadata().with_context(can_not)?;
                if metadata.is_dir() {
                    return open_directory(path);
                }
                let length = metadata.is_file().then_some(metadata.len());
                (Box::new(file), length)
            }
            Self::Embedded(_, bytes) => (Box::new(*bytes), Some(bytes.len() as u64)),
        };
        let name = self.name();
        Ok(vec![Opened {
            name,
            bytes,
            length,
        }])
    }
}

/// Returns true if a path is an address of the web.
fn is_address(path: &Path) -> bool {
    let path = path.to_string_lossy();
    ["http://", "https://"]
        .iter()
        .any(|start| path.starts_with(start))
}

/// Time after which waiting for a pipe's writer is reported.
const TOLD_AFTER: Duration = Duration::from_secs(1);

/// Callback for a message while an open blocks.
pub type OnWait = fn(&str);

/// Opens a file. Opening a named pipe waits for a writer, and reports that.
fn open_file(path: &Path, on_wait: OnWait) -> io::Result<File> {
    if !std::fs::metadata(path)?.file_type().is_fifo() {
        return File::open(path);
    }
    let (opened, is_open) = mpsc::channel::<()>();
    let name = report::shown(&format!("{path:?}"));
    thread::spawn(move || {
        if is_open.recv_timeout(TOLD_AFTER) == Err(RecvTimeoutError::Timeout) {
            on_wait(&format!(
                "{name} is a pipe; waiting for a program to write to it"
            ));
        }
    });
    let file = File::open(path);
    drop(opened);
    file
}

/// Opens the files of a directory; an empty directory gives an empty input, which is a fault like any.
fn open_directory(directory: &Path) -> anyhow::Result<Vec<Opened>> {
    let can_not = |path: &Path| format!("can't read {}", path.display());
    let files = directory::files(directory).with_context(|| can_not(directory))?;
    if files.is_empty() {
        return Ok(vec![Opened {
            name: directory.display().to_string(),
            bytes: Box::new(io::empty()),
            length: Some(0),
        }]);
    }
    let open = |path: &PathBuf| {
        let bytes = directory::OpenedLate::new(path).with_context(|| can_not(path))?;
        Ok(Opened {
            name: path.display().to_string(),
            length: path.metadata().ok().map(|metadata| metadata.len()),
            bytes: Box::new(bytes),
        })
    };
    files.iter().map(open).collect()
}

/// Opened input.
pub struct Opened {
    name: String,
    bytes: Box<dyn Read>,
    /// Length in bytes, if known.
    length: Option<u64>,
}

impl Opened {
    /// Returns an input that is open already, with its name in reports.
    #[must_use]
    pub fn new(name: String, bytes: Box<dyn Read>) -> Self {
        Self {
            name,
            bytes,
            length: None,
        }
    }
}

/// Opens all inputs first, so that a misspelt name is reported at once. `on_wait` is called if one blocks.
///
/// # Errors
///
/// If one can't be opened.
pub fn open(inputs: &[Input], on_wait: OnWait) -> anyhow::Result<Vec<Opened>> {
    let opened: Vec<Vec<Opened>> = inputs
        .iter()
        .map(|input| input.open(on_wait))
        .collect::<anyhow::Result<_>>()?;
    Ok(opened.into_iter().flatten().collect())
}

/// Settings of a load.
#[derive(Debug, Clone)]
pub struct LoadSettings {
    /// Handling of live products missing from the inputs.
    pub mode: Mode,
    /// Apply or dry run.
    pub intent: Intent,
    /// Handling of faults.
    pub on_error: OnError,
    /// Limits of the guard that replace the default ones.
    pub allowances: Vec<Allowance>,
    /// Sheet to read of workbooks; by default the first.
    pub sheet: Option<String>,
    /// Directory of Markdown files that replace the products' texts.
    pub texts: Option<PathBuf>,
    /// Name of the author.
    pub by: String,
    /// Reason, in the author's words.
    pub note: Option<String>,
    /// Bytes that the digest of the input begins with, if another load of the same input must have another one.
    pub digest_prefix: Vec<u8>,
}

impl LoadSettings {
    /// Returns the default settings of a load by `by`: replace, refused on any fault.
    #[must_use]
    pub fn replace(by: String) -> Self {
        Self {
            mode: Mode::Replace,
            intent: Intent::Apply,
            on_error: OnError::Reject,
            allowances: Vec::new(),
            sheet: None,
            texts: None,
            by,
            note: None,
            digest_prefix: Vec::new(),
        }
    }
}

/// Loads the products of `inputs` in one transaction. Changes nothing if there is a fault that isn't skipped, or if the
/// guard refuses. The report has the outcome and all findings.
///
/// # Errors
///
/// If an input can't be read or the store can't be written. Then nothing has changed.
pub fn load(
    store: &Store,
    inputs: Vec<Opened>,
    settings: LoadSettings,
    progress: &dyn Progress,
) -> anyhow::Result<Report> {
    let begin = || match settings.intent {
        Intent::Apply => overrides::publish(store),
        Intent::DryRun => overrides::dry_run(store),
    };
    let shape = match settings.mode {
        Mode::Patch { .. } => Shape::Patch,
        Mode::Replace | Mode::Merge { .. } => Shape::Whole,
    };
    let mut reading = Reading::new(settings.on_error, shape, progress);
    reading.sheet.clone_from(&settings.sheet);
    let mut digest = Sha256::new();
    digest.update(&settings.digest_prefix);
    progress.reading(total_bytes(&inputs));
    for Opened { name, bytes, .. } in inputs {
        let bytes = Digested {
            bytes,
            digest: &mut digest,
            progress,
        };
        reading.read(&name, bytes)?;
    }
    let texts = match &settings.texts {
        Some(directory) => Some(reading.texts(directory, &settings.mode)?),
        None => None,
    };
    // Inputs were read to their end, so a slow one doesn't hold the store; and what is patched stays live until the commit.
    let mut publication = None;
    if shape == Shape::Patch {
        reading.check_patches(&mut **publication.insert(begin()?))?;
    }
    reading.check_retirements(settings.mode.retirements(), texts.as_ref());
    let (mut report, records) = reading.finish();
    if let Some(mut records) = records {
        progress.writing(records.staged.len() as u64);
        let order = Order {
            mode: &settings.mode,
            intent: settings.intent,
            allowances: &settings.allowances,
            texts: texts.as_ref().zip(settings.texts.as_deref()),
            by: settings.by,
            note: settings.note,
            source: digest,
        };
        let publication = publication.map_or_else(begin, Ok)?;
        report.applied = apply::apply(
            store,
            publication,
            &mut records,
            order,
            &mut report,
            progress,
        )?;
    }
    progress.finish();
    Ok(report)
}

/// Returns the total length of the inputs in bytes, or `None` if the length of one is unknown.
fn total_bytes(inputs: &[Opened]) -> Option<u64> {
    inputs.iter().map(|input| input.length).sum()
}

/// Reader that updates a digest with the bytes read.
struct Digested<'d> {
    bytes: Box<dyn Read>,
    digest: &'d mut Sha256,
    progress: &'d dyn Progress,
}

impl Read for Digested<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.bytes.read(buffer)?;
        self.digest.update(&buffer[..read]);
        self.progress.read(read as u64);
        Ok(read)
    }
}
