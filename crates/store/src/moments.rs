//! Reading the catalog at any moment: live, or as of a revision. And revisions themselves.

use std::collections::HashSet;

use jiff::Timestamp;
use vitrine_model::code::ProductCode;
use vitrine_model::revision::Revision;

use crate::StoreError;
use crate::catalog::{BASES, PRODUCT_COLUMNS, ProductRow, VERSIONS};
use crate::db::{Plan, Row, Tx, Value, WORK_TIMEOUT, values};
use crate::overrides::BaseHint;
use crate::record::{
    Availability, ChangeKind, ChangedProduct, Moment, ProductVisitor, PublishedCounts,
    PublishedRevision, RevisionNote, StoredProduct, VersionSpan,
};
use crate::values::{code, from_millis};

const READING: &str = "reading the history";

/// Columns of a published revision, in the order in which [`published_row`] reads them.
const PUBLISHED: &str = "number, id, created_at, created, changed, retired, unchanged, \
                         published_by, note, source_digest, \
                         number < coalesce((select oldest_readable from vitrine.state), 0)";

impl crate::Store {
    /// Returns the newest revisions, at most `limit` of them, newest first.
    pub fn revisions(&self, limit: u32) -> Result<Vec<PublishedRevision>, StoreError> {
        let sql = format!("select {PUBLISHED} from vitrine.revision order by number desc limit $1");
        self.db()
            .quick(READING, |tx| tx.rows(&sql, values![limit], published_row))
    }

    /// Returns the revision of this number, if it exists.
    pub fn revision(&self, number: u64) -> Result<Option<PublishedRevision>, StoreError> {
        let sql = format!("select {PUBLISHED} from vitrine.revision where number = $1");
        self.db()
            .quick(READING, |tx| tx.row(&sql, values![number], published_row))
    }

    /// Returns the revision that was live at a time; `None` before the first.
    pub fn revision_at(&self, time: Timestamp) -> Result<Option<PublishedRevision>, StoreError> {
        let sql = format!(
            "select {PUBLISHED} from vitrine.revision where created_at <= $1 order by number desc limit 1"
        );
        let time = time.as_millisecond();
        self.db()
            .quick(READING, |tx| tx.row(&sql, values![time], published_row))
    }

    /// Reads the products of a moment, in ascending order of codes. Returns its revision, or `None` if it doesn't
    /// exist.
    ///
    /// # Errors
    ///
    /// If the store can't be read, `visit` fails, or the revision was pruned ([`StoreError::Pruned`]).
    pub fn read_products(
        &self,
        moment: Moment,
        visit: ProductVisitor<'_>,
    ) -> Result<Option<Revision>, StoreError> {
        self.db().read_within(WORK_TIMEOUT, READING, |tx| {
            at(tx, moment, |tx, revision| {
                visit_products(tx, moment, visit)?;
                Ok(revision)
            })
        })
    }

    /// Returns a product at a moment; `None` if it wasn't live then, or the revision doesn't exist.
    ///
    /// # Errors
    ///
    /// If the store can't be read, or the revision was pruned ([`StoreError::Pruned`]).
    pub fn product(
        &self,
        code: &ProductCode,
        moment: Moment,
    ) -> Result<Option<StoredProduct>, StoreError> {
        let found = self.db().quick(READING, |tx| {
            at(tx, moment, |tx, _| {
                products_of(tx, &[code.as_str()], moment)
            })
        })?;
        Ok(found.and_then(|found| found.into_iter().next()))
    }

    /// Returns the spans of revisions in which stored versions of a product were live, at most `limit` of them, newest
    /// first. Between two spans the product wasn't live.
    pub fn version_spans(
        &self,
        code: &ProductCode,
        limit: u32,
    ) -> Result<Vec<VersionSpan>, StoreError> {
        let sql = "select from_revision, until_revision from vitrine.product_version where code = $1 and from_revision > 0 \
               order by from_revision desc limit $2";
        self.db().quick(READING, |tx| {
            tx.rows(sql, values![code.as_str(), limit], |row| {
                let until: Option<i64> = row.get(1)?;
                Ok(VersionSpan {
                    from: row.count(0)?,
                    until: until.map(i64::cast_unsigned),
                })
            })
        })
    }

    /// Returns the products that the revision of this number changed, in ascending order of codes: at most `limit`, only
    /// codes above `after`, and only changes of the kind `kind`, if these are given; none if the revision doesn't exist.
    ///
    /// # Errors
    ///
    /// If the store can't be read, or the revision was pruned ([`StoreError::Pruned`]).
    pub fn revision_changes(
        &self,
        number: u64,
        kind: Option<ChangeKind>,
        after: Option<&ProductCode>,
        limit: u32,
    ) -> Result<Vec<ChangedProduct>, StoreError> {
        let sql = "select code, bool_or(began), bool_or(ended) from ( \
               select code, true as began, false as ended \
               from vitrine.product_version where from_revision = $1 and $1 > 0 \
               union all select code, false, true \
               from vitrine.product_version where until_revision = $1 and $1 > 0) as changes \
               where code > $2 group by code \
               having $4 is null or (bool_or(began) = $4 and bool_or(ended) = $5) order by code limit $3";
        let after = after.map_or("", ProductCode::as_str);
        let (began, ended) = kind.map(ChangeKind::bounds).unzip();
        self.db().read(READING, |tx| {
            ensure_readable(tx, Moment::Revision(number))?;
            tx.rows(sql, values![number, after, limit, began, ended], |row| {
                Ok(ChangedProduct {
                    code: code(row.get(0)?)?,
                    kind: ChangeKind::from_bounds(row.get(1)?, row.get(2)?),
                })
            })
        })
    }
}

/// Returns the SQL condition for versions that are live at a moment, and its parameter: the number of the revision.
fn live_condition(moment: Moment) -> (&'static str, u64) {
    match moment {
        Moment::Live => ("v.until_revision is null and $1 = 0", 0),
        Moment::Revision(number) => (
            "v.from_revision <= $1 and (v.until_revision is null or v.until_revision > $1)",
            number,
        ),
    }
}

/// As [`live_condition`], for bases.
fn base_condition(moment: Moment) -> String {
    live_condition(moment).0.replace("v.", "b.")
}

fn published_row(row: &Row<'_>) -> Result<PublishedRevision, StoreError> {
    Ok(PublishedRevision {
        revision: revision_row(row)?,
        counts: PublishedCounts {
            created: row.count(3)?,
            changed: row.count(4)?,
            retired: row.count(5)?,
            unchanged: row.count(6)?,
        },
        note: RevisionNote {
            by: row.get(7)?,
            note: row.get(8)?,
            source_digest: row.get(9)?,
        },
        availability: match row.get(10)? {
            true => Availability::Pruned,
            false => Availability::Readable,
        },
    })
}

/// Returns the revision of a moment.
pub(crate) fn revision(tx: &mut Tx<'_>, moment: Moment) -> Result<Option<Revision>, StoreError> {
    let which = match moment {
        Moment::Live => "(select revision_number from vitrine.state where $1 = 0)",
        Moment::Revision(_) => "$1",
    };
    let sql = format!("select number, id, created_at from vitrine.revision where number = {which}");
    let (_, number) = live_condition(moment);
    tx.row(&sql, values![number], revision_row)
}

fn revision_row(row: &Row<'_>) -> Result<Revision, StoreError> {
    Ok(Revision {
        number: row.count(0)?,
        id: row.get(1)?,
        created_at: from_millis(row.get(2)?)?,
    })
}

/// Refuses a pruned revision. Call it in the transaction that reads the moment.
fn ensure_readable(tx: &mut Tx<'_>, moment: Moment) -> Result<(), StoreError> {
    let Moment::Revision(number) = moment else {
        return Ok(());
    };
    let sql = "select s.oldest_readable from vitrine.state s \
               join vitrine.revision r on r.number = $1 where r.number < s.oldest_readable";
    match tx.row(sql, values![number], |row| row.count(0))? {
        None => Ok(()),
        Some(oldest_readable) => Err(StoreError::Pruned {
            number,
            oldest_readable,
        }),
    }
}

/// Reads something of a moment in one transaction: if there is such a revision, if it can be read, and the rest, which
/// gets the revision. Returns `None` if it doesn't exist.
pub(crate) fn at<T>(
    tx: &mut Tx<'_>,
    moment: Moment,
    read: impl FnOnce(&mut Tx<'_>, Revision) -> Result<T, StoreError>,
) -> Result<Option<T>, StoreError> {
    let Some(revision) = revision(tx, moment)? else {
        return Ok(None);
    };
    ensure_readable(tx, moment)?;
    read(tx, revision).map(Some)
}

/// Runs a query with the columns of [`ProductRow`], and calls `visit` with each product.
fn each_product(
    tx: &mut Tx<'_>,
    sql: &str,
    values: &[Value<'_>],
    visit: ProductVisitor<'_>,
) -> Result<(), StoreError> {
    let mut unpacked = Vec::new();
    tx.each(sql, values, |row| {
        let product = ProductRow::read(row, &mut unpacked)?.into_product()?;
        visit(product).map_err(StoreError::Visitor)
    })
}

/// Reads the products of a moment in ascending order of codes, within the transaction.
pub(crate) fn visit_products(
    tx: &mut Tx<'_>,
    moment: Moment,
    visit: ProductVisitor<'_>,
) -> Result<(), StoreError> {
    let (is_live, number) = live_condition(moment);
    let sql = format!(
        "select {PRODUCT_COLUMNS} from {VERSIONS} /*scan*/ where {is_live} order by v.code"
    );
    tx.plan(Plan::IndexOrder)?;
    each_product(tx, &sql, values![number], visit)?;
    tx.plan(Plan::Best)
}

/// Returns the products of these codes at a moment, in any order.
pub(crate) fn products_of(
    tx: &mut Tx<'_>,
    codes: &[&str],
    moment: Moment,
) -> Result<Vec<StoredProduct>, StoreError> {
    let (is_live, number) = live_condition(moment);
    let sql =
        format!("select {PRODUCT_COLUMNS} from {VERSIONS} where v.code = any($2) and {is_live}");
    collect(tx, &sql, values![number, codes])
}

/// Returns the bases that are stored beside products at a moment, in any order.
pub(crate) fn bases_of(
    tx: &mut Tx<'_>,
    codes: &[&str],
    moment: Moment,
) -> Result<Vec<StoredProduct>, StoreError> {
    let ((_, number), is_live) = (live_condition(moment), base_condition(moment));
    let sql = format!("select {PRODUCT_COLUMNS} from {BASES} where b.code = any($2) and {is_live}");
    collect(tx, &sql, values![number, codes])
}

fn collect(
    tx: &mut Tx<'_>,
    sql: &str,
    values: &[Value<'_>],
) -> Result<Vec<StoredProduct>, StoreError> {
    let mut found = Vec::new();
    each_product(tx, sql, values, &mut |product| {
        found.push(product);
        Ok(())
    })?;
    Ok(found)
}

/// Returns the bases of products at a moment, in any order: those stored beside them, or the products themselves.
pub(crate) fn bases_or_products_of(
    tx: &mut Tx<'_>,
    codes: &[&str],
    moment: Moment,
) -> Result<Vec<StoredProduct>, StoreError> {
    let mut found = bases_of(tx, codes, moment)?;
    let with_base: HashSet<&str> = found.iter().map(|base| base.code.as_str()).collect();
    let mut others = codes.to_vec();
    others.retain(|code| !with_base.contains(code));
    if !others.is_empty() {
        found.extend(products_of(tx, &others, moment)?);
    }
    Ok(found)
}

/// Reads the bases of the products of a moment, in ascending order of codes, within the transaction.
pub(crate) fn visit_bases(
    tx: &mut Tx<'_>,
    moment: Moment,
    hint: &BaseHint,
    visit: ProductVisitor<'_>,
) -> Result<(), StoreError> {
    let ((is_live, number), base_is_live) = (live_condition(moment), base_condition(moment));
    let (hinted, texts) = hint.conditions();
    let sql = format!(
        "select {PRODUCT_COLUMNS} from {VERSIONS} /*scan*/ where {is_live}{hinted} and not exists \
            (select 1 from vitrine.product_base b where b.code = v.code and {base_is_live}) \
         union all select {PRODUCT_COLUMNS} from {BASES} where {base_is_live}{hinted} \
         order by code"
    );
    let mut values = vec![Value::from(number)];
    values.extend(texts.iter().map(Value::from));
    each_product(tx, &sql, &values, visit)
}
