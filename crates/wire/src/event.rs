//! Bodies of events, which are sent to webhook endpoints.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::RawValue;

/// An event: something that the endpoint sees has changed.
#[derive(Debug, Serialize)]
pub struct CatalogChanged<'a> {
    /// Type of the event: `catalog.changed`.
    #[serde(rename = "type")]
    pub kind: Cow<'a, str>,
    /// Time at which the event was made.
    pub timestamp: String,
    /// Changes since the last event that was acknowledged.
    pub data: ChangedCatalog<'a>,
}

/// Changes since the last event that was acknowledged.
#[derive(Debug, Serialize)]
pub struct ChangedCatalog<'a> {
    /// The live revision.
    pub revision: LiveRevision,
    /// Number of products that are new or different.
    pub changed: u64,
    /// Number of products that aren't visible any more.
    pub removed: u64,
    /// Codes of these products, if they are at most 100; else null.
    pub codes: Option<Vec<Cow<'a, str>>>,
    /// True if what has changed isn't known any more: `changes_url` begins from the start.
    pub resync: bool,
    /// Address of these changes in the changes feed, to be asked with the client's key.
    pub changes_url: String,
}

/// A revision of the catalog.
#[derive(Debug, Serialize)]
pub struct LiveRevision {
    /// Number of the revision.
    pub number: u64,
    /// Time at which it was published.
    pub published_at: String,
}

/// An event that the operator asked for: shows that the receiver can be reached.
#[derive(Debug, Serialize)]
pub struct WebhookTest<'a> {
    /// Type of the event: `webhook.test`.
    #[serde(rename = "type")]
    pub kind: Cow<'a, str>,
    /// Time at which the event was made.
    pub timestamp: String,
    /// Data of the event: none.
    pub data: NoData,
}

/// Data of an event that has none.
#[derive(Debug, Serialize)]
pub struct NoData {}

/// A change of one product in one revision, for endpoints of the format `product.update`.
#[derive(Debug, Serialize)]
pub struct ProductUpdate<'a> {
    /// Product code.
    pub product_code: Cow<'a, str>,
    /// The product before the revision; null if it wasn't visible.
    pub old_state: Option<ProductState<'a>>,
    /// The product in the revision; null if it isn't visible any more.
    pub new_state: Option<ProductState<'a>>,
    /// Time at which the revision was published.
    pub timestamp: String,
}

/// Terms of a product: its discount, and what can be ordered.
#[derive(Debug, Serialize)]
pub struct ProductState<'a> {
    /// Discount, exactly.
    pub price_multiplier: Cow<'a, str>,
    /// True if the product can be ordered.
    pub is_orderable: bool,
    /// Denominations of the product, as in the list; null if it has none.
    pub denominations: Option<&'a RawValue>,
}
