//! Reading what changed in the live catalog since a revision, as of one moment.

use jiff::Timestamp;
use vitrine_model::revision::Revision;

use super::{PRODUCT_COLUMNS, ProductRow, READING, VERSIONS, products, state, taken_down, texts};
use crate::StoreError;
use crate::db::{Plan, Tx, values};
use crate::moments;
use crate::record::{ItemVisitor, Moment, StoreState};

impl crate::Store {
    /// Reads the differences between the revision `since` and the live one, as of one moment: first the products that
    /// changed or were retired, each once, then the texts that products of either revision name, as
    /// [`read_catalog`](Self::read_catalog) would. It may visit more, never less.
    ///
    /// Returns the [`state`](Self::state) of that moment and the live revision; or `None`, having visited nothing, if
    /// the differences are unknown (a pruned or foreign revision), more than `max_products` differ, or `since` was
    /// replaced before `texts_kept_since`, so that texts that are no longer served would be missed. Texts taken down or
    /// put back aren't included: see [`StoreState::texts`].
    ///
    /// # Errors
    ///
    /// If the store can't be read, or `visit` fails.
    pub fn read_changes(
        &self,
        since: &Revision,
        max_products: u32,
        texts_kept_since: Timestamp,
        visit: ItemVisitor<'_>,
    ) -> Result<(StoreState, Option<Revision>), StoreError> {
        self.db().read(READING, |tx| {
            let state = state(tx)?;
            let Some(revision) = moments::revision(tx, Moment::Live)? else {
                return Ok((state, None));
            };
            tx.plan(Plan::IndexLookups)?;
            // Pruned versions may have been live in `since`. And texts that are no longer served wouldn't be visited, so
            // that the caller would keep them.
            let sql = "select count(*) from vitrine.revision known, vitrine.state \
                   where known.number = $1 and known.id = $2 \
                      and known.number >= coalesce(oldest_readable, 0) \
                      and not exists (select 1 from vitrine.revision later \
                         where later.number > known.number and later.created_at <= $3)";
            let kept_since = texts_kept_since.as_millisecond();
            let known: i64 = tx.value(sql, values![since.number, &since.id, kept_since])?;
            tx.wait_for_sorts();
            if known == 0 || !has_few_changes(tx, since, max_products)? {
                return Ok((state, None));
            }
            let taken_down = taken_down(tx)?;
            products(
                tx,
                &changed_products(),
                values![since.number],
                &taken_down,
                visit,
            )?;
            texts(tx, CHANGED_TEXTS, values![kept_since, since.number], visit)?;
            Ok((state, Some(revision)))
        })
    }
}

/// Returns whether at most `max_products` differ between the revision `since` and the live one.
fn has_few_changes(
    tx: &mut Tx<'_>,
    since: &Revision,
    max_products: u32,
) -> Result<bool, StoreError> {
    // Versions are counted in the indexes alone; to count codes, each is looked up and sorted. A changed product has a
    // version that appeared and one that was retired.
    for rows in [CHANGED_VERSIONS, CHANGED_CODES] {
        let sql = format!("select count(*) from (select 1 from ({rows}) t limit $2) few");
        let limit = u64::from(max_products) + 1;
        let count: i64 = tx.value(&sql, values![since.number, limit])?;
        if count <= i64::from(max_products) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Versions of products that appeared or were retired after revision $1; those that did both, twice.
const CHANGED_VERSIONS: &str = "select 1 from vitrine.product_version /*sqlite indexed by product_appeared*/ \
        where from_revision > $1 \
     union all select 1 from vitrine.product_version /*sqlite indexed by product_retired*/ \
        where until_revision > $1";

/// Codes of products that changed or were retired after revision $1.
const CHANGED_CODES: &str = "select code from vitrine.product_version /*sqlite indexed by product_appeared*/ \
        where from_revision > $1 \
     union select code from vitrine.product_version /*sqlite indexed by product_retired*/ \
        where until_revision > $1";

/// Returns the SQL for the live products that appeared after revision $1, and the codes of products that were retired
/// after it. Live versions are read in the order in which they were written: their rows and documents lie together.
fn changed_products() -> String {
    let no_columns = ["null"; ProductRow::COLUMNS].join(", ");
    let appeared = VERSIONS.replace(
        "product_version v",
        "product_version v /*sqlite indexed by product_appeared*/",
    );
    format!(
        "select {PRODUCT_COLUMNS}, null from {appeared} \
            where v.from_revision > $1 and v.until_revision is null \
         union all select {no_columns}, gone.code from (\
            select distinct code from vitrine.product_version /*sqlite indexed by product_retired*/ \
               where until_revision > $1) gone \
            where not exists (select 1 from vitrine.product_version l \
               where l.code = gone.code and l.until_revision is null)"
    )
}

/// Digests of texts named by versions that began or ended after revision $2.
const CHANGED_TEXTS: &str = "select digest from vitrine.product_text where product_version_id in \
        (select id from vitrine.product_version /*sqlite indexed by product_appeared*/ \
            where from_revision > $2 \
         union select id from vitrine.product_version /*sqlite indexed by product_retired*/ \
            where until_revision > $2) group by digest";

#[cfg(test)]
mod tests {
    use super::super::{TAKEN_DOWN, texts_of};
    use super::*;
    use crate::sqlite::plan;

    #[test]
    fn reading_changes_scans_no_table_of_products() {
        for sql in [
            CHANGED_VERSIONS,
            CHANGED_CODES,
            TAKEN_DOWN,
            &changed_products(),
            &texts_of(CHANGED_TEXTS),
        ] {
            let plan = plan(sql);
            let scanned: Vec<&str> = plan
                .lines()
                .filter(|step| step.starts_with("SCAN"))
                .collect();
            assert!(
                scanned
                    .iter()
                    .all(|step| matches!(*step, "SCAN gone" | "SCAN w")),
                "{sql}\n{plan}"
            );
        }
    }
}
