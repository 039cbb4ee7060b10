//! Assortments: what a client sees of the catalog, and at which discounts (docs/contract/assortments.md).
//!
//! An [`Assortment`] is a version of named [`Rules`]. A [`View`] is its rules compiled for one snapshot: it tells, block by
//! block, which products are shown, and has no bit per product.
//!
//! - `selector`: selectors of products, with `code_set`: their codes
//! - `own_discount`: discounts of the client's own
//! - `view`: rules for one snapshot, with `union`: products of some selectors, and `discounts`: those of a page
//! - `names`: categories and countries of a view; names in rules that no product has
//! - `table`: the assortments that a server knows
//! - `rules_since`: an assortment's rules since some time, with `version_index`: which versions show a product
//! - `diff`: what one view shows and another doesn't
//! - `listed_product`: a product to which the rules of many assortments are applied

mod diff;
mod discounts;
mod listed_product;
mod names;
mod own_discount;
mod rules_since;
mod table;
mod union;
mod version_index;
mod view;

use std::sync::{Arc, Mutex, PoisonError, Weak};

pub use diff::{Diff, DiscountDifference, diff};
pub(crate) use diff::{different_discounts, shown};
pub use discounts::{ExcessiveDiscount, RunDiscounts};
pub use listed_product::ListedProduct;
pub use names::{NameKind, RuleList, UnknownName, unknown_names};
pub use own_discount::{DiscountChange, OwnDiscount, Share};
pub use rules_since::RulesSince;
pub use table::{
    AssortmentState, AssortmentTable, FormerVersion, KnownAssortment, NewVersion, VersionsSince,
};
pub(crate) use version_index::{CodedSelectors, Votes};
pub use view::View;

use crate::Invalid;
use crate::changes::StateId;
use crate::facts::FactsView;
use crate::selector::Selector;
use crate::snapshot::Snapshot;

/// Checks the name of an assortment, which is also that of a file.
///
/// # Errors
///
/// If it isn't 1 to 64 letters, digits, `-`, `_` and `.`, or begins with `.` or `-`.
pub fn check_name(name: &str) -> Result<(), Invalid> {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    match (1..=64).contains(&name.len())
        && name.bytes().all(is_allowed)
        && !name.starts_with(['.', '-'])
    {
        true => Ok(()),
        false => Err(Invalid::new(
            "assortment",
            "1 to 64 letters, digits, `-`, `_` and `.`, the first a letter, a digit or `_`",
        )),
    }
}

/// Rules of an assortment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rules {
    /// Selectors, of which at least one selects each visible product; absent: everything may be visible.
    pub allow: Option<Vec<Selector>>,
    /// Selectors, of which none selects a visible product.
    pub deny: Vec<Selector>,
    /// Discounts of the client's own; of those that select a product, the first counts.
    pub discounts: Vec<OwnDiscount>,
}

impl Rules {
    /// Maximum number of selectors, those of discounts included.
    pub const MAX_SELECTORS: usize = 1_000;

    /// Maximum number of codes in all selectors.
    pub const MAX_CODES: usize = 100_000;

    /// Returns true if the product with this code and these attributes is visible.
    pub(crate) fn shows(&self, code: &str, facts: &FactsView<'_>) -> bool {
        let any = |some: &[Selector]| some.iter().any(|one| one.selects(code, facts));
        self.allow.as_deref().is_none_or(any) && !any(&self.deny)
    }

    /// Iterates over all selectors.
    pub fn selectors(&self) -> impl Iterator<Item = &Selector> {
        let discounts = self.discounts.iter().map(|discount| &discount.selector);
        let allow = self.allow.iter().flatten();
        allow.chain(&self.deny).chain(discounts)
    }

    /// Returns the number of codes in all selectors.
    #[must_use]
    pub fn code_count(&self) -> usize {
        let codes = self.selectors().filter_map(|one| one.codes.as_ref());
        codes.map(|codes| codes.exact().len()).sum()
    }
}

/// A version of an assortment.
#[derive(Debug)]
pub struct Assortment {
    name: String,
    id: StateId,
    rules: Arc<Rules>,
    /// Views of the snapshots in use, most recently made last.
    views: Mutex<Vec<Arc<View>>>,
}

impl Assortment {
    /// Maximum number of snapshots whose views are kept: the list's and the changes feed's.
    const MAX_VIEWS: usize = 2;

    /// Returns the version with this random id.
    #[must_use]
    pub fn new(name: String, id: StateId, rules: Rules) -> Self {
        Self {
            name,
            id,
            rules: Arc::new(rules),
            views: Mutex::default(),
        }
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the id of the version.
    #[must_use]
    pub fn id(&self) -> StateId {
        self.id
    }

    /// Returns the rules.
    #[must_use]
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Returns the view of a snapshot. It is made once, and kept while the snapshot is in use.
    #[must_use]
    pub fn view(&self, snapshot: &Arc<Snapshot>) -> Arc<View> {
        let mut views = self.views.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(view) = views.iter().find(|view| view.is_of(snapshot)) {
            return Arc::clone(view);
        }
        let view = Arc::new(View::new(Arc::clone(&self.rules), snapshot));
        views.retain(|view| view.is_in_use());
        if views.len() == Self::MAX_VIEWS {
            views.remove(0);
        }
        views.push(Arc::clone(&view));
        view
    }
}

/// Snapshot of a view. Its memory isn't used again while this exists, so that no other snapshot is taken for it.
#[derive(Debug)]
struct SnapshotRef(Weak<Snapshot>);

impl SnapshotRef {
    fn is(&self, snapshot: &Snapshot) -> bool {
        std::ptr::eq(self.0.as_ptr(), snapshot)
    }

    fn is_in_use(&self) -> bool {
        self.0.strong_count() > 0
    }
}
