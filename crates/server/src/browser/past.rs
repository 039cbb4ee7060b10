//! History of a product: its versions, read from the store.

use vitrine_ingest::product_history::{ProductChange, product_history};
use vitrine_model::code::ProductCode;
use vitrine_store::record::ChangeKind;
use vitrine_store::{Store, StoreError};

use super::changes::{ChangeView, view};

/// Maximum number of versions of a product that are shown.
const MAX_VERSIONS: u32 = 20;

/// Change of a product.
#[derive(Debug)]
pub(super) struct Event {
    pub(super) change: ProductChange,
    pub(super) changes: Vec<ChangeView>,
}

/// Returns the changes of a product, the newest first.
pub(super) fn events(store: &dyn Store, code: &ProductCode) -> Result<Vec<Event>, StoreError> {
    let (changes, _) = product_history(store, code, MAX_VERSIONS)?;
    let event = |change: ProductChange| Event {
        changes: change.fields().iter().map(view).collect(),
        change,
    };
    Ok(changes.into_iter().map(event).collect())
}

/// Returns the word for a change.
pub(super) fn word(touch: ChangeKind) -> &'static str {
    match touch {
        ChangeKind::Created => "Created",
        ChangeKind::Changed => "Changed",
        ChangeKind::Retired => "Retired",
    }
}
