//! Fuzz targets for inputs from outside: each module has a `check`, which takes any bytes, and panics if the program
//! differs from a naive model or breaks a promise.
//!
//! Files in `targets/` pass libFuzzer's inputs to it; `corpus/` has initial inputs, `dictionaries/` words for some
//! targets. `ci/fuzz` runs all.
//!
//! - [`query`]: parameters of a list and of a product
//! - [`cursor`]: cursors, pages and walks
//! - [`headers`]: key, version, `If-None-Match`, `Accept-Encoding`, request id: whole responses
//! - [`assortments`]: rules of assortments
//! - [`load`]: JSON and CSV to records, products and back
//! - [`records`]: JSON records, by the parser of loads and another one
//! - [`compressed`]: compressed inputs of loads; [`workbook`]: workbooks
//! - [`markdown`]: safety of HTML; [`markdown_time`]: time of rendering
//! - [`snapshot`]: damaged snapshot files
//! - [`settings`]: settings files
//! - [`catalog`]: the sample catalog for these
//!
//! A new target needs a module here, its file in `targets`, a `[[bin]]` in `Cargo.toml`, a test in `tests/replay.rs`, and
//! seeds in `corpus`. Its `check` asserts the right result, not only the absence of panics.

pub mod assortments;
pub mod catalog;
pub mod compressed;
pub mod cursor;
pub mod headers;
pub mod load;
pub mod markdown;
pub mod markdown_time;
pub mod query;
pub mod records;
pub mod settings;
pub mod snapshot;
pub mod workbook;
