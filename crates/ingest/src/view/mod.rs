//! Conversion from model to wire: a checked product is rendered as canonical document, and that becomes the response.
//!
//! The canonical document is the product object of version 2024-02-05 in URL form: the newest version differs in the
//! discount only, whose place in the document is found without parsing. A text whose Markdown the store has
//! is named `texts/DIGEST.md`, without the server's public URL, which is inserted when a snapshot is built. Outside
//! addresses are absolute, so a value that begins with `texts/` is unambiguous.
//!
//! - `document`: model to canonical document
//! - `stored`: canonical document to facts, name, state and discount
//! - `addresses`: canonical document to response
//! - `form`: texts as addresses, Markdown or HTML

mod addresses;
mod document;
mod form;
mod stored;

pub use addresses::TextAddresses;
pub use document::{Document, document, stored_content, with_content};
pub use form::{ContentForm, ParsedContent, content_json, parse_content};
pub use stored::{discount, facts, name, state};

/// Prefix of the store's own texts in a canonical document.
const OWN_TEXT_PREFIX: &str = "texts/";
