//! Cards of up to 256 neighbouring products, with their filter values. Like snapshots, indexes share unchanged blocks.

use std::collections::BTreeMap;
use std::sync::Arc;

use memchr::memmem::Finder;
use vitrine_model::content_hash::ContentHash;
use vitrine_model::snapshot::{BitSet256, Block};

use super::card::Card;
use super::group::Group;
use super::values::Value;

/// Cards of a block.
#[derive(Debug)]
pub(super) struct CardBlock {
    pub(super) cards: Box<[Card]>,
    /// Hash of the product of each card.
    hashes: Box<[ContentHash]>,
    /// Members by filter value, ascending.
    pub(super) values: Box<[(Value, BitSet256)]>,
    /// Searched text: name and code of each card in lower case, each with a line feed.
    searched: Box<str>,
    /// End of each card in the searched text.
    ends: Box<[usize]>,
}

impl CardBlock {
    /// Returns the cards of a block. Those of unchanged products are taken from the previous index, the others are read; `number`
    /// returns the filter value of a name.
    pub(super) fn of(
        block: &Block,
        previous: &mut PreviousCards<'_>,
        mut number: impl FnMut(Group, &str) -> Value,
    ) -> Self {
        let mut searched = String::new();
        let mut ends = Vec::new();
        let mut values: BTreeMap<Value, BitSet256> = BTreeMap::new();
        let mut cards = Vec::new();
        let mut hashes = Vec::new();
        for (place, (code, bytes)) in block.products().enumerate() {
            let discount = block.discount(place).map(|placed| placed.exact.shown());
            let hash = block.hash(place);
            let card = match previous.find(code, hash) {
                Some((card, text)) if card.discount == discount => {
                    searched.push_str(text);
                    card.clone()
                }
                _ => {
                    let card = Card::read(code, bytes, discount, &mut number);
                    for part in [&*card.name, code] {
                        searched.push_str(&part.to_lowercase());
                        searched.push('\n');
                    }
                    card
                }
            };
            for value in &card.values {
                values.entry(*value).or_default().insert(place);
            }
            ends.push(searched.len());
            cards.push(card);
            hashes.push(hash);
        }
        Self {
            cards: cards.into(),
            hashes: hashes.into(),
            values: values.into_iter().collect(),
            searched: searched.into(),
            ends: ends.into(),
        }
    }

    /// Returns all cards.
    pub(super) fn all(&self) -> BitSet256 {
        BitSet256::below(self.cards.len())
    }

    /// Returns the cards whose name or code contains a word.
    pub(super) fn search(&self, word: &Finder<'_>) -> BitSet256 {
        let mut found = BitSet256::default();
        let mut at = 0;
        while let Some(next) = word.find(&self.searched.as_bytes()[at..]) {
            let place = self.ends.partition_point(|end| *end <= at + next);
            let Some(end) = self.ends.get(place) else {
                break;
            };
            found.insert(place);
            at = *end;
        }
        found
    }

    /// Returns the name of a card in lower case.
    pub(super) fn lower_name(&self, place: usize) -> &str {
        let text = self.searched_text(place);
        text.split_once('\n').map_or(text, |(name, _)| name)
    }

    /// Returns the searched text of a card.
    fn searched_text(&self, place: usize) -> &str {
        let end = |place: usize| self.ends.get(place).copied().unwrap_or_default();
        let start = place.checked_sub(1).map_or(0, end);
        self.searched.get(start..end(place)).unwrap_or_default()
    }
}

/// Cards of the previous index, found by ascending code.
#[derive(Debug)]
pub(super) struct PreviousCards<'a> {
    /// Blocks that don't end below the last code that was asked for.
    blocks: &'a [Arc<CardBlock>],
    /// Number of cards of the first block that are below it.
    passed: usize,
}

impl<'a> PreviousCards<'a> {
    /// Returns the cards of these blocks, which ascend.
    pub(super) fn of(blocks: &'a [Arc<CardBlock>]) -> Self {
        Self { blocks, passed: 0 }
    }

    /// Returns the card of a product and its searched text, if the product hasn't changed. Each code must be above those before.
    fn find(&mut self, code: &str, hash: ContentHash) -> Option<(&'a Card, &'a str)> {
        let is_below = |card: &Card| *card.code < *code;
        while let Some((block, later)) = self.blocks.split_first() {
            if block.cards.last().is_none_or(is_below) {
                (self.blocks, self.passed) = (later, 0);
                continue;
            }
            let rest = block.cards.iter().skip(self.passed);
            self.passed += rest.take_while(|card| is_below(card)).count();
            let card = block.cards.get(self.passed)?;
            let is_same = *card.code == *code && block.hashes.get(self.passed) == Some(&hash);
            return is_same.then(|| (card, block.searched_text(self.passed)));
        }
        None
    }
}
