//! What a key is shown of a snapshot: the products of its assortment at its own discounts, in the form of a version.

use std::sync::Arc;

use vitrine_model::assortment::View;
use vitrine_model::changes::StateId;
use vitrine_model::code::ProductCode;
use vitrine_model::key::{KnownKey, VisibleCatalog};
use vitrine_model::query::ListQuery;
use vitrine_model::snapshot::{Page, PlacedDiscount, ProductView, Run, Snapshot};

use super::body::PartsBuilder;
use super::discounts::Discounts;
use super::error::ApiError;

/// Part of a snapshot that a key is shown, and the form of its discounts.
#[derive(Debug, Clone)]
pub(crate) struct Visible {
    discounts: Discounts,
    /// None: everything.
    view: Option<Arc<View>>,
}

impl Visible {
    /// Returns what a key is shown of a snapshot.
    ///
    /// # Errors
    ///
    /// If the rules of the key's assortment aren't known here.
    pub(crate) fn of(
        key: &KnownKey,
        snapshot: &Arc<Snapshot>,
        discounts: Discounts,
    ) -> Result<Self, ApiError> {
        let view = match &key.visible {
            VisibleCatalog::Everything => None,
            VisibleCatalog::Assortment(known) => Some(known.live().view(snapshot)),
            VisibleCatalog::Unknown => return Err(ApiError::assortment_unknown()),
        };
        Ok(Self { discounts, view })
    }

    /// Returns the id of the assortment's version, for keys of caches; zero for everything.
    pub(crate) fn assortment(&self) -> StateId {
        self.view.as_ref().map_or_else(StateId::default, |view| view.assortment())
    }

    /// Returns the view; none for everything.
    pub(crate) fn view(&self) -> Option<&View> {
        self.view.as_deref()
    }

    /// Returns the page of a query.
    pub(crate) fn page<'s>(&self, snapshot: &'s Snapshot, list: &ListQuery) -> Page<'s> {
        snapshot.page(list, self.view())
    }

    /// Returns the product with a code, if it is visible.
    pub(crate) fn product<'s>(
        &self,
        snapshot: &'s Snapshot,
        code: &ProductCode,
    ) -> Option<ProductView<'s>> {
        match &self.view {
            None => snapshot.product(code),
            Some(view) => view.product(snapshot, code),
        }
    }

    /// Returns the discount to show instead of the rendered one; `None` if they are the same.
    pub(crate) fn replacement(
        &self,
        snapshot: &Snapshot,
        product: ProductView<'_>,
    ) -> Option<PlacedDiscount> {
        let own = self.view().and_then(|view| view.discount(snapshot, product));
        self.discounts.replacement(product, own)
    }

    /// Appends the products of a run to the parts of a page.
    pub(crate) fn push(&self, parts: &mut PartsBuilder, snapshot: &Snapshot, run: Run) {
        let form = self.discounts;
        match self.view().filter(|view| view.has_discounts()) {
            Some(view) => {
                let mut own = view.discounts(snapshot, run);
                parts.run_with(snapshot, run, |product| {
                    form.replacement(product, own.next().flatten())
                });
            }
            None if form == Discounts::Rendered => parts.run(snapshot, run),
            None => parts.run_with(snapshot, run, |product| form.replacement(product, None)),
        }
    }
}
