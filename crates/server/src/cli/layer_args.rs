//! The layer of the catalog that a command reads: what clients see, or what loads brought.

use clap::Args;
use vitrine_model::code::ProductCode;
use vitrine_model::revision::Revision;
use vitrine_store::record::{Moment, ProductVisitor, StoredProduct};
use vitrine_store::{Store, StoreError};

/// Layer of the catalog.
#[derive(Debug, Clone, Copy, Args)]
pub(super) struct LayerArgs {
    /// Without overrides: as loads brought the products, hidden ones included.
    #[arg(long)]
    base: bool,
}

impl LayerArgs {
    /// The products as loads brought them.
    pub(super) const BASE: Self = Self { base: true };

    /// The products as clients see them.
    pub(super) const EFFECTIVE: Self = Self { base: false };

    pub(super) fn is_base(self) -> bool {
        self.base
    }

    /// Reads the products of a moment, in ascending order of codes. An error of `take` stays what it is: a closed pipe
    /// is no error of the store.
    pub(super) fn read(
        self,
        store: &Store,
        moment: Moment,
        take: &mut dyn FnMut(StoredProduct) -> anyhow::Result<()>,
    ) -> anyhow::Result<Option<Revision>> {
        let mut failure = None;
        let visit: ProductVisitor<'_> = &mut |product| {
            take(product).map_err(|error| {
                failure = Some(error);
                "stopped".into()
            })
        };
        let read = match self.base {
            true => store.read_base(moment, visit),
            false => store.read_products(moment, visit),
        };
        match failure {
            Some(error) => Err(error),
            None => Ok(read?),
        }
    }

    /// Returns a product at a moment.
    pub(super) fn product(
        self,
        store: &Store,
        code: &ProductCode,
        moment: Moment,
    ) -> Result<Option<StoredProduct>, StoreError> {
        match self.base {
            true => store.base_product(code, moment),
            false => store.product(code, moment),
        }
    }
}
