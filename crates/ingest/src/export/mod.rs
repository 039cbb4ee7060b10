//! Exports stored products as records that load again into the same catalog.
//!
//! A record is the canonical document with the discount exactly as loaded, and with Markdown instead of the store's own
//! addresses. `table` makes rows of them, and
//! `xlsx` workbooks.

mod table;
mod xlsx;

use std::borrow::Cow;

use anyhow::Context as _;
use vitrine_model::content::{PackedMarkdown, TextDigest, TextName};
use vitrine_store::Store;
use vitrine_store::record::{OwnText, StoredProduct};

pub use table::{csv_header, csv_row};
pub use xlsx::Workbook;

use crate::load::json::Node;
use crate::load::stored_texts::record_with;

/// Returns the record of a product; `to_json` makes a line of it.
///
/// # Errors
///
/// If the store can't be read, or is damaged.
pub fn record<'a>(store: &Store, product: &'a StoredProduct) -> anyhow::Result<Node<'a>> {
    record_with(product, |content| with_texts(store, content, product))
}

/// Returns the content resources with Markdown and its source, where there is any.
fn with_texts<'a>(
    store: &Store,
    content: Node<'a>,
    product: &StoredProduct,
) -> anyhow::Result<Node<'a>> {
    let Node::Object(members) = content else {
        return Ok(content);
    };
    let digests: Vec<TextDigest> = product.own_texts.iter().map(|own| own.digest).collect();
    let texts = store.texts(&digests)?;
    let mut loaded = Vec::with_capacity(members.len());
    for (key, value) in members {
        let name = key.strip_suffix("_markdown_url");
        let name = name.and_then(|name| name.parse::<TextName>().ok());
        let own = product.own_texts.iter().find(|own| Some(own.name) == name);
        let Some(OwnText {
            name,
            digest,
            source,
        }) = own
        else {
            loaded.push((key, value));
            continue;
        };
        let markdown_key = Cow::Owned(format!("{}_md", name.as_str()));
        loaded.push((
            markdown_key,
            Node::Text(unpacked(texts.get(digest), digest)?.into()),
        ));
        if let Some(source) = source {
            loaded.push((key, Node::Text(source.clone().into())));
        }
    }
    Ok(Node::Object(loaded))
}

/// Returns the Markdown of a text.
pub(crate) fn markdown(store: &Store, digest: &TextDigest) -> anyhow::Result<String> {
    unpacked(store.text(digest)?.as_ref(), digest)
}

fn unpacked(packed: Option<&PackedMarkdown>, digest: &TextDigest) -> anyhow::Result<String> {
    let missing = || format!("the text {digest} is missing; run `vitrine check`");
    (packed.with_context(missing)?.unpack_as(digest)).with_context(missing)
}
