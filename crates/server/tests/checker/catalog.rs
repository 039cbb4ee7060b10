//! The naive model: a sorted map of products, and the answers that the contract (docs/contract/README.md) derives from
//! it. It knows no index, no cache and no rendering; JSON is compared as values.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::harness::{TEXT_NAMES, gift_card};

/// Codes in no order; upper case, signs and what continues another one lie at the edges of byte-wise order.
pub const CODES: [&str; 12] = [
    "M", "A", "A.", "A-1", "AA", "Z", "_", "a", "b~", "~", "0", "M0",
];

/// Countries of products; clients may ask for another one, too.
pub const COUNTRIES: [&str; 3] = ["DE", "FR", "GB"];

/// Categories of products.
pub const CATEGORIES: [&str; 3] = ["books", "food", "café & bistro"];

/// Currencies of products.
pub const CURRENCIES: [&str; 2] = ["EUR", "SEK"];

/// Public address: the same whichever server answers.
pub const PUBLIC_URL: &str = "https://catalog.example";

/// A payout type: two that have details of their own, and one that is added later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Payout {
    GiftCard,
    Payment,
    Voucher,
}

/// Facts of a product, without its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    pub name: u8,
    pub is_orderable: bool,
    pub payout: Payout,
    pub countries: Vec<&'static str>,
    pub categories: Vec<&'static str>,
    pub currency: &'static str,
    pub discount_millionths: u32,
}

/// Description of a product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Text {
    None,
    Markdown(u8),
    Outside(u8),
}

/// Update of the description by a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextUpdate {
    /// Nothing: the text stays as it is.
    Absent,
    Set(Text),
}

/// A product to load.
#[derive(Debug, Clone)]
pub struct Record {
    pub code: &'static str,
    pub facts: Facts,
    /// `0.10` and `0.100` are one number.
    pub has_long_discount: bool,
    pub text: TextUpdate,
}

/// A product as it is live.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Product {
    pub facts: Facts,
    pub text: Text,
}

/// The live products.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Catalog(pub BTreeMap<&'static str, Product>);

/// Filter of a list.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    pub countries: Vec<&'static str>,
    pub categories: Vec<&'static str>,
    pub payout_types: Vec<&'static str>,
    pub codes: Vec<&'static str>,
    pub is_orderable: Option<bool>,
}

/// Position of a page.
#[derive(Debug, Clone, Copy)]
pub enum Cursor {
    Start,
    After(&'static str),
    Before(&'static str),
}

/// API version of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Version {
    #[default]
    Older,
    Newest,
}

impl Version {
    /// The value of `X-Api-Version`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Older => "2024-02-05",
            Self::Newest => "2026-12-01",
        }
    }
}

/// Form of a product's texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    Url,
    Markdown,
    Html,
}

/// A page as the model has it.
#[derive(Debug)]
pub struct Page {
    pub codes: Vec<&'static str>,
    pub has_previous: bool,
    pub has_next: bool,
}

/// The Markdown of a number.
pub fn markdown(number: u8) -> String {
    format!("# Text {number}\n\nSome *words* of {number}.\n")
}

/// The path of a text that the service holds.
pub fn text_path(number: u8) -> String {
    let digest = Sha256::digest(markdown(number).as_bytes());
    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("/v2/texts/{digest}.md")
}

/// Returns a decimal of up to six fraction digits, without zeros beyond the second one.
fn short_decimal(millionths: u32) -> String {
    let mut decimal = format!("{}.{:06}", millionths / 1_000_000, millionths % 1_000_000);
    while decimal.len() > "0.00".len() && decimal.ends_with('0') {
        decimal.pop();
    }
    decimal
}

fn outside(number: u8) -> String {
    format!("https://texts.example/{number}.md")
}

impl Payout {
    pub fn name(self) -> &'static str {
        match self {
            Self::GiftCard => "gift_card",
            Self::Payment => "payment",
            Self::Voucher => "voucher",
        }
    }

    /// The detail object with these texts.
    fn detail(self, texts: Value) -> Value {
        let mut detail = match self {
            Self::GiftCard => gift_card("X")["gift_card"].take(),
            Self::Payment => json!({
                "assets": {"icon_image_url": null, "primary_color": "#1A2B3C"},
                "denominations": {"minimum_value": "1.00", "maximum_value": "500.00"},
            }),
            Self::Voucher => json!({"value": 1.50, "of": ["one", {"two": null}]}),
        };
        detail["content_resources"] = texts;
        detail
    }
}

impl Facts {
    fn product(&self, code: &str, discount: &str, texts: Value) -> Value {
        let mut product = gift_card(code);
        let detail = self.payout.detail(texts);
        let members = product.as_object_mut().expect("an object");
        members.remove("gift_card");
        let changes = [
            ("name", json!(format!("Name {}", self.name))),
            ("is_orderable", json!(self.is_orderable)),
            ("countries_redeemable_in", json!(self.countries)),
            ("categories", json!(self.categories)),
            ("currency", json!(self.currency)),
            ("discount_multiplier", json!(discount)),
            ("payout_type", json!(self.payout.name())),
            (self.payout.name(), detail),
        ];
        members.extend(changes.map(|(name, value)| (name.to_owned(), value)));
        product
    }
}

impl Record {
    /// The line of a load.
    pub fn line(&self) -> String {
        let mut texts = json!({"locale": "en_GB"});
        match self.text {
            TextUpdate::Absent => {}
            TextUpdate::Set(Text::None) => texts["description_md"] = Value::Null,
            TextUpdate::Set(Text::Markdown(number)) => {
                texts["description_md"] = markdown(number).into();
            }
            TextUpdate::Set(Text::Outside(number)) => {
                texts["description_markdown_url"] = outside(number).into();
            }
        }
        let mut discount = short_decimal(self.facts.discount_millionths);
        if self.has_long_discount {
            discount.push('0');
        }
        self.facts.product(self.code, &discount, texts).to_string()
    }

    /// The line of a patch: what differs from the live product.
    pub fn patch(&self, live: &Product) -> String {
        let parsed = |line: &str| serde_json::from_str::<Value>(line).expect("JSON");
        let before = Self {
            facts: live.facts.clone(),
            text: TextUpdate::Absent,
            ..self.clone()
        };
        let mut patch = parsed(&self.line());
        leave_out_same(&parsed(&before.line()), &mut patch);
        patch["code"] = self.code.into();
        patch.to_string()
    }

    /// The product that it becomes where this one is live.
    pub fn over(&self, live: Option<&Product>) -> Product {
        let text = match self.text {
            TextUpdate::Set(text) => text,
            TextUpdate::Absent => live.map_or(Text::None, |live| live.text),
        };
        Product {
            facts: self.facts.clone(),
            text,
        }
    }
}

/// Leaves out what is the same as before.
fn leave_out_same(before: &Value, after: &mut Value) {
    let (Value::Object(before), Value::Object(after)) = (before, after) else {
        return;
    };
    after.retain(|key, value| match before.get(key) {
        Some(before) if before == value => false,
        Some(before) => {
            leave_out_same(before, value);
            true
        }
        None => true,
    });
}

impl Product {
    /// The product object that is served.
    pub fn json(&self, code: &str, content: Content, version: Version) -> Value {
        let ending = match content {
            Content::Url => "markdown_url",
            Content::Markdown => "md",
            Content::Html => "html",
        };
        let text = match (self.text, content) {
            (Text::None, _) | (Text::Outside(_), Content::Markdown | Content::Html) => Value::Null,
            (Text::Outside(number), Content::Url) => outside(number).into(),
            (Text::Markdown(number), Content::Url) => {
                format!("{PUBLIC_URL}{}", text_path(number)).into()
            }
            (Text::Markdown(number), Content::Markdown) => markdown(number).into(),
            (Text::Markdown(number), Content::Html) => {
                format!("<h1>Text {number}</h1>\n<p>Some <em>words</em> of {number}.</p>\n").into()
            }
        };
        let mut texts = json!({"locale": "en_GB"});
        for name in TEXT_NAMES {
            texts[format!("{name}_{ending}")] = Value::Null;
        }
        texts[format!("description_{ending}")] = text;
        let mut discount = short_decimal(self.facts.discount_millionths);
        if version == Version::Older {
            // Cut, never rounded up.
            discount.truncate("0.00".len());
        }
        self.facts.product(code, &discount, texts)
    }
}

impl Filter {
    /// Equal for filters of the same products.
    pub fn normal(&self) -> impl PartialEq + use<> {
        let set = |values: &[&'static str]| values.iter().copied().collect::<BTreeSet<_>>();
        let is_orderable = self.is_orderable == Some(true);
        let lists = [
            &self.countries,
            &self.categories,
            &self.payout_types,
            &self.codes,
        ];
        (lists.map(|values| set(values)), is_orderable)
    }

    /// Alternatives within a parameter, all parameters together.
    pub fn matches(&self, code: &str, product: &Product) -> bool {
        let any_of = |own: &[&str], wanted: &[&str]| {
            wanted.is_empty() || wanted.iter().any(|wanted| own.contains(wanted))
        };
        any_of(&[code], &self.codes)
            && any_of(&[product.facts.payout.name()], &self.payout_types)
            && any_of(&product.facts.countries, &self.countries)
            && any_of(&product.facts.categories, &self.categories)
            && (self.is_orderable != Some(true) || product.facts.is_orderable)
    }
}

impl Catalog {
    /// The codes that match, in order.
    pub fn matching(&self, filter: &Filter) -> Vec<&'static str> {
        let matching = self.0.iter();
        let matching = matching.filter(|(code, product)| filter.matches(code, product));
        matching.map(|(code, _)| *code).collect()
    }

    /// A page of a list.
    pub fn page(&self, filter: &Filter, cursor: Cursor, limit: usize) -> Page {
        let all = self.matching(filter);
        let codes: Vec<&str> = match cursor {
            Cursor::Start => all.iter().copied().take(limit).collect(),
            Cursor::After(x) => {
                let behind = all.iter().copied().filter(|code| *code > x);
                behind.take(limit).collect()
            }
            Cursor::Before(x) => {
                let ahead: Vec<_> = all.iter().copied().filter(|code| *code < x).collect();
                ahead[ahead.len().saturating_sub(limit)..].to_vec()
            }
        };
        Page {
            has_previous: codes.first().is_some_and(|first| all.first() < Some(first)),
            has_next: codes.last().is_some_and(|last| all.last() > Some(last)),
            codes,
        }
    }

    /// All values that products have in a list of theirs, once and sorted.
    pub fn values(&self, of: impl Fn(&Facts) -> &[&'static str]) -> Vec<&'static str> {
        let values = self.0.values().flat_map(|product| of(&product.facts));
        let values: BTreeSet<_> = values.copied().collect();
        values.into_iter().collect()
    }
}
