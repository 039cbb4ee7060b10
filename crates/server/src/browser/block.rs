//! Cards of up to 256 neighbouring products, with their filter values. Like snapshots, indexes share unchanged blocks.

use std::collections::BTreeMap;

use memchr::memmem::Finder;
use vitrine_model::snapshot::{BitSet256, Block};

use super::card::Card;
use super::group::Group;
use super::values::Value;

/// Cards of a block.
#[derive(Debug)]
pub(super) struct CardBlock {
    pub(super) cards: Box<[Card]>,
    /// Members by filter value, ascending.
    pub(super) values: Box<[(Value, BitSet256)]>,
    /// Searched text: name and code of each card in lower case, each with a line feed.
    searched: Box<str>,
    /// End of each card in the searched text.
    ends: Box<[usize]>,
}

impl CardBlock {
    /// Reads the cards of a block; `number` returns the filter value of a name.
    pub(super) fn read(block: &Block, mut number: impl FnMut(Group, &str) -> Value) -> Self {
        let mut searched = String::new();
        let mut ends = Vec::new();
        let mut values: BTreeMap<Value, BitSet256> = BTreeMap::new();
        let mut cards = Vec::new();
        for (place, (code, bytes)) in block.products().enumerate() {
            let discount = block.discount(place).map(|placed| placed.exact.shown());
            let card = Card::read(code, bytes, discount, &mut number);
            for value in &card.values {
                values.entry(*value).or_default().insert(place);
            }
            for part in [&*card.name, code] {
                searched.push_str(&part.to_lowercase());
                searched.push('\n');
            }
            ends.push(searched.len());
            cards.push(card);
        }
        Self {
            cards: cards.into(),
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
        let end = |place: usize| self.ends.get(place).copied().unwrap_or_default();
        let start = place.checked_sub(1).map_or(0, end);
        let text = self.searched.get(start..end(place)).unwrap_or_default();
        text.split_once('\n').map_or(text, |(name, _)| name)
    }
}
