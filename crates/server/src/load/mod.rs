//! Loading: from files to a revision, in three steps that know nothing of each other's insides.
//!
//! - [`read`]: bytes → records, told apart by content
//! - [`check`]: a record → a product that can't be wrong, or findings
//! - [`apply`]: products → one revision, or nothing
//!
//! [`report`] holds what was found on the way. One fault means that nothing is applied.

pub mod apply;
pub mod check;
pub mod json;
pub mod read;
pub mod report;

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::PathBuf;

use anyhow::Context as _;
use jiff::Timestamp;
use vitrine_model::code::ProductCode;
use vitrine_store::Store;

use check::CheckedRecord;
use report::{Finding, Place, Report};

/// Something to load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// Standard input.
    Stdin,
    /// A file.
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

    fn open(&self) -> anyhow::Result<Box<dyn Read>> {
        match self {
            Self::Stdin => Ok(Box::new(io::stdin().lock())),
            Self::File(path) => {
                let can_not = || format!("can't read {}", path.display());
                let file = File::open(path).with_context(can_not)?;
                if file.metadata().with_context(can_not)?.is_dir() {
                    anyhow::bail!("can't read {}: it is a directory", path.display());
                }
                Ok(Box::new(file))
            }
            Self::Embedded(_, bytes) => Ok(Box::new(*bytes)),
        }
    }
}

/// Replaces the whole catalog of `store` by the products of `inputs`, in one transaction; or, where
/// there is any fault, changes nothing. The report says which, and all that was found.
///
/// # Errors
///
/// Where an input can't be read, or the store can't be written. Then nothing has changed.
pub fn replace(store: &dyn Store, inputs: &[Input]) -> anyhow::Result<Report> {
    // All are opened first: a misspelt name is said at once, not after minutes.
    let opened = inputs
        .iter()
        .map(|input| Ok((input.name(), input.open()?)))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let mut report = Report::default();
    let mut records = Vec::new();
    for (name, bytes) in opened {
        read_one(&name, bytes, &mut records, &mut report)
            .with_context(|| format!("can't read {name}"))?;
    }
    refuse_duplicates(&records, &mut report);
    if report.has_faults() {
        return Ok(report);
    }
    report.applied = Some(apply::replace(store, &records, Timestamp::now())?);
    Ok(report)
}

fn read_one(
    name: &str,
    bytes: Box<dyn Read>,
    records: &mut Vec<CheckedRecord>,
    report: &mut Report,
) -> io::Result<()> {
    let mut seen = 0_u64;
    let reader = BufReader::with_capacity(1 << 16, bytes);
    read::read(name, reader, &mut |record| {
        seen += 1;
        match record {
            Ok(record) => {
                report.records += 1;
                records.extend(check::check(&record, report));
            }
            Err(finding) => report.add(finding),
        }
    })?;
    if seen == 0 {
        report.add(Finding::fault(
            &Place::file(name),
            "empty",
            "expected at least one product; an empty input never empties the catalog",
        ));
    }
    Ok(())
}

/// A code may stand once in all inputs together.
fn refuse_duplicates(records: &[CheckedRecord], report: &mut Report) {
    let mut first_places: HashMap<&ProductCode, &Place> = HashMap::new();
    for record in records {
        let code = &record.product.code;
        if let Some(first) = first_places.get(code) {
            report.add(Finding {
                code: Some(code.to_string()),
                pointer: "/code".to_owned(),
                value: Some(format!("\"{code}\"")),
                ..Finding::fault(
                    &record.place,
                    "code_duplicate",
                    &format!("expected each code once; this one stands at {first} already"),
                )
            });
        } else {
            first_places.insert(code, &record.place);
        }
    }
}
