//! Texts by themselves: Markdown files put on products that are live, in one transaction.
//!
//! - `files`: the directory that the files are in
//! - `markdown`: what bytes must be to become a text
//!
//! Everything of a product but the texts that are named stays as it is, to the byte: the new content
//! resources take the place of the old ones in its document, and nothing else is even looked at.

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
use crate::view;

pub use files::TextFiles;
pub use markdown::markdown;

/// What is to be done with a directory of texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Whether it is done, or only planned.
    pub intent: Intent,
    /// Who does it.
    pub by: String,
    /// Why, in their own words.
    pub note: Option<String>,
}

/// Puts the texts below `directory` on live products, in one transaction; or, where there is any
/// fault, changes nothing. The report says which, and all that was found; its records are files.
///
/// # Errors
///
/// Where a file can't be read, or the store can't be written. Then nothing has changed.
pub fn load(store: &dyn Store, directory: &Path, settings: Settings) -> anyhow::Result<Report> {
    let mut report = Report::default();
    let texts = TextFiles::scan(directory, &mut report)?;
    let mut publication = store.publish()?;
    let mut plan = Plan::new(settings.intent.detail());
    let mut overlay = Overlay::of(&texts);
    for code in texts.codes() {
        let live = match live(&mut *publication, code)? {
            Ok(live) => live,
            Err(invalid) => {
                let product = directory.join(code.as_str());
                report.add(files::finding(&product, Some(code), invalid));
                continue;
            }
        };
        // Once nothing will be applied, all that is left to do is to find the other faults.
        if !report.has_faults() {
            let mut content = apply::live_content(&live)?;
            overlay.put(code, &mut *publication, &mut content)?;
            put_content(&mut *publication, &live, &content, &mut plan)?;
        }
    }
    if report.has_faults() {
        return Ok(report);
    }
    let Settings { intent, by, note } = settings;
    let digest = overlay.digest.finalize();
    let note = RevisionNote {
        by,
        note,
        source_digest: Some(digest.iter().map(|byte| format!("{byte:02x}")).collect()),
    };
    let applied = apply::finish(publication, plan, Vec::new(), intent, &note)?;
    report.applied = Some(applied);
    Ok(report)
}

/// A live product that keeps texts; or the rule that this code breaks.
fn live(
    publication: &mut dyn Publication,
    code: &ProductCode,
) -> anyhow::Result<Result<StoredProduct, Invalid>> {
    Ok(match publication.live(code)? {
        None => Err(Invalid::new(
            "product_not_live",
            "the code of a live product; load the product first",
        )),
        Some(live) if live.content.is_none() => Err(Invalid::new(
            "texts_not_kept",
            "a product with content resources; this one was loaded without them, so it shows no texts",
        )),
        Some(live) => Ok(live),
    })
}

/// Puts files in the place of texts, while products are published.
pub struct Overlay<'t> {
    texts: &'t TextFiles,
    /// The texts that the store has by now; they needn't be compressed once more.
    kept: HashSet<TextDigest>,
    /// Of all bytes that were put.
    digest: Sha256,
}

impl<'t> Overlay<'t> {
    /// Puts these texts.
    #[must_use]
    pub fn of(texts: &'t TextFiles) -> Self {
        Self {
            texts,
            kept: HashSet::new(),
            digest: Sha256::new(),
        }
    }

    /// Puts the texts of a product into its content. An address that is known of such a text stays as its
    /// source: so a later load that brings the address again keeps the Markdown.
    ///
    /// # Errors
    ///
    /// Where a file can't be read, or isn't any more what it was when it was checked; where the store
    /// can't be written.
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
            let digest = apply::put_text(publication, &markdown, &mut self.kept)?;
            let text = content.texts.get_mut(name);
            let source = text.address().cloned();
            *text = Text::Own { digest, source };
        }
        Ok(())
    }
}

/// Makes a live product one with these texts.
///
/// # Errors
///
/// Where the store can't be written.
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
        next.own_texts = apply::own_texts(content);
    }
    plan.compare(Some(live), &next);
    publication.put(&next)?;
    Ok(())
}
