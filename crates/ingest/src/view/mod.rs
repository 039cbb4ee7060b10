//! Conversion between model and wire: a checked product becomes its canonical text, and that text
//! becomes what is served.
//!
//! The canonical text is the product object of the newest version in URL form. In it, a text whose
//! Markdown the service holds is named `texts/DIGEST.md`, without the server's public address: that
//! is put in when a snapshot is built, by copying around it. Outside addresses are absolute, so a
//! value that begins with `texts/` can't be anything else.
//!
//! - `document`: from the model to the canonical text
//! - `addresses`: from the canonical text to what is served
//! - `form`: the texts as addresses, Markdown or HTML

mod addresses;
mod document;
mod form;

pub use addresses::TextAddresses;
pub use document::{Document, document, stored_content, with_content};
pub use form::{ContentForm, ParsedContent, content_json, parse_content};

/// Prefix by which the canonical document names texts that the service holds.
const OWN_TEXT_PREFIX: &str = "texts/";
