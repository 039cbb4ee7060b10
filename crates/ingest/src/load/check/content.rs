//! Texts of a record: Markdown, outside addresses, or absent (docs/contract/texts.md#loading).

use std::sync::LazyLock;

use vitrine_model::Invalid;
use vitrine_model::content::{
    ContentUpdate, LoadedText, PackedMarkdown, PerText, TextDigest, TextName, Update,
};
use vitrine_model::url::WebUrl;

use super::fields::{Context, Faulty, Fields};
use super::suspicious::IsText;
use crate::html;
use crate::load::json::Node;

/// Keys of a text as Markdown, by its address, and as HTML. Made once: of each record all are looked for.
static KEYS: LazyLock<PerText<[String; 3]>> = LazyLock::new(|| {
    PerText::from_fn(|name| {
        ["_md", "_markdown_url", "_html"].map(|suffix| format!("{}{suffix}", name.as_str()))
    })
});

/// Reads the `content_resources` of a detail object.
pub(super) fn read(
    context: &mut Context<'_>,
    detail: &Fields<'_>,
) -> Result<ContentUpdate, Faulty> {
    let Some(fields) = context.object(detail, "content_resources")? else {
        // As for each text: if absent, they stay; null removes them.
        return Ok(match detail.stated("content_resources") {
            None => ContentUpdate::default(),
            Some(_) => ContentUpdate {
                locale: Update::Remove,
                texts: PerText::from_fn(|_| Update::Remove),
            },
        });
    };
    context.warn_unknown(&fields, |key| {
        let name = ["_markdown_url", "_md", "_html"]
            .into_iter()
            .find_map(|suffix| key.strip_suffix(suffix));
        key == "locale" || name.is_some_and(|name| name.parse::<TextName>().is_ok())
    });
    let locale = match (fields.stated("locale"), context.optional(&fields, "locale")) {
        (None, _) => Ok(Update::Keep),
        (Some(_), Ok(Some(locale))) => Ok(Update::Set(locale)),
        (Some(_), Ok(None)) => Ok(Update::Remove),
        (Some(_), Err(Faulty)) => Err(Faulty),
    };
    // All texts are read, even if some are faulty.
    let read = PerText::from_fn(|name| text(context, &fields, name));
    if read.iter().any(|(_, text)| text.is_err()) {
        return Err(Faulty);
    }
    Ok(ContentUpdate {
        locale: locale?,
        texts: read.map(Result::unwrap_or_default),
    })
}

fn text(
    context: &mut Context<'_>,
    fields: &Fields<'_>,
    name: TextName,
) -> Result<Update<LoadedText>, Faulty> {
    let [markdown_key, url_key, html_key] = KEYS.get(name);
    let html = match fields.stated(html_key) {
        Some(node) => {
            let expected = "the text as Markdown (`_md`), in which HTML is kept, or its address (`_markdown_url`)";
            let invalid = Invalid::new("html_loaded", expected);
            Err(context.fault(&fields.at.key(html_key), Some(node), invalid))
        }
        None => Ok(()),
    };
    let markdown = markdown(context, fields, markdown_key);
    let url: Result<Option<WebUrl>, Faulty> = context.optional(fields, url_key);
    html?;
    let is_stated = fields
        .stated(markdown_key)
        .or(fields.stated(url_key))
        .is_some();
    Ok(match (markdown?, url?) {
        (Some(digest), source) => Update::Set(LoadedText::Markdown { digest, source }),
        (None, Some(url)) => Update::Set(LoadedText::Outside(url)),
        (None, None) if is_stated => Update::Remove,
        (None, None) => Update::Keep,
    })
}

/// Reads Markdown, unchanged, up to the maximum length; an empty text counts as null. Returns its digest.
fn markdown(
    context: &mut Context<'_>,
    fields: &Fields<'_>,
    key: &str,
) -> Result<Option<TextDigest>, Faulty> {
    let at = fields.at.key(key);
    match fields.get(key) {
        None => Ok(None),
        Some(Node::Text(text)) if text.len() > PackedMarkdown::MAX_LENGTH_BYTES => {
            let invalid = Invalid::new("text_too_long", "Markdown of at most 1 MiB");
            Err(context.fault(&at, fields.get(key), invalid))
        }
        Some(Node::Text(text)) => {
            if text.trim().is_empty() {
                let message = "only blanks, which is a text; leave it empty to have none";
                context.warn(&at, fields.get(key), "text_blank", message);
            }
            let digest = TextDigest::of(text);
            if let Some(node) = fields.get(key) {
                context.check_characters(&at, node, text, IsText::Yes);
            }
            if html::renders_empty(text, &digest) {
                return Err(context.fault(&at, fields.get(key), html::RENDERS_EMPTY));
            }
            if html::has_tags(text) {
                context.warn(&at, fields.get(key), "html_in_text", html::HTML_IN_TEXT);
            }
            context.texts.push((digest, text.clone().into_owned()));
            Ok(Some(digest))
        }
        Some(node) => Err(context.fault(&at, Some(node), Invalid::new("type", "a string"))),
    }
}
