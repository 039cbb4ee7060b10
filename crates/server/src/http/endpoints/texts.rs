//! Texts: one by its digest, and those of a product in another form than addresses. Tags come from what
//! determines the bytes, so that a client that has them costs no unpacking.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use jiff::Timestamp;
use vitrine_ingest::view::{
    ContentForm, ParsedContent, TextAddresses, content_json, parse_content,
};
use vitrine_model::content::{PackedMarkdown, PerText, TextDigest};
use vitrine_model::snapshot::{ProductView, Snapshot};
use vitrine_wire::error::ErrorType;

use super::Found;
use super::html::{Html, RenderError, Unrendered};
use crate::http::body::cache::HERE_BYTES;
use crate::http::discounts::{ShownDiscount, spliced};
use crate::http::error::ApiError;
use crate::http::request::request_id;
use crate::http::response::Audience;
use crate::http::response::entity_tag::EntityTag;
use crate::http::response::resource::{CachePolicy, Resource};
use crate::http::routes::Captured;

/// A text that is served.
enum Shown {
    Markdown(TextDigest, PackedMarkdown),
    Html(Arc<Html>),
}

impl Shown {
    /// A hash of the text.
    fn hash(&self) -> &[u8] {
        match self {
            Self::Markdown(digest, _) => digest.as_bytes(),
            Self::Html(html) => html.hash(),
        }
    }

    fn length_bytes(&self) -> usize {
        match self {
            Self::Markdown(_, markdown) => markdown.length_bytes(),
            Self::Html(html) => html.as_str().len(),
        }
    }

    fn text(&self) -> Result<String, ApiError> {
        match self {
            Self::Markdown(digest, markdown) => unpacked(digest, markdown),
            Self::Html(html) => Ok(html.as_str().to_owned()),
        }
    }
}

/// Returns the Markdown of the digest in a path.
///
/// # Errors
///
/// If the snapshot has no such text, or if it is damaged.
pub(crate) fn find(
    snapshot: &Snapshot,
    captured: &Captured,
    now: Timestamp,
) -> Result<Resource<'static>, ApiError> {
    let Captured::Digest(digest) = captured else {
        return Err(ApiError::no_such_text());
    };
    let markdown = snapshot
        .text(digest, now)
        .ok_or_else(ApiError::no_such_text)?;
    let digest = *digest;
    check(&digest, &markdown)?;
    // Else each of many who ask for a long one, and are slow to take it, would have a copy of its own.
    let keep = match markdown.length_bytes() > HERE_BYTES {
        true => CachePolicy::Always,
        false => CachePolicy::Never,
    };
    let length = markdown.length_bytes();
    let unpack = move || Ok(unpacked(&digest, &markdown)?.into_bytes());
    let text = Resource::made(EntityTag::of_digest(digest.as_bytes()), length, unpack);
    Ok(text.cached_plain(keep).for_audience(Audience::Text))
}

/// A product with its texts as Markdown or HTML, and perhaps another discount than the rendered one. `content` is where its
/// content resources lie, behind the discount. `html` returns the HTML of a text if there is any yet.
pub(super) fn in_product<'s>(
    snapshot: &'s Snapshot,
    addresses: &TextAddresses,
    html: impl Fn(&TextDigest) -> Option<Result<Arc<Html>, RenderError>>,
    product: ProductView<'s>,
    discount: Option<ShownDiscount>,
    content: Range<usize>,
    form: ContentForm,
) -> Result<Found<'s>, ApiError> {
    let now = Timestamp::now();
    let mut unrendered: Vec<Unrendered> = Vec::new();
    let mut show = |url: &str| -> Result<Option<Shown>, ApiError> {
        let held = addresses.digest(url);
        let served = held.and_then(|digest| Some((digest, snapshot.text(&digest, now)?)));
        let Some((digest, markdown)) = served else {
            return Ok(None);
        };
        check(&digest, &markdown)?;
        if form == ContentForm::Md {
            return Ok(Some(Shown::Markdown(digest, markdown)));
        }
        let Some(html) = html(&digest) else {
            unrendered.push((digest, markdown));
            return Ok(None);
        };
        let html = html.map_err(|error| not_rendered(error, &digest))?;
        Ok(Some(Shown::Html(html)))
    };
    let unreadable = move |error| unreadable(product.code(), &error);
    let bytes = product.bytes();
    let ParsedContent { urls, locale } =
        parse_content(&bytes[content.clone()]).map_err(unreadable)?;
    let mut texts = PerText::<Option<Shown>>::default();
    for (name, url) in urls.iter() {
        if let Some(url) = url {
            *texts.get_mut(name) = show(url)?;
        }
    }
    if !unrendered.is_empty() {
        return Ok(Found::Unrendered(unrendered));
    }
    let head = &bytes[..content.start];
    let parts = Parts {
        head: match discount {
            Some(discount) => spliced(head, &discount).into(),
            None => head.into(),
        },
        locale: locale.unwrap_or_default(),
        tail: &bytes[content.end..],
    };
    let shown = texts.iter().flat_map(|(_, text)| text);
    let length = bytes.len() + shown.map(Shown::length_bytes).sum::<usize>();
    let found = Resource::made(parts.tag(form, &texts), length, move || {
        let mut shown = PerText::<Option<String>>::default();
        for (name, text) in texts.iter() {
            *shown.get_mut(name) = text.as_ref().map(Shown::text).transpose()?;
        }
        let locale = Some(&*parts.locale).filter(|locale| !locale.is_empty());
        let content = content_json(form, locale, |name| shown.get_mut(name).take());
        let content = content.map_err(unreadable)?;
        Ok([&*parts.head, &content, parts.tail].concat())
    });
    Ok(Found::Resource(found))
}

/// Returns the error of content resources that can't be read back.
fn unreadable(code: &str, error: &serde_json::Error) -> ApiError {
    let error: &dyn std::error::Error = error;
    tracing::error!(
        code,
        error,
        request_id = request_id::current(),
        "the content resources can't be read back"
    );
    ApiError::plain(ErrorType::InternalServerError)
}

/// Returns the error of a text without HTML.
fn not_rendered(error: RenderError, digest: &TextDigest) -> ApiError {
    match error {
        RenderError::Busy => ApiError::overloaded(),
        RenderError::Damaged => damaged(digest),
    }
}

/// A product's bytes, cut around its content resources.
struct Parts<'s> {
    head: Cow<'s, [u8]>,
    /// Empty where there is none.
    locale: Cow<'s, str>,
    tail: &'s [u8],
}

impl Parts<'_> {
    /// The tag of the product with these texts in place: of all that determines its bytes.
    fn tag(&self, form: ContentForm, texts: &PerText<Option<Shown>>) -> EntityTag {
        // What varies in length is preceded by its length, so that no two lists of parts run together
        // into the same bytes.
        let head_bytes = self.head.len().to_le_bytes();
        let tail_bytes = self.tail.len().to_le_bytes();
        let around: [&[u8]; 6] = [
            form.as_str().as_bytes(),
            &head_bytes,
            &self.head,
            &tail_bytes,
            self.tail,
            self.locale.as_bytes(),
        ];
        let hashes = texts.iter().flat_map(|(_, text)| match text {
            Some(text) => [&b"+"[..], text.hash()],
            None => [&b"-"[..], &[]],
        });
        EntityTag::of_parts(around.into_iter().chain(hashes))
    }
}

/// The Markdown of a text, which was found to be sound when it was read.
fn unpacked(digest: &TextDigest, markdown: &PackedMarkdown) -> Result<String, ApiError> {
    markdown.unpack_as(digest).map_err(|_| damaged(digest))
}

/// Refuses a text that is damaged in the store, before it costs anything.
fn check(digest: &TextDigest, markdown: &PackedMarkdown) -> Result<(), ApiError> {
    match markdown.is_damaged() {
        true => Err(damaged(digest)),
        false => Ok(()),
    }
}

/// The error of a damaged text. The log tells of it, the client learns only that the service failed.
fn damaged(digest: &TextDigest) -> ApiError {
    tracing::error!(%digest, request_id = request_id::current(), "a text is damaged");
    ApiError::plain(ErrorType::InternalServerError)
}
