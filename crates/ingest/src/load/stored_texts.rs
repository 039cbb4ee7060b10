//! Stored products: their records and their texts.

use std::borrow::Cow;
use std::collections::HashSet;

use anyhow::Context as _;
use vitrine_model::content::{Content, PackedMarkdown, Text, TextDigest, TextName};
use vitrine_store::Publication;
use vitrine_store::record::{OwnText, StoredProduct};

use super::json::Node;
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

/// Returns the record of a product, with what `convert` makes of its content resources.
///
/// # Errors
///
/// If the product is damaged, or `convert` fails.
pub(crate) fn record_with<'a>(
    product: &'a StoredProduct,
    mut convert: impl FnMut(Node<'a>) -> anyhow::Result<Node<'a>>,
) -> anyhow::Result<Node<'a>> {
    let damaged = || format!("the product {} is damaged", product.code);
    let (document, problems) = Node::parse(&product.document);
    let Node::Object(mut members) = document else {
        anyhow::bail!(damaged());
    };
    anyhow::ensure!(problems.is_empty(), damaged());
    let payout_type = members
        .iter()
        .find_map(|(key, value)| match value {
            Node::Text(text) if key == "payout_type" => Some(text.clone()),
            _ => None,
        })
        .with_context(damaged)?;
    for (key, value) in &mut members {
        if key == "discount_multiplier" {
            *value = Node::Text(Cow::Borrowed(&product.discount_multiplier));
        } else if *key == payout_type
            && let Node::Object(detail) = value
            && product.content.is_some()
        {
            let content = detail
                .iter_mut()
                .find(|(key, _)| key == "content_resources");
            if let Some((_, content)) = content {
                *content = convert(std::mem::replace(content, Node::Null))?;
            }
        }
    }
    Ok(Node::Object(members))
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
