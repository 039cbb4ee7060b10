//! The index of cards: made when the grid is first asked for, then again for each snapshot that is asked for, from what
//! the one before knows of the blocks that both share.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use quick_cache::Weighter;
use quick_cache::sync::Cache;
use sha2::{Digest as _, Sha256};
use vitrine_model::snapshot::{BitSet256, Block, Snapshot};

use super::block::CardBlock;
use super::group::Group;
use super::query::Query;
use super::selection::{Counts, Selection};
use super::values::Values;

/// Maximum size of an index's selections, and of its counts, in bytes.
const SELECTION_BYTES: u64 = 16 << 20;
const COUNTS_BYTES: u64 = 4 << 20;

/// Digest that identifies a block's bytes: an index must not keep them alive.
type BlockDigest = [u8; 32];

/// The cards that have a filter value: their positions among the blocks that have such cards. Counting by columns
/// reads memory from one end to the other.
pub(super) type Column = Vec<(usize, BitSet256)>;

/// The cards of one snapshot.
#[derive(Debug)]
pub(super) struct Index {
    pub(super) blocks: Vec<Arc<CardBlock>>,
    pub(super) values: Arc<Values>,
    /// By group and number of a filter value: which cards of which blocks have it.
    columns: [Vec<Column>; Group::ALL.len()],
    digests: Vec<BlockDigest>,
    /// Recent selections, by the address of the first page: a reader turns pages.
    selections: Cache<String, Arc<Selection>, BySize>,
    /// Numbers of products that a group's values leave, by the other values picked: a reader tries one value
    /// after the other.
    counts: Cache<(Group, String), Counts, BySize>,
}

#[derive(Debug, Clone)]
struct BySize;

impl Weighter<String, Arc<Selection>> for BySize {
    fn weight(&self, address: &String, selection: &Arc<Selection>) -> u64 {
        (address.len() + selection.size_bytes() + 128) as u64
    }
}

impl Weighter<(Group, String), Counts> for BySize {
    fn weight(&self, (_, address): &(Group, String), counts: &Counts) -> u64 {
        (address.len() + size_of_val::<[usize]>(counts) + 128) as u64
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
        let digests: Vec<BlockDigest> = snapshot.blocks().iter().map(digest).collect();
        let block = |(block, digest): (&Block, &BlockDigest)| match known.get(digest) {
            Some(known) => Arc::clone(known),
            None => Arc::new(CardBlock::read(block, |group, name| {
                values.number(group, name)
            })),
        };
        let blocks: Vec<Arc<CardBlock>> =
            snapshot.blocks().iter().zip(&digests).map(block).collect();
        let mut columns = Group::ALL.map(|group| vec![Column::new(); values.names(group).len()]);
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
        }
    }

    /// Returns the cards that have each value of a group, by the values' numbers.
    pub(super) fn columns(&self, group: Group) -> &[Column] {
        &self.columns[group as usize]
    }

    /// Returns the selection of a query, on any page.
    pub(super) fn select(&self, query: &Query) -> Arc<Selection> {
        let address = query.first_page().address();
        if let Some(known) = self.selections.get(&address) {
            return known;
        }
        let selection = Arc::new(Selection::of(self, query, |group, count| {
            let beside = (group, query.without_group(group).address());
            self.counts.get(&beside).unwrap_or_else(|| {
                let counts = count();
                self.counts.insert(beside, Arc::clone(&counts));
                counts
            })
        }));
        self.selections.insert(address, Arc::clone(&selection));
        selection
    }
}

/// Returns the digest of a block's directory. It determines the products: it has their codes and the hashes
/// of their bytes.
fn digest(block: &Block) -> BlockDigest {
    Sha256::digest(block.directory()).into()
}

/// The index of the snapshot that was last asked for.
#[derive(Debug, Default)]
pub(super) struct Indexes(Mutex<Option<(Weak<Snapshot>, Arc<Index>)>>);

impl Indexes {
    /// The index of a snapshot. The first takes a while, during which others wait for it.
    pub(super) fn of(&self, snapshot: &Arc<Snapshot>) -> Arc<Index> {
        // A panic in a build leaves the one before, which is sound.
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
