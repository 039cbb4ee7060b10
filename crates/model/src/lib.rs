//! The things of the catalog themselves: products, money, texts, keys, queries and the snapshot.
//!
//! Everything here is pure. No clock, network, file or environment is read, and no JSON name or
//! HTTP status is known: the caller brings time and bytes. A value that can't be right can't be
//! built, so nothing behind this crate's constructors checks a product twice.
//!
//! # Layout
//!
//! - [`invalid`]: why a value was refused
//! - [`code`], [`colour`], [`contact`], [`geo`], [`money`], [`single_line`], [`url`]: small values, each with its rule
//! - [`product`]: the product and its details; [`content`]: its texts
//! - [`key`], [`quota`]: who may read, and how often; [`version`]: the dated API versions
//! - [`hexadecimal`]: bytes for people and files
//! - [`query`]: what a list request asks for
//! - [`revision`]: the name of one published state of the catalog
//! - [`content_hash`]: the hash that entity tags and body caches use
//! - [`snapshot`]: the immutable catalog in memory, its indexes and the scan of a page

pub mod code;
pub mod colour;
pub mod contact;
pub mod content;
pub mod content_hash;
pub mod geo;
pub mod hexadecimal;
pub mod invalid;
pub mod key;
pub mod money;
pub mod product;
pub mod query;
pub mod quota;
pub mod revision;
pub mod single_line;
pub mod snapshot;
pub mod url;
pub mod version;

pub use invalid::Invalid;
