//! Orders of an index's cards by a column, made when they are first asked for and kept with the index.

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
            Column::Image | Column::Code => by_code(index, is_down),
            Column::Name => by_name(index, is_down),
            Column::State => by_group(index, Group::State, is_down),
            Column::Orderable => by_group(index, Group::Orderable, is_down),
            Column::PayoutType => by_group(index, Group::PayoutType, is_down),
            Column::Currency => by_group(index, Group::Currency, is_down),
            Column::Amounts => by_number(cards().map(|card| card.lowest_amount).collect()),
            Column::Discount => by_number(discounts(index, context.seen)),
            Column::Countries => by_number(
                cards()
                    .map(|card| card.count(Group::Country) as u64)
                    .collect(),
            ),
            Column::Categories => by_number(
                cards()
                    .map(|card| card.count(Group::Category) as u64)
                    .collect(),
            ),
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

/// Discount of each card, as it is shown, in millionths and raised by one; zero if it isn't known.
fn discounts(index: &Index, seen: Option<&Seen>) -> Vec<u64> {
    let mut own = seen.map(Seen::own_discounts);
    let mut all = Vec::new();
    for (at, block) in index.blocks.iter().enumerate() {
        let own = own.as_mut().map_or(&[][..], |own| own.of_block(at));
        let shown = block.cards.iter().enumerate().map(|(place, card)| {
            let own = own.get(place).copied().flatten();
            let shown = own.or(card.discount);
            shown.map_or(0, |shown| u64::from(shown.millionths()) + 1)
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

/// Bytes of a name that are compared at once.
const PART: usize = 16;

/// Sorts by names in lower case, by code points.
fn by_name(index: &Index, is_down: bool) -> Box<[CardId]> {
    let mut ids: Vec<CardId> = all(index).collect();
    sort_by_part(index, &mut ids, 0, is_down);
    ids.into()
}

/// Sorts cards whose names agree in the first bytes by the next ones, and those that agree in these by the ones after. Each part
/// is read once, so that comparing doesn't go to the names again.
fn sort_by_part(index: &Index, ids: &mut [CardId], depth: usize, is_down: bool) {
    let part = |id: CardId| {
        let name = index.lower_name(id).as_bytes().get(depth..);
        let mut bytes = [0; PART];
        let name = name.unwrap_or_default();
        bytes
            .iter_mut()
            .zip(name)
            .for_each(|(byte, of)| *byte = *of);
        (u128::from_be_bytes(bytes), name.len() > PART)
    };
    let direct = |(key, has_more): (u128, bool)| match is_down {
        true => (u128::MAX - key, has_more),
        false => (key, has_more),
    };
    let mut keyed: Vec<((u128, bool), CardId)> =
        ids.iter().map(|id| (direct(part(*id)), *id)).collect();
    keyed.sort_unstable_by_key(|(key, id)| (key.0, *id));
    ids.iter_mut()
        .zip(&keyed)
        .for_each(|(id, (_, sorted))| *id = *sorted);
    let mut start = 0;
    for run in keyed.chunk_by(|(left, _), (right, _)| left.0 == right.0) {
        let end = start + run.len();
        if run.len() > 1 && run.iter().any(|((_, has_more), _)| *has_more) {
            sort_by_part(index, &mut ids[start..end], depth + PART, is_down);
        }
        start = end;
    }
}
