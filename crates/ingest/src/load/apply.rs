//! Applies checked records: one publish, which holds all of them or nothing.

use std::collections::HashSet;
use std::path::Path;

use jiff::Timestamp;
use sha2::{Digest, Sha256};
use vitrine_model::code::ProductCode;
use vitrine_model::content::{
    Content, ContentUpdate, LoadedText, PackedMarkdown, Text, TextDigest, TextName, Update,
};
use vitrine_model::hexadecimal::Hexadecimal;
use vitrine_model::product::Product;
use vitrine_store::record::{OwnText, RevisionNote, StoredProduct};
use vitrine_store::{Publication, Store};

use super::check::CheckedRecord;
use super::guard::{Allowance, Exceeded, Tally};
use super::plan::{Detail, Plan};
use super::progress::Progress;
use super::records::Records;
use super::report::{Applied, Finding, Outcome, Place, Report, Severity};
use super::texts::{Overlay, TextFiles};
use crate::{overrides, view};

/// Handling of live products missing from the input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mode {
    /// Retires them: the inputs are the whole catalog.
    Replace,
    /// Leaves them live, except for those named here.
    Merge {
        /// The products to retire.
        retire: Vec<Retirement>,
    },
}

/// A product that is to be retired by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retirement {
    /// Code of the product.
    pub code: ProductCode,
    /// Place of the request to retire it.
    pub place: Place,
}

/// Purpose of a load: to apply the plan, or only to show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Intent {
    /// Applies the plan.
    Apply,
    /// Only shows the plan.
    DryRun,
}

impl Intent {
    /// Returns the default detail of a plan: an applied one needs only counts.
    pub(crate) fn detail(self) -> Detail {
        match self {
            Self::Apply => Detail::Counts,
            Self::DryRun => Detail::Fields,
        }
    }
}

/// Instructions for applying records.
#[derive(Debug)]
pub struct Order<'o> {
    /// Handling of live products missing from the records.
    pub mode: &'o Mode,
    /// Apply or dry run.
    pub intent: Intent,
    /// Detail of the plan.
    pub detail: Detail,
    /// Limits of the guard that replace the default ones.
    pub allowances: &'o [Allowance],
    /// Files that replace the texts of records, and their directory.
    pub texts: Option<(&'o TextFiles, &'o Path)>,
    /// Name of the author.
    pub by: String,
    /// Reason, in the author's words.
    pub note: Option<String>,
    /// Hash of the input, to which that of the texts is added.
    pub source: Sha256,
}

/// Makes `records` live, in one transaction. If the guard refuses them, the result says so. Returns nothing if a fault
/// was found; it is in the report. In both cases nothing has changed.
///
/// # Errors
///
/// If the store can't be written; then nothing has changed.
pub(super) fn apply(
    store: &dyn Store,
    records: &mut Records,
    order: Order<'_>,
    report: &mut Report,
    progress: &dyn Progress,
) -> anyhow::Result<Option<Applied>> {
    let mut publication = overrides::publish(store)?;
    let mut applying = Applying {
        publication: &mut *publication,
        plan: Plan::new(order.detail),
        tally: Tally::default(),
        kept_texts: HashSet::new(),
        texts: order
            .texts
            .map(|(texts, directory)| Overlay::of(texts, directory)),
    };
    records.each_few(report, |few, report| {
        let codes: Vec<&ProductCode> = few.iter().map(|record| &record.product.code).collect();
        applying.publication.prefetch(&codes)?;
        few.iter().try_for_each(|record| {
            progress.applied();
            applying.put(record, report)
        })
    })?;
    applying.put_texts_left(records, report)?;
    if !report.rejected.keeps_all {
        applying.retire(order.mode, records, report)?;
    }
    let Applying {
        plan, tally, texts, ..
    } = applying;
    if texts.as_ref().is_some_and(|texts| texts.is_refused) {
        return Ok(None);
    }
    let exceeded = tally.exceeded(&mut *publication, order.allowances)?;
    if order.intent == Intent::Apply && exceeded.is_empty() {
        records.finish(report)?;
    }
    let mut source = order.source;
    if let Some(texts) = texts {
        source.update(texts.digest.finalize());
    }
    let note = RevisionNote {
        by: order.by,
        note: order.note,
        source_digest: Some(hexadecimal(source)),
    };
    finish(publication, plan, exceeded, order.intent, &note).map(Some)
}

/// Returns a digest in hexadecimal, as the history shows it.
pub(crate) fn hexadecimal(digest: Sha256) -> String {
    Hexadecimal(&digest.finalize()).to_string()
}

/// A publish in progress, with its plan and its counts for the guard.
struct Applying<'a, 't> {
    publication: &'a mut dyn Publication,
    plan: Plan,
    tally: Tally,
    /// Texts that this publish has stored already.
    kept_texts: HashSet<TextDigest>,
    texts: Option<Overlay<'t>>,
}

impl Applying<'_, '_> {
    fn put(&mut self, record: &CheckedRecord, report: &mut Report) -> anyhow::Result<()> {
        put_texts(self.publication, &record.content, &mut self.kept_texts)?;
        let code = &record.product.code;
        let live = self.publication.live(code)?;
        let live_content = live.as_ref().map(live_content).transpose()?;
        let mut content = record.content.apply(&live_content.unwrap_or_default());
        if let Some(texts) = &mut self.texts {
            texts.put(code, self.publication, &mut content)?;
        }
        let next = next(&record.product, &content, live.as_ref())?;
        if let Some(texts) = &mut self.texts {
            texts.check_kept(&next, report);
        }
        self.plan.compare(live.as_ref(), &next);
        if let Some(live) = live.filter(|live| *live != next) {
            self.tally.compare(&live, &next);
        }
        self.publication.put(&next)?;
        Ok(())
    }

    /// Puts the texts of products that weren't loaded. Products with a rejected record keep their texts.
    fn put_texts_left(&mut self, records: &Records, report: &mut Report) -> anyhow::Result<()> {
        let Some(texts) = &mut self.texts else {
            return Ok(());
        };
        for code in texts.left() {
            if !records.keeps(code) {
                texts.put_on_live(code, self.publication, &mut self.plan, report)?;
            }
        }
        Ok(())
    }

    fn retire(&mut self, mode: &Mode, kept: &Records, report: &mut Report) -> anyhow::Result<()> {
        match mode {
            Mode::Replace => {
                for code in kept.kept() {
                    if self.publication.keep(&code.parse()?)? {
                        self.plan.keep();
                    }
                }
                for code in self.publication.retire_others()? {
                    self.plan.retire(&code);
                    self.tally.retire(&code);
                }
            }
            Mode::Merge { retire } => {
                for Retirement { code, place } in retire {
                    if self.publication.retire(code)? {
                        self.plan.retire(code);
                        self.tally.retire(code);
                    } else {
                        report.add(not_live(code, place));
                    }
                }
            }
        }
        Ok(())
    }
}

/// Commits the publish, unless this is a dry run or `exceeded` has a limit of the guard: then the publish is dropped,
/// which rolls it back.
pub(crate) fn finish(
    publication: Box<dyn Publication + '_>,
    plan: Plan,
    exceeded: Vec<Exceeded>,
    intent: Intent,
    note: &RevisionNote,
) -> anyhow::Result<Applied> {
    let ineffective = publication.ineffective();
    let outcome = match intent {
        Intent::DryRun => Outcome::Planned,
        Intent::Apply if !exceeded.is_empty() => Outcome::Refused,
        Intent::Apply => match publication.commit(Timestamp::now(), note)? {
            Some((revision, _)) => Outcome::Published(revision),
            None => Outcome::Unchanged,
        },
    };
    Ok(Applied {
        outcome,
        plan,
        exceeded,
        ineffective,
    })
}

/// Returns the warning that a product to retire isn't live.
fn not_live(code: &ProductCode, place: &Place) -> Finding {
    Finding {
        severity: Severity::Warning,
        code: Some(code.to_string()),
        ..Finding::fault(place, "retired_already", "no live product has this code")
    }
}

/// Returns the next version of a product, after the live one.
fn next(
    product: &Product,
    content: &Content,
    live: Option<&StoredProduct>,
) -> anyhow::Result<StoredProduct> {
    let document = view::document(product, content)?;
    Ok(StoredProduct {
        code: product.code.clone(),
        // A later payout type without content resources shows no texts, so it keeps none.
        own_texts: match document.content {
            Some(_) => own_texts(content),
            None => Vec::new(),
        },
        document: document.json,
        content: document.content,
        discount_multiplier: exact_discount(product, live).to_owned(),
        is_orderable: product.is_orderable,
        countries: product.countries_redeemable_in.clone(),
        categories: product.categories.iter().map(ToString::to_string).collect(),
    })
}

/// Returns the discount exactly as loaded. If the live one is the same number written differently, it stays: responses
/// show `0.1` as `0.10`, and loading a response back must not be a change.
fn exact_discount<'a>(product: &'a Product, live: Option<&'a StoredProduct>) -> &'a str {
    let loaded = &product.discount_multiplier;
    live.map(|live| live.discount_multiplier.as_str())
        .filter(|live| live.parse().is_ok_and(|live| loaded.is_same_number(&live)))
        .unwrap_or(loaded.exact())
}

/// Returns the texts whose Markdown the store has.
pub(crate) fn own_texts(content: &Content) -> Vec<OwnText> {
    let own = |(name, text): (TextName, &Text)| match text {
        Text::Own { digest, source } => Some(OwnText {
            name,
            digest: *digest,
            source: source.as_ref().map(ToString::to_string),
        }),
        Text::None | Text::Outside(_) => None,
    };
    content.texts.iter().filter_map(own).collect()
}

/// Returns the texts of a live product.
pub(crate) fn live_content(live: &StoredProduct) -> anyhow::Result<Content> {
    let Some(range) = &live.content else {
        return Ok(Content::default());
    };
    let json = live.document.get(range.clone()).unwrap_or_default();
    Ok(view::stored_content(json, &live.own_texts)?)
}

/// Stores the texts of a record.
fn put_texts(
    publication: &mut dyn Publication,
    update: &ContentUpdate,
    kept: &mut HashSet<TextDigest>,
) -> anyhow::Result<()> {
    for (_, text) in update.texts.iter() {
        if let Update::Set(LoadedText::Markdown { markdown, .. }) = text {
            put_text(publication, markdown, kept)?;
        }
    }
    Ok(())
}

/// Stores a text, unless `kept` says that this publish already did: compressing it again would take time.
pub(crate) fn put_text(
    publication: &mut dyn Publication,
    markdown: &str,
    kept: &mut HashSet<TextDigest>,
) -> anyhow::Result<TextDigest> {
    let digest = TextDigest::of(markdown);
    if kept.insert(digest) {
        publication.put_text(&digest, &PackedMarkdown::pack(markdown)?)?;
    }
    Ok(digest)
}
