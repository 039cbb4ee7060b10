//! The part of a snapshot that a key is shown: the products of its assortment at its own discounts, in the form of a version
//! (docs/contract/assortments.md#what-clients-see).

use std::sync::Arc;

use vitrine_model::assortment::{KnownAssortment, RunDiscounts, View};
use vitrine_model::changes::StateId;
use vitrine_model::code::ProductCode;
use vitrine_model::query::ListQuery;
use vitrine_model::snapshot::{Page, ProductView, Run, Snapshot};

use super::body::PartsBuilder;
use super::discounts::{Discounts, ShownDiscount};

/// Part of a snapshot that a key is shown, and the form of its discounts.
#[derive(Debug, Clone)]
pub(crate) struct Visible {
    discounts: Discounts,
    assortment: StateId,
    /// None: everything.
    view: Option<Arc<View>>,
}

impl Visible {
    /// Returns what an assortment shows of a snapshot; everything without one.
    pub(crate) fn new(
        assortment: Option<&KnownAssortment>,
        snapshot: &Arc<Snapshot>,
        discounts: Discounts,
    ) -> Self {
        let live = assortment.map(KnownAssortment::live);
        Self {
            discounts,
            assortment: live.map_or_else(StateId::default, |live| live.id()),
            view: live.map(|live| live.view(snapshot)),
        }
    }

    /// Returns the id of the assortment's version, for keys of caches; zero for everything.
    pub(crate) fn assortment(&self) -> StateId {
        self.assortment
    }

    /// Returns the view; none for everything.
    pub(crate) fn view(&self) -> Option<&View> {
        self.view.as_deref()
    }

    /// Returns the categories of its products.
    pub(crate) fn categories<'s>(
        &'s self,
        snapshot: &'s Snapshot,
    ) -> Box<dyn Iterator<Item = &'s str> + 's> {
        match self.view() {
            None => Box::new(snapshot.categories()),
            Some(view) => Box::new(view.categories(snapshot)),
        }
    }

    /// Returns the page of a query.
    pub(crate) fn page<'s>(&self, snapshot: &'s Snapshot, list: &ListQuery) -> Page<'s> {
        snapshot.page_in(list, self.view())
    }

    /// Returns the product with a code if it is visible, and the discount to show instead of the rendered one.
    pub(crate) fn product<'s>(
        &self,
        snapshot: &'s Snapshot,
        code: &ProductCode,
    ) -> Option<(ProductView<'s>, Option<ShownDiscount>)> {
        let (product, own) = match &self.view {
            None => (snapshot.product(code)?, None),
            Some(view) => view.product(snapshot, code)?,
        };
        Some((product, self.discounts.replacement(product, own)))
    }

    /// Returns a writer of products to the parts of a page.
    pub(crate) fn writer<'v>(&'v self, snapshot: &'v Snapshot) -> VisibleWriter<'v> {
        let view = self.view().filter(|view| view.has_discounts());
        VisibleWriter {
            snapshot,
            discounts: self.discounts,
            own: view.map(|view| view.discounts(snapshot)),
        }
    }
}

/// Writer of products with the discounts that a key is shown.
pub(crate) struct VisibleWriter<'v> {
    snapshot: &'v Snapshot,
    discounts: Discounts,
    own: Option<RunDiscounts<'v>>,
}

impl VisibleWriter<'_> {
    /// Appends the products of a run to the parts of a page.
    pub(crate) fn push(&mut self, parts: &mut PartsBuilder, run: Run) {
        let (snapshot, form) = (self.snapshot, self.discounts);
        let own = self.own.as_mut().map_or(&[][..], |own| own.of(run));
        if own.is_empty() && form == Discounts::Rendered {
            return parts.run(snapshot, run);
        }
        let mut own = own.iter().copied();
        parts.run_with(snapshot, run, |product| {
            form.replacement(product, own.next().flatten())
        });
    }
}
