//! Threads that make blocks: one thread reads products and fills batches; others insert public URLs into a batch's
//! products, hash them and make a block.

use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{JoinHandle, available_parallelism};

use vitrine_ingest::view::TextAddresses;
use vitrine_model::content::TextDigest;
use vitrine_model::snapshot::{Block, BlockBuilder, Entry, Facet, PlacedDiscount};
use vitrine_store::StoreError;
use vitrine_store::record::StoredDigest;

use crate::panic_point::PanicPoint;

/// Error of building a snapshot, returned through the store's visitor.
pub(super) type BuildError = Box<dyn std::error::Error + Send + Sync>;

/// Maximum number of threads that make blocks.
const MAX_THREADS: usize = 4;

/// Length of the queue of batches, for each thread.
const QUEUED_BATCHES: usize = 4;

/// Size from which a batch is full, in bytes, however few products it has.
const BATCH_BYTES: usize = 4 << 20;

/// Products that become one block.
#[derive(Default)]
pub(super) struct Batch {
    /// Codes and documents, concatenated.
    text: String,
    facets: Vec<Facet>,
    products: Vec<BatchProduct>,
}

struct BatchProduct {
    code: Range<usize>,
    document: Range<usize>,
    content: Option<Range<usize>>,
    discount: PlacedDiscount,
    facets: Range<usize>,
    taken_down: Vec<TextDigest>,
    digest: StoredDigest,
}

/// Range of a product's content resources in its document, and its discount.
pub(super) type Places = (Option<Range<usize>>, PlacedDiscount);

impl Batch {
    /// Appends a product: see [`CatalogItem::Product`](vitrine_store::record::CatalogItem::Product).
    pub(super) fn push(
        &mut self,
        code: &str,
        document: &str,
        (content, discount): Places,
        facets: &[Facet],
        taken_down: &[TextDigest],
        digest: StoredDigest,
    ) {
        let code_start = self.text.len();
        self.text.push_str(code);
        let document_start = self.text.len();
        self.text.push_str(document);
        let facets_start = self.facets.len();
        self.facets.extend_from_slice(facets);
        self.products.push(BatchProduct {
            code: code_start..document_start,
            document: document_start..self.text.len(),
            content,
            discount,
            facets: facets_start..self.facets.len(),
            taken_down: taken_down.to_vec(),
            digest,
        });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.products.is_empty()
    }

    /// Returns whether the batch must become a block before another product is appended.
    pub(super) fn is_full(&self) -> bool {
        self.products.len() == Block::CAPACITY || self.text.len() >= BATCH_BYTES
    }

    /// Takes the batch, and leaves an empty one with as much capacity.
    pub(super) fn take(&mut self) -> Self {
        let next = Self {
            text: String::with_capacity(self.text.len() + self.text.len() / 8),
            facets: Vec::with_capacity(self.facets.len()),
            products: Vec::with_capacity(self.products.len()),
        };
        std::mem::replace(self, next)
    }

    /// Makes a block of the undamaged products. `builder` and `rendered` are reused; damage goes to `made`.
    fn block(
        self,
        addresses: &TextAddresses,
        builder: &mut BlockBuilder,
        rendered: &mut Vec<u8>,
        made: &mut Made,
    ) -> Result<Option<Block>, BuildError> {
        for product in self.products {
            rendered.clear();
            let (code, document) = (&self.text[product.code], &self.text[product.document]);
            if !product
                .digest
                .matches(code, document, product.content.as_ref())
            {
                made.damaged.push(code.to_owned());
                continue;
            }
            let content = product.content.as_ref();
            let own_texts = TextAddresses::own_texts(document, content, &product.taken_down);
            made.own_texts.extend(own_texts);
            let content =
                addresses.publish(document, product.content, &product.taken_down, rendered);
            builder.push(&Entry {
                code: &code.parse()?,
                bytes: rendered,
                content: content.map(|content| (content.start, content.end)),
                // The texts, which publishing replaces, lie behind it.
                discount: Some(product.discount),
                facets: &self.facets[product.facets],
            })?;
        }
        let is_empty = builder.is_empty();
        Ok((!is_empty).then(|| builder.finish()).transpose()?)
    }
}

/// Results of batches.
#[derive(Default)]
pub(super) struct Made {
    /// Blocks, each with the number of its batch.
    numbered: Vec<(usize, Block)>,
    /// Codes of products that don't match their digest.
    pub(super) damaged: Vec<String>,
    /// Texts that undamaged products name and that are served by this server.
    pub(super) own_texts: HashSet<TextDigest>,
}

impl Made {
    /// Takes the blocks, in order.
    pub(super) fn take_blocks(&mut self) -> Vec<Block> {
        let mut numbered = std::mem::take(&mut self.numbered);
        numbered.sort_unstable_by_key(|(number, _)| *number);
        numbered.into_iter().map(|(_, block)| block).collect()
    }
}

/// Pool of threads that make blocks.
pub(super) struct BlockMakers {
    batches: SyncSender<(usize, Batch)>,
    sent: usize,
    threads: Vec<JoinHandle<Result<Made, BuildError>>>,
}

impl BlockMakers {
    /// Starts the threads: one for each core, up to a maximum.
    ///
    /// # Errors
    ///
    /// If no thread can be started.
    pub(super) fn start(addresses: &TextAddresses) -> Result<Self, StoreError> {
        let count = available_parallelism()
            .map_or(1, NonZeroUsize::get)
            .min(MAX_THREADS);
        let (batches, queue) = sync_channel(count * QUEUED_BATCHES);
        let queue = Arc::new(Mutex::new(queue));
        let thread = |_| {
            let (queue, addresses) = (Arc::clone(&queue), addresses.clone());
            std::thread::Builder::new()
                .name("make-blocks".to_owned())
                .spawn(move || make_blocks(&queue, &addresses))
                .map_err(|error| StoreError::Visitor(error.into()))
        };
        Ok(Self {
            batches,
            sent: 0,
            threads: (0..count).map(thread).collect::<Result<_, _>>()?,
        })
    }

    /// Queues a batch. It has at least one product, and its products follow those of the batch before.
    pub(super) fn make_block(&mut self, batch: Batch) {
        // If all threads have ended, `finish` returns the error.
        let _ = self.batches.send((self.sent, batch));
        self.sent += 1;
    }

    /// Returns the results of all batches.
    ///
    /// # Errors
    ///
    /// If an undamaged product can't be part of a block.
    pub(super) fn finish(self) -> Result<Made, BuildError> {
        drop(self.batches);
        let mut all = Made::default();
        for thread in self.threads {
            let made = thread
                .join()
                .map_err(|_| "a thread that makes blocks panicked")??;
            all.numbered.extend(made.numbered);
            all.damaged.extend(made.damaged);
            all.own_texts.extend(made.own_texts);
        }
        Ok(all)
    }
}

fn make_blocks(
    queue: &Mutex<Receiver<(usize, Batch)>>,
    addresses: &TextAddresses,
) -> Result<Made, BuildError> {
    let mut made = Made::default();
    let (mut builder, mut rendered) = (BlockBuilder::default(), Vec::new());
    loop {
        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok((number, batch)) = next else {
            return Ok(made);
        };
        PanicPoint::MakeBlock.pass();
        let block = batch.block(addresses, &mut builder, &mut rendered, &mut made)?;
        made.numbered.extend(block.map(|block| (number, block)));
    }
}
