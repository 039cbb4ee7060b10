//! Findings of a comparison of products before and after a change of overrides.

use std::collections::BTreeMap;

use vitrine_model::code::ProductCode;
use vitrine_store::StoreError;
use vitrine_store::overrides::StorePublication;
use vitrine_store::prepared::PreparedProduct;

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
    /// Those that can't be ordered as was set, since other overrides leave them no amount, by override.
    pub without_amounts: BTreeMap<u64, u64>,
    /// Those that other overrides hide, by override.
    pub hidden: BTreeMap<u64, u64>,
    /// Those that the new override leaves no amount, so that they can't be ordered.
    pub emptied: u64,
}

impl Notices {
    fn append(&mut self, other: Self) {
        let Self {
            overlapping,
            without_amounts,
            hidden,
            emptied,
        } = other;
        self.emptied += emptied;
        for (own, other) in [
            (&mut self.overlapping, overlapping),
            (&mut self.without_amounts, without_amounts),
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
    PutBase(PreparedProduct),
    EndBase(ProductCode),
    Put(PreparedProduct),
    Retire(ProductCode),
}

impl Write {
    pub(super) fn apply(self, publication: &mut dyn StorePublication) -> Result<(), StoreError> {
        match self {
            Self::PutBase(base) => publication.put_base(base),
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
