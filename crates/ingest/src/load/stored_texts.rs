//! Texts of stored products.

use std::collections::HashSet;

use vitrine_model::content::{Content, PackedMarkdown, Text, TextDigest, TextName};
use vitrine_store::Publication;
use vitrine_store::record::{OwnText, StoredProduct};

use crate::view;

/// Returns the texts whose Markdown the store has.
pub(crate) fn own_texts(content: &Content) -> Vec<OwnText> {
    let own = |(name, text): (TextName, &Text)| match text {
        Text::Own { digest, source } => Some(OwnText {
            name,
            digest: *digest,
            source: source.as_ref().map(ToString::to_string),
        }),
        Text::None | Text::Outside(_) => None,
    };
    content.texts.iter().filter_map(own).collect()
}

/// Returns the texts of a stored product.
pub(crate) fn stored_content(product: &StoredProduct) -> anyhow::Result<Content> {
    let Some(range) = &product.content else {
        return Ok(Content::default());
    };
    let json = product.document.get(range.clone()).unwrap_or_default();
    Ok(view::stored_content(json, &product.own_texts)?)
}

/// Stores a text, unless `kept` says that this publish already did: compressing it again would take time.
pub(crate) fn put_text(
    publication: &mut dyn Publication,
    markdown: &str,
    kept: &mut HashSet<TextDigest>,
) -> anyhow::Result<TextDigest> {
    let digest = TextDigest::of(markdown);
    if kept.insert(digest) {
        publication.put_text(&digest, &PackedMarkdown::pack(markdown)?)?;
    }
    Ok(digest)
}
