//! Selection of a query in an index, and the number of products for each filter value.

use std::sync::Arc;

use memchr::memmem::Finder;
use vitrine_model::snapshot::BitSet256;

use super::block::CardBlock;
use super::card::Card;
use super::column::{Column, Direction, Sort};
use super::group::Group;
use super::index::{Index, ValueColumn};
use super::order::{CardId, Order};
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
            let count = |column: &ValueColumn| {
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

    /// Returns the range of the page of this number, from 1, with so many products; it is empty beyond the last page.
    pub(super) fn page(&self, number: usize, size: usize) -> PageRange {
        let start = number
            .saturating_sub(1)
            .saturating_mul(size)
            .min(self.len());
        PageRange {
            start,
            end: (start + size).min(self.len()),
        }
    }

    /// Returns the number of selected products before the first one whose code or name, by which they are sorted, isn't before
    /// a text. Codes are mostly in capitals: a text beyond the last one is taken as if it were, too.
    pub(super) fn rank_of(
        &self,
        index: &Index,
        order: Option<&Order>,
        sort: Sort,
        text: &str,
    ) -> usize {
        let rank = self.rank(index, order, sort, text);
        match rank == self.len() && sort.column == Column::Code {
            true => self.rank(index, order, sort, &text.to_uppercase()),
            false => rank,
        }
    }

    fn rank(&self, index: &Index, order: Option<&Order>, sort: Sort, text: &str) -> usize {
        let Some(order) = order else {
            return self.rank_by_code(index, text);
        };
        let lower = text.to_lowercase();
        let is_before = |own: &str, text: &str| match sort.direction {
            Direction::Ascending => own < text,
            Direction::Descending => own > text && !own.starts_with(text),
        };
        let ids = order.ids();
        let end = ids.partition_point(|id| match sort.column {
            Column::Name => is_before(index.lower_name(*id), &lower),
            _ => index
                .card(*id)
                .is_some_and(|card| is_before(&card.code, text)),
        });
        let before = ids[..end].iter();
        before.filter(|id| id.is_in(&self.members)).count()
    }

    /// Returns the number of selected products with a code below `code`.
    fn rank_by_code(&self, index: &Index, code: &str) -> usize {
        let is_below = |card: &Card| *card.code < *code;
        let starts_below = |block: &Arc<CardBlock>| block.cards.first().is_some_and(is_below);
        let Some(at) = index.blocks.partition_point(starts_below).checked_sub(1) else {
            return 0;
        };
        let below = BitSet256::below(index.blocks[at].cards.partition_point(is_below));
        self.before[at] + self.members[at].and(below).len()
    }

    /// Returns the cards of a range, in an order; without one, by code.
    pub(super) fn ids(&self, order: Option<&Order>, range: PageRange) -> Vec<CardId> {
        let count = range.end.saturating_sub(range.start);
        let Some(order) = order else {
            // Block in which the range starts: the last with no more cards before it.
            let first = self
                .before
                .partition_point(|before| *before <= range.start)
                .saturating_sub(1);
            let skipped = range.start - self.before.get(first).copied().unwrap_or_default();
            let blocks = self.members.iter().enumerate().skip(first);
            let ids = blocks
                .flat_map(|(at, members)| members.iter().map(move |place| CardId::new(at, place)));
            return ids.skip(skipped).take(count).collect();
        };
        let selected = order.ids().iter().filter(|id| id.is_in(&self.members));
        selected.skip(range.start).take(count).copied().collect()
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
