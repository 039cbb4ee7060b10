//! Loading: from files to a revision, in three steps that know nothing of each other's insides.
//!
//! - [`read`]: bytes → records, told apart by content
//! - [`check`]: a record → a product that can't be wrong, or findings
//! - [`apply`]: products → one revision, or nothing; [`plan`] and [`difference`] say what changes
//!
//! [`report`] holds what was found on the way. One fault means that nothing is applied.

pub mod apply;
pub mod check;
pub mod difference;
mod directory;
pub mod json;
pub mod plan;
pub mod read;
pub mod report;

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use jiff::Timestamp;
use sha2::{Digest, Sha256};
use vitrine_store::Store;
use vitrine_store::record::RevisionNote;

use apply::{Intent, Mode};
use check::{Checked, CheckedRecord};
use read::Record;
use report::{Finding, Place, Report, shown};

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

    fn open(&self) -> anyhow::Result<Vec<Opened>> {
        let bytes: Box<dyn Read> = match self {
            Self::Stdin => Box::new(io::stdin().lock()),
            Self::File(path) => {
                let can_not = || format!("can't read {}", path.display());
                let file = File::open(path).with_context(can_not)?;
                if file.metadata().with_context(can_not)?.is_dir() {
                    return open_directory(path);
                }
                Box::new(file)
            }
            Self::Embedded(_, bytes) => Box::new(*bytes),
        };
        let name = self.name();
        Ok(vec![Opened { name, bytes }])
    }
}

/// The files of a directory; of an empty one an empty input, which is a fault as any is.
fn open_directory(directory: &Path) -> anyhow::Result<Vec<Opened>> {
    let can_not = |path: &Path| format!("can't read {}", path.display());
    let files = directory::files(directory).with_context(|| can_not(directory))?;
    if files.is_empty() {
        let (name, bytes) = (directory.display().to_string(), Box::new(io::empty()));
        return Ok(vec![Opened { name, bytes }]);
    }
    let open = |path: &PathBuf| {
        let bytes = directory::OpenedLate::new(path).with_context(|| can_not(path))?;
        Ok(Opened {
            name: path.display().to_string(),
            bytes: Box::new(bytes),
        })
    };
    files.iter().map(open).collect()
}

/// An input that can be read.
pub struct Opened {
    name: String,
    bytes: Box<dyn Read>,
}

impl Opened {
    /// An input that is open already, with its name in reports.
    #[must_use]
    pub fn new(name: String, bytes: Box<dyn Read>) -> Self {
        Self { name, bytes }
    }
}

/// Opens all inputs, before anything else is done: a misspelt name is said at once.
///
/// # Errors
///
/// Where one can't be opened.
pub fn open(inputs: &[Input]) -> anyhow::Result<Vec<Opened>> {
    let opened: Vec<Vec<Opened>> = inputs
        .iter()
        .map(Input::open)
        .collect::<anyhow::Result<_>>()?;
    Ok(opened.into_iter().flatten().collect())
}

/// What is to be done with the inputs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// What becomes of products that they don't name.
    pub mode: Mode,
    /// Whether it is done, or only planned.
    pub intent: Intent,
    /// Who does it.
    pub by: String,
    /// Why, in their own words.
    pub note: Option<String>,
}

/// Loads the products of `inputs` in one transaction; or, where there is any fault, changes nothing.
/// The report says which, and all that was found.
///
/// # Errors
///
/// Where an input can't be read, or the store can't be written. Then nothing has changed.
pub fn load(store: &dyn Store, inputs: Vec<Opened>, settings: Settings) -> anyhow::Result<Report> {
    let mut loaded = Loaded::default();
    let mut digest = Sha256::new();
    for Opened { name, bytes } in inputs {
        let bytes = Digested {
            bytes,
            digest: &mut digest,
        };
        loaded
            .read(&name, bytes)
            .with_context(|| format!("can't read {name}"))?;
    }
    let Loaded {
        records,
        mut report,
        ..
    } = loaded;
    if report.has_faults() {
        return Ok(report);
    }
    let Settings {
        mode,
        intent,
        by,
        note,
    } = settings;
    let digest = digest.finalize();
    let note = RevisionNote {
        by,
        note,
        source_digest: Some(digest.iter().map(|byte| format!("{byte:02x}")).collect()),
    };
    let now = Timestamp::now();
    report.applied = Some(apply::apply(store, &records, &mode, intent, &note, now)?);
    Ok(report)
}

/// A reader that takes the digest of what is read.
struct Digested<'d> {
    bytes: Box<dyn Read>,
    digest: &'d mut Sha256,
}

impl Read for Digested<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.bytes.read(buffer)?;
        self.digest.update(&buffer[..read]);
        Ok(read)
    }
}

/// What was read so far.
#[derive(Default)]
struct Loaded {
    records: Vec<CheckedRecord>,
    /// Every code that stands in the inputs, with the place where it stands first.
    codes: HashMap<String, Place>,
    report: Report,
}

impl Loaded {
    fn read(&mut self, name: &str, bytes: impl Read) -> io::Result<()> {
        let mut seen = 0_u64;
        let reader = BufReader::with_capacity(1 << 16, bytes);
        read::read(name, reader, &mut |record| {
            seen += 1;
            match record {
                Ok(record) => self.check(&record),
                Err(finding) => self.report.add(finding),
            }
        })?;
        if seen == 0 {
            self.report.add(Finding::fault(
                &Place::file(name),
                "empty",
                "expected at least one product; an empty input never empties the catalog",
            ));
        }
        Ok(())
    }

    fn check(&mut self, record: &Record) {
        self.report.records += 1;
        let Checked {
            code,
            record: checked,
        } = check::check(record, &mut self.report);
        self.records.extend(checked);
        let Some(code) = code else { return };
        if let Some(first) = self.codes.get(&code) {
            self.report.add(Finding {
                code: Some(shown(&code)),
                pointer: "/code".to_owned(),
                value: Some(shown(&format!("\"{code}\""))),
                ..Finding::fault(
                    &record.place_of("/code"),
                    "code_duplicate",
                    &format!("expected each code once; this one stands at {first} already"),
                )
            });
        } else {
            self.codes.insert(code, record.place.clone());
        }
    }
}
