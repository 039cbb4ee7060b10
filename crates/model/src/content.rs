//! A product's texts: which there are, what is known of each, and what a load does to them.

use std::fmt;
use std::str::FromStr;

use bytes::Bytes;
use sha2::{Digest, Sha256};

use crate::Invalid;
use crate::hexadecimal::{self, Hexadecimal};
use crate::place::Locale;
use crate::web::WebUrl;

/// The texts that a product can have (decisions, "Texts").
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TextName {
    /// What the product is.
    Description,
    /// What it is not.
    Disclaimer,
    /// Whether money comes back.
    RefundPolicy,
    /// Whether a lost code is replaced.
    ReissuancePolicy,
    /// Terms for whoever buys it.
    TermsBuyer,
    /// Terms for whoever spends it.
    TermsConsumer,
    /// How it is spent.
    RedemptionInstructions,
}

impl TextName {
    /// Every name, in the contract's order.
    pub const ALL: [Self; 7] = [
        Self::Description,
        Self::Disclaimer,
        Self::RefundPolicy,
        Self::ReissuancePolicy,
        Self::TermsBuyer,
        Self::TermsConsumer,
        Self::RedemptionInstructions,
    ];

    /// The name in the contract's spelling.
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

/// The SHA-256 of a text's Markdown: its name in addresses and in the store.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TextDigest([u8; 32]);

impl TextDigest {
    /// The digest of `markdown`.
    #[must_use]
    pub fn of(markdown: &str) -> Self {
        Self(Sha256::digest(markdown.as_bytes()).into())
    }

    /// The digest's bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// A digest from its bytes, as a store keeps it.
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

/// What is known of one text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Text {
    /// There is none.
    #[default]
    None,
    /// Only the outside address is known.
    Outside(WebUrl),
    /// The Markdown is held.
    Own {
        /// Its digest.
        digest: TextDigest,
        /// The outside address it came from.
        source: Option<WebUrl>,
    },
}

impl Text {
    /// The outside address that is known of it.
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
    /// Makes a value for each name.
    pub fn from_fn(make: impl FnMut(TextName) -> T) -> Self {
        Self(TextName::ALL.map(make))
    }

    /// The value for `name`.
    #[must_use]
    pub fn get(&self, name: TextName) -> &T {
        &self.0[name as usize]
    }

    /// The value for `name`, to change.
    pub fn get_mut(&mut self, name: TextName) -> &mut T {
        &mut self.0[name as usize]
    }

    /// Every name with its value, in the contract's order.
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

/// What a load says of one value: nothing, that there is none, or what it is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Update<T> {
    /// The key was absent: what is live stays.
    #[default]
    Keep,
    /// The key was null: there is no value any more.
    Remove,
    /// A value was given.
    Set(T),
}

/// What a load gives for one text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoadedText {
    /// An outside address.
    Outside(WebUrl),
    /// The Markdown, perhaps with the address it came from.
    Markdown {
        /// The text.
        markdown: String,
        /// Where it came from.
        source: Option<WebUrl>,
    },
}

/// What a load says of a product's texts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ContentUpdate {
    /// Of their locale.
    pub locale: Update<Locale>,
    /// Of each text.
    pub texts: PerText<Update<LoadedText>>,
}

impl ContentUpdate {
    /// The texts after this update of `live` (decisions, "Texts").
    ///
    /// An absent key leaves a text as it is and null removes it. The same address keeps the
    /// Markdown that came from it, another drops that. An address that ends in this service's own
    /// name of the text held here (`/v2/texts/DIGEST.md`) is that text: so an answer of the
    /// service can be loaded back without losing its Markdown.
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
                    Update::Set(LoadedText::Markdown { markdown, source }) => Text::Own {
                        digest: TextDigest::of(markdown),
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

/// Whether `url` names what `text` already holds.
fn came_from(text: &Text, url: &WebUrl) -> bool {
    let Text::Own { digest, source } = text else {
        return false;
    };
    source.as_ref() == Some(url) || url.as_str().ends_with(&format!("/v2/texts/{digest}.md"))
}

/// What is wrong with packed bytes that aren't the text they should be.
const DAMAGED: Invalid = Invalid::new("text_damaged", "a text as it was packed");

/// A text's Markdown, compressed: how it rests in the store and in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackedMarkdown(Bytes);

impl From<Bytes> for PackedMarkdown {
    /// What a store kept, in memory that may be shared.
    fn from(bytes: Bytes) -> Self {
        Self(bytes)
    }
}

impl PackedMarkdown {
    /// The longest Markdown of one text, in bytes.
    pub const MAX_LENGTH_BYTES: usize = 1 << 20;

    /// Compresses `markdown`.
    ///
    /// # Errors
    ///
    /// Where it is longer than [`MAX_LENGTH_BYTES`](Self::MAX_LENGTH_BYTES), so that whatever was
    /// packed can be unpacked in bounded memory.
    pub fn pack(markdown: &str) -> Result<Self, Invalid> {
        let invalid = Invalid::new("text_too_long", "Markdown of at most 1 MiB");
        if markdown.len() > Self::MAX_LENGTH_BYTES {
            return Err(invalid);
        }
        zstd::bulk::compress(markdown.as_bytes(), 3)
            .map(|bytes| Self(bytes.into()))
            .map_err(|_| invalid)
    }

    /// The compressed bytes, for a store.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// What a store kept.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self(Bytes::copy_from_slice(bytes))
    }

    /// How many bytes the Markdown has, as the packed ones say; the longest text's where they are damaged.
    #[must_use]
    pub fn length_bytes(&self) -> usize {
        let told = zstd::zstd_safe::get_frame_content_size(&self.0);
        let told: Option<usize> = told.ok().flatten().and_then(|told| told.try_into().ok());
        let most = Self::MAX_LENGTH_BYTES;
        told.unwrap_or(most).min(most)
    }

    /// The Markdown of this digest.
    ///
    /// # Errors
    ///
    /// Where the bytes are damaged, even so that they are those of another text: what is packed has no checksum of
    /// its own.
    pub fn unpack_as(&self, digest: &TextDigest) -> Result<String, Invalid> {
        let markdown = self.unpack()?;
        let is_whole = TextDigest::of(&markdown) == *digest;
        is_whole.then_some(markdown).ok_or(DAMAGED)
    }

    /// The Markdown, whatever its digest.
    ///
    /// # Errors
    ///
    /// Where the bytes are damaged so that they are no text.
    pub fn unpack(&self) -> Result<String, Invalid> {
        let bytes = zstd::bulk::decompress(&self.0, self.length_bytes()).map_err(|_| DAMAGED)?;
        String::from_utf8(bytes).map_err(|_| DAMAGED)
    }
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
    fn a_later_load_changes_only_what_it_names() {
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
    fn digests_and_packed_texts_come_back() {
        let digest = TextDigest::of("Grüße");
        assert_eq!(digest.to_string().parse::<TextDigest>().unwrap(), digest);
        let upper = digest.to_string().to_uppercase();
        for wrong in ["", "ab", &upper, &"g".repeat(64)] {
            assert!(wrong.parse::<TextDigest>().is_err());
        }
        let packed = PackedMarkdown::pack("Grüße").unwrap();
        assert_eq!(packed.length_bytes(), "Grüße".len());
        assert_eq!(packed.unpack().unwrap(), "Grüße");
        assert_eq!(packed.unpack_as(&digest).unwrap(), "Grüße");
        assert!(packed.unpack_as(&TextDigest::of("Gruß")).is_err());
        assert!(PackedMarkdown::from_bytes(b"junk").unpack().is_err());
        assert!(PackedMarkdown::pack(&"x".repeat((1 << 20) + 1)).is_err());
    }
}
