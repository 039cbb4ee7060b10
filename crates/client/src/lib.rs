//! Client of the catalog API, versions 2024-02-05 and 2026-12-01: the products that can be ordered as payouts, with countries, amounts
//! and terms.
//!
//! ```
//! # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/stand_in.in"));
//! use vitrine_client::{Client, Key};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let server = StandIn::start();
//! # let (base_url, key) = (server.base_url(), "partner.s3cret");
//! let client = Client::new(&base_url, Key::new(key)?)?;
//! let mut products = client.products().country("SE").country("DE").orderable().stream();
//! while let Some(product) = products.next().await {
//!     let product = product?;
//!     println!("{} {} ({})", product.code, product.name, product.currency);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Features
//!
//! - **All fields are typed, and nothing is lost.** Enums are [`Open`]: values unknown to this crate are kept as text. So are payout types: [`Product::detail`] returns the object of one added later as JSON, byte for byte. Unknown
//!   fields are kept in `other`. Serialising a product again gives the JSON that was received.
//! - **Amounts are [`Decimal`]s**: the received text, never a float.
//! - **Pages are streams** ([`ProductsRequest::pages`], [`ProductsRequest::stream`]). They follow cursors until a page is
//!   empty or has none. Products that stay in the catalog come exactly once, even while the catalog changes, and a walk
//!   can be resumed later from any cursor.
//! - **A copy of the catalog stays right** ([`ChangesRequest::sync`]): changes and removals come as they happen, each with the
//!   token to store together with them.
//! - **Transient failures are retried** ([`Retries`]); permanent ones aren't.
//! - **ETag cache**, optional ([`ClientBuilder::cache_bytes`]). Unchanged responses are a 304, which costs no quota and
//!   hardly any bytes.
//! - **Limits**: on time ([`ClientBuilder::timeout`]), on bytes ([`ClientBuilder::most_body_bytes`]). Redirects aren't
//!   followed.
//! - **The key stays secret**: it is in no `Debug` and no error, and isn't sent unencrypted to another machine.
//!
//! # Errors
//!
//! ```
//! # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/stand_in.in"));
//! # use vitrine_client::{Client, Key};
//! use vitrine_client::ErrorType;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let server = StandIn::start();
//! # let client = Client::new(&server.base_url(), Key::new("partner.s3cret")?)?;
//! let error = client.product("NONE").await.expect_err("there is no such product");
//! let api = error.api().expect("the server said so");
//! assert!(api.status == 404 && api.error_type == ErrorType::NotFound);
//! println!("{error}");    // with message, help and the request's id
//! # Ok(())
//! # }
//! ```
//!
//! # TLS
//!
//! TLS is rustls with the system's certificates. The cryptography is the provider installed in the process, otherwise ring
//! with the feature `ring` (on by default). [`ClientBuilder::tls`] takes a complete configuration instead.
//!
//! # Layout
//!
//! - `client`, `blocking` (a feature): the operations. `builder`, `address`, `key`, `tls`: configuration
//! - `list`, `pages`: list requests, and walks over their pages; `changes`, `sync`, `pacing`: requests for changes, copies
//!   that follow them, and their pauses; `filters`: the filters of lists and changes
//! - `product`, `content`, `answer`: response types; `open`, `object`, `value`: their building blocks
//! - `send`, `retry`, `cache`: one request, retries, the ETag cache; `version`: the API version that it asks for
//! - `stream`: streams of pages, products and changes; [`transport`]: requests below the operations
//! - `error`: errors

mod address;
mod answer;
#[cfg(feature = "blocking")]
pub mod blocking;
mod builder;
mod cache;
mod changes;
mod client;
mod content;
mod error;
mod filters;
mod key;
mod list;
mod object;
mod open;
mod pacing;
mod pages;
mod product;
mod retry;
mod send;
mod stream;
mod sync;
mod tls;
pub mod transport;
mod value;
mod version;

pub use answer::{Category, Cursors, Page, PageSize, Pagination};
pub use builder::{BuildError, ClientBuilder};
pub use changes::{Change, ChangesPage, ChangesRequest};
pub use client::{Client, Content};
pub use content::{ContentHtml, ContentMarkdown, ContentUrls};
pub use error::{ApiError, Error, ParameterFault};
pub use key::{BadKey, Key};
pub use list::ProductsRequest;
pub use object::Fields;
pub use open::{
    Availability, BarcodeFormat, DenominationType, ECodeUsageType, ExpiryType, LengthUnit, Open,
    PayoutType, RedeemableAt, State,
};
pub use product::{
    Assets, CustomerService, Denominations, Detail, Expiry, GiftCard, Payment, PaymentAssets,
    PaymentDenominations, Product, Subscription, SubscriptionPlan,
};
pub use retry::Retries;
pub use stream::Results;
pub use sync::SyncEvent;
pub use value::{Decimal, Json};
pub use version::ApiVersion;
pub use vitrine_wire::error::{ErrorType, FaultType};

/// Result of a request.
pub type Result<T> = std::result::Result<T, Error>;
