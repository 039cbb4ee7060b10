//! Directory of texts: `CODE/NAME.md`, with a product's code and the API's name of the text.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use vitrine_model::Invalid;
use vitrine_model::code::ProductCode;
use vitrine_model::content::TextName;

use super::markdown::{MAX_BYTES, markdown};
use crate::html::{self, HTML_IN_TEXT};
use crate::load::check::suspicious::{self, IsText};
use crate::load::directory::{self, Listing};
use crate::load::report::{Finding, Place, Report, Severity};

/// Texts in a directory. Only names are kept in memory; a text is read when it is needed.
#[derive(Debug, Default)]
pub struct TextFiles {
    products: BTreeMap<ProductCode, Vec<(TextName, PathBuf)>>,
}

impl TextFiles {
    /// Scans the texts below `directory` and checks each; adds faults to the report. Hidden files are skipped, as in
    /// any directory.
    ///
    /// # Errors
    ///
    /// If a directory or a file can't be read.
    pub fn scan(directory: &Path, report: &mut Report) -> anyhow::Result<Self> {
        let cannot_list = || format!("can't read {}", directory.display());
        let root = directory.canonicalize().with_context(cannot_list)?;
        let Listing { files, links } = directory::list(directory).with_context(cannot_list)?;
        if files.is_empty() && links.is_empty() {
            let place = Place::file(&directory.display().to_string());
            let expected = "expected at least one text, as CODE/NAME.md";
            report.add(Finding::fault(&place, "empty", expected));
        }
        let mut found = Self::default();
        for path in files {
            found.add(directory, path, report)?;
        }
        for path in links {
            // Several products may share a text, so each link within the directory counts; others are faults.
            if directory::file_within(&root, &path).is_some() {
                found.add(directory, path, report)?;
            } else {
                let expected = "a file, or a link to a file within the directory";
                let invalid = Invalid::new("text_link", expected);
                report.records += 1;
                report.add(finding(&path, None, invalid));
            }
        }
        Ok(found)
    }

    fn add(&mut self, directory: &Path, path: PathBuf, report: &mut Report) -> anyhow::Result<()> {
        report.records += 1;
        let named = text_of(path.strip_prefix(directory).unwrap_or(&path));
        let text = read(&path).with_context(|| format!("can't read {}", path.display()))?;
        match named {
            Ok((code, name)) => {
                match text {
                    Err(invalid) => report.add(finding(&path, Some(&code), invalid)),
                    Ok(text) => {
                        let place = place(&path);
                        let warning = |fault| Finding {
                            severity: Severity::Warning,
                            code: Some(code.to_string()),
                            pointer: format!("/{}_md", name.as_str()),
                            ..fault
                        };
                        if let Some(message) = suspicious::warning(&text, IsText::Yes) {
                            let fault = Finding::fault(&place, "suspicious_characters", &message);
                            report.add(warning(fault));
                        }
                        if html::has_tags(&text) {
                            let fault = Finding::fault(&place, "html_in_text", HTML_IN_TEXT);
                            report.add(warning(fault));
                        }
                    }
                }
                // A faulty text belongs to its product, too, which may have other faults.
                self.products.entry(code).or_default().push((name, path));
            }
            Err(invalid) => report.add(finding(&path, None, invalid)),
        }
        Ok(())
    }

    /// Returns the codes with texts here, ascending.
    pub fn codes(&self) -> impl Iterator<Item = &ProductCode> {
        self.products.keys()
    }

    /// Returns the first text of a product, if it has any.
    pub fn first(&self, code: &ProductCode) -> Option<&Path> {
        let (_, path) = self.products.get(code)?.first()?;
        Some(path)
    }

    /// Returns the texts of a product.
    pub fn of(&self, code: &ProductCode) -> impl Iterator<Item = (TextName, &Path)> {
        let texts = self.products.get(code).into_iter().flatten();
        texts.map(|(name, path)| (*name, path.as_path()))
    }
}

/// Returns a finding about a text's file.
pub(in crate::load) fn finding(
    path: &Path,
    code: Option<&ProductCode>,
    invalid: Invalid,
) -> Finding {
    let message = format!("expected {}", invalid.expected);
    Finding {
        code: code.map(ToString::to_string),
        ..Finding::fault(&place(path), invalid.rule, &message)
    }
}

fn place(path: &Path) -> Place {
    Place::file(&path.display().to_string())
}

/// Parses a path into product and text.
fn text_of(path: &Path) -> Result<(ProductCode, TextName), Invalid> {
    let mut parts = path.iter().map(|part| part.to_str());
    let (Some(Some(code)), Some(Some(file)), None) = (parts.next(), parts.next(), parts.next())
    else {
        return Err(Invalid::new(
            "text_path",
            "CODE/NAME.md: a directory named after a product's code, with a file for each text",
        ));
    };
    let code = code.parse()?;
    match file.strip_suffix(".md").map(str::parse) {
        Some(Ok(name)) => Ok((code, name)),
        _ => Err(Invalid::new(
            "text_file",
            "description.md, disclaimer.md, refund_policy.md, reissuance_policy.md, terms_buyer.md, \
             terms_consumer.md or redemption_instructions.md",
        )),
    }
}

/// Reads a text, up to one byte more than the maximum length.
pub(super) fn read(path: &Path) -> io::Result<Result<String, Invalid>> {
    let mut bytes = Vec::new();
    File::open(path)?
        .take(MAX_BYTES as u64 + 1)
        .read_to_end(&mut bytes)?;
    Ok(markdown(bytes))
}
