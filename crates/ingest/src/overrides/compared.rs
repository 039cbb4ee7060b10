//! Findings of a comparison of products before and after a change of overrides.

use std::collections::BTreeMap;

use vitrine_model::code::ProductCode;
use vitrine_store::Publication as _;
use vitrine_store::prepared::PreparedProduct;
use vitrine_store::record::StoredProduct;
use vitrine_store::{Publish, StoreError};

use crate::load::guard::Tally;
use crate::load::plan::{Detail, Plan};

/// Findings of a comparison of products.
#[derive(Default)]
pub(super) struct Compared {
    pub(super) plan: Plan,
    pub(super) tally: Tally,
    pub(super) selected: u64,
    pub(super) notices: Notices,
    /// Changes to be written, in order.
    pub(super) writes: Vec<Write>,
}

/// Number of products of which an operator may expect something else.
#[derive(Debug, Default)]
pub struct Notices {
    /// Those of which other overrides set the same fields, now or later, by override.
    pub overlapping: BTreeMap<u64, u64>,
    /// Those that other overrides hide, by override.
    pub hidden: BTreeMap<u64, u64>,
}

impl Notices {
    fn append(&mut self, other: Self) {
        let Self {
            overlapping,
            hidden,
        } = other;
        for (own, other) in [
            (&mut self.overlapping, overlapping),
            (&mut self.hidden, hidden),
        ] {
            for (number, products) in other {
                *own.entry(number).or_default() += products;
            }
        }
    }
}

/// A change of a product to be written.
pub(super) enum Write {
    /// The live version of the product becomes its base.
    KeepBase(StoredProduct),
    EndBase(ProductCode),
    Put(PreparedProduct),
    Retire(ProductCode),
}

impl Write {
    /// Returns the code of a product whose live version is replaced or ended.
    pub(super) fn live_code(&self) -> Option<&ProductCode> {
        match self {
            Self::Put(product) => Some(product.code()),
            Self::Retire(code) => Some(code),
            Self::KeepBase(_) | Self::EndBase(_) => None,
        }
    }

    pub(super) fn apply(self, publication: &mut Publish) -> Result<(), StoreError> {
        match self {
            Self::KeepBase(base) => publication.keep_live_as_base(&base),
            Self::EndBase(code) => publication.end_base(&code),
            Self::Put(product) => publication.put_prepared(product).map(drop),
            Self::Retire(code) => publication.retire(&code).map(drop),
        }
    }
}

impl Compared {
    pub(super) fn new(detail: Detail) -> Self {
        Self {
            plan: Plan::new(detail),
            ..Self::default()
        }
    }

    /// Appends what is to be written of a product: `before` and `after` are what overrides make of its base, `None` if
    /// they leave it as it is, and `Some(None)` if they hide it.
    pub(super) fn write(
        &mut self,
        base: StoredProduct,
        before: Option<Option<&StoredProduct>>,
        after: Option<Option<StoredProduct>>,
    ) -> Result<(), StoreError> {
        if before == after.as_ref().map(Option::as_ref) {
            return Ok(());
        }
        let code = base.code.clone();
        let effective = match after {
            None => {
                self.writes.push(Write::EndBase(code.clone()));
                Some(base)
            }
            Some(effective) => {
                if before.is_none() {
                    self.writes.push(Write::KeepBase(base));
                }
                effective
            }
        };
        self.writes.push(match effective {
            None => Write::Retire(code),
            Some(product) => Write::Put(PreparedProduct::new(product)?),
        });
        Ok(())
    }

    /// Appends what was found of the products that follow, but for what is to be written.
    pub(super) fn append(&mut self, other: Self) {
        let Self {
            plan,
            tally,
            selected,
            notices,
            writes: _,
        } = other;
        self.plan.append(plan);
        self.tally.append(tally);
        self.selected += selected;
        self.notices.append(notices);
    }
}
