//! The three forms of a product's texts.

use std::borrow::Cow;

use vitrine_wire::content::{ContentHtml, ContentMarkdown, ContentResources, ContentUrls};

/// The form of a product's texts that the `content` parameter asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ContentForm {
    /// Addresses of Markdown.
    #[default]
    Url,
    /// Markdown.
    Md,
    /// HTML.
    Html,
}

impl ContentForm {
    /// Every form, the default first.
    pub const ALL: [Self; 3] = [Self::Url, Self::Md, Self::Html];

    /// The form in the contract's spelling.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Url => "url",
            Self::Md => "md",
            Self::Html => "html",
        }
    }
}

/// Renders content resources as Markdown or HTML; `text` gives the text of an address in that form.
///
/// # Errors
///
/// Where `urls_json` isn't the URL form of content resources.
pub fn content_json(
    urls_json: &[u8],
    form: ContentForm,
    mut text: impl FnMut(&str) -> Option<String>,
) -> serde_json::Result<Vec<u8>> {
    let urls: ContentUrls<'_> = serde_json::from_slice(urls_json)?;
    let mut text = |url: &Option<Cow<'_, str>>| text(url.as_deref()?).map(Cow::Owned);
    let content = match form {
        ContentForm::Url => ContentResources::Url(urls),
        ContentForm::Md => ContentResources::Md(ContentMarkdown {
            description_md: text(&urls.description_markdown_url),
            disclaimer_md: text(&urls.disclaimer_markdown_url),
            refund_policy_md: text(&urls.refund_policy_markdown_url),
            reissuance_policy_md: text(&urls.reissuance_policy_markdown_url),
            terms_buyer_md: text(&urls.terms_buyer_markdown_url),
            terms_consumer_md: text(&urls.terms_consumer_markdown_url),
            redemption_instructions_md: text(&urls.redemption_instructions_markdown_url),
            locale: urls.locale,
        }),
        ContentForm::Html => ContentResources::Html(ContentHtml {
            description_html: text(&urls.description_markdown_url),
            disclaimer_html: text(&urls.disclaimer_markdown_url),
            refund_policy_html: text(&urls.refund_policy_markdown_url),
            reissuance_policy_html: text(&urls.reissuance_policy_markdown_url),
            terms_buyer_html: text(&urls.terms_buyer_markdown_url),
            terms_consumer_html: text(&urls.terms_consumer_markdown_url),
            redemption_instructions_html: text(&urls.redemption_instructions_markdown_url),
            locale: urls.locale,
        }),
    };
    serde_json::to_vec(&content)
}
