//! Rules for every input from outside, held against made-up ones: each module has a `check` that takes any
//! bytes and panics if the program differs from a naive model, or from its promises.
//!
//! A file in `targets/` hands libFuzzer's inputs to it, `corpus/` has inputs to start from, and `dictionaries/` has
//! words for some. `ci/fuzz` runs all.
//!
//! - [`query`]: the parameters of a list and of a product
//! - [`cursor`]: cursors, pages and walks
//! - [`headers`]: key, version, `If-None-Match`, `Accept-Encoding`, request id: whole answers
//! - [`load`]: JSON and CSV, to records, to products and back
//! - [`compressed`]: gzip and zstd around them
//! - [`markdown`]: HTML that is harmless; [`markdown_time`]: and made in no time
//! - [`snapshot`]: damaged snapshot files
//! - [`settings`]: settings files
//! - [`catalog`]: the products that requests are about

pub mod catalog;
pub mod compressed;
pub mod cursor;
pub mod headers;
pub mod load;
pub mod markdown;
pub mod markdown_time;
pub mod query;
pub mod settings;
pub mod snapshot;
