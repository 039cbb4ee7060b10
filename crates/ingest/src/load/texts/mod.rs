//! Loads of texts alone: Markdown files put on live products, in one transaction.
//!
//! - `files`: directory of texts
//! - `markdown`: rules for texts
//!
//! The new content resources replace the old ones in a product's document; the rest stays byte for byte, and isn't
//! parsed.

mod files;
mod markdown;

use std::collections::HashSet;
use std::path::Path;

use anyhow::{Context as _, anyhow};
use sha2::{Digest, Sha256};
use vitrine_model::Invalid;
use vitrine_model::code::ProductCode;
use vitrine_model::content::{Content, Text, TextDigest};
use vitrine_store::record::{RevisionNote, StoredProduct};
use vitrine_store::{Publication, Store};

use super::apply::{self, Intent};
use super::plan::Plan;
use super::report::Report;
use super::stored_texts;
use crate::{overrides, view};

pub use files::TextFiles;
pub(super) use files::finding;
pub use markdown::{MAX_BYTES, markdown};

/// Settings of a load of texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextLoadSettings {
    /// Intent: apply the texts, or only plan that.
    pub intent: Intent,
    /// Name of the author.
    pub by: String,
    /// Reason, in the author's words.
    pub note: Option<String>,
}

/// Puts the texts below `directory` on live products, in one transaction; changes nothing if there is a fault. The
/// report has the outcome and all findings; its records are files.
///
/// # Errors
///
/// If a file can't be read, or the store can't be written. Then nothing has changed.
pub fn load(store: &Store, directory: &Path, settings: TextLoadSettings) -> anyhow::Result<Report> {
    let mut report = Report::default();
    let texts = TextFiles::scan(directory, &mut report)?;
    let mut publication = match settings.intent {
        Intent::Apply => overrides::publish(store)?,
        Intent::DryRun => overrides::dry_run(store)?,
    };
    let mut plan = Plan::new(settings.intent.detail());
    let mut overlay = Overlay::of(&texts, directory);
    overlay.is_refused = report.has_faults();
    for code in texts.codes() {
        overlay.put_on_live(code, &mut *publication, &mut plan, &mut report)?;
    }
    if overlay.is_refused {
        return Ok(report);
    }
    let TextLoadSettings { intent, by, note } = settings;
    let note = RevisionNote {
        by,
        note,
        source_digest: Some(apply::hexadecimal(overlay.digest)),
    };
    let applied = apply::finish(publication, plan, Vec::new(), intent, &note)?;
    report.applied = Some(applied);
    Ok(report)
}

const NOT_LIVE: Invalid = Invalid::new(
    "product_not_live",
    "the code of a live product; load the product first",
);

const NOT_KEPT: Invalid = Invalid::new(
    "texts_not_kept",
    "a product with content resources; this one was loaded without them, so it shows no texts",
);

/// Replacement of texts by files while products are published.
pub struct Overlay<'t> {
    texts: &'t TextFiles,
    directory: &'t Path,
    /// Products whose texts were put.
    put: HashSet<ProductCode>,
    /// Texts that this publish has stored already.
    kept: HashSet<TextDigest>,
    /// Hash of all texts that were put.
    pub(super) digest: Sha256,
    /// True if a text can't be put, so that nothing may change. The report has the reason.
    pub(super) is_refused: bool,
}

impl<'t> Overlay<'t> {
    /// Returns the replacement by these texts, which are in `directory`.
    #[must_use]
    pub fn of(texts: &'t TextFiles, directory: &'t Path) -> Self {
        Self {
            texts,
            directory,
            put: HashSet::new(),
            kept: HashSet::new(),
            digest: Sha256::new(),
            is_refused: false,
        }
    }

    /// Returns whether there are texts of a product.
    #[must_use]
    pub fn has(&self, code: &ProductCode) -> bool {
        self.texts.of(code).next().is_some()
    }

    /// Puts the texts of a product into its content. A text's known address stays as its source, so that a later load
    /// with that address keeps the Markdown.
    ///
    /// # Errors
    ///
    /// If a file can't be read or has changed since its check, or the store can't be written.
    pub fn put(
        &mut self,
        code: &ProductCode,
        publication: &mut dyn Publication,
        content: &mut Content,
    ) -> anyhow::Result<()> {
        for (name, path) in self.texts.of(code) {
            let can_not = || format!("can't read {}", path.display());
            let read = files::read(path).with_context(can_not)?;
            let changed = |expected| {
                let path = path.display();
                anyhow!("{path} changed while it was loaded; expected {expected}")
            };
            let markdown = read.map_err(changed)?;
            self.digest.update(&markdown);
            let digest = stored_texts::put_text(publication, &markdown, &mut self.kept)?;
            let text = content.texts.get_mut(name);
            let source = text.address().cloned();
            *text = Text::Own { digest, source };
            self.put.insert(code.clone());
        }
        Ok(())
    }

    /// Returns the products whose texts weren't put yet.
    #[must_use]
    pub fn left(&self) -> Vec<&'t ProductCode> {
        let codes = self.texts.codes();
        codes.filter(|code| !self.put.contains(*code)).collect()
    }

    /// Puts the texts of a product on its live version, or reports why that's impossible.
    ///
    /// # Errors
    ///
    /// As [`put`](Self::put).
    pub fn put_on_live(
        &mut self,
        code: &ProductCode,
        publication: &mut dyn Publication,
        plan: &mut Plan,
        report: &mut Report,
    ) -> anyhow::Result<()> {
        let live = match publication.live(code)? {
            Some(live) if live.content.is_some() => live,
            found => {
                let invalid = if found.is_some() { NOT_KEPT } else { NOT_LIVE };
                self.refuse(code, invalid, report);
                return Ok(());
            }
        };
        // If nothing will be applied, the rest only finds further faults.
        if self.is_refused {
            return Ok(());
        }
        let mut content = stored_texts::stored_content(&live)?;
        self.put(code, publication, &mut content)?;
        put_content(publication, &live, &content, plan)
    }

    /// Reports a product with texts here that was rendered without content resources.
    pub(super) fn check_kept(&mut self, product: &StoredProduct, report: &mut Report) {
        if product.content.is_none() && self.put.contains(&product.code) {
            self.refuse(&product.code, NOT_KEPT, report);
        }
    }

    fn refuse(&mut self, code: &ProductCode, invalid: Invalid, report: &mut Report) {
        self.is_refused = true;
        let product = self.directory.join(code.as_str());
        report.add(finding(&product, Some(code), invalid));
    }
}

/// Puts a live product with these texts.
///
/// # Errors
///
/// If the store can't be written.
pub fn put_content(
    publication: &mut dyn Publication,
    live: &StoredProduct,
    content: &Content,
    plan: &mut Plan,
) -> anyhow::Result<()> {
    let mut next = live.clone();
    if let Some(range) = &live.content {
        let document = view::with_content(&live.document, range.clone(), content)?;
        next.document = document.json;
        next.content = document.content;
        next.own_texts = stored_texts::own_texts(content);
    }
    plan.compare(Some(live), &next);
    publication.put(&next)?;
    Ok(())
}
