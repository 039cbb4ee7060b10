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
//! Change the types here to the new version. Add a module named after the old version with only the types that differ,
//! each with a conversion from the newest type that names all fields. The server's `http/versions.rs` reads a body of the
//! newest version, converts it and writes it again, so converted types also derive `Deserialize`.

pub mod answer;
pub mod content;
pub mod error;
pub mod product;
