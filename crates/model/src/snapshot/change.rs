//! Applying a revision to a snapshot: blocks with changes are rebuilt, all others are shared.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use jiff::Timestamp;

use super::block::Block;
use super::facet::{Facet, FacetNumbers};
use super::placed_discount::PlacedDiscount;
use super::rebuild::{Piece, RebuildThreads, count, rebuild};
use super::{Malformed, Snapshot, TextTable};
use crate::code::ProductCode;
use crate::revision::Revision;

/// Minimum number of products in a rebuilt block; smaller ones are merged with the following block.
const MIN_BLOCK_PRODUCTS: usize = Block::CAPACITY / 4;

/// A new or changed product.
#[derive(Debug, Clone)]
pub struct NewProduct {
    /// Rendered bytes.
    pub bytes: Vec<u8>,
    /// Start and end of its content resources in `bytes`, if it has any.
    pub content: Option<(usize, usize)>,
    /// Discount, if the place of its text in `bytes` is known.
    pub discount: Option<PlacedDiscount>,
    /// Facets.
    pub facets: Vec<Facet>,
    /// Words by which it is found ([`words_of`](crate::search::words_of)).
    pub words: Box<str>,
}

/// Step from the blocks of one snapshot to those of the next one.
enum Step<'c> {
    /// Shares a block.
    Keep(&'c Block),
    /// Builds blocks.
    Build(Vec<Piece<'c>>),
}

impl<'c> Step<'c> {
    fn pieces(&self) -> Option<&[Piece<'c>]> {
        match self {
            Self::Keep(_) => None,
            Self::Build(pieces) => Some(pieces),
        }
    }
}

impl Snapshot {
    /// Returns the snapshot after `changes`: products by code, `None` for removed ones.
    ///
    /// `facets` must extend this snapshot's. `between` is called after each rebuilt block, so that the caller can
    /// yield; each thread has a clone of its own.
    ///
    /// # Errors
    ///
    /// If a product doesn't fit into a block.
    pub fn with_changes(
        &self,
        revision: Revision,
        facets: Arc<FacetNumbers>,
        changes: &BTreeMap<ProductCode, Option<NewProduct>>,
        texts: TextTable,
        threads: RebuildThreads,
        between: impl FnMut() + Clone + Send,
    ) -> Result<Self, Malformed> {
        let steps = self.steps(changes)?;
        let groups: Vec<&[Piece<'_>]> = steps.iter().filter_map(Step::pieces).collect();
        let mut built = rebuild(&groups, threads, between)?.into_iter();
        let mut blocks = Vec::with_capacity(self.blocks.len() + 1);
        for step in &steps {
            match step {
                Step::Keep(block) => blocks.push((*block).clone()),
                Step::Build(_) => blocks.extend(built.next().into_iter().flatten()),
            }
        }
        Self::new(revision, facets, blocks, texts)
    }

    /// Plans the blocks of the snapshot after `changes`: nothing is copied.
    fn steps<'c>(
        &'c self,
        changes: &'c BTreeMap<ProductCode, Option<NewProduct>>,
    ) -> Result<Vec<Step<'c>>, Malformed> {
        let mut steps = Vec::with_capacity(self.blocks.len() + 1);
        let mut pieces = Vec::new();
        if self.blocks.is_empty() {
            add_changed(changes.iter(), &mut pieces);
        }
        let mut start: Bound<ProductCode> = Bound::Unbounded;
        for (index, block) in self.blocks.iter().enumerate() {
            let end = match self.blocks.get(index + 1).map(|next| next.code(0).parse()) {
                Some(Ok(first_of_next)) => Bound::Excluded(first_of_next),
                Some(Err(_)) => return Err(Malformed),
                None => Bound::Unbounded,
            };
            let mut changed = changes.range((start, end.clone())).peekable();
            start = match end {
                Bound::Excluded(code) => Bound::Included(code),
                other => other,
            };
            if changed.peek().is_none() && pieces.is_empty() {
                steps.push(Step::Keep(block));
                continue;
            }
            merge(block, changed, &mut pieces);
            if count(&pieces) >= MIN_BLOCK_PRODUCTS {
                steps.push(Step::Build(std::mem::take(&mut pieces)));
            }
        }
        if !pieces.is_empty() {
            steps.push(Step::Build(pieces));
        }
        Ok(steps)
    }

    /// Copies the product with this code, for a snapshot whose facets are numbered by `numbers`.
    #[must_use]
    pub fn copy_of(&self, code: &ProductCode, numbers: &mut FacetNumbers) -> Option<NewProduct> {
        let product = self.product(code)?;
        let words = product.block.words_of_each().nth(product.slot);
        let facets = product.block.facets();
        let facets = facets.filter(|(_, members)| members.iter().any(|slot| slot == product.slot));
        let renumber = |(facet, _)| match self.facets.name(facet) {
            Some((kind, name)) => numbers.get_or_add(kind, name),
            None => facet,
        };
        Some(NewProduct {
            bytes: product.bytes().to_vec(),
            content: product.content().map(|range| (range.start, range.end)),
            discount: product.discount(),
            facets: facets.map(renumber).collect(),
            words: words.unwrap_or_default().into(),
        })
    }

    /// Returns the snapshot with all texts that `before` serves at `now`: each until its end in `before`, those without
    /// an end until `until`.
    #[must_use]
    pub fn keeping_texts_of(self, before: &Self, now: Timestamp, until: Timestamp) -> Self {
        let cut_short = self.texts.cut_short_since(&before.texts, now, until);
        Self {
            texts: self.texts.with(cut_short, now),
            ..self
        }
    }

    /// Returns the snapshot without texts whose serving ended by `now`; `None` if there are none.
    #[must_use]
    pub fn without_ended_texts(&self, now: Timestamp) -> Option<Self> {
        Some(Self {
            texts: self.texts.without_ended(now)?,
            ..self.clone()
        })
    }
}

/// Merges a block's products with the changed ones, in code order.
fn merge<'c>(
    block: &'c Block,
    changed: impl Iterator<Item = (&'c ProductCode, &'c Option<NewProduct>)>,
    pieces: &mut Vec<Piece<'c>>,
) {
    let mut kept_from = 0;
    for (code, product) in changed {
        let slot = block.first_not_below(code.as_str().as_bytes());
        if kept_from < slot {
            pieces.push(Piece::Kept(block, kept_from..slot));
        }
        kept_from = slot + usize::from(block.has_at(slot, code.as_str()));
        add_changed(std::iter::once((code, product)), pieces);
    }
    if kept_from < block.count() {
        pieces.push(Piece::Kept(block, kept_from..block.count()));
    }
}

fn add_changed<'c>(
    changed: impl Iterator<Item = (&'c ProductCode, &'c Option<NewProduct>)>,
    pieces: &mut Vec<Piece<'c>>,
) {
    pieces.extend(changed.filter_map(|(code, product)| Some(Piece::New(code, product.as_ref()?))));
}
