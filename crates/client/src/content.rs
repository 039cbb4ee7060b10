//! A product's texts in the three forms of the `content` parameter (docs/contract/texts.md#forms).

use crate::object::object;

object!(
    /// The texts as addresses of Markdown; `None` where there is no such text. [`Client::text`](crate::Client::text) reads one.
    ContentUrls {
        /// What the product is.
        description_markdown_url: Option<String>,
        /// Its disclaimer.
        disclaimer_markdown_url: Option<String>,
        /// Whether money comes back.
        refund_policy_markdown_url: Option<String>,
        /// Whether a lost code is replaced.
        reissuance_policy_markdown_url: Option<String>,
        /// Terms for whoever buys it.
        terms_buyer_markdown_url: Option<String>,
        /// Terms for whoever spends it.
        terms_consumer_markdown_url: Option<String>,
        /// How it is redeemed.
        redemption_instructions_markdown_url: Option<String>,
        /// The locale of the texts, of the form language_COUNTRY.
        locale: Option<String>,
    }
);

object!(
    /// The texts as Markdown; `None` where there is no such text, or the server knows only its address.
    ContentMarkdown {
        /// What the product is.
        description_md: Option<String>,
        /// Its disclaimer.
        disclaimer_md: Option<String>,
        /// Whether money comes back.
        refund_policy_md: Option<String>,
        /// Whether a lost code is replaced.
        reissuance_policy_md: Option<String>,
        /// Terms for whoever buys it.
        terms_buyer_md: Option<String>,
        /// Terms for whoever spends it.
        terms_consumer_md: Option<String>,
        /// How it is redeemed.
        redemption_instructions_md: Option<String>,
        /// The locale of the texts, of the form language_COUNTRY.
        locale: Option<String>,
    }
);

object!(
    /// The texts as HTML that the server has sanitised; `None` where there is no such text, or the server knows only its
    /// address.
    ContentHtml {
        /// What the product is.
        description_html: Option<String>,
        /// Its disclaimer.
        disclaimer_html: Option<String>,
        /// Whether money comes back.
        refund_policy_html: Option<String>,
        /// Whether a lost code is replaced.
        reissuance_policy_html: Option<String>,
        /// Terms for whoever buys it.
        terms_buyer_html: Option<String>,
        /// Terms for whoever spends it.
        terms_consumer_html: Option<String>,
        /// How it is redeemed.
        redemption_instructions_html: Option<String>,
        /// The locale of the texts, of the form language_COUNTRY.
        locale: Option<String>,
    }
);
