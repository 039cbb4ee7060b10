//! Rendering changed products: a few on the thread that reads them, many on others.

use std::collections::BTreeMap;

use vitrine_ingest::view::TextAddresses;
use vitrine_model::code::ProductCode;
use vitrine_model::snapshot::{FacetNumbers, NewProduct};
use vitrine_store::record::LiveProduct;

use super::background::YieldBudget;
use super::batches::{Batch, BuildError, Found, Worker, WorkerPool};

/// Number of full batches that the reading thread renders itself: about 1,000 products, in some ten milliseconds. Then
/// other threads are started for the rest.
const BATCHES_ALONE: usize = 4;

/// Changes of a snapshot's products.
pub(super) type ProductChanges = BTreeMap<ProductCode, Option<NewProduct>>;

/// Changed products of a store that are being read.
pub(super) struct ChangedProducts<'a> {
    addresses: &'a TextAddresses,
    batch: Batch,
    batches_alone: usize,
    alone: Renderer,
    others: Option<WorkerPool<Renderer>>,
    /// Yields of the reading thread.
    yields: YieldBudget,
}

impl<'a> ChangedProducts<'a> {
    pub(super) fn new(addresses: &'a TextAddresses) -> Self {
        Self {
            addresses,
            batch: Batch::default(),
            batches_alone: 0,
            alone: Renderer {
                yields: YieldBudget::new(),
                ..Renderer::default()
            },
            others: None,
            yields: YieldBudget::new(),
        }
    }

    /// Adds a product: see [`Batch::push`].
    ///
    /// # Errors
    ///
    /// If a thread can't be started, or an undamaged product is invalid.
    pub(super) fn push(
        &mut self,
        product: LiveProduct<'_>,
        numbers: &mut FacetNumbers,
    ) -> Result<bool, BuildError> {
        let is_pushed = self.batch.push(product, numbers);
        if self.batch.is_full() {
            let batch = self.batch.take();
            self.render(batch)?;
        }
        self.yields.maybe_yield();
        Ok(is_pushed)
    }

    /// Adds a product that is no longer live.
    pub(super) fn push_retired(&mut self, code: ProductCode) {
        self.alone.products.push((code, None));
    }

    /// Returns all products, and what was found in them.
    ///
    /// # Errors
    ///
    /// If an undamaged product is invalid.
    pub(super) fn finish(mut self) -> Result<(ProductChanges, Found), BuildError> {
        if !self.batch.is_empty() {
            let batch = std::mem::take(&mut self.batch);
            self.render(batch)?;
        }
        let Renderer {
            mut products,
            mut found,
            ..
        } = self.alone;
        for others in self
            .others
            .map(WorkerPool::finish)
            .transpose()?
            .into_iter()
            .flatten()
        {
            products.extend(others.products);
            found.add(others.found);
        }
        Ok((products.into_iter().collect(), found))
    }

    fn render(&mut self, batch: Batch) -> Result<(), BuildError> {
        if self.batches_alone < BATCHES_ALONE {
            self.batches_alone += 1;
            return self.alone.work(0, batch, self.addresses);
        }
        let others = match self.others.take() {
            Some(others) => others,
            None => {
                self.yields = YieldBudget::shared();
                WorkerPool::start(self.addresses)?
            }
        };
        self.others.insert(others).send(batch);
        Ok(())
    }
}

/// Renderer of products, on one thread.
struct Renderer {
    rendered: Vec<u8>,
    products: Vec<(ProductCode, Option<NewProduct>)>,
    found: Found,
    yields: YieldBudget,
}

impl Default for Renderer {
    fn default() -> Self {
        Self {
            rendered: Vec::new(),
            products: Vec::new(),
            found: Found::default(),
            yields: YieldBudget::shared(),
        }
    }
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
            };
            products.push((product.code.clone(), Some(new)));
            yields.maybe_yield();
            Ok(())
        })
    }
}
