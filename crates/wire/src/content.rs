//! A product's texts in the three forms of the `content` parameter (docs/contract/texts.md#forms).

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// Texts of the product in the form selected by the `content` parameter: the fields `*_markdown_url`, `*_md` or `*_html`. The fields of the other two forms are absent.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum ContentResources<'a> {
    /// `url`
    Url(ContentUrls<'a>),
    /// `md`
    Md(ContentMarkdown<'a>),
    /// `html`
    Html(ContentHtml<'a>),
}

/// Texts as URLs of Markdown; null if the product has no such text.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct ContentUrls<'a> {
    /// URL of Markdown: description of the product.
    #[serde(borrow)]
    pub description_markdown_url: Option<Cow<'a, str>>,
    /// URL of Markdown: disclaimer.
    #[serde(borrow)]
    pub disclaimer_markdown_url: Option<Cow<'a, str>>,
    /// URL of Markdown: policy on refunds.
    #[serde(borrow)]
    pub refund_policy_markdown_url: Option<Cow<'a, str>>,
    /// URL of Markdown: policy on replacing lost codes.
    #[serde(borrow)]
    pub reissuance_policy_markdown_url: Option<Cow<'a, str>>,
    /// URL of Markdown: terms for the buyer.
    #[serde(borrow)]
    pub terms_buyer_markdown_url: Option<Cow<'a, str>>,
    /// URL of Markdown: terms for the person who spends it.
    #[serde(borrow)]
    pub terms_consumer_markdown_url: Option<Cow<'a, str>>,
    /// URL of Markdown: instructions for redeeming it.
    #[serde(borrow)]
    pub redemption_instructions_markdown_url: Option<Cow<'a, str>>,
    /// Locale of the texts, in the form language_COUNTRY.
    #[serde(borrow)]
    pub locale: Option<Cow<'a, str>>,
}

/// Texts as Markdown; null if the product has no such text, or only its URL is known.
#[derive(Debug, Default, Serialize)]
pub struct ContentMarkdown<'a> {
    /// Markdown: description of the product.
    pub description_md: Option<Cow<'a, str>>,
    /// Markdown: disclaimer.
    pub disclaimer_md: Option<Cow<'a, str>>,
    /// Markdown: policy on refunds.
    pub refund_policy_md: Option<Cow<'a, str>>,
    /// Markdown: policy on replacing lost codes.
    pub reissuance_policy_md: Option<Cow<'a, str>>,
    /// Markdown: terms for the buyer.
    pub terms_buyer_md: Option<Cow<'a, str>>,
    /// Markdown: terms for the person who spends it.
    pub terms_consumer_md: Option<Cow<'a, str>>,
    /// Markdown: instructions for redeeming it.
    pub redemption_instructions_md: Option<Cow<'a, str>>,
    /// Locale of the texts, in the form language_COUNTRY.
    pub locale: Option<Cow<'a, str>>,
}

/// Texts as sanitised HTML; null if the product has no such text, or only its URL is known.
#[derive(Debug, Default, Serialize)]
pub struct ContentHtml<'a> {
    /// HTML: description of the product.
    pub description_html: Option<Cow<'a, str>>,
    /// HTML: disclaimer.
    pub disclaimer_html: Option<Cow<'a, str>>,
    /// HTML: policy on refunds.
    pub refund_policy_html: Option<Cow<'a, str>>,
    /// HTML: policy on replacing lost codes.
    pub reissuance_policy_html: Option<Cow<'a, str>>,
    /// HTML: terms for the buyer.
    pub terms_buyer_html: Option<Cow<'a, str>>,
    /// HTML: terms for the person who spends it.
    pub terms_consumer_html: Option<Cow<'a, str>>,
    /// HTML: instructions for redeeming it.
    pub redemption_instructions_html: Option<Cow<'a, str>>,
    /// Locale of the texts, in the form language_COUNTRY.
    pub locale: Option<Cow<'a, str>>,
}
