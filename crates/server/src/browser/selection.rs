//! Selection of a query in an index, and the number of products for each filter value.

use std::sync::Arc;

use memchr::memmem::Finder;
use vitrine_model::code::ProductCode;
use vitrine_model::query::Cursor;
use vitrine_model::snapshot::BitSet256;

use super::block::CardBlock;
use super::card::Card;
use super::group::Group;
use super::index::{Column, Index};
use super::query::Query;

/// Number of selected products for each filter value of a group, if no value of that group were picked.
pub(super) type Counts = Arc<[usize]>;

/// Products that a query selects.
#[derive(Debug)]
pub(super) struct Selection {
    /// Selected products of each block.
    members: Vec<BitSet256>,
    /// Number of selected cards before each block; the last entry is the number of all.
    before: Vec<usize>,
    counts: [Counts; Group::ALL.len()],
}

/// Half-open range of a page in a selection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PageRange {
    pub(super) start: usize,
    pub(super) end: usize,
}

impl Selection {
    /// Selects the products of a query among those visible, by block; `remembered` returns the counts of a group from a cache, or calls back to count
    /// them.
    pub(super) fn of(
        index: &Index,
        query: &Query,
        visible: &[BitSet256],
        remembered: impl Fn(Group, &dyn Fn() -> Counts) -> Counts,
    ) -> Self {
        let having: Vec<(Group, Vec<BitSet256>)> = query
            .picked_groups()
            .map(|group| (group, any(index, group, query.picked(group))))
            .collect();
        let found = search(index, query);
        // Members that match the search and all picks, or all picks but those of one group.
        let beside = |group: Option<Group>| {
            let others = having.iter().filter(|(other, _)| Some(*other) != group);
            let narrowing = others.map(|(_, having)| having).chain(&found);
            narrowing.fold(visible.to_vec(), |mut left, by| {
                left.iter_mut()
                    .zip(by)
                    .for_each(|(left, by)| *left = left.and(*by));
                left
            })
        };
        let counted = |group: Group| {
            let left = beside(Some(group));
            let count = |column: &Column| {
                let counts = column
                    .iter()
                    .map(|(at, having)| having.and(left[*at]).len());
                counts.sum()
            };
            index.columns(group).iter().map(count).collect()
        };
        let members = beside(None);
        let before = members.iter().scan(0, |before, members| {
            *before += members.len();
            Some(*before)
        });
        Self {
            before: std::iter::once(0).chain(before).collect(),
            members,
            counts: Group::ALL.map(|group| remembered(group, &|| counted(group))),
        }
    }

    /// Returns the number of selected products.
    pub(super) fn len(&self) -> usize {
        self.before.last().copied().unwrap_or_default()
    }

    /// Returns the counts of a group's values.
    pub(super) fn counts(&self, group: Group) -> &Counts {
        &self.counts[group as usize]
    }

    /// Returns the size in memory, in bytes.
    pub(super) fn size_bytes(&self) -> usize {
        self.members.len() * size_of::<BitSet256>()
            + (self.before.len() + self.counts.iter().map(|counts| counts.len()).sum::<usize>())
                * size_of::<usize>()
    }

    /// Returns the range of a cursor's page.
    pub(super) fn page(&self, index: &Index, cursor: &Cursor, most: usize) -> PageRange {
        let start = match cursor {
            Cursor::Start => 0,
            Cursor::After(code) => {
                let at = self.rank(index, code);
                // The cursor's own product, if selected, was on the previous page.
                let is_it = self.cards(
                    index,
                    PageRange {
                        start: at,
                        end: at + 1,
                    },
                );
                at + usize::from(
                    is_it
                        .first()
                        .is_some_and(|card| *card.code == *code.as_str()),
                )
            }
            Cursor::Before(code) => {
                let end = self.rank(index, code);
                return PageRange {
                    start: end.saturating_sub(most),
                    end,
                };
            }
        };
        PageRange {
            start,
            end: (start + most).min(self.len()),
        }
    }

    /// Returns the number of selected products with a code below `code`.
    fn rank(&self, index: &Index, code: &ProductCode) -> usize {
        let code = code.as_str();
        let starts_below =
            |block: &Arc<CardBlock>| block.cards.first().is_some_and(|card| *card.code <= *code);
        let Some(at) = index.blocks.partition_point(starts_below).checked_sub(1) else {
            return 0;
        };
        let below = BitSet256::below(index.blocks[at].first_not_below(code));
        self.before[at] + self.members[at].and(below).len()
    }

    /// Returns the cards of a range.
    pub(super) fn cards<'i>(&self, index: &'i Index, stretch: PageRange) -> Vec<&'i Card> {
        // Block in which the range starts: the last with no more cards before it.
        let first = self
            .before
            .partition_point(|before| *before <= stretch.start)
            .saturating_sub(1);
        let skipped = stretch.start - self.before.get(first).copied().unwrap_or_default();
        let blocks = index.blocks.iter().zip(&self.members).skip(first);
        let cards = blocks
            .flat_map(|(block, members)| members.iter().filter_map(|place| block.cards.get(place)));
        cards
            .skip(skipped)
            .take(stretch.end.saturating_sub(stretch.start))
            .collect()
    }
}

/// Returns, by block, the cards with one of these values. Unknown values have none.
fn any(index: &Index, group: Group, names: &[String]) -> Vec<BitSet256> {
    let mut any = vec![BitSet256::default(); index.blocks.len()];
    let values = names
        .iter()
        .filter_map(|name| index.values.find(group, name));
    for value in values {
        for (at, having) in &index.columns(group)[value.number()] {
            any[*at] = any[*at].or(*having);
        }
    }
    any
}

/// Returns, by block, the cards that contain all words of the search; `None` without words.
fn search(index: &Index, query: &Query) -> Option<Vec<BitSet256>> {
    let words: Vec<String> = query.words().collect();
    let words: Vec<Finder<'_>> = words
        .iter()
        .map(|word| Finder::new(word.as_bytes()))
        .collect();
    let found = |block: &Arc<CardBlock>| {
        let found = words.iter().map(|word| block.search(word));
        found.fold(block.all(), BitSet256::and)
    };
    (!words.is_empty()).then(|| index.blocks.iter().map(found).collect())
}
