//! Loading: from files to a revision, in three steps that know nothing of each other's insides.
//!
//! - [`read`]: bytes → records, told apart by content
//! - [`check`]: a record → a product that can't be wrong, or findings; `reading` does both for all inputs,
//!   and keeps what is good in a `spool`, as `records`, and what is `rejected` in a `whole_file`
//! - [`apply`]: products → one revision, or nothing; [`plan`] and [`difference`] say what changes, and
//!   [`guard`] what mustn't
//!
//! [`report`] holds what was found on the way. One fault means that nothing is applied, unless skipping
//! was asked for. [`texts`] are Markdown files, put on products that are loaded or live.

pub mod apply;
pub mod check;
pub mod difference;
mod directory;
pub mod guard;
pub mod json;
pub mod plan;
mod pointer;
pub mod progress;
pub mod read;
mod reading;
mod records;
mod rejected;
pub mod report;
mod spool;
pub mod texts;
mod whole_file;

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use anyhow::Context as _;
use sha2::{Digest, Sha256};
use vitrine_store::Store;

use apply::{Intent, Mode, Order};
use guard::Allowance;
use plan::Detail;
use progress::Progress;
use reading::Reading;
use report::{CompleteReport, Report};

pub use reading::OnError;
pub use rejected::RejectedPath;

/// Something to load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// Standard input.
    Stdin,
    /// A file, or all files below a directory.
    File(PathBuf),
    /// Bytes that the program brings itself, with their name.
    Embedded(&'static str, &'static [u8]),
}

impl Input {
    /// The input's name in reports.
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

/// Time after which the wait for a pipe's writer is reported.
const TOLD_AFTER: Duration = Duration::from_secs(1);

/// Receives a message about what an open waits for.
pub type OnWait = fn(&str);

/// Opens a file. The open of a named pipe waits for a writer, and says so.
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

/// The files of a directory; of an empty one an empty input, which is a fault as any is.
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

/// An input that can be read.
pub struct Opened {
    name: String,
    bytes: Box<dyn Read>,
    /// Length in bytes, if known.
    length: Option<u64>,
}

impl Opened {
    /// An input that is open already, with its name in reports.
    #[must_use]
    pub fn new(name: String, bytes: Box<dyn Read>) -> Self {
        Self {
            name,
            bytes,
            length: None,
        }
    }
}

/// Opens all inputs, before anything else is done: a misspelt name is said at once. Where one keeps it waiting,
/// `on_wait` is told.
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
    /// Guard limits that replace the usual ones.
    pub allowances: Vec<Allowance>,
    /// A directory of Markdown that takes the place of the products' texts.
    pub texts: Option<PathBuf>,
    /// Path of the complete report, if one is written.
    pub report: Option<PathBuf>,
    /// Name of the author.
    pub by: String,
    /// Reason, in the author's words.
    pub note: Option<String>,
}

impl LoadSettings {
    /// The usual load by `by`: a replace that is refused where anything is wrong.
    #[must_use]
    pub fn replace(by: String) -> Self {
        Self {
            mode: Mode::Replace,
            intent: Intent::Apply,
            on_error: OnError::Reject,
            allowances: Vec::new(),
            texts: None,
            report: None,
            by,
            note: None,
        }
    }
}

/// Loads the products of `inputs` in one transaction; or, where there is any fault that isn't to be
/// skipped or the guard refuses, changes nothing. The report says which, and all that was found.
///
/// # Errors
///
/// If an input can't be read, or the store or the report can't be written. Then nothing has changed,
/// unless it was the report that failed last.
pub fn load(
    store: &dyn Store,
    inputs: Vec<Opened>,
    settings: LoadSettings,
    progress: &dyn Progress,
) -> anyhow::Result<Report> {
    let complete = settings.report.as_deref().map(CompleteReport::create);
    let report = Report::with_file(complete.transpose()?);
    let mut reading = Reading::new(report, settings.on_error)?;
    let mut digest = Sha256::new();
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
    if let Mode::Merge { retire } = &settings.mode {
        reading.check_retirements(retire, texts.as_ref());
    }
    let (mut report, records) = reading.finish()?;
    report.flush()?;
    if let Some(mut records) = records {
        progress.applying(records.count);
        let order = Order {
            mode: &settings.mode,
            intent: settings.intent,
            detail: match settings.report {
                Some(_) => Detail::Fields,
                None => settings.intent.detail(),
            },
            allowances: &settings.allowances,
            texts: texts.as_ref().zip(settings.texts.as_deref()),
            by: settings.by,
            note: settings.note,
            source: digest,
        };
        report.applied = apply::apply(store, &mut records, order, &mut report, progress)?;
    }
    progress.finish();
    report.finish().with_context(|| report.what_was_done())?;
    Ok(report)
}

/// Returns the total length of the inputs in bytes, or `None` if the length of one is unknown.
fn total_bytes(inputs: &[Opened]) -> Option<u64> {
    inputs.iter().map(|input| input.length).sum()
}

/// A reader that takes the digest of what is read.
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
