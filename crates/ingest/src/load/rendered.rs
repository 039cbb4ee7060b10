//! A record without faults, rendered as it is stored: what waits in the spool, and all that a publish needs of it.

use std::collections::HashMap;
use std::ops::Range;

use anyhow::Context as _;
use vitrine_model::code::ProductCode;
use vitrine_model::content::{
    Content, ContentUpdate, LoadedText, PackedMarkdown, PerText, Text, TextDigest, TextName, Update,
};
use vitrine_model::geo::Country;
use vitrine_store::record::{OwnText, StoredProduct};

use super::check::CheckedRecord;
use super::stored_texts::own_texts;
use crate::view;

/// A rendered record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RenderedRecord {
    /// Product as it is stored if no live one of its code has texts that the record leaves as they are.
    pub(super) product: StoredProduct,
    pub(super) texts: RecordTexts,
}

/// Texts that a record leaves as they are, and Markdown that comes with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RecordTexts {
    /// Texts that the record doesn't name, a bit for each, and [`KEEPS_LOCALE`].
    keeps: u8,
    /// Markdown that comes with the record.
    pub(super) packed: Vec<(TextDigest, PackedMarkdown)>,
}

/// Bit of a record that doesn't name a locale, beside those of the seven texts.
const KEEPS_LOCALE: u8 = 1 << 7;

impl RenderedRecord {
    /// Renders a record.
    ///
    /// # Errors
    ///
    /// If something can't become JSON or be compressed, which the check has ruled out.
    pub(super) fn new(record: &CheckedRecord, packer: &mut Packer) -> anyhow::Result<Self> {
        let CheckedRecord {
            product,
            content: update,
            texts,
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
        let mut packed = Vec::with_capacity(texts.len());
        for (digest, markdown) in texts {
            packed.push((*digest, packer.pack(digest, markdown)?));
        }
        Ok(Self {
            product: StoredProduct {
                code: product.code.clone(),
                // A later payout type without content resources shows no texts, so it keeps none.
                own_texts: match document.content {
                    Some(_) => own_texts(&content),
                    None => Vec::new(),
                },
                document: document.json,
                content: document.content,
                discount_multiplier: product.discount_multiplier.exact().to_owned(),
                is_orderable: product.is_orderable,
                countries: product.countries_redeemable_in.clone(),
                categories: product.categories.iter().map(ToString::to_string).collect(),
            },
            texts: RecordTexts { keeps, packed },
        })
    }

    /// Appends the record without its code.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let Self {
            product,
            texts: RecordTexts { keeps, packed },
        } = self;
        let StoredProduct {
            code: _,
            document,
            content,
            discount_multiplier,
            is_orderable,
            countries,
            categories,
            own_texts,
        } = product;
        out.extend([*keeps, u8::from(*is_orderable), u8::from(content.is_some())]);
        for end in content.iter().flat_map(|range| [range.start, range.end]) {
            write_length(end, out);
        }
        write_bytes(document.as_bytes(), out);
        write_bytes(discount_multiplier.as_bytes(), out);
        write_length(countries.len(), out);
        for country in countries {
            out.extend(country.as_str().as_bytes());
        }
        write_length(categories.len(), out);
        for category in categories {
            write_bytes(category.as_bytes(), out);
        }
        write_length(own_texts.len(), out);
        for OwnText {
            name,
            digest,
            source,
        } in own_texts
        {
            out.extend([*name as u8, u8::from(source.is_some())]);
            out.extend(digest.as_bytes());
            if let Some(source) = source {
                write_bytes(source.as_bytes(), out);
            }
        }
        write_length(packed.len(), out);
        for (digest, markdown) in packed {
            out.extend(digest.as_bytes());
            write_bytes(markdown.as_bytes(), out);
        }
    }

    /// Reads a record that was [written](Self::write).
    ///
    /// # Errors
    ///
    /// If the bytes are damaged.
    pub(super) fn read(code: &str, bytes: &[u8]) -> anyhow::Result<Self> {
        let mut rest = Rest(bytes);
        let record = read(code, &mut rest).filter(|_| rest.0.is_empty());
        record.context("a record changed while it waited in a temporary file")
    }
}

impl RecordTexts {
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

fn write_length(length: usize, out: &mut Vec<u8>) {
    out.extend((length as u64).to_le_bytes());
}

fn write_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    write_length(bytes.len(), out);
    out.extend_from_slice(bytes);
}

fn read(code: &str, rest: &mut Rest<'_>) -> Option<RenderedRecord> {
    let [keeps, is_orderable, has_content] = rest.array()?;
    let content = match has_content {
        0 => None,
        _ => Some(Range {
            start: rest.length()?,
            end: rest.length()?,
        }),
    };
    let document = rest.text()?.to_owned();
    let discount_multiplier = rest.text()?.to_owned();
    let countries = rest.many(|rest| {
        let code: [u8; 2] = rest.array()?;
        std::str::from_utf8(&code).ok()?.parse::<Country>().ok()
    })?;
    let categories = rest.many(|rest| rest.text().map(str::to_owned))?;
    let own_texts = rest.many(|rest| {
        let [name, has_source] = rest.array()?;
        Some(OwnText {
            name: *TextName::ALL.get(usize::from(name))?,
            digest: TextDigest::from_bytes(rest.array()?),
            source: match has_source {
                0 => None,
                _ => Some(rest.text()?.to_owned()),
            },
        })
    })?;
    let packed = rest.many(|rest| {
        let digest = TextDigest::from_bytes(rest.array()?);
        Some((digest, PackedMarkdown::from_bytes(rest.bytes()?)))
    })?;
    Some(RenderedRecord {
        product: StoredProduct {
            code: code.parse::<ProductCode>().ok()?,
            document,
            content,
            discount_multiplier,
            is_orderable: is_orderable != 0,
            countries,
            categories,
            own_texts,
        },
        texts: RecordTexts { keeps, packed },
    })
}

/// Rest of a written record.
struct Rest<'b>(&'b [u8]);

impl<'b> Rest<'b> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*first)
    }

    fn length(&mut self) -> Option<usize> {
        usize::try_from(u64::from_le_bytes(self.array()?)).ok()
    }

    fn bytes(&mut self) -> Option<&'b [u8]> {
        let length = self.length()?;
        let (first, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(first)
    }

    fn text(&mut self) -> Option<&'b str> {
        std::str::from_utf8(self.bytes()?).ok()
    }

    fn many<T>(&mut self, mut one: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let number = self.length()?;
        (0..number).map(|_| one(self)).collect()
    }
}

/// Maximum number of texts that a [`Packer`] remembers.
const MAX_REMEMBERED: usize = 256;

/// Maximum length of a compressed text that it remembers, in bytes.
const MAX_REMEMBERED_BYTES: usize = 16 << 10;

/// Compresses texts, and remembers the last ones: neighbouring products often share their texts.
#[derive(Default)]
pub(super) struct Packer(HashMap<TextDigest, PackedMarkdown>);

impl Packer {
    fn pack(&mut self, digest: &TextDigest, markdown: &str) -> anyhow::Result<PackedMarkdown> {
        if let Some(packed) = self.0.get(digest) {
            return Ok(packed.clone());
        }
        let packed = PackedMarkdown::pack(markdown)?;
        if packed.as_bytes().len() <= MAX_REMEMBERED_BYTES {
            if self.0.len() == MAX_REMEMBERED {
                self.0.clear();
            }
            self.0.insert(*digest, packed.clone());
        }
        Ok(packed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::check::check;
    use crate::load::read::Record;
    use crate::load::report::Place;

    #[test]
    fn written_records_are_read_back_with_their_updates() {
        let plain = include_str!("../../../../fixtures/catalog.ndjson");
        let texts = r##"{"description_md":"# A","disclaimer_md":"","terms_buyer_markdown_url":"https://a.example/é.md","refund_policy_md":"# A","refund_policy_markdown_url":"https://a.example/r.md","locale":"de_DE"}"##;
        let other = |detail: &str| {
            format!(
                r#"{{"name":"N","code":"N","currency":"EUR","state":"LIVE","is_orderable":false,"payout_type":"voucher","categories":["ü"],"countries_redeemable_in":["DE"],"customer_service":{{}},"discount_multiplier":"0.123","voucher":{detail}}}"#
            )
        };
        let mut lines: Vec<String> = plain.lines().map(str::to_owned).collect();
        lines.extend(
            [
                "{}",
                r#"{"content_resources":null}"#,
                &format!(r#"{{"a":1,"content_resources":{texts},"b":[]}}"#),
                r#"{"content_resources":{"locale":null}}"#,
            ]
            .map(other),
        );
        let mut packer = Packer::default();
        for line in lines {
            let record = Record::new(Place::file("a"), line);
            let mut findings = Vec::new();
            let checked = check(&record, &mut findings).record;
            let checked = checked.unwrap_or_else(|| panic!("{findings:?}"));
            let rendered = RenderedRecord::new(&checked, &mut packer).unwrap();
            let mut bytes = Vec::new();
            rendered.write(&mut bytes);
            let code = checked.product.code.as_str();
            assert_eq!(RenderedRecord::read(code, &bytes).unwrap(), rendered);
            assert!(RenderedRecord::read(code, &bytes[1..]).is_err());
            let product = &rendered.product;
            assert_eq!(rendered.texts.packed.len(), checked.texts.len());
            if let Some(range) = product.content.clone() {
                let content = &product.document[range];
                let content = view::stored_content(content, &product.own_texts).unwrap();
                assert_eq!(
                    rendered.texts.update(&content),
                    checked.content,
                    "{}",
                    record.json
                );
            } else {
                assert!(checked.texts.is_empty());
            }
        }
    }
}
