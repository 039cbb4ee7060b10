//! Types of the API's JSON.
//!
//! Only this crate knows field names and their order. The types are those of the newest dated version, 2026-12-01;
//! values are plain text, because the model validates them.
//!
//! # Layout
//!
//! - [`product`], [`content`]: the product object and its texts in three forms
//! - [`answer`]: other bodies, and the page's part beside its products
//! - [`event`]: the bodies of events of webhooks
//! - [`error`]: the error body, and the table of its types; [`names`]: enums of names
//!
//! # The next version
//!
//! Change the types here to the new version, and add its document to `openapi/`. Responses of older versions are spliced:
//! see `http/versions.rs` and `http/discounts.rs` of the server.

pub mod answer;
pub mod content;
pub mod error;
pub mod event;
pub mod names;
pub mod product;
