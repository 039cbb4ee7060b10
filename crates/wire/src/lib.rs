//! Types of the API's JSON.
//!
//! Only this crate knows field names and their order. The types are those of the newest dated version, 2026-12-01;
//! values are plain text, because the model validates them.
//!
//! # Layout
//!
//! - [`product`], [`content`]: the product object and its texts in three forms
//! - [`answer`]: the bodies of other operations
//! - [`event`]: the bodies of events of webhooks
//! - [`error`]: the error body, and the table of its types
//! - [`v2024_02_05`]: fields that this version has in another form
//!
//! # The next version
//!
//! Change the types here to the new version. Add a module named after the version that was the newest, with only the fields
//! that differ, as they were. The OpenAPI document of the older version takes its fields from there; its responses are
//! spliced: see `http/versions.rs` and `http/discounts.rs` of the server.

pub mod answer;
pub mod content;
pub mod error;
pub mod event;
pub mod product;
pub mod v2024_02_05;
