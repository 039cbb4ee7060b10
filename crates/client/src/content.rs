//! A product's texts in the three forms of the `content` parameter (docs/contract/texts.md#forms).

use crate::object::object;

object!(
    /// Texts as URLs of Markdown; `None` if the product has no such text. [`Client::text`](crate::Client::text) fetches one.
    ContentUrls {
        /// Description of the product.
        description_markdown_url: Option<String>,
        /// Disclaimer.
        disclaimer_markdown_url: Option<String>,
        /// Policy on refunds.
        refund_policy_markdown_url: Option<String>,
        /// Policy on replacing lost codes.
        reissuance_policy_markdown_url: Option<String>,
        /// Terms for the buyer.
        terms_buyer_markdown_url: Option<String>,
        /// Terms for the person who spends it.
        terms_consumer_markdown_url: Option<String>,
        /// Instructions for redeeming it.
        redemption_instructions_markdown_url: Option<String>,
        /// Locale of the texts, in the form language_COUNTRY.
        locale: Option<String>,
    }
);

object!(
    /// Texts as Markdown; `None` if the product has no such text, or the server knows only its URL.
    ContentMarkdown {
        /// Description of the product.
        description_md: Option<String>,
        /// Disclaimer.
        disclaimer_md: Option<String>,
        /// Policy on refunds.
        refund_policy_md: Option<String>,
        /// Policy on replacing lost codes.
        reissuance_policy_md: Option<String>,
        /// Terms for the buyer.
        terms_buyer_md: Option<String>,
        /// Terms for the person who spends it.
        terms_consumer_md: Option<String>,
        /// Instructions for redeeming it.
        redemption_instructions_md: Option<String>,
        /// Locale of the texts, in the form language_COUNTRY.
        locale: Option<String>,
    }
);

object!(
    /// Texts as HTML that the server has sanitised; `None` if the product has no such text, or the server knows only its
    /// URL.
    ContentHtml {
        /// Description of the product.
        description_html: Option<String>,
        /// Disclaimer.
        disclaimer_html: Option<String>,
        /// Policy on refunds.
        refund_policy_html: Option<String>,
        /// Policy on replacing lost codes.
        reissuance_policy_html: Option<String>,
        /// Terms for the buyer.
        terms_buyer_html: Option<String>,
        /// Terms for the person who spends it.
        terms_consumer_html: Option<String>,
        /// Instructions for redeeming it.
        redemption_instructions_html: Option<String>,
        /// Locale of the texts, in the form language_COUNTRY.
        locale: Option<String>,
    }
);
