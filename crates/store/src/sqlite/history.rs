//! Reading the catalog at any moment: live, or as of a revision.

use std::ops::Range;

use jiff::Timestamp;
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, Statement, Transaction, params_from_iter};
use vitrine_model::code::ProductCode;
use vitrine_model::revision::Revision;

use super::catalog::VERSIONS;
use super::during;
use crate::StoreError;
use crate::base::texts_of_json;
use crate::document::unpack;
use crate::overrides::BaseHint;
use crate::record::{
    Availability, ChangeKind, ChangedProduct, Moment, OwnText, ProductVisitor, PublishedCounts,
    PublishedRevision, RevisionNote, StoredProduct, VersionSpan,
};
use crate::values::{code, from_millis, own_text, read_lists, row_number};

const READING: &str = "reading the history";

/// Columns of a product, in the order in which [`product_row`] reads them.
const PRODUCT: &str = "v.id, v.code, d.document, content_start, content_end, discount_multiplier, \
                       is_orderable, countries, categories";

/// Columns of a base, likewise, and behind them its texts as JSON.
pub(super) const BASE: &str = "id, code, document, content_start, content_end, discount_multiplier, \
                    is_orderable, countries, categories, own_texts";

/// Columns of a published revision, in the order in which [`published_row`] reads them.
const PUBLISHED: &str = "number, id, created_at, created, changed, retired, unchanged, \
                         published_by, note, source_digest, \
                         number < coalesce((select oldest_readable from state), 0)";

/// Returns the SQL condition for versions that are live at a moment, and its parameter: the number of the revision.
fn live_condition(moment: Moment) -> (&'static str, i64) {
    match moment {
        Moment::Live => ("until_revision is null and ?1 = 0", 0),
        Moment::Revision(number) => (
            "from_revision <= ?1 and (until_revision is null or until_revision > ?1)",
            row_number(number),
        ),
    }
}

/// See [`Store::revisions`](crate::Store::revisions).
pub(super) fn revisions(
    connection: &Connection,
    limit: u32,
) -> Result<Vec<PublishedRevision>, StoreError> {
    let sql = format!("select {PUBLISHED} from revision order by number desc limit ?");
    let mut statement = connection.prepare_cached(&sql).map_err(during(READING))?;
    let mut rows = statement.query([limit]).map_err(during(READING))?;
    let mut revisions = Vec::new();
    while let Some(row) = rows.next().map_err(during(READING))? {
        revisions.push(published_row(row)?);
    }
    Ok(revisions)
}

/// See [`Store::revision`](crate::Store::revision).
pub(super) fn published(
    connection: &Connection,
    number: u64,
) -> Result<Option<PublishedRevision>, StoreError> {
    // No revision has a number beyond SQLite's integers.
    let Ok(number) = i64::try_from(number) else {
        return Ok(None);
    };
    let sql = format!("select {PUBLISHED} from revision where number = ?");
    let mut statement = connection.prepare_cached(&sql).map_err(during(READING))?;
    let mut rows = statement.query([number]).map_err(during(READING))?;
    let row = rows.next().map_err(during(READING))?;
    row.map(published_row).transpose()
}

/// See [`Store::revision_at`](crate::Store::revision_at).
pub(super) fn published_at(
    connection: &Connection,
    time: Timestamp,
) -> Result<Option<PublishedRevision>, StoreError> {
    let sql = format!(
        "select {PUBLISHED} from revision where created_at <= ? order by number desc limit 1"
    );
    let mut statement = connection.prepare_cached(&sql).map_err(during(READING))?;
    let mut rows = statement
        .query([time.as_millisecond()])
        .map_err(during(READING))?;
    let row = rows.next().map_err(during(READING))?;
    row.map(published_row).transpose()
}

fn published_row(row: &Row<'_>) -> Result<PublishedRevision, StoreError> {
    Ok(PublishedRevision {
        revision: revision_row(row)?,
        counts: PublishedCounts {
            created: get(row, 3)?,
            changed: get(row, 4)?,
            retired: get(row, 5)?,
            unchanged: get(row, 6)?,
        },
        note: RevisionNote {
            by: get(row, 7)?,
            note: get(row, 8)?,
            source_digest: get(row, 9)?,
        },
        availability: match get(row, 10)? {
            true => Availability::Pruned,
            false => Availability::Readable,
        },
    })
}

/// Refuses a pruned revision. Call it in the transaction that reads the moment.
pub(super) fn ensure_readable(connection: &Connection, moment: Moment) -> Result<(), StoreError> {
    let Moment::Revision(number) = moment else {
        return Ok(());
    };
    let sql = "select s.oldest_readable from state s join revision r on r.number = ?1 \
               where r.number < s.oldest_readable";
    let pruned: Option<u64> = connection
        .query_row(sql, [row_number(number)], |row| row.get(0))
        .optional()
        .map_err(during(READING))?;
    match pruned {
        None => Ok(()),
        Some(oldest_readable) => Err(StoreError::Pruned {
            number,
            oldest_readable,
        }),
    }
}

/// Reads something of a moment, in one transaction: if there is such a revision, if it can be read, and the rest, which gets
/// the revision. Returns `None` if it doesn't exist.
pub(super) fn at<T>(
    connection: &mut Connection,
    moment: Moment,
    read: impl FnOnce(&Transaction<'_>, Revision) -> Result<T, StoreError>,
) -> Result<Option<T>, StoreError> {
    let transaction = connection.transaction().map_err(during(READING))?;
    let Some(revision) = revision(&transaction, moment)? else {
        return Ok(None);
    };
    ensure_readable(&transaction, moment)?;
    read(&transaction, revision).map(Some)
}

/// See [`Store::read_products`](crate::Store::read_products).
pub(super) fn read_products(
    connection: &mut Connection,
    moment: Moment,
    visit: ProductVisitor<'_>,
) -> Result<Option<Revision>, StoreError> {
    at(connection, moment, |transaction, revision| {
        visit_products(transaction, moment, visit)?;
        Ok(revision)
    })
}

/// Reads the products of a moment in ascending order of codes, within the connection's transaction.
pub(super) fn visit_products(
    connection: &Connection,
    moment: Moment,
    visit: ProductVisitor<'_>,
) -> Result<(), StoreError> {
    let (is_live, number) = live_condition(moment);
    let sql = format!("select {PRODUCT} from {VERSIONS} where {is_live} order by code");
    let mut statement = connection.prepare(&sql).map_err(during(READING))?;
    let mut texts = prepare_texts(connection)?;
    let mut rows = statement.query([number]).map_err(during(READING))?;
    while let Some(row) = rows.next().map_err(during(READING))? {
        visit(product_row(row, &mut texts)?).map_err(StoreError::Visitor)?;
    }
    Ok(())
}

/// See [`Store::product`](crate::Store::product).
pub(super) fn product(
    connection: &Connection,
    code: &ProductCode,
    moment: Moment,
) -> Result<Option<StoredProduct>, StoreError> {
    let (is_live, number) = live_condition(moment);
    let sql = format!("select {PRODUCT} from {VERSIONS} where code = ?2 and {is_live}");
    let mut statement = connection.prepare_cached(&sql).map_err(during(READING))?;
    let mut rows = statement
        .query((number, code.as_str()))
        .map_err(during(READING))?;
    let Some(row) = rows.next().map_err(during(READING))? else {
        return Ok(None);
    };
    let mut texts = connection.prepare_cached(TEXTS).map_err(during(READING))?;
    product_row(row, &mut texts).map(Some)
}

/// Reads the bases of the products of a moment, in ascending order of codes, within the connection's transaction.
pub(super) fn visit_bases(
    connection: &Connection,
    moment: Moment,
    hint: &BaseHint,
    visit: ProductVisitor<'_>,
) -> Result<(), StoreError> {
    let (is_live, number) = live_condition(moment);
    let ([hinted, _], values) = hint.conditions("instr", '?');
    let sql = format!(
        "select {PRODUCT}, null from {VERSIONS} where {is_live}{hinted} and not exists \
            (select 1 from base_version b where b.code = v.code and {is_live}) \
         union all select {BASE} from base_version where {is_live}{hinted} order by code"
    );
    let mut parameters = vec![Value::from(number)];
    parameters.extend(values.into_iter().map(Value::from));
    let mut statement = connection.prepare(&sql).map_err(during(READING))?;
    let mut texts = prepare_texts(connection)?;
    let mut rows = statement
        .query(params_from_iter(parameters))
        .map_err(during(READING))?;
    while let Some(row) = rows.next().map_err(during(READING))? {
        let base_texts: Option<String> = get(row, 9)?;
        let product = match base_texts {
            Some(own_texts) => base_row(row, &own_texts)?,
            None => product_row(row, &mut texts)?,
        };
        visit(product).map_err(StoreError::Visitor)?;
    }
    Ok(())
}

/// Returns the base that is stored beside a product at a moment.
pub(super) fn base(
    connection: &Connection,
    code: &ProductCode,
    moment: Moment,
) -> Result<Option<StoredProduct>, StoreError> {
    let (is_live, number) = live_condition(moment);
    let sql = format!("select {BASE} from base_version where code = ?2 and {is_live}");
    let mut statement = connection.prepare_cached(&sql).map_err(during(READING))?;
    let mut rows = statement
        .query((number, code.as_str()))
        .map_err(during(READING))?;
    let row = rows.next().map_err(during(READING))?;
    row.map(|row| base_row(row, &get::<String>(row, 9)?))
        .transpose()
}

/// See [`Store::version_spans`](crate::Store::version_spans).
pub(super) fn version_spans(
    connection: &Connection,
    code: &ProductCode,
    limit: u32,
) -> Result<Vec<VersionSpan>, StoreError> {
    let sql = "select from_revision, until_revision from product_version where code = ? \
               order by from_revision desc limit ?";
    let mut statement = connection.prepare_cached(sql).map_err(during(READING))?;
    let span = |row: &Row<'_>| {
        Ok(VersionSpan {
            from: row.get(0)?,
            until: row.get(1)?,
        })
    };
    let lives = statement.query_map((code.as_str(), limit), span);
    lives.and_then(Iterator::collect).map_err(during(READING))
}

/// See [`Store::revision_changes`](crate::Store::revision_changes).
pub(super) fn revision_changes(
    connection: &Connection,
    number: u64,
    kind: Option<ChangeKind>,
    after: Option<&ProductCode>,
    limit: u32,
) -> Result<Vec<ChangedProduct>, StoreError> {
    ensure_readable(connection, Moment::Revision(number))?;
    let sql = "select code, max(began), max(ended) from ( \
               select code, 1 as began, 0 as ended from product_version where from_revision = ?1 \
               union all select code, 0, 1 from product_version where until_revision = ?1) \
               where code > ?2 group by code \
               having ?4 is null or (max(began) = ?4 and max(ended) = ?5) order by code limit ?3";
    let mut statement = connection.prepare_cached(sql).map_err(during(READING))?;
    let after = after.map_or("", ProductCode::as_str);
    let (began, ended) = kind.map(ChangeKind::bounds).unzip();
    let mut rows = statement
        .query((row_number(number), after, limit, began, ended))
        .map_err(during(READING))?;
    let mut changes = Vec::new();
    while let Some(row) = rows.next().map_err(during(READING))? {
        changes.push(ChangedProduct {
            code: code(&get::<String>(row, 0)?)?,
            kind: ChangeKind::from_bounds(get(row, 1)?, get(row, 2)?),
        });
    }
    Ok(changes)
}

/// Returns the revision of a moment.
pub(super) fn revision(
    connection: &Connection,
    moment: Moment,
) -> Result<Option<Revision>, StoreError> {
    let which = match moment {
        Moment::Live => "(select revision_number from state where ?1 = 0)",
        Moment::Revision(_) => "?1",
    };
    let sql = format!("select number, id, created_at from revision where number = {which}");
    let mut statement = connection.prepare_cached(&sql).map_err(during(READING))?;
    let (_, number) = live_condition(moment);
    let mut rows = statement.query([number]).map_err(during(READING))?;
    let row = rows.next().map_err(during(READING))?;
    row.map(revision_row).transpose()
}

fn revision_row(row: &Row<'_>) -> Result<Revision, StoreError> {
    Ok(Revision {
        number: get(row, 0)?,
        id: get(row, 1)?,
        created_at: from_millis(get(row, 2)?)?,
    })
}

fn product_row(row: &Row<'_>, texts: &mut Statement<'_>) -> Result<StoredProduct, StoreError> {
    let own_texts = own_texts(texts, get(row, 0)?).map_err(during(READING))??;
    product_with(row, own_texts)
}

/// Reads a row with [`BASE`].
pub(super) fn base_row(row: &Row<'_>, own_texts: &str) -> Result<StoredProduct, StoreError> {
    product_with(row, texts_of_json(own_texts)?)
}

/// Returns the compressed bytes of a document.
pub(super) fn packed<'r>(row: &'r Row<'_>, column: usize) -> Result<&'r [u8], StoreError> {
    let packed = row.get_ref(column).map_err(during(READING))?.as_blob();
    packed.map_err(|_| StoreError::Damaged("a version has no document".to_owned()))
}

fn product_with(row: &Row<'_>, own_texts: Vec<OwnText>) -> Result<StoredProduct, StoreError> {
    let stored_code: String = get(row, 1)?;
    let (countries, categories): (String, String) = (get(row, 7)?, get(row, 8)?);
    let (countries, categories) = read_lists(&stored_code, &countries, &categories)?;
    Ok(StoredProduct {
        code: code(&stored_code)?,
        document: unpack(packed(row, 2)?)?,
        content: content_range(row, 3)?,
        discount_multiplier: get(row, 5)?,
        is_orderable: get(row, 6)?,
        countries,
        categories,
        own_texts,
    })
}

/// Reads the range of the content resources from two columns.
pub(super) fn content_range(
    row: &Row<'_>,
    column: usize,
) -> Result<Option<Range<usize>>, StoreError> {
    let (start, end): (Option<usize>, Option<usize>) = (get(row, column)?, get(row, column + 1)?);
    Ok(start.zip(end).map(|(start, end)| start..end))
}

/// Statement of [`own_texts`].
const TEXTS: &str =
    "select name, digest, source_url from product_text where product_version_id = ?";

/// Prepares the statement of [`own_texts`].
pub(super) fn prepare_texts(connection: &Connection) -> Result<Statement<'_>, StoreError> {
    connection.prepare(TEXTS).map_err(during(READING))
}

/// Returns the texts of a version. The inner error is about their values, after which a check goes on; the outer one is
/// SQLite's.
pub(super) fn own_texts(
    statement: &mut Statement<'_>,
    version_id: i64,
) -> rusqlite::Result<Result<Vec<OwnText>, StoreError>> {
    let mut rows = statement.query([version_id])?;
    let mut texts = Vec::new();
    while let Some(row) = rows.next()? {
        let name = String::from_utf8_lossy(row.get_ref(0)?.as_bytes().unwrap_or_default());
        let digest = row.get_ref(1)?.as_bytes().unwrap_or_default();
        match own_text(&name, digest, row.get(2)?) {
            Ok(text) => texts.push(text),
            Err(damaged) => return Ok(Err(damaged)),
        }
    }
    // In the order of the contract, as a load has them: it compares products with the live ones.
    texts.sort_by_key(|text| text.name);
    Ok(Ok(texts))
}

fn get<T: rusqlite::types::FromSql>(row: &Row<'_>, column: usize) -> Result<T, StoreError> {
    row.get(column).map_err(during(READING))
}
