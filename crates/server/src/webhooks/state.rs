//! State of a product, as events of the format `product.update` report it.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use vitrine_ingest::view::facts;
use vitrine_model::assortment::{ListedProduct, Rules};
use vitrine_model::money::Discount;
use vitrine_model::selector::Selector;
use vitrine_store::record::StoredProduct;
use vitrine_wire::event::ProductState;

/// State of a visible product.
pub(super) struct State {
    discount: Discount,
    is_orderable: bool,
    denominations: Option<Box<RawValue>>,
}

impl State {
    /// Returns the state of a product; `None` if rules or filter don't show it.
    pub(super) fn of(
        product: &StoredProduct,
        rules: Option<&Rules>,
        filter: &Selector,
    ) -> Option<Self> {
        let categories: Vec<Box<str>> = (product.categories.iter())
            .map(|category| category.as_str().into())
            .collect();
        let found = facts(
            &product.document,
            product.is_orderable,
            &product.countries,
            &categories,
        )?;
        let listed: Discount = product.discount_multiplier.parse().ok()?;
        let seen = ListedProduct::new(product.code.as_str(), &found, Some(listed));
        let is_shown = rules.is_none_or(|rules| seen.is_shown_by(rules));
        let own = rules.and_then(|rules| seen.own_discount(rules));
        (is_shown && seen.matches(filter)).then(|| Self {
            discount: own.unwrap_or(listed.shown()),
            is_orderable: product.is_orderable,
            denominations: denominations(&product.document, found.payout_type),
        })
    }

    pub(super) fn wire(&self) -> ProductState<'_> {
        ProductState {
            price_multiplier: self.discount.to_string().into(),
            is_orderable: self.is_orderable,
            denominations: self.denominations.as_deref(),
        }
    }
}

/// Returns the denominations in the detail object of a canonical document.
fn denominations(document: &str, payout_type: &str) -> Option<Box<RawValue>> {
    #[derive(Deserialize)]
    struct Detail {
        denominations: Option<Box<RawValue>>,
    }
    let members: BTreeMap<String, Box<RawValue>> = serde_json::from_str(document).ok()?;
    let detail: Detail = serde_json::from_str(members.get(payout_type)?.get()).ok()?;
    detail.denominations
}
