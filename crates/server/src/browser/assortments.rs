//! The catalog as an assortment sees it, and the assortments that show a product.

use std::sync::Arc;

use vitrine_model::assortment::{Assortment, AssortmentTable, ListedProduct, View};
use vitrine_model::code::ProductCode;
use vitrine_model::money::Discount;
use vitrine_model::snapshot::{BitSet256, ProductView, Snapshot};

use super::amounts::grouped;
use super::answer::Problem;
use super::query::Query;
use super::table::percent;

/// Maximum number of names that are suggested.
const MAX_NAMES: usize = 200;

/// Maximum number of assortments that a product's page lists.
const MAX_LISTED: usize = 100;

/// An assortment's view of a snapshot.
pub(super) struct Seen {
    snapshot: Arc<Snapshot>,
    view: Arc<View>,
}

/// Discount of a product, in full.
pub(super) struct DiscountView {
    pub(super) exact: String,
    pub(super) percent: String,
    /// True if it is the assortment's, not the product's.
    pub(super) is_own: bool,
}

impl DiscountView {
    /// Returns the view of a product's own discount, as it was loaded.
    pub(super) fn listed(discount: Discount) -> Self {
        Self {
            exact: discount.to_string(),
            percent: percent(discount),
            is_own: false,
        }
    }

    /// Returns the view of an assortment's discount for a product; without one, of the product's.
    pub(super) fn of(own: Option<Discount>, listed: Option<Discount>) -> Option<Self> {
        Some(Self {
            is_own: own.is_some(),
            ..Self::listed(own.or(listed)?)
        })
    }
}

impl Seen {
    /// Returns the view of the assortment with this name.
    pub(super) fn of(
        table: &AssortmentTable,
        name: &str,
        snapshot: &Arc<Snapshot>,
    ) -> Result<Self, Problem> {
        let Some(known) = table.get(name) else {
            let title = format!("No assortment is named {name}");
            return Err(Problem::not_found(
                &title,
                "It may have been removed or renamed. Choose another one beside the catalog; `vitrine assortments list` lists all.",
            ));
        };
        Ok(Self {
            snapshot: Arc::clone(snapshot),
            view: known.live().view(snapshot),
        })
    }

    /// Returns the visible products of each block.
    pub(super) fn members(&self) -> Vec<BitSet256> {
        self.view.members(&self.snapshot)
    }

    /// Returns a product with its own discount, if the assortment shows it.
    pub(super) fn product(
        &self,
        code: &ProductCode,
    ) -> Option<(ProductView<'_>, Option<Discount>)> {
        self.view.product(&self.snapshot, code)
    }

    /// Returns the discount that is shown for a product.
    pub(super) fn discount(&self, code: &str) -> Option<DiscountView> {
        let (product, own) = self.product(&code.parse().ok()?)?;
        DiscountView::of(own, product.discount().map(|placed| placed.exact.shown()))
    }
}

/// Returns the first names of assortments, ascending.
pub(super) fn names(table: &AssortmentTable) -> Vec<&str> {
    let names = table.iter().map(|known| known.live().name());
    let mut names: Vec<&str> = names.collect();
    names.sort_unstable();
    names.truncate(MAX_NAMES);
    names
}

/// Assortments that show a product.
pub(super) struct Showing {
    /// Numbers of those that show it, and of all.
    pub(super) count: String,
    pub(super) all: String,
    /// The first ones, by name.
    pub(super) listed: Vec<ShowingAssortment>,
    /// Number of the others.
    pub(super) more: usize,
}

/// An assortment that shows a product.
pub(super) struct ShowingAssortment {
    pub(super) name: String,
    /// URL of the products as the assortment sees them.
    pub(super) address: String,
    pub(super) discount: Option<DiscountView>,
}

impl Showing {
    /// Returns the assortments that show a product; `None` if there are no assortments.
    pub(super) fn of(
        table: &AssortmentTable,
        snapshot: &Snapshot,
        code: &ProductCode,
    ) -> Option<Self> {
        if table.is_empty() {
            return None;
        }
        let product = ListedProduct::find(snapshot, code)?;
        let live = table.iter().map(|known| known.live());
        let mut showing: Vec<&Assortment> = live
            .map(|assortment| &**assortment)
            .filter(|assortment| product.is_shown_by(assortment.rules()))
            .collect();
        showing.sort_unstable_by_key(|assortment| assortment.name());
        let listed = showing.iter().take(MAX_LISTED);
        Some(Self {
            count: grouped(&showing.len().to_string()),
            all: grouped(&table.len().to_string()),
            listed: listed.map(|one| listed_view(&product, one)).collect(),
            more: showing.len().saturating_sub(MAX_LISTED),
        })
    }

    /// Formats the number of assortments that aren't listed.
    pub(super) fn grouped_more(&self) -> String {
        grouped(&self.more.to_string())
    }
}

fn listed_view(product: &ListedProduct<'_>, assortment: &Assortment) -> ShowingAssortment {
    let own = product.own_discount(assortment.rules());
    ShowingAssortment {
        name: assortment.name().to_owned(),
        address: Query::of_assortment(assortment.name()).address(),
        discount: DiscountView::of(own, product.list_discount()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use jiff::Timestamp;
    use vitrine_model::assortment::{AssortmentState, NewVersion, Rules};
    use vitrine_model::changes::StateId;
    use vitrine_model::revision::Revision;
    use vitrine_model::snapshot::{BlockBuilder, Entry, FacetKind, FacetNumbers, TextTable};

    use super::*;

    #[test]
    fn lists_of_many_assortments_are_bounded() {
        let mut facets = FacetNumbers::default();
        let currency = facets.get_or_add(FacetKind::Currency, "EUR");
        let code: ProductCode = "A".parse().unwrap();
        let mut block = BlockBuilder::default();
        let entry = Entry {
            code: &code,
            bytes: b"{}",
            content: None,
            discount: None,
            facets: &[currency],
            words: "",
        };
        block.push(&entry).unwrap();
        let (blocks, texts) = (vec![block.finish().unwrap()], TextTable::default());
        let snapshot = Snapshot::new(Revision::default(), facets.into(), blocks, texts).unwrap();
        let version = |number: usize| NewVersion {
            assortment: Assortment::new(
                format!("a{number:04}"),
                StateId::default(),
                Rules::default(),
            ),
            version_id: String::new(),
            number: 1,
            since: Timestamp::UNIX_EPOCH,
        };
        let versions = (0..1_105).map(version).collect();
        let table = AssortmentTable::default();
        assert!(Showing::of(&table, &snapshot, &code).is_none());
        let table = table.updated(&HashSet::new(), versions, AssortmentState::default());
        let showing = Showing::of(&table, &snapshot, &code).unwrap();
        assert_eq!(
            (showing.count.as_str(), showing.listed.len()),
            ("1,105", MAX_LISTED)
        );
        assert_eq!(showing.grouped_more(), "1,005");
        assert_eq!(showing.listed[99].address, "/catalog?as=a0099");
        assert_eq!(names(&table).len(), MAX_NAMES);
    }
}
