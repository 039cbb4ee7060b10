//! Reading the live catalog as of one moment: rows are streamed, with few copies, and never all in memory.
//!
//! - `product_row`: a row of a product; `changes`: what changed in the catalog

mod changes;
mod product_row;

use jiff::Timestamp;
use vitrine_model::content::PackedMarkdown;
use vitrine_model::geo::Country;
use vitrine_model::revision::Revision;

use crate::StoreError;
use crate::db::{Plan, Row, Tx, Value, values};
use crate::moments;
use crate::record::{CatalogItem, ItemVisitor, LiveProduct, Moment, StoreState};
use crate::values::{ListCache, TakenDown, from_millis, text_digest};

pub(crate) use self::product_row::{BASES, PRODUCT_COLUMNS, ProductRow, VERSIONS};

pub(crate) const READING: &str = "reading the catalog";
pub(crate) const POLLING: &str = "polling for changes";

impl crate::Store {
    /// Reads the live catalog as of one moment: first its products in ascending order of codes, then,
    /// in ascending order of digests, the texts that they name or named until less than `texts_kept_since` ago.
    ///
    /// Returns the [`state`](Self::state) of that moment and the live revision, or `None` if nothing was published
    /// yet.
    ///
    /// # Errors
    ///
    /// If the store can't be read, or `visit` fails.
    pub fn read_catalog(
        &self,
        texts_kept_since: Timestamp,
        visit: ItemVisitor<'_>,
    ) -> Result<(StoreState, Option<Revision>), StoreError> {
        self.db().read(READING, |tx| {
        let state = state(tx)?;
        let Some(revision) = moments::revision(tx, Moment::Live)? else {
            return Ok((state, None));
        };
        tx.plan(Plan::IndexLookups)?;
        let taken_down = taken_down(tx)?;
        tx.plan(Plan::Best)?;
        tx.plan(Plan::IndexOrder)?;
        let sql = format!(
            "select {PRODUCT_COLUMNS} from {VERSIONS} /*scan*/ where v.until_revision is null order by v.code"
        );
        products(tx, &sql, &[], &taken_down, visit)?;
        tx.plan(Plan::Best)?;
        let since = texts_kept_since.as_millisecond();
        texts(tx, ALL_TEXTS, values![since], visit)?;
        Ok((state, Some(revision)))
    })
    }
}

/// See [`Store::state`](crate::Store::state).
pub(crate) fn state(tx: &mut Tx<'_>) -> Result<StoreState, StoreError> {
    let sql = "select store_id, revision_id, texts_counter, keys_counter, assortments_counter, \
               assortments_accepted from vitrine.state";
    let state = tx.row(sql, &[], |row| {
        Ok(StoreState {
            store_id: row.get(0)?,
            revision_id: row.get(1)?,
            texts: row.count(2)?,
            keys: row.count(3)?,
            assortments: row.count(4)?,
            assortments_accepted: row.get::<Option<i64>>(5)?.map(from_millis).transpose()?,
        })
    })?;
    state.ok_or_else(|| StoreError::Damaged("the row of its state is missing".to_owned()))
}

/// Digests of all texts, for [`texts`].
const ALL_TEXTS: &str = "select distinct digest from vitrine.product_text /*scan*/";

/// Returns the SQL for texts that live versions name, or named until some time after $1. A text is retired when the
/// last version that names it was. Versions retired before that time aren't read, however long the history is. A text
/// that was taken down has no Markdown here.
fn texts_of(which: &str) -> String {
    // The order of joins is fixed: otherwise SQLite scans all products to find a few.
    format!(
        "select w.digest, (select x.markdown from vitrine.markdown_text x \
               where x.digest = w.digest and x.taken_down_at is null), \
            bool_or(v.until_revision is null), max(r.created_at) \
         from ({which}) w \
         /*sqlite cross*/ join vitrine.product_text t on t.digest = w.digest \
         /*sqlite cross*/ join vitrine.product_version v on v.id = t.product_version_id \
         left join vitrine.revision r on r.number = v.until_revision \
         where v.until_revision is null or v.until_revision >= \
            (select min(number) from vitrine.revision where created_at > $1) \
         group by w.digest order by w.digest"
    )
}

/// Visits the texts of [`texts_of`].
fn texts(
    tx: &mut Tx<'_>,
    which: &str,
    values: &[Value<'_>],
    visit: ItemVisitor<'_>,
) -> Result<(), StoreError> {
    // Markdown in front of a sort would be written to the server's disk.
    tx.plan(Plan::SortedGroups)?;
    tx.wait_for_sorts();
    tx.each(&texts_of(which), values, |row| {
        let Some(markdown) = row.get::<Option<&[u8]>>(1)? else {
            return Ok(());
        };
        let is_live: bool = row.get(2)?;
        let retired_at: Option<i64> = row.get(3)?;
        let item = CatalogItem::Text {
            digest: text_digest(row.get(0)?)?,
            markdown: PackedMarkdown::from_bytes(markdown),
            retired_at: match retired_at {
                Some(millis) if !is_live => Some(from_millis(millis)?),
                _ => None,
            },
        };
        visit(item).map_err(StoreError::Visitor)
    })
}

/// Texts of live products that were taken down.
const TAKEN_DOWN: &str = "select v.id, t.digest \
     from vitrine.markdown_text x \
     /*sqlite cross*/ join vitrine.product_text t on t.digest = x.digest \
     /*sqlite cross*/ join vitrine.product_version v on v.id = t.product_version_id \
     where x.taken_down_at is not null and v.until_revision is null";

fn taken_down(tx: &mut Tx<'_>) -> Result<TakenDown, StoreError> {
    let mut texts = TakenDown::default();
    tx.each(TAKEN_DOWN, &[], |row| {
        texts.add(row.get(0)?, text_digest(row.get(1)?)?);
        Ok(())
    })?;
    Ok(texts)
}

/// Index of the column of a retired product's code, after [`PRODUCT_COLUMNS`].
const RETIRED_CODE: usize = ProductRow::COLUMNS;

/// Visits products. A row without an id is a retired product, with its code in [`RETIRED_CODE`].
fn products(
    tx: &mut Tx<'_>,
    sql: &str,
    values: &[Value<'_>],
    taken_down: &TakenDown,
    visit: ItemVisitor<'_>,
) -> Result<(), StoreError> {
    let mut countries = ListCache::<Country>::new(|text| text.parse().ok());
    let mut categories = ListCache::<Box<str>>::new(|text| Some(text.into()));
    let mut unpacked = Vec::new();
    tx.each(sql, values, |row| {
        let Some(id) = row.get::<Option<i64>>(0)? else {
            let code = row.get(RETIRED_CODE)?;
            return visit(CatalogItem::Retired { code }).map_err(StoreError::Visitor);
        };
        let lists = (&mut countries, &mut categories);
        let item = match product(row, taken_down.of(id), lists, &mut unpacked) {
            Err(StoreError::Damaged(_)) => CatalogItem::Damaged {
                code: row.get(1).unwrap_or_default(),
            },
            item => item?,
        };
        visit(item).map_err(StoreError::Visitor)
    })
}

fn product<'r>(
    row: &Row<'r>,
    taken_down: &'r [vitrine_model::content::TextDigest],
    (countries, categories): (&'r mut ListCache<Country>, &'r mut ListCache<Box<str>>),
    unpacked: &'r mut Vec<u8>,
) -> Result<CatalogItem<'r>, StoreError> {
    let product = ProductRow::read(row, unpacked)?;
    Ok(CatalogItem::Product(LiveProduct {
        code: product.code,
        document: product.document,
        digest: product.stored_digest(row)?,
        content: product.content,
        discount_multiplier: product.discount_multiplier,
        is_orderable: product.is_orderable,
        countries: countries.get(product.countries)?,
        categories: categories.get(product.categories)?,
        taken_down,
    }))
}
