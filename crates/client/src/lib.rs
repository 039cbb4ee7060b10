//! A client of the catalog API of version 2024-02-05: what can be ordered as a payout, where, in which amounts and
//! on what terms.
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
//! # What it does for you
//!
//! - **Every field has a type**, and nothing that comes is lost. Enums are open: a value that this crate doesn't know is
//!   `Unknown` with its text. So are payout types: [`Product::detail`] gives the object of one added later as JSON, to the
//!   letter. Fields that the crate doesn't know are kept in `other`. A product that is serialised again is what came.
//! - **Amounts are [`Decimal`]s**: the text that came, never a float.
//! - **Pages are streams** ([`ProductsRequest::pages`], [`ProductsRequest::stream`]). They follow cursors until a page is
//!   empty or has none. Every product that is in the catalog all the time comes exactly once, also while the catalog
//!   changes, and a walk can go on later from any cursor.
//! - **Reads that fail for the moment are repeated** ([`Retries`]): what another try can't mend isn't.
//! - **An ETag cache**, if you want one ([`ClientBuilder::cache_bytes`]). An answer that hasn't changed is a 304, which costs
//!   no quota and hardly any bytes.
//! - **Bounds**: on time ([`ClientBuilder::timeout`]), on bytes ([`ClientBuilder::most_body_bytes`]). No redirect is followed.
//! - **The key stays a secret**: in no `Debug`, no error, and not sent in the clear to another machine.
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
//! assert_eq!((api.status, &api.error_type), (404, &ErrorType::NotFound));
//! println!("{error}");    // with message, help and the request's id
//! # Ok(())
//! # }
//! ```
//!
//! # TLS
//!
//! By rustls with the system's certificates. Its cryptography is the provider that the process has installed, else, with the
//! feature `ring` (on by default), ring. [`ClientBuilder::tls`] takes a whole configuration instead.
//!
//! # Layout
//!
//! - `client`, `blocking` (a feature): the operations. `builder`, `address`, `key`, `tls`: what a client is made of
//! - `list`, `pages`: what a list asks for, and walks over its pages
//! - `product`, `content`, `answer`: what comes; `open`, `object`, `value`: what those types are made of
//! - `send`, `retry`, `cache`: one request, another try, the answer of last time
//! - `error`: what can go wrong

mod address;
mod answer;
#[cfg(feature = "blocking")]
pub mod blocking;
mod builder;
mod cache;
mod client;
mod content;
mod error;
mod key;
mod list;
mod object;
mod open;
mod pages;
mod product;
mod retry;
mod send;
mod tls;
mod value;

pub use answer::{Category, Cursors, Page, PageSize, Pagination};
pub use builder::{BuildError, ClientBuilder};
pub use client::{Client, Content};
pub use content::{ContentHtml, ContentMarkdown, ContentUrls};
pub use error::{ApiError, Error, ErrorType, FaultType, ParameterFault};
pub use key::{BadKey, Key};
pub use list::ProductsRequest;
pub use object::Fields;
pub use open::{
    Availability, BarcodeFormat, DenominationType, ECodeUsageType, ExpiryType, LengthUnit,
    PayoutType, RedeemableAt, State,
};
pub use pages::{Items, Pages};
pub use product::{
    Assets, CustomerService, Denominations, Detail, Expiry, GiftCard, Payment, PaymentAssets,
    PaymentDenominations, Product, Subscription, SubscriptionPlan,
};
pub use retry::Retries;
pub use value::{Decimal, Json};

/// The dated version of the API that the types here are for. Every request asks for it.
pub const API_VERSION: &str = "2024-02-05";

/// What a request comes to.
pub type Result<T> = std::result::Result<T, Error>;
