//! Orders of an index's cards by a column, made when they are first asked for and kept with the index.

use std::panic::resume_unwind;

use vitrine_model::changes::Journal;
use vitrine_model::snapshot::BitSet256;

use super::assortments::Seen;
use super::column::{Column, Direction, Sort};
use super::group::Group;
use super::index::Index;

/// Place of a card in an index: its block, and its place there in the lowest eight bits. Ascends by code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CardId(u32);

impl CardId {
    /// Returns the id of a card; an index has fewer than 2^24 blocks.
    pub(super) fn new(block: usize, place: usize) -> Self {
        let block = u32::try_from(block).unwrap_or(u32::MAX >> 8);
        Self(block << 8 | u32::try_from(place).unwrap_or_default())
    }

    /// Returns the index of the block.
    pub(super) fn block(self) -> usize {
        (self.0 >> 8) as usize
    }

    /// Returns the place in the block.
    pub(super) fn place(self) -> usize {
        (self.0 & 0xff) as usize
    }

    /// Returns true if the card is among the members of the blocks.
    pub(super) fn is_in(self, members: &[BitSet256]) -> bool {
        let members = members.get(self.block());
        members.is_some_and(|members| members.contains(self.place()))
    }
}

/// Data that an order goes by beside the cards.
#[derive(Clone, Copy)]
pub(super) struct Context<'a> {
    /// The assortment whose discounts are shown.
    pub(super) seen: Option<&'a Seen>,
    /// The journal, for the revisions that changed products.
    pub(super) journal: Option<&'a Journal>,
}

/// All cards of an index in an order. Equal ones ascend by code.
#[derive(Debug)]
pub(super) struct Order(Box<[CardId]>);

impl Order {
    /// Sorts the cards of an index.
    pub(super) fn of(index: &Index, sort: Sort, context: Context<'_>) -> Self {
        let is_down = sort.direction == Direction::Descending;
        let by_number = |keys: Vec<u64>| numeric(index, keys, is_down);
        let cards = || index.blocks.iter().flat_map(|block| &block.cards);
        Self(match sort.column {
            Column::Code => by_code(index, is_down),
            Column::Name => by_name(index, is_down),
            Column::State => by_group(index, Group::State, is_down),
            Column::Orderable => by_group(index, Group::Orderable, is_down),
            Column::PayoutType => by_group(index, Group::PayoutType, is_down),
            Column::Currency => by_group(index, Group::Currency, is_down),
            Column::Amounts => by_number(cards().map(|card| card.lowest_amount).collect()),
            Column::Discount => by_number(discounts(index, context.seen)),
            Column::Countries => by_number(counts(index, Group::Country)),
            Column::Categories => by_number(counts(index, Group::Category)),
            Column::Changed => by_number(last_changes(index, context.journal)),
        })
    }

    /// Returns the ids, in order.
    pub(super) fn ids(&self) -> &[CardId] {
        &self.0
    }

    /// Returns the size in memory, in bytes.
    pub(super) fn size_bytes(&self) -> usize {
        size_of_val(&*self.0)
    }
}

/// Returns the ids of all cards, ascending by code.
fn all(index: &Index) -> impl Iterator<Item = CardId> {
    let of_block =
        |(at, count): (usize, usize)| (0..count).map(move |place| CardId::new(at, place));
    let counts = index.blocks.iter().map(|block| block.cards.len());
    counts.enumerate().flat_map(of_block)
}

fn by_code(index: &Index, is_down: bool) -> Box<[CardId]> {
    let mut ids: Vec<CardId> = all(index).collect();
    if is_down {
        ids.reverse();
    }
    ids.into()
}

/// Sorts by a number of each card, given in the order of codes.
fn numeric(index: &Index, keys: Vec<u64>, is_down: bool) -> Box<[CardId]> {
    let direct = |key: u64| if is_down { u64::MAX - key } else { key };
    let keyed = keys.into_iter().map(direct).zip(all(index));
    let mut keyed: Vec<(u64, CardId)> = keyed.collect();
    keyed.sort_unstable();
    keyed.into_iter().map(|(_, id)| id).collect()
}

/// Sorts by the value of a group of which each card has one, in the values' order: the members of each value are there already.
fn by_group(index: &Index, group: Group, is_down: bool) -> Box<[CardId]> {
    let names = index.values.names(group).iter();
    let mut columns: Vec<_> = names.zip(index.columns(group)).collect();
    columns.sort_unstable_by_key(|(name, _)| *name);
    if is_down {
        columns.reverse();
    }
    let members = columns.into_iter().flat_map(|(_, column)| column);
    let ids = members.flat_map(|(at, members)| members.iter().map(|place| CardId::new(*at, place)));
    ids.collect()
}

/// Number of values of a group that each card has.
fn counts(index: &Index, group: Group) -> Vec<u64> {
    let lengths = index.blocks.iter().map(|block| block.cards.len());
    let mut counts: Vec<Vec<u64>> = lengths.map(|length| vec![0; length]).collect();
    for (at, members) in index.columns(group).iter().flatten() {
        members.iter().for_each(|place| counts[*at][place] += 1);
    }
    counts.concat()
}

/// Discount of each card, as it is shown, in millionths and raised by one; zero if it isn't known.
fn discounts(index: &Index, seen: Option<&Seen>) -> Vec<u64> {
    let mut own = seen.map(Seen::own_discounts);
    let mut all = Vec::new();
    for (at, block) in index.blocks.iter().enumerate() {
        let own = own.as_mut().map_or(&[][..], |own| own.of_block(at));
        let shown = block.cards.iter().enumerate().map(|(place, card)| {
            let own = own.get(place).copied().flatten();
            let shown = own.or(card.discount);
            shown.map_or(0, |shown| shown.millionths() + 1)
        });
        all.extend(shown);
    }
    all
}

/// Number of the last revision that changed each card's product; zero if it isn't recorded.
fn last_changes(index: &Index, journal: Option<&Journal>) -> Vec<u64> {
    let mut changes = journal.map(Journal::last_changes);
    let mut last = |code: &str| changes.as_mut()?.find(code);
    let cards = index.blocks.iter().flat_map(|block| &block.cards);
    cards
        .map(|card| last(&card.code).map_or(0, |change| change.revision))
        .collect()
}

/// Bytes of a name that are compared at once, in a number with the card's id in its lowest bits.
const PART_BYTES: usize = 12;
const ID_BITS: u32 = 32;

/// Sorts by names in lower case, by code points. A million take two cores less than 100 ms.
fn by_name(index: &Index, is_down: bool) -> Box<[CardId]> {
    let ids: Vec<CardId> = all(index).collect();
    let keys = |ids: &[CardId]| -> Vec<u128> {
        let keys = ids.iter().map(|id| name_key(index, *id, 0, is_down));
        keys.collect()
    };
    let (low, high) = ids.split_at(ids.len() / 2);
    let (low, high) = join(|| keys(low), || keys(high));
    let mut keys = [low, high].concat();
    // Halves that have no first part of a name in common can be sorted independently.
    let boundary = match keys.len() / 2 {
        0 => 0,
        middle => {
            let (_, median, _) = keys.select_nth_unstable(middle);
            let part = *median >> ID_BITS << ID_BITS;
            let boundary = keys.iter().filter(|key| **key < part).count();
            keys.select_nth_unstable(boundary);
            boundary
        }
    };
    let (low, high) = keys.split_at_mut(boundary);
    let sort = |keys| sort_names(index, keys, 0, is_down);
    join(|| sort(low), || sort(high));
    keys.into_iter().map(id_of).collect()
}

/// Returns the number by which a card sorts among those whose names agree before `depth`.
fn name_key(index: &Index, id: CardId, depth: usize, is_down: bool) -> u128 {
    let name = index.lower_name(id).as_bytes().get(depth..);
    let mut bytes = [0; PART_BYTES + 4];
    let of = name.unwrap_or_default().iter().take(PART_BYTES);
    bytes.iter_mut().zip(of).for_each(|(byte, of)| *byte = *of);
    (u128::from_be_bytes(bytes) ^ inverted(is_down)) | u128::from(id.0)
}

/// Returns the bits of a name's part if they are inverted, in order to sort downwards.
fn inverted(is_down: bool) -> u128 {
    if is_down { u128::MAX << ID_BITS } else { 0 }
}

fn id_of(key: u128) -> CardId {
    CardId((key & u128::from(u32::MAX)) as u32)
}

/// Sorts the keys of cards whose names agree before `depth`, and those with the same part of the name by the next part.
fn sort_names(index: &Index, keys: &mut [u128], depth: usize, is_down: bool) {
    keys.sort_unstable();
    let next = depth + PART_BYTES;
    for run in keys.chunk_by_mut(|left, right| left >> ID_BITS == right >> ID_BITS) {
        // The last byte of a part is zero if the name ends there.
        let has_more = (run[0] ^ inverted(is_down)) >> ID_BITS & 0xff != 0;
        if run.len() > 1 && has_more {
            run.iter_mut()
                .for_each(|key| *key = name_key(index, id_of(*key), next, is_down));
            sort_names(index, run, next, is_down);
        }
    }
}

/// Runs both on two cores.
fn join<A: Send, B>(left: impl FnOnce() -> A + Send, right: impl FnOnce() -> B) -> (A, B) {
    std::thread::scope(|scope| {
        let left = scope.spawn(left);
        let right = right();
        let left = left.join();
        (left.unwrap_or_else(|panic| resume_unwind(panic)), right)
    })
}
