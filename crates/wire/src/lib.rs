//! Types of the API's JSON.
//!
//! Only this crate knows field names and their order. The types are those of the newest dated version, 2024-02-05;
//! values are plain text, because the model validates them.
//!
//! # Layout
//!
//! - [`product`], [`content`]: the product object and its texts in three forms
//! - [`answer`]: the bodies of other operations
//! - [`error`]: the error body, and the table of its types
//!
//! # The next version
//!
//! Change the types here to the new version. Then add a folder `v2024_02_05/` that holds only the
//! types that differed, each with a conversion *from* the newest that names every field, and let the
//! server's view render both. What isn't in the folder is as it is here.

pub mod answer;
pub mod content;
pub mod error;
pub mod product;
