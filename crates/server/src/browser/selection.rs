//! What a query selects of an index, and how many products each filter value would leave.

use std::sync::Arc;

use memchr::memmem::Finder;
use vitrine_model::code::ProductCode;
use vitrine_model::query::Cursor;
use vitrine_model::snapshot::Members;

use super::block::CardBlock;
use super::card::Card;
use super::group::Group;
use super::index::Index;
use super::query::Query;

/// The products that a query selects.
#[derive(Debug)]
pub(super) struct Selection {
    /// Those of each block.
    members: Vec<Members>,
    /// How many there are ahead of each block; one more at the end: how many there are.
    before: Vec<usize>,
    /// By filter value: how many products have it, of those that all other groups and the search leave.
    counts: Vec<usize>,
}

/// Where a page lies in a selection: half-open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stretch {
    pub(super) start: usize,
    pub(super) end: usize,
}

/// The query as an index understands it.
struct Wanted<'q> {
    words: Vec<Finder<'q>>,
    /// The groups of which something was picked, with the numbers of that; what was never seen has none.
    groups: Vec<(Group, Vec<u32>)>,
}

impl Selection {
    /// What a query selects.
    pub(super) fn of(index: &Index, query: &Query) -> Self {
        let words: Vec<String> = query.words().collect();
        let number = |group: Group| {
            let picked = query.picked(group).iter();
            let numbers = picked.filter_map(|value| index.values.find(group, value));
            (group, numbers.collect())
        };
        let picked = |group: &Group| !query.picked(*group).is_empty();
        let wanted = Wanted {
            words: words
                .iter()
                .map(|word| Finder::new(word.as_bytes()))
                .collect(),
            groups: Group::ALL.into_iter().filter(picked).map(number).collect(),
        };
        let mut selection = Self {
            members: Vec::with_capacity(index.blocks.len()),
            before: vec![0],
            counts: vec![0; index.values.all().len()],
        };
        let groups_of: Vec<u8> = index.values.all().map(|(group, _)| group.bit()).collect();
        for block in &index.blocks {
            selection.add(block, &wanted, &groups_of);
        }
        selection
    }

    fn add(&mut self, block: &CardBlock, wanted: &Wanted<'_>, groups_of: &[u8]) {
        let picked: Vec<Members> = wanted
            .groups
            .iter()
            .map(|(_, numbers)| any(block, numbers))
            .collect();
        // Of each picked group: what all others leave. At the end: what all leave.
        let leaving_out = |left_out: Option<usize>| {
            let others = picked
                .iter()
                .enumerate()
                .filter(|(at, _)| Some(*at) != left_out);
            others.fold(block.all(), |all, (_, members)| all.and(*members))
        };
        let mut bases: Vec<Members> = (0..picked.len()).map(|at| leaving_out(Some(at))).collect();
        bases.push(leaving_out(None));
        if bases.iter().any(|base| !base.is_empty()) {
            for word in &wanted.words {
                let found = block.search(word);
                bases.iter_mut().for_each(|base| *base = base.and(found));
            }
        }
        let all = bases.pop().unwrap_or_default();
        let is_picked = |group: Group| wanted.groups.iter().any(|(other, _)| *other == group);
        let unpicked = Group::ALL.into_iter().filter(|group| !is_picked(*group));
        self.tally(
            block,
            all,
            unpicked.fold(0, |bits, group| bits | group.bit()),
            groups_of,
        );
        for ((group, _), base) in wanted.groups.iter().zip(bases) {
            self.tally(block, base, group.bit(), groups_of);
        }
        self.members.push(all);
        self.before.push(self.len() + all.len());
    }

    /// Counts the values of some groups among these cards.
    fn tally(&mut self, block: &CardBlock, members: Members, groups: u8, groups_of: &[u8]) {
        let is_meant = |value: u32| groups & groups_of[value as usize] != 0;
        let values_of = |members: Members| {
            let cards = members.iter().filter_map(|place| block.cards.get(place));
            cards.flat_map(|card| &card.values).copied()
        };
        let are_few = |cards: usize| cards * VALUES_OF_A_CARD < block.values.len();
        let others = block.all().without(members);
        // Few cards are counted by what they have; where few are missing, those are taken from what all have.
        if are_few(members.len()) {
            for value in values_of(members).filter(|value| is_meant(*value)) {
                self.counts[value as usize] += 1;
            }
        } else if are_few(others.len()) {
            let sizes = block.values.iter().zip(&block.sizes);
            for ((value, _), size) in sizes.filter(|((value, _), _)| is_meant(*value)) {
                self.counts[*value as usize] += size;
            }
            for value in values_of(others).filter(|value| is_meant(*value)) {
                self.counts[value as usize] -= 1;
            }
        } else {
            for (value, having) in block.values.iter().filter(|(value, _)| is_meant(*value)) {
                self.counts[*value as usize] += having.and(members).len();
            }
        }
    }

    /// How many products there are.
    pub(super) fn len(&self) -> usize {
        self.before.last().copied().unwrap_or_default()
    }

    /// By filter value: how many products it would leave.
    pub(super) fn counts(&self) -> &[usize] {
        &self.counts
    }

    /// What it takes in memory.
    pub(super) fn size_bytes(&self) -> usize {
        self.members.len() * size_of::<Members>()
            + (self.before.len() + self.counts.len()) * size_of::<usize>()
    }

    /// Where the page of a cursor lies.
    pub(super) fn page(&self, index: &Index, cursor: &Cursor, most: usize) -> Stretch {
        let start = match cursor {
            Cursor::Start => 0,
            Cursor::After(code) => {
                let at = self.rank(index, code);
                // The code itself, where it is selected, was on the page before.
                let is_it = self.cards(
                    index,
                    Stretch {
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
                return Stretch {
                    start: end.saturating_sub(most),
                    end,
                };
            }
        };
        Stretch {
            start,
            end: (start + most).min(self.len()),
        }
    }

    /// How many of the selected have a code below `code`.
    fn rank(&self, index: &Index, code: &ProductCode) -> usize {
        let code = code.as_str();
        let starts_below =
            |block: &Arc<CardBlock>| block.cards.first().is_some_and(|card| *card.code <= *code);
        let Some(at) = index.blocks.partition_point(starts_below).checked_sub(1) else {
            return 0;
        };
        let below = Members::below(index.blocks[at].first_not_below(code));
        self.before[at] + self.members[at].and(below).len()
    }

    /// The cards of a stretch.
    pub(super) fn cards<'i>(&self, index: &'i Index, stretch: Stretch) -> Vec<&'i Card> {
        // The block in which the stretch starts: the last ahead of which there are no more than that.
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

/// About how many filter values a card has.
const VALUES_OF_A_CARD: usize = 8;

/// The cards that have one of these values.
fn any(block: &CardBlock, numbers: &[u32]) -> Members {
    numbers.iter().fold(Members::default(), |any, number| {
        any.or(block.with(*number))
    })
}
