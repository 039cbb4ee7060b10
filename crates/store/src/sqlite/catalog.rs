//! Reading the live catalog as of one moment, with few copies.

use std::ops::Range;
use std::sync::LazyLock;

use jiff::Timestamp;
use memchr::memmem::Finder;
use rusqlite::{Connection, Row, Rows, Statement, Transaction};
use vitrine_model::content::PackedMarkdown;
use vitrine_model::geo::Country;
use vitrine_model::revision::Revision;

use super::{during, history};
use crate::StoreError;
use crate::document::unpack_into;
use crate::record::{CatalogItem, ItemVisitor, Moment, OwnText, StoreState, StoredDigest};
use crate::values::{ListCache, TakenDown, from_millis, hash_bytes, text_digest};

pub(super) const READING: &str = "reading the catalog";
const POLLING: &str = "polling for changes";

/// See [`Store::read_catalog`](crate::Store::read_catalog).
pub(super) fn read(
    connection: &mut Connection,
    texts_kept_since: Timestamp,
    visit: ItemVisitor<'_>,
) -> Result<(StoreState, Option<Revision>), StoreError> {
    // One read transaction: all reads are of one state of the store.
    let transaction = connection.transaction().map_err(during(READING))?;
    let state = state(&transaction)?;
    let Some(revision) = history::revision(&transaction, Moment::Live)? else {
        return Ok((state, None));
    };
    let taken_down = taken_down(&transaction)?;
    products(&transaction, &taken_down, visit)?;
    served_texts(&transaction, texts_kept_since, ALL_TEXTS, &[], visit)?;
    Ok((state, Some(revision)))
}

/// See [`Store::state`](crate::Store::state).
pub(super) fn state(connection: &Connection) -> Result<StoreState, StoreError> {
    let sql = "select store_id, revision_id, texts_counter, keys_counter, assortments_counter, \
               assortments_accepted from state";
    let read = |row: &Row<'_>| {
        let state = StoreState {
            store_id: row.get(0)?,
            revision_id: row.get(1)?,
            texts: row.get(2)?,
            keys: row.get(3)?,
            assortments: row.get(4)?,
            assortments_accepted: None,
        };
        Ok((state, row.get(5)?))
    };
    let mut statement = connection.prepare_cached(sql).map_err(during(POLLING))?;
    let read = statement.query_row([], read);
    let (state, accepted): (_, Option<i64>) = read.map_err(during(POLLING))?;
    Ok(StoreState {
        assortments_accepted: accepted.map(from_millis).transpose()?,
        ..state
    })
}

/// Digests of all texts, for [`served_texts`].
const ALL_TEXTS: &str = "select distinct digest from product_text";

/// Returns the SQL for texts that live versions name, or named until some time after ?1. A text is retired when the last
/// version that names it was. Versions retired before that time aren't read, however long the history is.
pub(super) fn texts_of(which: &str) -> String {
    format!(
        "select x.digest, x.markdown, max(v.until_revision is null), max(r.created_at) \
         from ({which}) d \
         cross join markdown_text x on x.digest = d.digest \
         cross join product_text t on t.digest = d.digest \
         cross join product_version v on v.id = t.product_version_id \
         left join revision r on r.number = v.until_revision \
         where x.taken_down_at is null and (v.until_revision is null \
            or v.until_revision >= (select min(number) from revision where created_at > ?1)) \
         group by d.digest order by d.digest"
    )
}

// `cross join` fixes the order of joins, and indexes are named: otherwise SQLite scans all products to find a few.
pub(super) const TAKEN_DOWN: &str = "select v.id, t.digest \
     from markdown_text x \
     cross join product_text t on t.digest = x.digest \
     cross join product_version v on v.id = t.product_version_id \
     where x.taken_down_at is not null and v.until_revision is null";

pub(super) fn taken_down(transaction: &Transaction<'_>) -> Result<TakenDown, StoreError> {
    let mut statement = transaction.prepare(TAKEN_DOWN).map_err(during(READING))?;
    let mut rows = statement.query([]).map_err(during(READING))?;
    let mut texts = TakenDown::default();
    while let Some(row) = rows.next().map_err(during(READING))? {
        let id = row.get(0).map_err(during(READING))?;
        let digest: Vec<u8> = row.get(1).map_err(during(READING))?;
        texts.add(id, text_digest(&digest)?);
    }
    Ok(texts)
}

/// Columns of a product, in the order in which [`visit_products`] reads them.
pub(super) const PRODUCT_COLUMNS: &str = "v.id, v.code, d.document, v.content_start, v.content_end, v.is_orderable, v.countries, v.categories, v.discount_multiplier, v.digest";

/// Versions and their documents, as [`PRODUCT_COLUMNS`] names them.
pub(super) const VERSIONS: &str =
    "product_version v left join product_document d on d.product_version_id = v.id";

/// Index of the column after [`PRODUCT_COLUMNS`], in reads of changes.
const RETIRED_CODE: usize = 10;

fn products(
    transaction: &Transaction<'_>,
    taken_down: &TakenDown,
    visit: ItemVisitor<'_>,
) -> Result<(), StoreError> {
    let sql = format!(
        "select {PRODUCT_COLUMNS} from {VERSIONS} where until_revision is null order by code"
    );
    let mut statement = transaction.prepare(&sql).map_err(during(READING))?;
    let rows = statement.query([]).map_err(during(READING))?;
    let mut texts = history::prepare_texts(transaction)?;
    visit_products(rows, &mut texts, taken_down, visit)
}

/// Finds the part of a document that only products with texts of their own have.
static OWN_TEXT: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"texts/"));

/// Visits products. A row without an id is a retired product, with its code in [`RETIRED_CODE`].
pub(super) fn visit_products(
    mut rows: Rows<'_>,
    texts: &mut Statement<'_>,
    taken_down: &TakenDown,
    visit: ItemVisitor<'_>,
) -> Result<(), StoreError> {
    let mut countries = ListCache::<Country>::new(|text| text.parse().ok());
    let mut categories = ListCache::<Box<str>>::new(|text| Some(text.into()));
    let mut unpacked = Vec::new();
    while let Some(row) = rows.next().map_err(during(READING))? {
        let id: Option<i64> = row.get(0).map_err(during(READING))?;
        let Some(id) = id else {
            let code = text(row, RETIRED_CODE)?;
            visit(CatalogItem::Retired { code }).map_err(StoreError::Visitor)?;
            continue;
        };
        let product = Product::read(row, texts, &mut unpacked)?;
        let lists = product.as_ref().ok().map(|product| {
            let countries = countries.get(product.countries);
            countries.and_then(|countries| Ok((countries, categories.get(product.categories)?)))
        });
        let item = match (product, lists) {
            (Ok(product), Some(Ok((countries, categories)))) => CatalogItem::Product {
                code: product.code,
                document: product.document,
                content: product.content,
                discount_multiplier: product.discount_multiplier,
                is_orderable: product.is_orderable != 0,
                countries,
                categories,
                taken_down: taken_down.of(id),
                digest: product.digest,
            },
            // An error that isn't about the values of this row is the store's.
            (Err(error), _) if !is_value_error(&error) => return Err(error),
            _ => CatalogItem::Damaged {
                code: text(row, 1).unwrap_or_default().to_owned(),
            },
        };
        visit(item).map_err(StoreError::Visitor)?;
    }
    Ok(())
}

/// Reads the texts of a product with this document. The inner error is about their values; the outer one is SQLite's, which
/// reports a corrupt store even if the disk failed only once.
fn own_texts(
    document: &str,
    texts: &mut Statement<'_>,
    id: i64,
) -> Result<Result<Vec<OwnText>, StoreError>, StoreError> {
    if OWN_TEXT.find(document.as_bytes()).is_none() {
        return Ok(Ok(Vec::new()));
    }
    match history::own_texts(texts, id) {
        Ok(read) => Ok(read),
        Err(error) if error.sqlite_error_code().is_none() => Ok(Err(during(READING)(error))),
        Err(error) => Err(during(READING)(error)),
    }
}

/// A row of a product.
pub(super) struct Product<'r> {
    pub(super) code: &'r str,
    pub(super) document: &'r str,
    content: Option<Range<usize>>,
    pub(super) discount_multiplier: &'r str,
    pub(super) is_orderable: i64,
    pub(super) countries: &'r str,
    pub(super) categories: &'r str,
    pub(super) digest: StoredDigest,
}

impl<'r> Product<'r> {
    /// Reads a row with [`PRODUCT_COLUMNS`]; its document is unpacked into `unpacked`. The inner error is about the values of the
    /// row.
    pub(super) fn read(
        row: &'r Row<'_>,
        texts: &mut Statement<'_>,
        unpacked: &'r mut Vec<u8>,
    ) -> Result<Result<Self, StoreError>, StoreError> {
        let document =
            match history::packed(row, 2).and_then(|packed| unpack_into(packed, unpacked)) {
                Ok(document) => document,
                Err(error) => return Ok(Err(error)),
            };
        let id = row.get(0).map_err(during(READING))?;
        let own_texts = own_texts(document, texts, id)?;
        Ok(own_texts.and_then(|own_texts| Self::with(row, document, &own_texts)))
    }

    fn with(
        row: &'r Row<'_>,
        document: &'r str,
        own_texts: &[OwnText],
    ) -> Result<Self, StoreError> {
        let is_orderable = row.get(5).map_err(during(READING))?;
        let digest = row.get_ref(9).map_err(during(READING))?.as_blob();
        let digest = digest.map_err(|error| StoreError::Damaged(error.to_string()))?;
        let (countries, categories) = (text(row, 6)?, text(row, 7)?);
        let discount_multiplier = text(row, 8)?;
        let parts = [discount_multiplier, countries, categories];
        Ok(Self {
            code: text(row, 1)?,
            document,
            content: history::content_range(row, 3)?,
            discount_multiplier,
            is_orderable,
            countries,
            categories,
            digest: StoredDigest::new(hash_bytes(digest)?, is_orderable, parts, own_texts),
        })
    }
}

/// Returns whether a row could be read and only a value in it is invalid.
pub(super) fn is_value_error(error: &StoreError) -> bool {
    match error {
        StoreError::Damaged(_) => true,
        StoreError::Database { source, .. } => {
            let error = source.downcast_ref::<rusqlite::Error>();
            error.is_some_and(|error| error.sqlite_error_code().is_none())
        }
        _ => false,
    }
}

pub(super) fn text<'r>(row: &'r Row<'_>, column: usize) -> Result<&'r str, StoreError> {
    row.get_ref(column)
        .map_err(during(READING))?
        .as_str()
        .map_err(|error| StoreError::Damaged(error.to_string()))
}

pub(super) fn served_texts(
    transaction: &Transaction<'_>,
    texts_kept_since: Timestamp,
    which: &str,
    further_parameters: &[i64],
    visit: ItemVisitor<'_>,
) -> Result<(), StoreError> {
    let parameters = [&[texts_kept_since.as_millisecond()], further_parameters].concat();
    let sql = texts_of(which);
    let mut statement = transaction.prepare(&sql).map_err(during(READING))?;
    let mut rows = statement
        .query(rusqlite::params_from_iter(parameters))
        .map_err(during(READING))?;
    while let Some(row) = rows.next().map_err(during(READING))? {
        let digest: Vec<u8> = row.get(0).map_err(during(READING))?;
        // A value that isn't bytes becomes empty, which no digest matches.
        let markdown = row.get_ref(1).map_err(during(READING))?;
        let markdown = markdown.as_blob().unwrap_or_default();
        let is_live: bool = row.get(2).map_err(during(READING))?;
        let retired_at: Option<i64> = row.get(3).map_err(during(READING))?;
        let item = CatalogItem::Text {
            digest: text_digest(&digest)?,
            markdown: PackedMarkdown::from_bytes(markdown),
            retired_at: match retired_at {
                Some(millis) if !is_live => Some(from_millis(millis)?),
                _ => None,
            },
        };
        visit(item).map_err(StoreError::Visitor)?;
    }
    Ok(())
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::open;
    use super::*;

    /// Returns SQLite's query plan, one step per line.
    pub(in crate::sqlite) fn plan(sql: &str) -> String {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(open::MIGRATIONS[0]).unwrap();
        let mut statement = connection
            .prepare(&format!("explain query plan {sql}"))
            .unwrap();
        // Unbound parameters are null; the plan doesn't depend on them.
        let mut rows = statement.raw_query();
        let mut steps = Vec::new();
        while let Some(row) = rows.next().unwrap() {
            steps.push(row.get::<_, String>(3).unwrap());
        }
        steps.join("\n")
    }
}
