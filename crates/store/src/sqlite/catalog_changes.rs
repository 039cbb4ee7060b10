//! Reading what changed in the live catalog since a revision, as of one moment.

use jiff::Timestamp;
use rusqlite::{Connection, Transaction};
use vitrine_model::revision::Revision;

use super::catalog::{self, PRODUCT_COLUMNS};
use super::{during, history};
use crate::StoreError;
use crate::record::{ItemVisitor, Moment, StoreState};
use crate::values::row_number;

/// See [`Store::read_changes`](crate::Store::read_changes).
pub(super) fn read(
    connection: &mut Connection,
    since: &Revision,
    max_products: u32,
    texts_kept_since: Timestamp,
    visit: ItemVisitor<'_>,
) -> Result<(StoreState, Option<Revision>), StoreError> {
    let transaction = connection.transaction().map_err(during(catalog::READING))?;
    let state = catalog::state(&transaction)?;
    let Some(revision) = history::revision(&transaction, Moment::Live)? else {
        return Ok((state, None));
    };
    // Pruned versions may have been live in `since`. And texts that are no longer served wouldn't be visited, so that the
    // caller would keep them.
    let sql = "select count(*) from revision known join state on only_row = 1 \
               where number = ?1 and id = ?2 and number >= coalesce(oldest_readable, 0) \
                  and not exists (select * from revision later \
                     where later.number > known.number and later.created_at <= ?3)";
    let (number, kept_since) = (row_number(since.number), texts_kept_since.as_millisecond());
    let is_known: bool = transaction
        .query_row(sql, (number, &since.id, kept_since), |row| row.get(0))
        .map_err(during(catalog::READING))?;
    if !is_known || !has_few_changes(&transaction, number, max_products)? {
        return Ok((state, None));
    }
    let taken_down = catalog::taken_down(&transaction)?;
    let mut statement = transaction
        .prepare(&changed_products())
        .map_err(during(catalog::READING))?;
    let rows = statement
        .query([number])
        .map_err(during(catalog::READING))?;
    let mut texts = history::prepare_texts(&transaction)?;
    catalog::visit_products(rows, &mut texts, &taken_down, visit)?;
    catalog::served_texts(
        &transaction,
        texts_kept_since,
        CHANGED_TEXTS,
        &[number],
        visit,
    )?;
    Ok((state, Some(revision)))
}

/// Returns whether at most `max_products` differ between the revision `since` and the live one.
fn has_few_changes(
    transaction: &Transaction<'_>,
    since: i64,
    max_products: u32,
) -> Result<bool, StoreError> {
    // Versions are counted in the indexes alone; to count codes, each is looked up and sorted. A changed product has a
    // version that appeared and one that was retired.
    for rows in [CHANGED_VERSIONS, CHANGED_CODES] {
        let sql = format!("select count(*) from (select * from ({rows}) limit ?2)");
        let parameters = (since, u64::from(max_products) + 1);
        let count = transaction.query_row(&sql, parameters, |row| row.get(0));
        let count: u32 = count.map_err(during(catalog::READING))?;
        if count <= max_products {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Versions of products that appeared or were retired after revision ?1; those that did both, twice.
const CHANGED_VERSIONS: &str = "select null from product_version indexed by product_appeared where from_revision > ?1 \
     union all select null from product_version indexed by product_retired where until_revision > ?1";

/// Codes of products that changed or were retired after revision ?1.
const CHANGED_CODES: &str = "select code from product_version indexed by product_appeared where from_revision > ?1 \
     union select code from product_version indexed by product_retired where until_revision > ?1";

/// Returns the SQL for the live products that appeared after revision ?1, and the codes of products that were retired after it.
/// Live versions are read in the order in which they were written: their rows and documents lie together.
fn changed_products() -> String {
    let no_columns = PRODUCT_COLUMNS.split(", ").map(|_| "null");
    let no_columns: Vec<&str> = no_columns.collect();
    format!(
        "select {PRODUCT_COLUMNS}, null from product_version v indexed by product_appeared \
            left join product_document d on d.product_version_id = v.id \
            where v.from_revision > ?1 and v.until_revision is null \
         union all select {}, t.code from (\
            select distinct code from product_version indexed by product_retired where until_revision > ?1) t \
            where not exists (select 1 from product_version l where l.code = t.code and l.until_revision is null)",
        no_columns.join(", ")
    )
}

/// Digests of texts named by versions that began or ended after revision ?2.
const CHANGED_TEXTS: &str = "select digest from product_text where product_version_id in \
        (select id from product_version indexed by product_appeared where from_revision > ?2 \
         union select id from product_version indexed by product_retired where until_revision > ?2) group by digest";

#[cfg(test)]
mod tests {
    use super::super::catalog::tests::plan;
    use super::*;

    #[test]
    fn reading_changes_scans_no_table_of_products() {
        for sql in [
            CHANGED_VERSIONS,
            CHANGED_CODES,
            catalog::TAKEN_DOWN,
            &changed_products(),
            &catalog::texts_of(CHANGED_TEXTS),
        ] {
            let plan = plan(sql);
            let scanned: Vec<&str> = plan
                .lines()
                .filter(|step| step.starts_with("SCAN"))
                .collect();
            assert!(
                scanned
                    .iter()
                    .all(|step| matches!(*step, "SCAN t" | "SCAN d")),
                "{sql}\n{plan}"
            );
        }
    }
}
