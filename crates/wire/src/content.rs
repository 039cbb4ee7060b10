//! A product's texts in the three forms of the `content` parameter (docs/contract/texts.md#forms).

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// The product's texts in the form that the `content` parameter asked for: the fields `*_markdown_url`, `*_md` or `*_html`. The fields of the other two forms are absent.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum ContentResources<'a> {
    /// `url`
    Url(ContentUrls<'a>),
    /// `md`
    Md(ContentMarkdown<'a>),
    /// `html`
    Html(ContentHtml<'a>),
}

/// The texts as addresses of Markdown; null where there is no such text.
#[derive(Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ContentUrls<'a> {
    /// The address of Markdown: what the product is.
    #[serde(borrow)]
    pub description_markdown_url: Option<Cow<'a, str>>,
    /// The address of Markdown: its disclaimer.
    #[serde(borrow)]
    pub disclaimer_markdown_url: Option<Cow<'a, str>>,
    /// The address of Markdown: whether money comes back.
    #[serde(borrow)]
    pub refund_policy_markdown_url: Option<Cow<'a, str>>,
    /// The address of Markdown: whether a lost code is replaced.
    #[serde(borrow)]
    pub reissuance_policy_markdown_url: Option<Cow<'a, str>>,
    /// The address of Markdown: terms for whoever buys it.
    #[serde(borrow)]
    pub terms_buyer_markdown_url: Option<Cow<'a, str>>,
    /// The address of Markdown: terms for whoever spends it.
    #[serde(borrow)]
    pub terms_consumer_markdown_url: Option<Cow<'a, str>>,
    /// The address of Markdown: how it is redeemed.
    #[serde(borrow)]
    pub redemption_instructions_markdown_url: Option<Cow<'a, str>>,
    /// The locale of the texts, of the form language_COUNTRY.
    #[serde(borrow)]
    #[cfg_attr(feature = "schema", schemars(regex(pattern = "^[a-z]{2}_[A-Z]{2}$")))]
    pub locale: Option<Cow<'a, str>>,
}

/// The texts as Markdown; null where there is no such text, or only its address is known.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ContentMarkdown<'a> {
    /// Markdown: what the product is.
    pub description_md: Option<Cow<'a, str>>,
    /// Markdown: its disclaimer.
    pub disclaimer_md: Option<Cow<'a, str>>,
    /// Markdown: whether money comes back.
    pub refund_policy_md: Option<Cow<'a, str>>,
    /// Markdown: whether a lost code is replaced.
    pub reissuance_policy_md: Option<Cow<'a, str>>,
    /// Markdown: terms for whoever buys it.
    pub terms_buyer_md: Option<Cow<'a, str>>,
    /// Markdown: terms for whoever spends it.
    pub terms_consumer_md: Option<Cow<'a, str>>,
    /// Markdown: how it is redeemed.
    pub redemption_instructions_md: Option<Cow<'a, str>>,
    /// The locale of the texts, of the form language_COUNTRY.
    #[cfg_attr(feature = "schema", schemars(regex(pattern = "^[a-z]{2}_[A-Z]{2}$")))]
    pub locale: Option<Cow<'a, str>>,
}

/// The texts as sanitised HTML; null where there is no such text, or only its address is known.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ContentHtml<'a> {
    /// HTML: what the product is.
    pub description_html: Option<Cow<'a, str>>,
    /// HTML: its disclaimer.
    pub disclaimer_html: Option<Cow<'a, str>>,
    /// HTML: whether money comes back.
    pub refund_policy_html: Option<Cow<'a, str>>,
    /// HTML: whether a lost code is replaced.
    pub reissuance_policy_html: Option<Cow<'a, str>>,
    /// HTML: terms for whoever buys it.
    pub terms_buyer_html: Option<Cow<'a, str>>,
    /// HTML: terms for whoever spends it.
    pub terms_consumer_html: Option<Cow<'a, str>>,
    /// HTML: how it is redeemed.
    pub redemption_instructions_html: Option<Cow<'a, str>>,
    /// The locale of the texts, of the form language_COUNTRY.
    #[cfg_attr(feature = "schema", schemars(regex(pattern = "^[a-z]{2}_[A-Z]{2}$")))]
    pub locale: Option<Cow<'a, str>>,
}
