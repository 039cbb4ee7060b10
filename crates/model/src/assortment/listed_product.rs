//! A product to which the rules of many assortments are applied: compiling a view of each would cost far more.

use super::Rules;
use crate::code::ProductCode;
use crate::facts::{Facts, FactsView};
use crate::geo::Country;
use crate::money::{Currency, Discount};
use crate::selector::Selector;
use crate::snapshot::{FacetKind, Snapshot};

/// A product of a snapshot, with what rules select by.
#[derive(Debug)]
pub struct ListedProduct<'s> {
    code: &'s str,
    /// Packed.
    facts: Vec<u8>,
    list_discount: Option<Discount>,
}

impl<'s> ListedProduct<'s> {
    /// Returns the product with a code.
    #[must_use]
    pub fn find(snapshot: &'s Snapshot, code: &ProductCode) -> Option<Self> {
        let (index, slot) = snapshot.find(code.as_str())?;
        let block = snapshot.blocks().get(index)?;
        let mut countries: Vec<Country> = Vec::new();
        let mut categories: Vec<Box<str>> = Vec::new();
        let (mut currency, mut payout_type) = (None, "");
        let facets = block.facets();
        for (facet, _) in facets.filter(|(_, members)| members.contains(slot)) {
            countries.extend(facet.as_country());
            match snapshot.facet_numbers().name(facet) {
                Some((FacetKind::Category, name)) => categories.push(name.into()),
                Some((FacetKind::Currency, name)) => currency = Currency::well_formed(name),
                Some((FacetKind::PayoutType, name)) => payout_type = name,
                // No rule selects by states.
                Some((FacetKind::State, _)) | None => {}
            }
        }
        let facts = Facts {
            // No rule selects by it.
            is_orderable: false,
            currency: currency?,
            payout_type,
            countries: &countries,
            categories: &categories,
        };
        let list_discount = block.discount(slot).map(|list| list.exact);
        Some(Self::new(block.code(slot), &facts, list_discount))
    }

    /// Returns a product with these attributes.
    #[must_use]
    pub fn new(code: &'s str, facts: &Facts<'_>, list_discount: Option<Discount>) -> Self {
        Self {
            code,
            facts: facts.packed(),
            list_discount,
        }
    }

    fn view(&self) -> FactsView<'_> {
        FactsView::new(&self.facts)
    }

    /// Returns true if a filter selects the product.
    #[must_use]
    pub fn matches(&self, filter: &Selector) -> bool {
        filter.selects(self.code, &self.view())
    }

    /// Returns the product's own discount as responses show it.
    #[must_use]
    pub fn list_discount(&self) -> Option<Discount> {
        self.list_discount.map(Discount::shown)
    }

    /// Returns true if these rules show the product.
    #[must_use]
    pub fn is_shown_by(&self, rules: &Rules) -> bool {
        rules.shows(self.code, &self.view())
    }

    /// Returns the client's own discount for the product, if these rules have one.
    #[must_use]
    pub fn own_discount(&self, rules: &Rules) -> Option<Discount> {
        let facts = self.view();
        let mut entries = rules.discounts.iter();
        let first = entries.find(|entry| entry.selector.selects(self.code, &facts))?;
        first.change.of(self.list_discount?)
    }
}
