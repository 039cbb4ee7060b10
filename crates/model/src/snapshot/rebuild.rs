//! Building the blocks of changed products, on several threads if there are many.

use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{Builder, scope};

use super::block::{Block, Malformed};
use super::build::{BlockBuilder, Entry};
use super::change::NewProduct;
use crate::code::ProductCode;

/// Limits of the number of threads that rebuild blocks.
#[derive(Debug, Clone, Copy)]
pub struct RebuildThreads {
    /// Maximum number of threads, with the caller's.
    pub max: usize,
    /// Minimum number of blocks with changes for each thread. The caller's thread rebuilds fewer than twice as many alone.
    pub min_blocks: usize,
}

impl RebuildThreads {
    /// The caller's thread only.
    pub const NONE: Self = Self {
        max: 1,
        min_blocks: 1,
    };

    fn count(self, blocks: usize) -> usize {
        let wanted = blocks / self.min_blocks.max(1);
        wanted.min(self.max).max(1)
    }
}

/// Neighbouring products of a block that is being rebuilt.
pub(super) enum Piece<'c> {
    /// Unchanged products of a block.
    Kept(&'c Block, Range<usize>),
    /// A new or changed product.
    New(&'c ProductCode, &'c NewProduct),
}

/// Returns the number of products in pieces.
pub(super) fn count(pieces: &[Piece<'_>]) -> usize {
    let count = |piece: &Piece<'_>| match piece {
        Piece::Kept(_, slots) => slots.len(),
        Piece::New(..) => 1,
    };
    pieces.iter().map(count).sum()
}

/// Builds the blocks of each group of pieces, in order.
///
/// # Errors
///
/// If a product doesn't fit into a block.
pub(super) fn rebuild(
    groups: &[&[Piece<'_>]],
    threads: RebuildThreads,
    between: impl FnMut() + Clone + Send,
) -> Result<Vec<Vec<Block>>, Malformed> {
    // Each thread takes the next group, since a thread that shares its core with requests gets ahead slowly.
    let count = threads.count(groups.len());
    let queue = Queue {
        groups,
        next: AtomicUsize::new(0),
    };
    let mut numbered = scope(|scope| {
        let start = |_| {
            let (queue, writer) = (&queue, BlockWriter::new(between.clone()));
            let thread = Builder::new().name("rebuild-blocks".to_owned());
            // If the system refuses a thread, the others do its work.
            thread.spawn_scoped(scope, move || queue.build(writer)).ok()
        };
        let helpers: Vec<_> = (1..count).filter_map(start).collect();
        let mut numbered = queue.build(BlockWriter::new(between))?;
        for helper in helpers {
            let built = helper.join().unwrap_or_else(|panic| resume_unwind(panic));
            numbered.extend(built?);
        }
        Ok(numbered)
    })?;
    numbered.sort_unstable_by_key(|(number, _)| *number);
    Ok(numbered.into_iter().map(|(_, blocks)| blocks).collect())
}

/// Groups of pieces that wait for a thread.
struct Queue<'q> {
    groups: &'q [&'q [Piece<'q>]],
    next: AtomicUsize,
}

impl Queue<'_> {
    /// Builds blocks until no group is left; returns them with the number of their group.
    fn build(
        &self,
        mut writer: BlockWriter<impl FnMut()>,
    ) -> Result<Vec<(usize, Vec<Block>)>, Malformed> {
        let mut numbered = Vec::new();
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(pieces) = self.groups.get(number) else {
                return Ok(numbered);
            };
            numbered.push((number, writer.build(pieces)?));
        }
    }
}

/// Writer of the blocks of a group.
struct BlockWriter<F> {
    builder: BlockBuilder,
    blocks: Vec<Block>,
    between: F,
}

impl<F: FnMut()> BlockWriter<F> {
    fn new(between: F) -> Self {
        Self {
            builder: BlockBuilder::default(),
            blocks: Vec::new(),
            between,
        }
    }

    /// Builds blocks of about the same size from all pieces.
    fn build(&mut self, pieces: &[Piece<'_>]) -> Result<Vec<Block>, Malformed> {
        let count = count(pieces);
        let most = count.div_ceil(count.div_ceil(Block::CAPACITY).max(1));
        for piece in pieces {
            match piece {
                Piece::Kept(block, slots) => {
                    let mut slots = slots.clone();
                    while !slots.is_empty() {
                        let end = slots.end.min(slots.start + most - self.builder.len());
                        self.builder
                            .push_from(block, slots.start..end)
                            .map_err(|_| Malformed)?;
                        slots.start = end;
                        self.finish_full(most)?;
                    }
                }
                Piece::New(code, product) => {
                    let NewProduct {
                        bytes,
                        content,
                        discount,
                        facets,
                        words,
                    } = product;
                    let entry = Entry {
                        code,
                        bytes,
                        content: *content,
                        discount: *discount,
                        facets,
                        words,
                    };
                    self.builder.push(&entry).map_err(|_| Malformed)?;
                    self.finish_full(most)?;
                }
            }
        }
        self.finish_full(1)?;
        Ok(std::mem::take(&mut self.blocks))
    }

    fn finish_full(&mut self, most: usize) -> Result<(), Malformed> {
        if self.builder.len() >= most || self.builder.is_full() {
            self.blocks.push(self.builder.finish()?);
            (self.between)();
        }
        Ok(())
    }
}
