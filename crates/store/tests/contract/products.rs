//! Products and times to put, and collecting the content of a store.

use jiff::Timestamp;
use vitrine_model::content::{PackedMarkdown, TextDigest, TextName};
use vitrine_model::revision::Revision;
use vitrine_store::record::{
    CatalogItem, LiveProduct, Moment, OwnText, PublishedCounts, RevisionNote, StoredProduct,
};
use vitrine_store::{Publication, Store, StoreError};

/// Returns the time, given in seconds since 1970.
pub fn second(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// A product whose document is `document`.
pub fn product(code: &str, document: &str) -> StoredProduct {
    StoredProduct {
        code: code.parse().unwrap(),
        document: document.to_owned(),
        content: None,
        discount_multiplier: "0.050".to_owned(),
        is_orderable: true,
        countries: vec!["DE".parse().unwrap(), "AT".parse().unwrap()],
        categories: vec!["food & \"drink\"".to_owned(), "雪".to_owned()],
        own_texts: Vec::new(),
    }
}

/// Returns a product with the description `markdown`.
pub fn product_with_text(code: &str, markdown: &str) -> StoredProduct {
    let document = format!(r#"["{code}","texts/{}.md"]"#, TextDigest::of(markdown));
    let mut product = product(code, &document);
    product.own_texts.push(OwnText {
        name: TextName::Description,
        digest: TextDigest::of(markdown),
        source: Some("https://a.example/d.md".to_owned()),
    });
    product
}

/// Publishes `products` as the whole catalog.
pub fn publish(
    store: &Store,
    products: &[StoredProduct],
    now: Timestamp,
) -> Option<(Revision, PublishedCounts)> {
    let mut publication = store.publish().unwrap();
    for product in products {
        publication.put(product).unwrap();
    }
    publication.retire_others().unwrap();
    publication.commit(now, &RevisionNote::default()).unwrap()
}

/// Puts the products of a revision, and retires all others. Returns whether the revision exists.
pub fn restore(
    store: &Store,
    publication: &mut dyn Publication,
    number: u64,
) -> Result<bool, StoreError> {
    let mut products = Vec::new();
    let found = store.read_base(Moment::Revision(number), &mut |product| {
        products.push(product);
        Ok(())
    })?;
    if found.is_some() {
        for product in &products {
            publication.put(product)?;
        }
        publication.retire_others()?;
    }
    Ok(found.is_some())
}

/// Publishes products with one text each, as the whole catalog.
pub fn publish_texts(store: &Store, codes_and_texts: &[(&str, &str)], now: Timestamp) {
    let mut publication = store.publish().unwrap();
    for (code, markdown) in codes_and_texts {
        put_text(&mut *publication, markdown);
        publication.put(&product_with_text(code, markdown)).unwrap();
    }
    publication.retire_others().unwrap();
    publication.commit(now, &RevisionNote::default()).unwrap();
}

pub fn put_text(publication: &mut dyn Publication, markdown: &str) {
    let packed = PackedMarkdown::pack(markdown).unwrap();
    let digest = TextDigest::of(markdown);
    publication.put_text(&digest, &packed).unwrap();
}

/// Result of [`Store::read_catalog`], as owned values.
#[derive(Debug, Default, PartialEq)]
pub struct Seen {
    pub revision: Option<Revision>,
    pub products: Vec<StoredProduct>,
    /// Texts that were taken down, by product.
    pub taken_down: Vec<(String, TextDigest)>,
    /// Markdown, and the time since which no live product names it.
    pub texts: Vec<(String, Option<Timestamp>)>,
}

impl Seen {
    pub fn codes(&self) -> Vec<&str> {
        self.products
            .iter()
            .map(|product| product.code.as_str())
            .collect()
    }
}

/// Reads the live catalog, with texts retired after `kept_since`. Products have no list of texts there.
pub fn read(store: &Store, kept_since: Timestamp) -> Seen {
    let mut seen = Seen::default();
    let revision = store.read_catalog(kept_since, &mut |item| {
        match item {
            CatalogItem::Product(LiveProduct {
                code,
                document,
                content,
                discount_multiplier,
                is_orderable,
                countries,
                categories,
                taken_down,
                digest,
            }) => {
                assert!(digest.matches(code, document, content.as_ref()), "{code}");
                assert!(seen.texts.is_empty(), "products come first");
                seen.products.push(StoredProduct {
                    code: code.parse()?,
                    document: document.to_owned(),
                    content,
                    discount_multiplier: discount_multiplier.to_owned(),
                    is_orderable,
                    countries: countries.to_vec(),
                    categories: categories.iter().map(ToString::to_string).collect(),
                    own_texts: Vec::new(),
                });
                let named = taken_down.iter().map(|digest| (code.to_owned(), *digest));
                seen.taken_down.extend(named);
            }
            CatalogItem::Damaged { code } => panic!("{code} is damaged"),
            CatalogItem::Retired { code } => panic!("{code} isn't part of the live catalog"),
            CatalogItem::Text {
                digest,
                markdown,
                retired_at,
            } => {
                let markdown = markdown.unpack_as(&digest)?;
                seen.texts.push((markdown, retired_at));
            }
        }
        Ok(())
    });
    seen.revision = revision.unwrap().1;
    seen.texts.sort();
    seen
}

/// Returns the product as [`read`] does.
pub fn as_read(product: &StoredProduct) -> StoredProduct {
    let mut product = product.clone();
    product.own_texts.clear();
    product
}
