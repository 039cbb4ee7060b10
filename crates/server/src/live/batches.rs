//! Batches of products, for threads that render them: one thread reads products and fills batches, others make blocks of
//! all products, or changes of a snapshot.

use std::collections::{BTreeMap, HashSet};
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{JoinHandle, available_parallelism};

use vitrine_ingest::view::{TextAddresses, discount, facts, name, state};
use vitrine_model::code::ProductCode;
use vitrine_model::content::TextDigest;
use vitrine_model::search::words_of;
use vitrine_model::snapshot::{
    Block, BlockBuilder, Entry, Facet, FacetKind, FacetNumbers, NewProduct, PlacedDiscount,
};
use vitrine_store::record::{LiveProduct, StoredDigest};

use super::background::YieldBudget;
use crate::panic_point::PanicPoint;

/// Error of building a snapshot, returned through the store's visitor.
pub(super) type BuildError = Box<dyn std::error::Error + Send + Sync>;

/// Maximum number of threads that build a snapshot.
const MAX_THREADS: usize = 4;

/// Length of the queue of batches, for each thread.
const QUEUED_BATCHES: usize = 4;

/// Size from which a batch is full, in bytes, however few products it has.
const BATCH_BYTES: usize = 4 << 20;

/// Products that were read, as many as a block has at most.
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

impl Batch {
    /// Appends a product, with the numbers of its facets. Returns false if it is damaged.
    fn push(&mut self, product: LiveProduct<'_>, numbers: &mut FacetNumbers) -> bool {
        let (document, countries) = (product.document, product.countries);
        let facts = facts(
            document,
            product.is_orderable,
            countries,
            product.categories,
        );
        let discount = discount(document, product.discount_multiplier);
        let (Some(facts), Some(state), Some(discount)) = (facts, state(document), discount) else {
            return false;
        };
        let code_start = self.text.len();
        self.text.push_str(product.code);
        let document_start = self.text.len();
        self.text.push_str(document);
        let facets_start = self.facets.len();
        self.facets.extend(numbers.facets_of(&facts));
        let state = numbers.get_or_add(FacetKind::State, state);
        self.facets.push(state);
        self.products.push(BatchProduct {
            code: code_start..document_start,
            document: document_start..self.text.len(),
            content: product.content,
            discount,
            facets: facets_start..self.facets.len(),
            taken_down: product.taken_down.to_vec(),
            digest: product.digest,
        });
        true
    }

    /// Returns whether the batch must be taken before another product is appended.
    fn is_full(&self) -> bool {
        self.products.len() == Block::CAPACITY || self.text.len() >= BATCH_BYTES
    }

    /// Takes the batch, and leaves an empty one with as much capacity.
    fn take(&mut self) -> Self {
        let next = Self {
            text: String::with_capacity(self.text.len() + self.text.len() / 8),
            facets: Vec::with_capacity(self.facets.len()),
            products: Vec::with_capacity(self.products.len()),
        };
        std::mem::replace(self, next)
    }

    /// Inserts public URLs into the undamaged products, and visits them. `rendered` is reused.
    fn render(
        self,
        addresses: &TextAddresses,
        rendered: &mut Vec<u8>,
        found: &mut Found,
        mut visit: impl FnMut(&Entry<'_>) -> Result<(), BuildError>,
    ) -> Result<(), BuildError> {
        for product in self.products {
            let (code, document) = (&self.text[product.code], &self.text[product.document]);
            if !product
                .digest
                .matches(code, document, product.content.as_ref())
            {
                found.damaged.push(code.to_owned());
                continue;
            }
            let content = product.content.as_ref();
            let own_texts = TextAddresses::own_texts(document, content, &product.taken_down);
            found.own_texts.extend(own_texts);
            let (bytes, content) =
                addresses.publish(document, product.content, &product.taken_down, rendered);
            visit(&Entry {
                code: &code.parse()?,
                bytes,
                content: content.map(|content| (content.start, content.end)),
                // The texts, which publishing replaces, lie behind it.
                discount: Some(product.discount),
                facets: &self.facets[product.facets],
                words: &words_of(&name(document.as_bytes()), code),
            })?;
        }
        Ok(())
    }
}

/// Findings in products.
#[derive(Default)]
pub(super) struct Found {
    /// Codes of products that don't match their digest.
    pub(super) damaged: Vec<String>,
    /// Texts that undamaged products name and that are served by this server.
    pub(super) own_texts: HashSet<TextDigest>,
}

impl Found {
    fn add(&mut self, other: Self) {
        self.damaged.extend(other.damaged);
        self.own_texts.extend(other.own_texts);
    }
}

/// Work of a thread on batches, with its results.
pub(super) trait Worker: Default + Send + 'static {
    /// Name of the thread.
    const THREAD_NAME: &'static str;

    /// Works on the batch with this number.
    ///
    /// # Errors
    ///
    /// If an undamaged product is invalid.
    fn work(
        &mut self,
        number: usize,
        batch: Batch,
        addresses: &TextAddresses,
    ) -> Result<(), BuildError>;
}

/// Pool of threads that work on batches of the products that one thread reads.
pub(super) struct WorkerPool<W> {
    batch: Batch,
    batches: SyncSender<(usize, Batch)>,
    sent: usize,
    threads: Vec<JoinHandle<Result<W, BuildError>>>,
}

impl<W: Worker> WorkerPool<W> {
    /// Starts the threads.
    ///
    /// # Errors
    ///
    /// If a thread can't be started.
    pub(super) fn start(addresses: &TextAddresses) -> Result<Self, BuildError> {
        let count = thread_count();
        let (batches, queue) = sync_channel(count * QUEUED_BATCHES);
        let queue = Arc::new(Mutex::new(queue));
        let thread = |_| {
            let (queue, addresses) = (Arc::clone(&queue), addresses.clone());
            std::thread::Builder::new()
                .name(W::THREAD_NAME.to_owned())
                .spawn(move || work_until_end(&queue, &addresses))
        };
        Ok(Self {
            batch: Batch::default(),
            batches,
            sent: 0,
            threads: (0..count).map(thread).collect::<Result<_, _>>()?,
        })
    }

    /// Adds a product, with the numbers of its facets. Returns false if it is damaged.
    pub(super) fn push(&mut self, product: LiveProduct<'_>, numbers: &mut FacetNumbers) -> bool {
        let is_pushed = self.batch.push(product, numbers);
        if self.batch.is_full() {
            self.send();
        }
        is_pushed
    }

    fn send(&mut self) {
        let batch = self.batch.take();
        // If all threads have ended, `finish` returns the error.
        let _ = self.batches.send((self.sent, batch));
        self.sent += 1;
    }

    /// Returns the results of each thread.
    ///
    /// # Errors
    ///
    /// If an undamaged product is invalid.
    fn finish(mut self) -> Result<Vec<W>, BuildError> {
        if !self.batch.products.is_empty() {
            self.send();
        }
        drop(self.batches);
        let join = |thread: JoinHandle<Result<W, BuildError>>| {
            let panicked = |_| format!("a thread panicked: {}", W::THREAD_NAME);
            thread.join().map_err(panicked)?
        };
        self.threads.into_iter().map(join).collect()
    }
}

/// Returns the number of threads that build a snapshot: one for each core, up to a maximum.
pub(super) fn thread_count() -> usize {
    available_parallelism()
        .map_or(1, NonZeroUsize::get)
        .min(MAX_THREADS)
}

fn work_until_end<W: Worker>(
    queue: &Mutex<Receiver<(usize, Batch)>>,
    addresses: &TextAddresses,
) -> Result<W, BuildError> {
    let mut worker = W::default();
    loop {
        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok((number, batch)) = next else {
            return Ok(worker);
        };
        PanicPoint::MakeBlock.pass();
        worker.work(number, batch, addresses)?;
    }
}

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

/// Changes of a snapshot's products.
pub(super) type ProductChanges = BTreeMap<ProductCode, Option<NewProduct>>;

/// Renderer of products, on one thread.
#[derive(Default)]
pub(super) struct Renderer {
    rendered: Vec<u8>,
    products: Vec<(ProductCode, NewProduct)>,
    found: Found,
    yields: YieldBudget,
}

impl Worker for Renderer {
    const THREAD_NAME: &'static str = "render-changes";

    fn work(
        &mut self,
        _number: usize,
        batch: Batch,
        addresses: &TextAddresses,
    ) -> Result<(), BuildError> {
        let (products, yields) = (&mut self.products, &mut self.yields);
        batch.render(addresses, &mut self.rendered, &mut self.found, |product| {
            let new = NewProduct {
                bytes: product.bytes.to_vec(),
                content: product.content,
                discount: product.discount,
                facets: product.facets.to_vec(),
                words: product.words.into(),
            };
            products.push((product.code.clone(), new));
            yields.maybe_yield();
            Ok(())
        })
    }
}

impl WorkerPool<Renderer> {
    /// Returns the changed products, and what was found in them.
    ///
    /// # Errors
    ///
    /// If an undamaged product is invalid.
    pub(super) fn finish_changes(self) -> Result<(ProductChanges, Found), BuildError> {
        let (mut products, mut found) = (ProductChanges::new(), Found::default());
        for renderer in self.finish()? {
            let rendered = renderer.products.into_iter();
            products.extend(rendered.map(|(code, product)| (code, Some(product))));
            found.add(renderer.found);
        }
        Ok((products, found))
    }
}
