//! What travels: the JSON of the API as types, and nothing but that.
//!
//! Field names and their order are known here alone. The types here are those of the newest dated
//! version, 2024-02-05; values are plain text, since which values are right is the model's to say.
//!
//! # Layout
//!
//! - [`product`], [`content`]: the product object and its texts in three forms
//! - [`answer`]: the bodies of the other operations
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
