//! The three forms of a product's texts.

use std::borrow::Cow;

use vitrine_model::content::TextName;
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

/// Renders content resources as Markdown or HTML; `text` gives the text of a name in that form.
///
/// # Errors
///
/// Where `urls_json` isn't the URL form of content resources.
pub fn content_json(
    urls_json: &[u8],
    form: ContentForm,
    mut text: impl FnMut(TextName) -> Option<String>,
) -> serde_json::Result<Vec<u8>> {
    let urls: ContentUrls<'_> = serde_json::from_slice(urls_json)?;
    let locale = urls.locale.clone();
    let mut text = |name| text(name).map(Cow::Owned);
    let content = match form {
        ContentForm::Url => ContentResources::Url(urls),
        ContentForm::Md => ContentResources::Md(ContentMarkdown {
            description_md: text(TextName::Description),
            disclaimer_md: text(TextName::Disclaimer),
            refund_policy_md: text(TextName::RefundPolicy),
            reissuance_policy_md: text(TextName::ReissuancePolicy),
            terms_buyer_md: text(TextName::TermsBuyer),
            terms_consumer_md: text(TextName::TermsConsumer),
            redemption_instructions_md: text(TextName::RedemptionInstructions),
            locale,
        }),
        ContentForm::Html => ContentResources::Html(ContentHtml {
            description_html: text(TextName::Description),
            disclaimer_html: text(TextName::Disclaimer),
            refund_policy_html: text(TextName::RefundPolicy),
            reissuance_policy_html: text(TextName::ReissuancePolicy),
            terms_buyer_html: text(TextName::TermsBuyer),
            terms_consumer_html: text(TextName::TermsConsumer),
            redemption_instructions_html: text(TextName::RedemptionInstructions),
            locale,
        }),
    };
    serde_json::to_vec(&content)
}

/// The locale of content resources.
///
/// # Errors
///
/// Where `urls_json` isn't the URL form of content resources.
pub fn content_locale(urls_json: &[u8]) -> serde_json::Result<Option<Cow<'_, str>>> {
    serde_json::from_slice(urls_json).map(|urls: ContentUrls<'_>| urls.locale)
}
