//! Making blocks of all products: each batch becomes a block.

use vitrine_ingest::view::TextAddresses;
use vitrine_model::snapshot::{Block, BlockBuilder};

use super::batches::{Batch, BuildError, Found, Worker, WorkerPool};

/// Maker of blocks, on one thread.
#[derive(Default)]
pub(super) struct BlockMaker {
    builder: BlockBuilder,
    rendered: Vec<u8>,
    /// Blocks, each with the number of its batch.
    numbered: Vec<(usize, Block)>,
    found: Found,
}

impl Worker for BlockMaker {
    const THREAD_NAME: &'static str = "make-blocks";

    fn work(
        &mut self,
        number: usize,
        batch: Batch,
        addresses: &TextAddresses,
    ) -> Result<(), BuildError> {
        let builder = &mut self.builder;
        batch.render(addresses, &mut self.rendered, &mut self.found, |product| {
            Ok(builder.push(product)?)
        })?;
        if !builder.is_empty() {
            self.numbered.push((number, builder.finish()?));
        }
        Ok(())
    }
}

impl WorkerPool<BlockMaker> {
    /// Returns the blocks of all batches, in order, and what was found in their products.
    ///
    /// # Errors
    ///
    /// If an undamaged product can't be part of a block.
    pub(super) fn finish_blocks(self) -> Result<(Vec<Block>, Found), BuildError> {
        let (mut numbered, mut found) = (Vec::new(), Found::default());
        for maker in self.finish()? {
            numbered.extend(maker.numbered);
            found.add(maker.found);
        }
        numbered.sort_unstable_by_key(|(number, _)| *number);
        let blocks = numbered.into_iter().map(|(_, block)| block).collect();
        Ok((blocks, found))
    }
}
