//! The index of cards: made when the grid is first asked for, then again for each snapshot that is asked for, from what
//! the one before knows of the blocks that both share.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use quick_cache::Weighter;
use quick_cache::sync::Cache;
use sha2::{Digest as _, Sha256};
use vitrine_model::snapshot::{Block, Snapshot};

use super::block::CardBlock;
use super::group::Group;
use super::query::Query;
use super::selection::Selection;

/// How much the selections of an index may take, in bytes.
const SELECTION_BYTES: u64 = 16 << 20;

/// What a block's bytes are known by: an index must not keep them alive.
type BlockDigest = [u8; 32];

/// The filter values that were ever seen, by number.
#[derive(Debug, Clone, Default)]
pub(super) struct Values {
    numbers: HashMap<Group, HashMap<Box<str>, u32>>,
    names: Vec<(Group, Box<str>)>,
}

impl Values {
    fn number(&mut self, group: Group, name: &str) -> u32 {
        if let Some(number) = self.find(group, name) {
            return number;
        }
        let number = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        self.names.push((group, name.into()));
        self.numbers
            .entry(group)
            .or_default()
            .insert(name.into(), number);
        number
    }

    /// The number of a value, if it was ever seen.
    pub(super) fn find(&self, group: Group, name: &str) -> Option<u32> {
        self.numbers.get(&group)?.get(name).copied()
    }

    /// The group and name of a number.
    pub(super) fn get(&self, number: u32) -> Option<(Group, &str)> {
        let (group, name) = self.names.get(number as usize)?;
        Some((*group, name))
    }

    /// All values, by number.
    pub(super) fn all(&self) -> impl ExactSizeIterator<Item = (Group, &str)> {
        self.names.iter().map(|(group, name)| (*group, &**name))
    }
}

/// The cards of one snapshot.
#[derive(Debug)]
pub(super) struct Index {
    pub(super) blocks: Vec<Arc<CardBlock>>,
    pub(super) values: Arc<Values>,
    digests: Vec<BlockDigest>,
    /// What was selected of it lately, by the address of the first page: a reader turns pages.
    selections: Cache<String, Arc<Selection>, BySize>,
}

#[derive(Debug, Clone)]
struct BySize;

impl Weighter<String, Arc<Selection>> for BySize {
    fn weight(&self, address: &String, selection: &Arc<Selection>) -> u64 {
        (address.len() + selection.size_bytes() + 128) as u64
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
        let blocks = snapshot.blocks().iter().zip(&digests).map(block).collect();
        Self {
            blocks,
            values: Arc::new(values),
            digests,
            selections: Cache::with_weighter(256, SELECTION_BYTES, BySize),
        }
    }

    /// What a query selects, wherever its page lies.
    pub(super) fn select(&self, query: &Query) -> Arc<Selection> {
        let address = query.first_page().address();
        if let Some(known) = self.selections.get(&address) {
            return known;
        }
        let selection = Arc::new(Selection::of(self, query));
        self.selections.insert(address, Arc::clone(&selection));
        selection
    }
}

/// What is in a block's directory determines its products: it has their codes and the hashes of their bytes.
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
