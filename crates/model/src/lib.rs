//! The things of the catalog themselves: products, money, texts, keys, queries and the snapshot.
//!
//! Everything here is pure. No clock, network, file or environment is read, and no JSON name or
//! HTTP status is known: the caller brings time and bytes. A value that can't be right can't be
//! built, so nothing behind this crate's constructors checks a product twice.
//!
//! # Layout
//!
//! - [`invalid`]: why a value was refused
//! - [`code`], [`mod@line`], [`money`], [`place`], [`web`]: the smallest values, each with its rule
//! - [`product`]: the product and its details; [`content`]: its texts
//! - [`key`], [`quota`]: who may read, and how often; [`version`]: the dated API versions
//! - [`hexadecimal`]: bytes for people and files
//! - [`query`]: what a list request asks for
//! - [`revision`]: the name of one published state of the catalog
//! - [`snapshot`]: the immutable catalog in memory, its indexes and the scan of a page

pub mod code;
pub mod content;
pub mod hexadecimal;
pub mod invalid;
pub mod key;
pub mod line;
pub mod money;
pub mod place;
pub mod product;
pub mod query;
pub mod quota;
pub mod revision;
pub mod snapshot;
pub mod version;
pub mod web;

pub use invalid::Invalid;
