//! The sample catalog: as a snapshot, and as a naive model.

use std::sync::Arc;

use jiff::Timestamp;
use vitrine_ingest::load::check::check;
use vitrine_ingest::load::read::Record;
use vitrine_ingest::load::report::Place;
use vitrine_ingest::view::{TextAddresses, discount, document, facts};
use vitrine_model::content::{Content, PackedMarkdown, TextDigest};
use vitrine_model::product::Product;
use vitrine_model::revision::Revision;
use vitrine_model::search::words_of;
use vitrine_model::snapshot::{
    Block, BlockBuilder, Entry, FacetNumbers, ServedText, Snapshot, TextTableBuilder,
};

const RECORDS: &str = include_str!("../../fixtures/catalog.ndjson");

/// Size of blocks: small, so that pages begin and end in many of them.
const PRODUCTS_PER_BLOCK: usize = 7;

/// Public address of the service.
pub const PUBLIC_URL: &str = "https://catalog.example";

/// The sample catalog.
pub struct Catalog {
    /// Products, ascending by code.
    pub products: Vec<Product>,
    /// Snapshot of the same products.
    pub snapshot: Snapshot,
}

/// Returns the first products of the sample catalog, at most `most`.
#[must_use]
pub fn catalog(most: usize) -> Catalog {
    let mut checked: Vec<(Product, Content)> = Vec::new();
    let mut texts: Vec<(TextDigest, ServedText)> = Vec::new();
    for line in RECORDS.lines().take(most) {
        let record = Record::new(Place::file("catalog.ndjson"), line.to_owned());
        let record = check(&record, &mut Vec::new()).record.expect("no faults");
        for (digest, markdown) in &record.texts {
            let served = ServedText {
                markdown: PackedMarkdown::pack(markdown).expect("a short text"),
                served_until: None,
            };
            texts.push((*digest, served));
        }
        checked.push((record.product, record.content.apply(&Content::default())));
    }
    checked.sort_by(|left, right| left.0.code.cmp(&right.0.code));
    texts.sort_by_key(|(digest, _)| *digest);
    texts.dedup_by_key(|(digest, _)| *digest);
    let mut table = TextTableBuilder::default();
    for (digest, text) in &texts {
        table.push(digest, text).expect("ascending digests");
    }
    let revision = Revision {
        number: 7,
        id: "a-revision".to_owned(),
        created_at: Timestamp::UNIX_EPOCH,
    };
    let (facets, blocks) = blocks(&checked);
    let snapshot = Snapshot::new(revision, Arc::new(facets), blocks, table.finish());
    Catalog {
        products: checked.into_iter().map(|(product, _)| product).collect(),
        snapshot: snapshot.expect("ascending codes"),
    }
}

fn blocks(checked: &[(Product, Content)]) -> (FacetNumbers, Vec<Block>) {
    let addresses = TextAddresses::new(PUBLIC_URL);
    let mut numbers = FacetNumbers::default();
    let mut blocks = Vec::new();
    for few in checked.chunks(PRODUCTS_PER_BLOCK) {
        let mut builder = BlockBuilder::default();
        for (product, content) in few {
            let document = document(product, content).expect("JSON");
            let mut buffer = Vec::new();
            let (bytes, content) =
                addresses.publish(&document.json, document.content, &[], &mut buffer);
            let names: Vec<Box<str>> = product
                .categories
                .iter()
                .map(|name| name.as_str().into())
                .collect();
            let found = facts(
                &document.json,
                product.is_orderable,
                &product.countries_redeemable_in,
                &names,
            );
            let facets = numbers.facets_of(&found.expect("a sound document"));
            let entry = Entry {
                code: &product.code,
                bytes,
                content: content.map(|content| (content.start, content.end)),
                discount: discount(&document.json, &product.discount_multiplier.to_string()),
                facets: &facets,
                words: &words_of(product.name.as_str(), product.code.as_str()),
            };
            builder.push(&entry).expect("ascending codes");
        }
        blocks.push(builder.finish().expect("a block"));
    }
    (numbers, blocks)
}
