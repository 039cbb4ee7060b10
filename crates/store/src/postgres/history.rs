//! Reading the catalog at any moment: live, or as of a revision.

use jiff::Timestamp;
use tokio_postgres::Row;
use vitrine_model::code::ProductCode;
use vitrine_model::revision::Revision;

use super::session::{Session, Typed, count, get, number};
use crate::StoreError;
use crate::base::base_of;
use crate::overrides::BaseHint;
use crate::prepared::{LiveDigests, ProductDigest, RecordDigest};
use crate::record::{
    Availability, ChangeKind, ChangedProduct, Moment, OwnText, ProductVisitor, PublishedCounts,
    PublishedRevision, RevisionNote, StoredProduct, VersionSpan,
};
use crate::values::{code, from_millis, hash_bytes, own_text, read_lists};

pub(super) const READING: &str = "reading the history";

/// Products with their texts, in the columns that [`product_row`] reads.
const PRODUCT: &str = "select v.id, v.digest, v.code, v.document, v.content_start, v.content_end, \
       v.discount_multiplier, v.is_orderable, v.countries, v.categories, t.names, t.digests, t.sources \
    from vitrine.product_version v left join lateral ( \
       select array_agg(name) as names, array_agg(digest) as digests, array_agg(source_url) as sources \
       from vitrine.product_text where product_version_id = v.id) t on true";

/// Columns of a published revision, in the order in which [`published_row`] reads them.
const PUBLISHED: &str = "number, id, created_at, created, changed, retired, unchanged, \
                         published_by, note, source_digest, \
                         number < coalesce((select oldest_readable from vitrine.state), 0)";

/// Returns the SQL condition for versions that are live at a moment, and its parameter: the number of the revision.
fn live_condition(moment: Moment) -> (&'static str, i64) {
    match moment {
        Moment::Live => ("v.until_revision is null and $1 = 0", 0),
        Moment::Revision(number) => (
            "v.from_revision <= $1 and (v.until_revision is null or v.until_revision > $1)",
            self::number(number),
        ),
    }
}

/// See [`Store::revisions`](crate::Store::revisions).
pub(super) fn revisions(
    session: &mut Session,
    limit: u32,
) -> Result<Vec<PublishedRevision>, StoreError> {
    let sql = format!("select {PUBLISHED} from vitrine.revision order by number desc limit $1");
    let rows = session.rows(READING, &sql, &[i64::from(limit).param()])?;
    rows.iter().map(published_row).collect()
}

/// See [`Store::revision`](crate::Store::revision).
pub(super) fn published(
    session: &mut Session,
    number: u64,
) -> Result<Option<PublishedRevision>, StoreError> {
    let sql = format!("select {PUBLISHED} from vitrine.revision where number = $1");
    let row = session.row(READING, &sql, &[self::number(number).param()])?;
    row.as_ref().map(published_row).transpose()
}

/// See [`Store::revision_at`](crate::Store::revision_at).
pub(super) fn published_at(
    session: &mut Session,
    time: Timestamp,
) -> Result<Option<PublishedRevision>, StoreError> {
    let sql = format!(
        "select {PUBLISHED} from vitrine.revision where created_at <= $1 order by number desc limit 1"
    );
    let row = session.row(READING, &sql, &[time.as_millisecond().param()])?;
    row.as_ref().map(published_row).transpose()
}

fn published_row(row: &Row) -> Result<PublishedRevision, StoreError> {
    Ok(PublishedRevision {
        revision: revision_row(row)?,
        counts: PublishedCounts {
            created: count(row, 3)?,
            changed: count(row, 4)?,
            retired: count(row, 5)?,
            unchanged: count(row, 6)?,
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
pub(super) fn ensure_readable(session: &mut Session, moment: Moment) -> Result<(), StoreError> {
    let Moment::Revision(number) = moment else {
        return Ok(());
    };
    let sql = "select s.oldest_readable from vitrine.state s \
               join vitrine.revision r on r.number = $1 where r.number < s.oldest_readable";
    match session.row(READING, sql, &[self::number(number).param()])? {
        None => Ok(()),
        Some(row) => Err(StoreError::Pruned {
            number,
            oldest_readable: count(&row, 0)?,
        }),
    }
}

/// Reads something of a moment in the open transaction: if there is such a revision, if it can be read, and the rest, which
/// gets the revision. Returns `None` if it doesn't exist.
pub(super) fn at<T>(
    session: &mut Session,
    moment: Moment,
    read: impl FnOnce(&mut Session, Revision) -> Result<T, StoreError>,
) -> Result<Option<T>, StoreError> {
    let Some(revision) = revision(session, moment)? else {
        return Ok(None);
    };
    ensure_readable(session, moment)?;
    read(session, revision).map(Some)
}

/// See [`Store::read_products`](crate::Store::read_products).
pub(super) fn read_products(
    session: &mut Session,
    moment: Moment,
    visit: ProductVisitor<'_>,
) -> Result<Option<Revision>, StoreError> {
    at(session, moment, |session, revision| {
        visit_products(session, moment, visit)?;
        Ok(revision)
    })
}

/// Returns the product of a code at a moment.
pub(super) fn product(
    session: &mut Session,
    code: &ProductCode,
    moment: Moment,
) -> Result<Option<StoredProduct>, StoreError> {
    let found = products_of(session, &[code.as_str()], moment)?;
    Ok(found.into_iter().next().map(|(_, _, product)| product))
}

/// Reads the products of a moment in ascending order of codes, within the transaction.
pub(super) fn visit_products(
    session: &mut Session,
    moment: Moment,
    visit: ProductVisitor<'_>,
) -> Result<(), StoreError> {
    let (is_live, number) = live_condition(moment);
    let sql = format!("{PRODUCT} where {is_live} order by v.code");
    session.run(READING, FORCE_INDEX_ORDER)?;
    session.each_row(READING, &sql, &[number.param()], |row| {
        let (_, _, product) = product_row(row)?;
        visit(product).map_err(StoreError::Visitor)
    })?;
    session.run(READING, ALLOW_SORT)
}

/// For the rest of the transaction, reads rows that are wanted in an index's order along the index: the first rows come at
/// once, and nothing is sorted on the server's disk. 200,000 products in random order took 0.6 s, and 1.5 to 2.1 s with a
/// sort.
pub(super) const FORCE_INDEX_ORDER: &str = "set local enable_sort = off";

/// Ends [`FORCE_INDEX_ORDER`].
pub(super) const ALLOW_SORT: &str = "set local enable_sort = on";

/// For the rest of the transaction, looks rows up by indexes. For a minute after a load, PostgreSQL's statistics don't tell
/// how few rows match, and it would scan whole tables. A disabled plan counts as so expensive that PostgreSQL would
/// compile the statement first (`jit`), for a tenth of a second or more.
pub(super) const FORCE_INDEX_LOOKUPS: &str = "set local enable_seqscan = off; set local enable_hashjoin = off; set local enable_mergejoin = off; set local jit = off";

/// Ends [`FORCE_INDEX_LOOKUPS`].
pub(super) const ALLOW_SCANS: &str = "set local enable_seqscan = on; set local enable_hashjoin = on; set local enable_mergejoin = on";

/// A stored version: its id, its digest, the product.
pub(super) type Version = (i64, [u8; 16], StoredProduct);

/// Returns the products of these codes at a moment, in any order.
pub(super) fn products_of(
    session: &mut Session,
    codes: &[&str],
    moment: Moment,
) -> Result<Vec<Version>, StoreError> {
    let (is_live, number) = live_condition(moment);
    let sql = format!("{PRODUCT} where v.code = any($2) and {is_live}");
    let rows = session.rows(READING, &sql, &[number.param(), codes.to_vec().param()])?;
    rows.iter().map(product_row).collect()
}

/// Returns the live versions of these codes without their documents, in any order.
pub(super) fn live_digests_of(
    session: &mut Session,
    codes: &[&str],
) -> Result<Vec<(i64, LiveDigests, ProductCode)>, StoreError> {
    let sql = "select id, digest, record_digest, code from vitrine.product_version \
               where code = any($1) and until_revision is null";
    let rows = session.rows(READING, sql, &[codes.to_vec().param()])?;
    let read = |row: &Row| {
        let digests = LiveDigests {
            product: ProductDigest(hash_bytes(get(row, 1)?)?),
            record: get::<Option<&[u8]>>(row, 2)?.and_then(RecordDigest::stored),
        };
        Ok((get(row, 0)?, digests, code(get(row, 3)?)?))
    };
    rows.iter().map(read).collect()
}

/// Reads the bases of the products of a moment, in ascending order of codes.
pub(super) fn visit_bases(
    session: &mut Session,
    moment: Moment,
    hint: &BaseHint,
    visit: ProductVisitor<'_>,
) -> Result<(), StoreError> {
    let (is_live, number) = live_condition(moment);
    let base_is_live = is_live.replace("v.", "b.");
    let ([of_products, of_bases], values) = hint.conditions("strpos", '$');
    let sql = format!(
        "select p.*, b.product, b.code from \
            ({PRODUCT} where {is_live}{of_products} and not exists (select 1 \
               from vitrine.base_version b where b.code = v.code and {base_is_live})) p \
         full join (select code, product from vitrine.base_version b \
            where {base_is_live}{of_bases}) b on b.code = p.code \
         order by coalesce(p.code, b.code)"
    );
    let mut parameters = vec![number.param()];
    parameters.extend(values.iter().map(Typed::param));
    session.each_row(READING, &sql, &parameters, |row| {
        let base: Option<&str> = get(row, 13)?;
        let product = match base {
            Some(base) => base_of(get(row, 14)?, base)?,
            None => product_row(row)?.2,
        };
        visit(product).map_err(StoreError::Visitor)
    })
}

/// Returns the bases that are stored beside products at a moment.
pub(super) fn bases_of(
    session: &mut Session,
    codes: &[&str],
    moment: Moment,
) -> Result<Vec<StoredProduct>, StoreError> {
    let (is_live, number) = live_condition(moment);
    let is_live = is_live.replace("v.", "b.");
    let sql = format!(
        "select code, product from vitrine.base_version b where code = any($2) and {is_live}"
    );
    let rows = session.rows(READING, &sql, &[number.param(), codes.to_vec().param()])?;
    rows.iter()
        .map(|row| base_of(get(row, 0)?, get(row, 1)?))
        .collect()
}

/// See [`Store::version_spans`](crate::Store::version_spans).
pub(super) fn version_spans(
    session: &mut Session,
    code: &str,
    limit: u32,
) -> Result<Vec<VersionSpan>, StoreError> {
    let sql = "select from_revision, until_revision from vitrine.product_version where code = $1 \
               order by from_revision desc limit $2";
    let rows = session.rows(READING, sql, &[code.param(), i64::from(limit).param()])?;
    let span = |row: &Row| {
        let until: Option<i64> = get(row, 1)?;
        Ok(VersionSpan {
            from: count(row, 0)?,
            until: until.map(i64::cast_unsigned),
        })
    };
    rows.iter().map(span).collect()
}

/// See [`Store::revision_changes`](crate::Store::revision_changes).
pub(super) fn revision_changes(
    session: &mut Session,
    number: u64,
    kind: Option<ChangeKind>,
    after: &str,
    limit: u32,
) -> Result<Vec<ChangedProduct>, StoreError> {
    ensure_readable(session, Moment::Revision(number))?;
    let sql = "select code, bool_or(began), bool_or(ended) from ( \
               select code, true as began, false as ended \
               from vitrine.product_version where from_revision = $1 \
               union all select code, false, true \
               from vitrine.product_version where until_revision = $1) as changes \
               where code > $2 group by code \
               having $4 is null or (bool_or(began) = $4 and bool_or(ended) = $5) order by code limit $3";
    let (number, limit) = (self::number(number), i64::from(limit));
    let (began, ended) = kind.map(ChangeKind::bounds).unzip();
    let parameters = [
        number.param(),
        after.param(),
        limit.param(),
        began.param(),
        ended.param(),
    ];
    let rows = session.rows(READING, sql, &parameters)?;
    let change = |row: &Row| {
        Ok(ChangedProduct {
            code: code(get(row, 0)?)?,
            kind: ChangeKind::from_bounds(get(row, 1)?, get(row, 2)?),
        })
    };
    rows.iter().map(change).collect()
}

/// Returns the revision of a moment.
pub(super) fn revision(
    session: &mut Session,
    moment: Moment,
) -> Result<Option<Revision>, StoreError> {
    let which = match moment {
        Moment::Live => "(select revision_number from vitrine.state where $1 = 0)",
        Moment::Revision(_) => "$1",
    };
    let sql = format!("select number, id, created_at from vitrine.revision where number = {which}");
    let (_, number) = live_condition(moment);
    let row = session.row(READING, &sql, &[number.param()])?;
    row.as_ref().map(revision_row).transpose()
}

fn revision_row(row: &Row) -> Result<Revision, StoreError> {
    Ok(Revision {
        number: count(row, 0)?,
        id: get(row, 1)?,
        created_at: from_millis(get(row, 2)?)?,
    })
}

fn product_row(row: &Row) -> Result<Version, StoreError> {
    let stored_code: &str = get(row, 2)?;
    let (countries, categories) = read_lists(stored_code, get(row, 8)?, get(row, 9)?)?;
    let product = StoredProduct {
        code: code(stored_code)?,
        document: get(row, 3)?,
        content: content_range(row, 4)?,
        discount_multiplier: get(row, 6)?,
        is_orderable: get(row, 7)?,
        countries,
        categories,
        own_texts: own_texts(row, 10)?,
    };
    Ok((get(row, 0)?, hash_bytes(get(row, 1)?)?, product))
}

/// Reads the range of the content resources from two columns.
pub(super) fn content_range(
    row: &Row,
    column: usize,
) -> Result<Option<std::ops::Range<usize>>, StoreError> {
    let number = |column| {
        let number: Option<i64> = get(row, column)?;
        Ok::<_, StoreError>(number.map(|number| usize::try_from(number).unwrap_or(usize::MAX)))
    };
    let (start, end) = (number(column)?, number(column + 1)?);
    Ok(start.zip(end).map(|(start, end)| start..end))
}

/// Reads the texts of a version from three columns, of names, digests and sources; null if it has none.
pub(super) fn own_texts(row: &Row, column: usize) -> Result<Vec<OwnText>, StoreError> {
    let names: Option<Vec<&str>> = get(row, column)?;
    let digests: Option<Vec<&[u8]>> = get(row, column + 1)?;
    let sources: Option<Vec<Option<String>>> = get(row, column + 2)?;
    let all = names
        .into_iter()
        .flatten()
        .zip(digests.into_iter().flatten());
    let mut texts = Vec::new();
    for ((name, digest), source) in all.zip(sources.into_iter().flatten()) {
        texts.push(own_text(name, digest, source)?);
    }
    // In the order of the contract, as a load has them: it compares products with the live ones.
    texts.sort_by_key(|text| text.name);
    Ok(texts)
}
