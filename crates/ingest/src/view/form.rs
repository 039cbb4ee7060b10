//! Three forms of a product's texts.

use std::borrow::Cow;

use vitrine_model::content::{PerText, TextName};
use vitrine_wire::content::{ContentHtml, ContentMarkdown, ContentResources, ContentUrls};

/// Form of a product's texts, chosen by the parameter `content`.
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
    /// All forms, the default first.
    pub const ALL: [Self; 3] = [Self::Url, Self::Md, Self::Html];

    /// Returns the form in the contract's spelling.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Url => "url",
            Self::Md => "md",
            Self::Html => "html",
        }
    }
}

/// Content resources in URL form, parsed.
#[derive(Debug)]
pub struct ParsedContent<'a> {
    /// Address of each text.
    pub urls: PerText<Option<Cow<'a, str>>>,
    /// Locale of the texts.
    pub locale: Option<Cow<'a, str>>,
}

/// Parses content resources in URL form.
///
/// # Errors
///
/// If `urls_json` isn't content resources in URL form.
pub fn parse_content(urls_json: &[u8]) -> serde_json::Result<ParsedContent<'_>> {
    let ContentUrls {
        description_markdown_url,
        disclaimer_markdown_url,
        refund_policy_markdown_url,
        reissuance_policy_markdown_url,
        terms_buyer_markdown_url,
        terms_consumer_markdown_url,
        redemption_instructions_markdown_url,
        locale,
    } = serde_json::from_slice(urls_json)?;
    let mut urls = PerText::default();
    for (name, url) in [
        (TextName::Description, description_markdown_url),
        (TextName::Disclaimer, disclaimer_markdown_url),
        (TextName::RefundPolicy, refund_policy_markdown_url),
        (TextName::ReissuancePolicy, reissuance_policy_markdown_url),
        (TextName::TermsBuyer, terms_buyer_markdown_url),
        (TextName::TermsConsumer, terms_consumer_markdown_url),
        (
            TextName::RedemptionInstructions,
            redemption_instructions_markdown_url,
        ),
    ] {
        *urls.get_mut(name) = url;
    }
    Ok(ParsedContent { urls, locale })
}

/// Renders content resources; `text` returns the text of a name in that form.
///
/// # Errors
///
/// None in practice: texts can't fail to become JSON.
pub fn content_json(
    form: ContentForm,
    locale: Option<&str>,
    mut text: impl FnMut(TextName) -> Option<String>,
) -> serde_json::Result<Vec<u8>> {
    let locale = locale.map(Cow::Borrowed);
    let mut text = |name| text(name).map(Cow::Owned);
    let content = match form {
        ContentForm::Url => ContentResources::Url(ContentUrls {
            description_markdown_url: text(TextName::Description),
            disclaimer_markdown_url: text(TextName::Disclaimer),
            refund_policy_markdown_url: text(TextName::RefundPolicy),
            reissuance_policy_markdown_url: text(TextName::ReissuancePolicy),
            terms_buyer_markdown_url: text(TextName::TermsBuyer),
            terms_consumer_markdown_url: text(TextName::TermsConsumer),
            redemption_instructions_markdown_url: text(TextName::RedemptionInstructions),
            locale,
        }),
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
