//! A product's texts: their names, their state, and the changes that a load makes to them.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest, Sha256};

use crate::Invalid;
use crate::geo::Locale;
use crate::hexadecimal::{self, Hexadecimal};
use crate::url::WebUrl;

mod packed;

pub use packed::PackedMarkdown;

/// The texts that a product can have (docs/contract/texts.md#names).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TextName {
    /// Description of the product.
    Description,
    /// Disclaimer.
    Disclaimer,
    /// Policy on refunds.
    RefundPolicy,
    /// Policy on replacing lost codes.
    ReissuancePolicy,
    /// Terms for the buyer.
    TermsBuyer,
    /// Terms for the person who spends it.
    TermsConsumer,
    /// Instructions for redeeming it.
    RedemptionInstructions,
}

impl TextName {
    /// All names, in the contract's order.
    pub const ALL: [Self; 7] = [
        Self::Description,
        Self::Disclaimer,
        Self::RefundPolicy,
        Self::ReissuancePolicy,
        Self::TermsBuyer,
        Self::TermsConsumer,
        Self::RedemptionInstructions,
    ];

    /// Returns the name in the contract's spelling.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Description => "description",
            Self::Disclaimer => "disclaimer",
            Self::RefundPolicy => "refund_policy",
            Self::ReissuancePolicy => "reissuance_policy",
            Self::TermsBuyer => "terms_buyer",
            Self::TermsConsumer => "terms_consumer",
            Self::RedemptionInstructions => "redemption_instructions",
        }
    }
}

impl FromStr for TextName {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        Self::ALL
            .into_iter()
            .find(|name| name.as_str() == text)
            .ok_or(Invalid::new("text_name", "the name of a text"))
    }
}

/// SHA-256 of a text's Markdown: its name in URLs and in the store.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TextDigest([u8; 32]);

impl TextDigest {
    /// Path of texts at the public URL of a server, before a digest (docs/contract/texts.md#urls).
    pub const PATH: &str = "/v2/texts/";

    /// Returns the digest in the address that a server gives a text: `…/v2/texts/DIGEST.md`.
    #[must_use]
    pub fn in_address(address: &str) -> Option<Self> {
        let (_, name) = address.rsplit_once(Self::PATH)?;
        name.strip_suffix(".md")?.parse().ok()
    }

    /// Returns the digest of `markdown`.
    #[must_use]
    pub fn of(markdown: &str) -> Self {
        Self(Sha256::digest(markdown.as_bytes()).into())
    }

    /// Returns the digest's bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Returns the digest with these bytes, as a store keeps them.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
}

impl fmt::Display for TextDigest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&Hexadecimal(&self.0), out)
    }
}

impl fmt::Debug for TextDigest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

impl FromStr for TextDigest {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let invalid = Invalid::new("text_digest", "64 lower-case hexadecimal digits");
        hexadecimal::read(text).map(Self).ok_or(invalid)
    }
}

/// State of one text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Text {
    /// No such text.
    #[default]
    None,
    /// Only its URL outside the catalog is known.
    Outside(WebUrl),
    /// The store has its Markdown.
    Own {
        /// Its digest.
        digest: TextDigest,
        /// The URL it was downloaded from.
        source: Option<WebUrl>,
    },
}

impl Text {
    /// Returns its URL outside the catalog, if that is known.
    #[must_use]
    pub fn address(&self) -> Option<&WebUrl> {
        match self {
            Self::None => None,
            Self::Outside(url) => Some(url),
            Self::Own { source, .. } => source.as_ref(),
        }
    }
}

/// One value for each text name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PerText<T>([T; 7]);

impl<T> PerText<T> {
    /// Calls `make` for each name, in the contract's order.
    pub fn from_fn(make: impl FnMut(TextName) -> T) -> Self {
        Self(TextName::ALL.map(make))
    }

    /// Returns the value for `name`.
    #[must_use]
    pub fn get(&self, name: TextName) -> &T {
        &self.0[name as usize]
    }

    /// Returns the value for `name`, mutable.
    pub fn get_mut(&mut self, name: TextName) -> &mut T {
        &mut self.0[name as usize]
    }

    /// Returns what `convert` makes of each value.
    pub fn map<U>(self, convert: impl FnMut(T) -> U) -> PerText<U> {
        PerText(self.0.map(convert))
    }

    /// Iterates over all names with their values, in the contract's order.
    pub fn iter(&self) -> impl Iterator<Item = (TextName, &T)> {
        TextName::ALL.into_iter().zip(&self.0)
    }
}

/// A product's texts and their locale.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Content {
    /// The locale of all of them.
    pub locale: Option<Locale>,
    /// The texts.
    pub texts: PerText<Text>,
}

/// Change of one value by a load.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Update<T> {
    /// The key was absent: the live value stays.
    #[default]
    Keep,
    /// The key was null: the value is removed.
    Remove,
    /// The key had a value: it replaces the live one.
    Set(T),
}

/// Text in a load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoadedText {
    /// A URL outside the catalog.
    Outside(WebUrl),
    /// Markdown that comes with the load, perhaps with its source.
    Markdown {
        /// Its digest.
        digest: TextDigest,
        /// The URL it was downloaded from.
        source: Option<WebUrl>,
    },
}

/// Changes of a product's texts by a load.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ContentUpdate {
    /// Change of their locale.
    pub locale: Update<Locale>,
    /// Change of each text.
    pub texts: PerText<Update<LoadedText>>,
}

impl ContentUpdate {
    /// Returns the texts after this update of `live` (docs/contract/texts.md#loading).
    ///
    /// An absent key leaves a text as it is; null removes it. The URL that the Markdown came from keeps the
    /// Markdown; another URL drops it. A URL that ends in the service's own name of the text
    /// (`/v2/texts/DIGEST.md`) keeps it too: responses of the service can be loaded back without losing Markdown.
    #[must_use]
    pub fn apply(&self, live: &Content) -> Content {
        Content {
            locale: match self.locale {
                Update::Keep => live.locale,
                Update::Remove => None,
                Update::Set(locale) => Some(locale),
            },
            texts: PerText::from_fn(|name| {
                let before = live.texts.get(name);
                match self.texts.get(name) {
                    Update::Keep => before.clone(),
                    Update::Remove => Text::None,
                    Update::Set(LoadedText::Markdown { digest, source }) => Text::Own {
                        digest: *digest,
                        source: source.clone(),
                    },
                    Update::Set(LoadedText::Outside(url)) => {
                        if came_from(before, url) {
                            before.clone()
                        } else {
                            Text::Outside(url.clone())
                        }
                    }
                }
            }),
        }
    }
}

/// Returns true if `text` has the Markdown of `url` already.
fn came_from(text: &Text, url: &WebUrl) -> bool {
    let Text::Own { digest, source } = text else {
        return false;
    };
    source.as_ref() == Some(url) || TextDigest::in_address(url.as_str()) == Some(*digest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> WebUrl {
        text.parse().unwrap()
    }

    fn live(text: Text) -> Content {
        let mut content = Content::default();
        *content.texts.get_mut(TextName::Disclaimer) = text;
        content
    }

    fn after(update: Update<LoadedText>, before: Text) -> Text {
        let mut content = ContentUpdate::default();
        *content.texts.get_mut(TextName::Disclaimer) = update;
        content
            .apply(&live(before))
            .texts
            .get(TextName::Disclaimer)
            .clone()
    }

    #[test]
    fn texts_not_named_by_a_load_stay() {
        let fetched = Text::Own {
            digest: TextDigest::of("# A"),
            source: Some(url("https://a.example/a.md")),
        };
        let outside = |text: &str| Update::Set(LoadedText::Outside(url(text)));
        assert_eq!(after(Update::Keep, fetched.clone()), fetched);
        assert_eq!(after(Update::Remove, fetched.clone()), Text::None);
        assert_eq!(
            after(outside("https://a.example/a.md"), fetched.clone()),
            fetched
        );
        assert_eq!(
            after(outside("https://a.example/b.md"), fetched.clone()),
            Text::Outside(url("https://a.example/b.md"))
        );
        let own = format!(
            "https://vitrine.example/x/v2/texts/{}.md",
            TextDigest::of("# A")
        );
        assert_eq!(after(outside(&own), fetched.clone()), fetched);
        assert_eq!(after(outside(&own), Text::None), Text::Outside(url(&own)));
    }

    #[test]
    fn addresses_of_texts_only_have_a_digest() {
        let digest = TextDigest::of("# A");
        for address in [
            format!("https://a.example/v2/texts/{digest}.md"),
            format!("http://a.example/b/v2/texts/x/v2/texts/{digest}.md"),
        ] {
            assert_eq!(TextDigest::in_address(&address), Some(digest), "{address}");
        }
        for address in [
            format!("https://a.example/texts/{digest}.md"),
            format!("https://a.example/v2/texts/{digest}.md?a"),
            format!("https://a.example/v2/texts/{digest}"),
            "https://a.example/v2/texts/a.md".to_owned(),
        ] {
            assert_eq!(TextDigest::in_address(&address), None, "{address}");
        }
    }

    #[test]
    fn digests_survive_a_round_trip() {
        let digest = TextDigest::of("Grüße");
        assert_eq!(digest.to_string().parse::<TextDigest>().unwrap(), digest);
        let upper = digest.to_string().to_uppercase();
        for wrong in ["", "ab", &upper, &"g".repeat(64)] {
            assert!(wrong.parse::<TextDigest>().is_err());
        }
    }
}
