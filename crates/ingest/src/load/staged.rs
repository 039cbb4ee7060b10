//! A record without faults, as it waits until all inputs were read: its product as it will be stored, packed, in memory.
//! So a slow input never holds the store, and all faults are found before a publish begins.

use std::collections::HashMap;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use vitrine_model::code::ProductCode;
use vitrine_model::content::{
    Content, ContentUpdate, LoadedText, PackedMarkdown, PerText, Text, TextDigest, Update,
};
use vitrine_store::prepared::PreparedProduct;
use vitrine_store::record::StoredProduct;

use super::check::CheckedRecord;
use super::held_texts::may_name_texts;
use super::stored_texts::own_texts;
use crate::view;

/// A record without faults.
#[derive(Debug)]
pub(super) struct Staged {
    /// Product as it is stored if no live one of its code has texts that the record leaves as they are.
    pub(super) product: PreparedProduct,
    /// True if it may name texts by addresses of a server.
    pub(super) may_name_texts: bool,
    /// Texts that the record doesn't name, a bit for each, and [`KEEPS_LOCALE`].
    keeps: u8,
    /// Its JSON, packed, if it may have to be written back.
    json: Option<Box<[u8]>>,
}

/// Level at which JSON is packed: the fastest.
const PACKING_LEVEL: i32 = 1;

/// Bit of a record that doesn't name a locale, beside those of the seven texts.
const KEEPS_LOCALE: u8 = 1 << 7;

impl Staged {
    /// Renders and packs a record; its Markdown goes to `texts`.
    ///
    /// # Errors
    ///
    /// If something can't become JSON or be compressed, which the check has ruled out.
    pub(super) fn new(record: &CheckedRecord, texts: &BroughtTexts) -> anyhow::Result<Self> {
        let CheckedRecord {
            product,
            content: update,
            texts: brought,
        } = record;
        let content = update.apply(&Content::default());
        let document = view::document(product, &content)?;
        let mut keeps = 0;
        for (name, text) in update.texts.iter() {
            keeps |= u8::from(*text == Update::Keep) << name as u8;
        }
        if update.locale == Update::Keep {
            keeps |= KEEPS_LOCALE;
        }
        for (digest, markdown) in brought {
            texts.add(digest, markdown)?;
        }
        let product = StoredProduct {
            code: product.code.clone(),
            // A later payout type without content resources shows no texts, so it keeps none.
            own_texts: match document.content {
                Some(_) => own_texts(&content),
                None => Vec::new(),
            },
            document: document.json,
            content: document.content,
            discount_multiplier: product.discount_multiplier.to_string(),
            is_orderable: product.is_orderable,
            countries: product.countries_redeemable_in.clone(),
            categories: product.categories.iter().map(ToString::to_string).collect(),
        };
        Ok(Self {
            may_name_texts: may_name_texts(&product),
            product: PreparedProduct::new(product)?,
            keeps,
            json: None,
        })
    }

    /// Keeps its JSON, to be written back if another record of its code is rejected.
    ///
    /// # Errors
    ///
    /// If it can't be compressed.
    pub(super) fn keep_json(&mut self, json: &str) -> io::Result<()> {
        let packed = zstd::encode_all(json.as_bytes(), PACKING_LEVEL)?;
        self.json = Some(packed.into_boxed_slice());
        Ok(())
    }

    /// Returns its JSON, if it was kept.
    ///
    /// # Errors
    ///
    /// If its memory was damaged.
    pub(super) fn json(&self) -> io::Result<Option<String>> {
        let unpacked = self.json.as_deref().map(zstd::decode_all).transpose()?;
        let text = unpacked.map(String::from_utf8).transpose();
        text.map_err(io::Error::other)
    }

    pub(super) fn code(&self) -> &ProductCode {
        self.product.code()
    }

    /// Returns the changes of the product's texts as they were loaded, from the texts that were rendered.
    pub(super) fn update(&self, rendered: &Content) -> ContentUpdate {
        let locale = match rendered.locale {
            _ if self.keeps & KEEPS_LOCALE != 0 => Update::Keep,
            None => Update::Remove,
            Some(locale) => Update::Set(locale),
        };
        let texts = PerText::from_fn(|name| match rendered.texts.get(name) {
            _ if self.keeps & (1 << name as u8) != 0 => Update::Keep,
            Text::None => Update::Remove,
            Text::Outside(url) => Update::Set(LoadedText::Outside(url.clone())),
            Text::Own { digest, source } => Update::Set(LoadedText::Markdown {
                digest: *digest,
                source: source.clone(),
            }),
        });
        ContentUpdate { locale, texts }
    }
}

/// Markdown that the records of a load bring, packed once: products often share their texts.
#[derive(Debug, Default)]
pub(super) struct BroughtTexts(Mutex<HashMap<TextDigest, PackedMarkdown>>);

impl BroughtTexts {
    fn add(&self, digest: &TextDigest, markdown: &str) -> anyhow::Result<()> {
        if !self.lock().contains_key(digest) {
            let packed = PackedMarkdown::pack(markdown)?;
            self.lock().insert(*digest, packed);
        }
        Ok(())
    }

    /// Returns a text, if a record brought it.
    pub(super) fn get(&self, digest: &TextDigest) -> Option<PackedMarkdown> {
        self.lock().get(digest).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<TextDigest, PackedMarkdown>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::check::check;
    use crate::load::read::Record;
    use crate::load::report::Place;
    use crate::load::stored_texts::stored_content;

    #[test]
    fn staged_records_keep_the_updates_of_their_texts() {
        let texts = r##"{"description_md":"# A","disclaimer_md":"","terms_buyer_markdown_url":"https://a.example/é.md","refund_policy_md":"# A","refund_policy_markdown_url":"https://a.example/r.md","locale":"de_DE"}"##;
        let later = |detail: &str| {
            format!(
                r#"{{"name":"N","code":"N","currency":"EUR","state":"LIVE","is_orderable":false,"payout_type":"voucher","categories":["ü"],"countries_redeemable_in":["DE"],"customer_service":{{}},"discount_multiplier":"0.123","voucher":{detail}}}"#
            )
        };
        let plain = include_str!("../../../../fixtures/catalog.ndjson");
        let lines = plain.lines().map(str::to_owned);
        let lines = lines.chain(
            [
                "{}",
                r#"{"content_resources":null}"#,
                &format!(r#"{{"a":1,"content_resources":{texts},"b":[]}}"#),
                r#"{"content_resources":{"locale":null}}"#,
            ]
            .map(later),
        );
        for line in lines {
            let record = Record::new(Place::file("a"), line);
            let mut findings = Vec::new();
            let checked = check(&record, &mut findings).record;
            let checked = checked.unwrap_or_else(|| panic!("{findings:?}"));
            let brought = BroughtTexts::default();
            let staged = Staged::new(&checked, &brought).unwrap();
            for (digest, markdown) in &checked.texts {
                let packed = brought.get(digest).unwrap();
                assert_eq!(packed.unpack_as(digest).unwrap(), *markdown);
            }
            let product = staged.product.product().unwrap();
            if product.content.is_some() {
                let content = stored_content(&product).unwrap();
                assert_eq!(staged.update(&content), checked.content, "{}", record.json);
            } else {
                assert!(checked.texts.is_empty());
            }
        }
    }
}
