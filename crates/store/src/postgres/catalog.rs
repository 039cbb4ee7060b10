//! Reading the live catalog as of one moment: rows are streamed, never all in memory.

use jiff::Timestamp;
use tokio_postgres::Row;
use vitrine_model::content::{PackedMarkdown, TextDigest};
use vitrine_model::geo::Country;
use vitrine_model::revision::Revision;

use super::SORT_TIMEOUT;
use super::history::{
    self, ALLOW_SCANS, ALLOW_SORT, FORCE_INDEX_LOOKUPS, FORCE_INDEX_ORDER, content_range,
};
use super::session::{Param, Session, Typed, count, get, number};
use crate::StoreError;
use crate::record::{CatalogItem, ItemVisitor, Moment, StoreState, StoredDigest};
use crate::values::{ListCache, TakenDown, from_millis, hash_bytes, text_digest};

pub(super) const READING: &str = "reading the catalog";
const POLLING: &str = "polling for changes";

/// See [`Store::state`](crate::Store::state).
pub(super) fn state(session: &mut Session) -> Result<StoreState, StoreError> {
    let sql = "select store_id, revision_id, texts_counter, keys_counter, assortments_counter, \
               assortments_accepted from vitrine.state";
    let row = session.row(POLLING, sql, &[])?;
    let row =
        row.ok_or_else(|| StoreError::Damaged("the row of its state is missing".to_owned()))?;
    Ok(StoreState {
        store_id: get(&row, 0)?,
        revision_id: get(&row, 1)?,
        texts: count(&row, 2)?,
        keys: count(&row, 3)?,
        assortments: count(&row, 4)?,
        assortments_accepted: get::<Option<i64>>(&row, 5)?.map(from_millis).transpose()?,
    })
}

/// See [`Store::is_replica`](crate::Store::is_replica).
pub(super) fn is_replica(session: &mut Session) -> Result<bool, StoreError> {
    let row = session.row(POLLING, "select pg_is_in_recovery()", &[])?;
    row.map_or(Ok(false), |row| get(&row, 0))
}

/// See [`Store::read_catalog`](crate::Store::read_catalog).
pub(super) fn read(
    session: &mut Session,
    texts_kept_since: Timestamp,
    visit: ItemVisitor<'_>,
) -> Result<(StoreState, Option<Revision>), StoreError> {
    let state = state(session)?;
    let Some(revision) = history::revision(session, Moment::Live)? else {
        return Ok((state, None));
    };
    session.run(READING, FORCE_INDEX_LOOKUPS)?;
    let taken_down = taken_down(session)?;
    session.run(READING, ALLOW_SCANS)?;
    session.run(READING, FORCE_INDEX_ORDER)?;
    let sql = format!(
        "select {PRODUCT_COLUMNS}, v.code from vitrine.product_version v {OWN_TEXTS} \
         where v.until_revision is null order by v.code"
    );
    visit_products(session, &sql, &[], &taken_down, visit)?;
    session.run(READING, ALLOW_SORT)?;
    session.set_first_row_timeout(SORT_TIMEOUT);
    let since = texts_kept_since.as_millisecond();
    served_texts(session, ALL_TEXTS, &[since.param()], visit)?;
    Ok((state, Some(revision)))
}

/// See [`Store::read_changes`](crate::Store::read_changes).
pub(super) fn read_changes(
    session: &mut Session,
    since: &Revision,
    max_products: u32,
    texts_kept_since: Timestamp,
    visit: ItemVisitor<'_>,
) -> Result<(StoreState, Option<Revision>), StoreError> {
    let state = state(session)?;
    let Some(revision) = history::revision(session, Moment::Live)? else {
        return Ok((state, None));
    };
    session.run(READING, FORCE_INDEX_LOOKUPS)?;
    // Pruned versions may have been live in `since`. And texts that are no longer served wouldn't be visited, so that the
    // caller would keep them.
    let sql = "select count(*) from vitrine.revision known, vitrine.state \
               where known.number = $1 and known.id = $2 \
                  and known.number >= coalesce(oldest_readable, 0) \
                  and not exists (select 1 from vitrine.revision later \
                     where later.number > known.number and later.created_at <= $3)";
    let kept_since = texts_kept_since.as_millisecond();
    let since_number = number(since.number);
    let params = [since_number.param(), since.id.param(), kept_since.param()];
    let known = session.number(READING, sql, &params)?;
    session.set_first_row_timeout(SORT_TIMEOUT);
    let sql = format!("select count(*) from (select 1 from ({CHANGED_CODES}) t limit $2) few");
    let limit = i64::from(max_products) + 1;
    let changed = session.number(READING, &sql, &[since_number.param(), limit.param()])?;
    if known == 0 || changed > i64::from(max_products) {
        return Ok((state, None));
    }
    let taken_down = taken_down(session)?;
    let sql = format!(
        "select {PRODUCT_COLUMNS}, t.code from ({CHANGED_CODES}) t \
         left join vitrine.product_version v on v.code = t.code and v.until_revision is null \
         {OWN_TEXTS} order by t.code"
    );
    visit_products(session, &sql, &[since_number.param()], &taken_down, visit)?;
    let params = [kept_since.param(), since_number.param()];
    served_texts(session, CHANGED_TEXTS, &params, visit)?;
    Ok((state, Some(revision)))
}

/// Codes of products that changed or were retired after revision $1.
const CHANGED_CODES: &str = "select code from vitrine.product_version where from_revision > $1 \
     union select code from vitrine.product_version where until_revision > $1";

/// Digests of all texts, for [`served_texts`].
const ALL_TEXTS: &str = "select distinct digest from vitrine.product_text";

/// Digests of texts named by versions that began or ended after revision $2.
const CHANGED_TEXTS: &str = "select distinct t.digest from vitrine.product_text t \
        where t.product_version_id in ( \
           select id from vitrine.product_version where from_revision > $2 \
           union select id from vitrine.product_version where until_revision > $2)";

/// Returns the SQL for texts that live versions name, or named until some time after $1. A text is retired when the last
/// version that names it was. Digests are sorted first, and each Markdown is looked up afterwards (enforced by
/// `offset 0`): sorting them together would write all Markdown to the server's disk.
fn texts_of(which: &str) -> String {
    format!(
        "select d.digest, x.markdown, d.is_live, d.retired_at \
         from (select t.digest, bool_or(v.until_revision is null) as is_live, \
                  max(r.created_at) as retired_at \
               from ({which}) w \
               join vitrine.product_text t on t.digest = w.digest \
               join vitrine.product_version v on v.id = t.product_version_id \
               left join vitrine.revision r on r.number = v.until_revision \
               where v.until_revision is null or v.until_revision >= \
                  (select min(number) from vitrine.revision where created_at > $1) \
               group by t.digest order by t.digest) d \
         cross join lateral (select markdown from vitrine.markdown_text \
            where digest = d.digest and taken_down_at is null offset 0) x \
         order by d.digest"
    )
}

fn taken_down(session: &mut Session) -> Result<TakenDown, StoreError> {
    let sql = "select v.id, t.digest from vitrine.markdown_text x \
               join vitrine.product_text t on t.digest = x.digest \
               join vitrine.product_version v on v.id = t.product_version_id \
               where x.taken_down_at is not null and v.until_revision is null";
    let mut texts = TakenDown::default();
    session.each_row(READING, sql, &[], |row| {
        texts.add(get(row, 0)?, text_digest(get(row, 1)?)?);
        Ok(())
    })?;
    Ok(texts)
}

/// Columns of a product, in the order in which [`visit_products`] reads them.
pub(super) const PRODUCT_COLUMNS: &str = "v.id, v.document, v.content_start, v.content_end, v.is_orderable, v.countries, v.categories, \
     v.discount_multiplier, v.digest, o.names, o.digests, o.sources";

/// Texts of each product, which are part of its digest.
pub(super) const OWN_TEXTS: &str = "left join lateral (select array_agg(name) as names, \
        array_agg(digest) as digests, array_agg(source_url) as sources \
     from vitrine.product_text where product_version_id = v.id) o on true";

/// Index of the column of the code, after [`PRODUCT_COLUMNS`].
pub(super) const CODE: usize = 12;

/// Visits products. A row without an id is a retired product.
fn visit_products(
    session: &mut Session,
    sql: &str,
    params: &[Param<'_>],
    taken_down: &TakenDown,
    visit: ItemVisitor<'_>,
) -> Result<(), StoreError> {
    let mut countries = ListCache::<Country>::new(|text| text.parse().ok());
    let mut categories = ListCache::<Box<str>>::new(|text| Some(text.into()));
    session.each_row(READING, sql, params, |row: &Row| {
        let code = get(row, CODE)?;
        let Some(id) = get::<Option<i64>>(row, 0)? else {
            return visit(CatalogItem::Retired { code }).map_err(StoreError::Visitor);
        };
        let item = match product(
            row,
            code,
            taken_down.of(id),
            &mut countries,
            &mut categories,
        ) {
            Err(StoreError::Damaged(_)) => CatalogItem::Damaged {
                code: code.to_owned(),
            },
            item => item?,
        };
        visit(item).map_err(StoreError::Visitor)
    })
}

fn product<'r>(
    row: &'r Row,
    code: &'r str,
    taken_down: &'r [TextDigest],
    countries: &'r mut ListCache<Country>,
    categories: &'r mut ListCache<Box<str>>,
) -> Result<CatalogItem<'r>, StoreError> {
    let (countries_json, categories_json) = (get(row, 5)?, get(row, 6)?);
    let is_orderable = get(row, 4)?;
    let discount_multiplier = get(row, 7)?;
    let parts = [discount_multiplier, countries_json, categories_json];
    let own_texts = history::own_texts(row, 9)?;
    Ok(CatalogItem::Product {
        code,
        document: get(row, 1)?,
        content: content_range(row, 2)?,
        discount_multiplier,
        is_orderable,
        countries: countries.get(countries_json)?,
        categories: categories.get(categories_json)?,
        taken_down,
        digest: StoredDigest::new(
            stored_digest(row)?,
            i64::from(is_orderable),
            parts,
            &own_texts,
        ),
    })
}

/// Returns the digest of a row with [`PRODUCT_COLUMNS`].
pub(super) fn stored_digest(row: &Row) -> Result<[u8; 16], StoreError> {
    hash_bytes(get(row, 8)?)
}

fn served_texts(
    session: &mut Session,
    which: &str,
    params: &[Param<'_>],
    visit: ItemVisitor<'_>,
) -> Result<(), StoreError> {
    session.each_row(READING, &texts_of(which), params, |row| {
        let is_live: bool = get(row, 2)?;
        let retired_at: Option<i64> = get(row, 3)?;
        let item = CatalogItem::Text {
            digest: text_digest(get(row, 0)?)?,
            markdown: PackedMarkdown::from_bytes(get(row, 1)?),
            retired_at: match retired_at {
                Some(millis) if !is_live => Some(from_millis(millis)?),
                _ => None,
            },
        };
        visit(item).map_err(StoreError::Visitor)
    })
}
