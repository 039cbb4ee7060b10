//! From checked products to one revision: a transaction that holds all of them or nothing.

use std::collections::HashSet;

use jiff::Timestamp;
use vitrine_model::code::ProductCode;
use vitrine_model::content::{
    Content, ContentUpdate, LoadedText, PackedMarkdown, Text, TextDigest, TextName, Update,
};
use vitrine_model::product::Product;
use vitrine_store::record::{OwnText, RevisionNote, StoredProduct};
use vitrine_store::{Publication, Store};

use super::check::CheckedRecord;
use super::plan::Plan;
use super::report::{Applied, Outcome};
use crate::view;

/// What a load makes of the live products that it doesn't name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mode {
    /// They are retired: the inputs are the whole catalog.
    Replace,
    /// They stay, but for those named here.
    Merge {
        /// The products to retire.
        retire: Vec<ProductCode>,
    },
}

/// Whether a plan is carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Intent {
    /// It is.
    Apply,
    /// It is only looked at.
    DryRun,
}

/// Makes `records` live, in one transaction.
///
/// # Errors
///
/// Where the store can't be written; then nothing has changed.
pub fn apply(
    store: &dyn Store,
    records: &[CheckedRecord],
    mode: &Mode,
    intent: Intent,
    note: &RevisionNote,
    now: Timestamp,
) -> anyhow::Result<Applied> {
    let mut publication = store.publish()?;
    let mut plan = Plan::default();
    let mut texts = HashSet::new();
    for record in records {
        put_texts(&mut *publication, &record.content, &mut texts)?;
        put(&mut *publication, record, &mut plan)?;
    }
    match mode {
        Mode::Replace => plan.retire(publication.retire_others()?),
        Mode::Merge { retire } => {
            for code in retire {
                if publication.retire(code)? {
                    plan.retire([code.clone()]);
                }
            }
        }
    }
    finish(publication, plan, intent, note, now)
}

/// Commits what was planned; or, of a dry run, forgets it.
pub(crate) fn finish(
    publication: Box<dyn Publication + '_>,
    plan: Plan,
    intent: Intent,
    note: &RevisionNote,
    now: Timestamp,
) -> anyhow::Result<Applied> {
    // Dropped without a commit, the publish changes nothing: what was planned is what would be.
    let outcome = match intent {
        Intent::DryRun => Outcome::Planned,
        Intent::Apply => match publication.commit(now, note)? {
            Some((revision, _)) => Outcome::Published(revision),
            None => Outcome::Unchanged,
        },
    };
    Ok(Applied { outcome, plan })
}

fn put(
    publication: &mut dyn Publication,
    record: &CheckedRecord,
    plan: &mut Plan,
) -> anyhow::Result<()> {
    let CheckedRecord {
        place: _,
        product,
        content: update,
    } = record;
    let live = publication.live(&product.code)?;
    let live_content = live.as_ref().map(live_content).transpose()?;
    let content = update.apply(&live_content.unwrap_or_default());
    let document = view::document(product, &content)?;
    let next = StoredProduct {
        code: product.code.clone(),
        // A later payout type without content resources shows no texts, so it keeps none.
        own_texts: match document.content {
            Some(_) => own_texts(&content),
            None => Vec::new(),
        },
        document: document.json,
        content: document.content,
        discount_multiplier: exact_discount(product, live.as_ref()).to_owned(),
        is_orderable: product.is_orderable,
        countries: product.countries_redeemable_in.clone(),
        categories: product.categories.iter().map(ToString::to_string).collect(),
    };
    plan.compare(live.as_ref(), &next);
    publication.put(&next)?;
    Ok(())
}

/// The discount exactly as loaded; or as it is live, where that is the same number written otherwise:
/// `0.1` is shown as `0.10`, and an answer that is loaded back is no change.
fn exact_discount<'a>(product: &'a Product, live: Option<&'a StoredProduct>) -> &'a str {
    let loaded = &product.discount_multiplier;
    live.map(|live| live.discount_multiplier.as_str())
        .filter(|live| live.parse().is_ok_and(|live| loaded.is_same_number(&live)))
        .unwrap_or(loaded.exact())
}

/// The texts of which `content` names the Markdown.
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

/// The texts of a live product.
pub(crate) fn live_content(live: &StoredProduct) -> anyhow::Result<Content> {
    let Some(range) = &live.content else {
        return Ok(Content::default());
    };
    let json = live.document.get(range.clone()).unwrap_or_default();
    Ok(view::stored_content(json, &live.own_texts)?)
}

/// Keeps the texts of a record.
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

/// Keeps a text; one that is `kept` already needn't be compressed once more.
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
