//! Applies checked records: one publish, which holds all of them or nothing.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use sha2::{Digest, Sha256};
use vitrine_model::code::ProductCode;
use vitrine_model::hexadecimal::Hexadecimal;
use vitrine_store::prepared::{PreparedProduct, ProductDigest};
use vitrine_store::record::{RevisionNote, StoredProduct};
use vitrine_store::{Publication, Store};

use super::checking::Together;
use super::difference::is_same_discount;
use super::guard::{Allowance, Exceeded, Tally};
use super::held_texts::HeldTexts;
use super::plan::{Detail, Plan, ProductCount};
use super::progress::Progress;
use super::reading::differs_in_case;
use super::records::Records;
use super::report::{Applied, Finding, Outcome, Place, Report, Severity};
use super::staged::Staged;
use super::stored_texts::{own_texts, stored_content};
use super::texts::{Overlay, TextFiles};
use crate::view;

/// Maximum number of new codes that are compared with live ones.
const MAX_COMPARED_CODES: usize = 10_000;

/// Number of records that are put together.
const MAX_FEW: usize = 256;

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
    /// As [`Merge`](Self::Merge), for records that hold only what changes of a live product.
    Patch {
        /// The products to retire.
        retire: Vec<Retirement>,
    },
}

impl Mode {
    /// Returns the products that are to be retired by name.
    pub(super) fn retirements(&self) -> &[Retirement] {
        match self {
            Self::Replace => &[],
            Self::Merge { retire } | Self::Patch { retire } => retire,
        }
    }
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

/// Makes `records` live by `publication`, in one transaction. If the guard refuses them, the result says so. Returns
/// nothing if a fault was found; it is in the report. In both cases nothing has changed.
///
/// # Errors
///
/// If the store can't be written; then nothing has changed.
pub(super) fn apply<'s>(
    store: &'s Store,
    mut publication: Box<dyn Publication + 's>,
    records: &mut Records,
    order: Order<'_>,
    report: &mut Report,
    progress: &dyn Progress,
) -> anyhow::Result<Option<Applied>> {
    let mut applying = Applying {
        publication: &mut *publication,
        plan: Plan::new(order.intent.detail()),
        tally: Tally::default(),
        held_texts: HeldTexts::new(store),
        texts: order
            .texts
            .map(|(texts, directory)| Overlay::of(texts, directory)),
        together: Arc::clone(&records.together),
        created: HashSet::new(),
    };
    let mut staged = records.take(report)?.into_iter();
    loop {
        let few: Vec<Staged> = staged.by_ref().take(MAX_FEW).collect();
        if few.is_empty() {
            break;
        }
        let number = few.len() as u64;
        applying.put_few(few, report)?;
        progress.wrote(number);
    }
    applying.put_texts_left(records, report)?;
    applying.warn_of_case(records, report)?;
    if !report.rejected.keeps_all {
        applying.retire(order.mode, records, report)?;
    }
    if !matches!(order.mode, Mode::Patch { .. }) {
        applying.warn_of_missing(records, report);
    }
    let Applying {
        plan, tally, texts, ..
    } = applying;
    if texts.as_ref().is_some_and(|texts| texts.is_refused) {
        return Ok(None);
    }
    let exceeded = tally.exceeded(&mut *publication, order.allowances)?;
    if order.intent == Intent::Apply && exceeded.is_empty() {
        records.finish(order.mode, report)?;
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
    progress.committing();
    finish(publication, plan, exceeded, order.intent, &note).map(Some)
}

/// Returns a digest in hexadecimal, as the history shows it.
pub(crate) fn hexadecimal(digest: Sha256) -> String {
    Hexadecimal(&digest.finalize()).to_string()
}

/// A record beside the live product of its code.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    New,
    /// It differs, or files replace texts of it.
    Changed,
    Unchanged,
}

/// A publish in progress, with its plan and its counts for the guard.
struct Applying<'a, 't> {
    publication: &'a mut dyn Publication,
    plan: Plan,
    tally: Tally,
    held_texts: HeldTexts<'a>,
    texts: Option<Overlay<'t>>,
    together: Arc<Together>,
    /// New products beside live ones, as far as their codes are compared with those.
    created: HashSet<ProductCode>,
}

impl Applying<'_, '_> {
    /// Puts records, sorted by code.
    fn put_few(&mut self, few: Vec<Staged>, report: &mut Report) -> anyhow::Result<()> {
        let codes: Vec<&ProductCode> = few.iter().map(Staged::code).collect();
        let digests = self.publication.live_digests(&codes)?;
        let kinds: Vec<Kind> = (few.iter().zip(digests))
            .map(|(record, live)| self.kind(record, live))
            .collect();
        let changed = codes.iter().zip(&kinds);
        let changed: Vec<&ProductCode> = changed
            .filter(|(_, kind)| **kind == Kind::Changed)
            .map(|(code, _)| *code)
            .collect();
        if !changed.is_empty() {
            self.publication.prefetch(&changed)?;
        }
        for (record, kind) in few.into_iter().zip(kinds) {
            match kind {
                Kind::New => self.create(record, report)?,
                Kind::Changed => {
                    let live = self.publication.live(record.code())?;
                    self.put(record, live, report)?;
                }
                Kind::Unchanged => {
                    self.publication.keep(record.code())?;
                    self.plan.keep();
                }
            }
        }
        Ok(())
    }

    /// Compares a record with the live product of its code.
    fn kind(&self, record: &Staged, live: Option<ProductDigest>) -> Kind {
        match live {
            None => Kind::New,
            Some(live) if live == record.product.digest() && !self.has_files(record.code()) => {
                Kind::Unchanged
            }
            Some(_) => Kind::Changed,
        }
    }

    /// Puts a new product.
    fn create(&mut self, record: Staged, report: &mut Report) -> anyhow::Result<()> {
        if self.publication.live_before() > 0 && self.created.len() < MAX_COMPARED_CODES {
            self.created.insert(record.code().clone());
        }
        if self.has_files(record.code()) || record.may_name_texts {
            return self.put(record, None, report);
        }
        self.put_texts(&record)?;
        self.plan.create(record.code());
        self.publication.put_prepared(record.product)?;
        Ok(())
    }

    /// Puts a product, in place of the live one if there is one.
    fn put(
        &mut self,
        record: Staged,
        live: Option<StoredProduct>,
        report: &mut Report,
    ) -> anyhow::Result<()> {
        self.put_texts(&record)?;
        let rendered = record.product.product()?;
        let next = self.next(&record, &rendered, live.as_ref())?;
        if let Some(texts) = &mut self.texts {
            texts.check_kept(&next, report);
        }
        self.plan.compare(live.as_ref(), &next);
        if let Some(live) = live.filter(|live| *live != next) {
            self.tally.compare(&live, &next);
        }
        self.publication.put_prepared(match next == rendered {
            true => record.product,
            false => PreparedProduct::new(next)?,
        })?;
        Ok(())
    }

    /// Stores the texts that a record brought.
    fn put_texts(&mut self, record: &Staged) -> anyhow::Result<()> {
        let texts = record.product.own_texts();
        let brought = &self.together.texts;
        Ok(self.held_texts.put(texts, brought, self.publication)?)
    }

    /// Returns the next version of a product, after the live one.
    fn next(
        &mut self,
        record: &Staged,
        rendered: &StoredProduct,
        live: Option<&StoredProduct>,
    ) -> anyhow::Result<StoredProduct> {
        let mut next = rendered.clone();
        let rendered = stored_content(rendered)?;
        let mut content = match live {
            None => rendered.clone(),
            Some(live) => record.update(&rendered).apply(&stored_content(live)?),
        };
        if record.may_name_texts {
            let brought = &self.together.texts;
            self.held_texts
                .resolve((&rendered, brought), self.publication, &mut content)?;
        }
        if let Some(texts) = &mut self.texts {
            texts.put(&next.code, self.publication, &mut content)?;
        }
        if content != rendered
            && let Some(range) = next.content.clone()
        {
            let document = view::with_content(&next.document, range, &content)?;
            next.document = document.json;
            next.content = document.content;
            next.own_texts = own_texts(&content);
        }
        let discount = live.map(|live| live.discount_multiplier.as_str());
        let loaded = &next.discount_multiplier;
        if let Some(discount) = discount.filter(|live| is_same_discount(loaded, live)) {
            discount.clone_into(&mut next.discount_multiplier);
        }
        Ok(next)
    }

    /// Returns whether files replace texts of a product.
    fn has_files(&self, code: &ProductCode) -> bool {
        self.texts.as_ref().is_some_and(|texts| texts.has(code))
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

    /// Warns of fields that no record has, although live products lose their values there.
    fn warn_of_missing(&self, records: &Records, report: &mut Report) {
        for (field, products) in self.tally.emptied() {
            if let Some(column) = records.together.stated.missing(field) {
                let message = format!(
                    "{} lose their value, as no record has this field",
                    ProductCount(products)
                );
                let place = Place {
                    column: Some(column.name.to_owned()),
                    ..Place::file(&records.codes.first_file())
                };
                report.add(Finding {
                    severity: Severity::Warning,
                    pointer: format!("/{}", column.path.join("/")),
                    ..Finding::fault(&place, "column_missing", &message)
                });
            }
        }
    }

    /// Warns of new products whose codes differ from live ones only in case. Of two codes in the inputs, reading warned.
    fn warn_of_case(&mut self, records: &Records, report: &mut Report) -> anyhow::Result<()> {
        let created = std::mem::take(&mut self.created);
        if created.is_empty() {
            return Ok(());
        }
        let mut by_capitals: HashMap<String, Vec<&ProductCode>> = HashMap::new();
        for code in &created {
            let capitals = code.as_str().to_ascii_uppercase();
            by_capitals.entry(capitals).or_default().push(code);
        }
        let mut others = self.publication.live_codes()?;
        others.retain(|other| !records.codes.contains(other.as_str()));
        let mut found = Vec::new();
        for other in &others {
            let codes = by_capitals.get(&other.as_str().to_ascii_uppercase());
            for code in codes.into_iter().flatten() {
                let place = records.codes.get(code.as_str());
                found.extend(place.map(|place| (place, code.as_str(), other.as_str())));
            }
        }
        found.sort_by_key(|(place, ..)| (Arc::clone(&place.file), place.line, place.index));
        for (place, code, other) in found {
            report.add(differs_in_case(&place, code, other, "which is live"));
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
            Mode::Merge { .. } | Mode::Patch { .. } => {
                for Retirement { code, place } in mode.retirements() {
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
