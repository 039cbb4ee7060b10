//! Index of cards: built when the grid is first requested, and for each later snapshot from the blocks shared with the
//! previous one and the cards of products that haven't changed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use quick_cache::Weighter;
use quick_cache::sync::Cache;
use sha2::{Digest as _, Sha256};
use vitrine_model::changes::StateId;
use vitrine_model::snapshot::{BitSet256, Block, Snapshot};

use super::assortments::Seen;
use super::block::{CardBlock, PreviousCards};
use super::card::Card;
use super::column::{Column, Sort};
use super::group::Group;
use super::order::{CardId, Context, Order};
use super::query::Query;
use super::selection::{Counts, Selection};
use super::values::Values;

/// Maximum size of an index's cached selections, and of its cached counts, in bytes.
const SELECTION_BYTES: u64 = 16 << 20;
const COUNTS_BYTES: u64 = 4 << 20;

/// Maximum size of an index's orders, in bytes: eight of a million products.
const ORDER_BYTES: u64 = 32 << 20;

/// Digest of a block. The index must not keep a block's bytes alive.
type BlockDigest = [u8; 32];

/// Cards with a filter value, by block; blocks without such cards are left out. Counting by columns reads memory
/// sequentially.
pub(super) type ValueColumn = Vec<(usize, BitSet256)>;

/// Cards of one snapshot.
#[derive(Debug)]
pub(super) struct Index {
    pub(super) blocks: Vec<Arc<CardBlock>>,
    pub(super) values: Arc<Values>,
    /// Columns by group and number of the filter value.
    columns: [Vec<ValueColumn>; Group::ALL.len()],
    digests: Vec<BlockDigest>,
    /// Recent selections, for turning pages.
    selections: Cache<SelectionKey, Arc<Selection>, BySize>,
    /// Counts of a group's values, by the other values picked, for trying one value after the other.
    counts: Cache<(Group, SelectionKey), Counts, BySize>,
    /// Orders that were asked for.
    orders: Cache<OrderKey, Arc<Order>, BySize>,
}

/// An order; of one by discounts, the version of the assortment, and of one by changes, the newest revision.
type OrderKey = (Sort, StateId, u64);

/// Version of the assortment, whose edits change what is selected (zero for everything), and URL of the first page.
type SelectionKey = (StateId, String);

#[derive(Debug, Clone)]
struct BySize;

impl Weighter<SelectionKey, Arc<Selection>> for BySize {
    fn weight(&self, (_, address): &SelectionKey, selection: &Arc<Selection>) -> u64 {
        (address.len() + selection.size_bytes() + 128) as u64
    }
}

impl Weighter<(Group, SelectionKey), Counts> for BySize {
    fn weight(&self, (_, (_, address)): &(Group, SelectionKey), counts: &Counts) -> u64 {
        (address.len() + size_of_val::<[usize]>(counts) + 128) as u64
    }
}

impl Weighter<OrderKey, Arc<Order>> for BySize {
    fn weight(&self, _: &OrderKey, order: &Arc<Order>) -> u64 {
        order.size_bytes() as u64 + 64
    }
}

impl Index {
    fn build(snapshot: &Snapshot, before: Option<&Self>) -> Self {
        let known: HashMap<&BlockDigest, &Arc<CardBlock>> = before
            .map(|before| before.digests.iter().zip(&before.blocks).collect())
            .unwrap_or_default();
        let mut values = before
            .map(|before| Values::clone(&before.values))
            .unwrap_or_default();
        let blocks = before.map_or(&[][..], |before| &before.blocks);
        let mut previous = PreviousCards::of(blocks);
        let digests: Vec<BlockDigest> = snapshot.blocks().iter().map(digest).collect();
        let block = |(block, digest): (&Block, &BlockDigest)| match known.get(digest) {
            Some(known) => Arc::clone(known),
            None => Arc::new(CardBlock::of(block, &mut previous, |group, name| {
                values.number(group, name)
            })),
        };
        let blocks: Vec<Arc<CardBlock>> =
            snapshot.blocks().iter().zip(&digests).map(block).collect();
        let mut columns =
            Group::ALL.map(|group| vec![ValueColumn::new(); values.names(group).len()]);
        for (at, block) in blocks.iter().enumerate() {
            for (value, members) in &block.values {
                columns[value.group() as usize][value.number()].push((at, *members));
            }
        }
        Self {
            blocks,
            columns,
            values: Arc::new(values),
            digests,
            selections: Cache::with_weighter(256, SELECTION_BYTES, BySize),
            counts: Cache::with_weighter(1024, COUNTS_BYTES, BySize),
            orders: Cache::with_weighter(16, ORDER_BYTES, BySize),
        }
    }

    /// Returns the columns of a group, by the values' numbers.
    pub(super) fn columns(&self, group: Group) -> &[ValueColumn] {
        &self.columns[group as usize]
    }

    /// Returns the selection of a query, the same for all its pages, among the products that an assortment shows.
    pub(super) fn select(&self, query: &Query, seen: Option<&Seen>) -> Arc<Selection> {
        let version = seen.map_or_else(StateId::default, Seen::version);
        let query = &query.selecting();
        let key = (version, query.address());
        if let Some(known) = self.selections.get(&key) {
            return known;
        }
        let all = || self.blocks.iter().map(|block| block.all()).collect();
        let visible: Vec<BitSet256> = seen.map_or_else(all, Seen::members);
        let selection = Arc::new(Selection::of(self, query, &visible, |group, count| {
            let beside = (group, (version, query.without_group(group).address()));
            self.counts.get(&beside).unwrap_or_else(|| {
                let counts = count();
                self.counts.insert(beside, Arc::clone(&counts));
                counts
            })
        }));
        self.selections.insert(key, Arc::clone(&selection));
        selection
    }
}

impl Index {
    /// Returns the card with this id, which is one of this index.
    pub(super) fn card(&self, id: CardId) -> Option<&Card> {
        self.blocks.get(id.block())?.cards.get(id.place())
    }

    /// Returns the name of a card in lower case.
    pub(super) fn lower_name(&self, id: CardId) -> &str {
        let block = self.blocks.get(id.block());
        block.map_or("", |block| block.lower_name(id.place()))
    }

    /// Returns the cards in an order; `None` if it is that of the index, by code.
    pub(super) fn order(&self, sort: Sort, context: Context<'_>) -> Option<Arc<Order>> {
        if sort == Sort::default() {
            return None;
        }
        let version = match sort.column {
            Column::Discount => context.seen.map_or_else(StateId::default, Seen::version),
            _ => StateId::default(),
        };
        let revision = match sort.column {
            Column::Changed => context.journal.map_or(0, |journal| journal.newest().0),
            _ => 0,
        };
        let key = (sort, version, revision);
        if let Some(known) = self.orders.get(&key) {
            return Some(known);
        }
        let order = Arc::new(Order::of(self, sort, context));
        self.orders.insert(key, Arc::clone(&order));
        Some(order)
    }
}

/// Returns the digest of a block's directory, which has the codes of its products and the hashes of their bytes.
fn digest(block: &Block) -> BlockDigest {
    Sha256::digest(block.directory()).into()
}

/// Index of the snapshot that was last requested.
#[derive(Debug, Default)]
pub(super) struct Indexes(Mutex<Option<(Weak<Snapshot>, Arc<Index>)>>);

impl Indexes {
    /// Returns the index of a snapshot. The first request builds it, and others wait.
    pub(super) fn of(&self, snapshot: &Arc<Snapshot>) -> Arc<Index> {
        // A panic during a build leaves the previous index, which is valid.
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, index)) = &*last
            && Weak::as_ptr(of) == Arc::as_ptr(snapshot)
        {
            return Arc::clone(index);
        }
        let before = last.as_ref().map(|(_, index)| &**index);
        let index = Arc::new(Index::build(snapshot, before));
        *last = Some((Arc::downgrade(snapshot), Arc::clone(&index)));
        index
    }
}
