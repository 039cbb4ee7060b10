//! The domain model: products, money, texts, keys, queries and the snapshot.
//!
//! Everything here is pure: it reads no clock, network, file or environment and knows no JSON name or HTTP status;
//! callers pass time and bytes. Constructors refuse invalid values, so nothing behind them checks a product twice.
//!
//! # Layout
//!
//! - [`invalid`]: the error of a refused value
//! - [`code`], [`colour`], [`contact`], [`geo`], [`money`], [`single_line`], [`url`]: small values, each with its rule
//! - [`product`]: the product and its details; [`content`]: its texts
//! - [`key`], [`quota`]: API keys and their rate limits; [`version`]: the dated API versions
//! - [`hexadecimal`]: hexadecimal digits of bytes
//! - [`query`]: filter, cursor and limit of a list request; [`selector`]: which products filters, rules and overrides select;
//!   [`facts`]: what they look at
//! - [`search`]: words of products, and those that a client looks for
//! - [`revision`]: the name of one published state of the catalog
//! - [`content_hash`]: the hash that entity tags and body caches use
//! - [`snapshot`]: the immutable catalog in memory, its indexes and the scan of a page
//! - [`assortment`]: rules of what a client sees, and at which discounts
//! - [`changes`]: what revisions changed, and what differs since a state

pub mod assortment;
pub mod changes;
pub mod code;
pub mod colour;
pub mod contact;
pub mod content;
pub mod content_hash;
pub mod facts;
pub mod geo;
pub mod hexadecimal;
pub mod invalid;
pub mod key;
pub mod money;
pub mod product;
pub mod query;
pub mod quota;
pub mod revision;
pub mod search;
pub mod selector;
pub mod single_line;
pub mod snapshot;
pub mod url;
pub mod version;

pub use invalid::Invalid;
