//! Reading the history of changes as of one moment: rows are streamed, never all in memory.

use vitrine_model::revision::Revision;

use super::{
    Bound, FactsCache, History, HistoryItem, HistoryRevision, HistoryStart, HistoryVisitor,
    Selection, TextSelection, TextState,
};
use crate::StoreError;
use crate::catalog::{self, PRODUCT_COLUMNS, ProductRow, VERSIONS};
use crate::db::{Db, Plan, Tx, values};
use crate::values::from_millis;

const READING: &str = "reading the history of changes";

/// See [`Store::read_history`](crate::Store::read_history).
pub(crate) fn read(
    db: Db<'_>,
    from: &HistoryStart,
    visit: HistoryVisitor<'_>,
) -> Result<History, StoreError> {
    db.read(READING, |tx| {
        let state = catalog::state(tx)?;
        tx.plan(Plan::IndexLookups)?;
        tx.wait_for_sorts();
        let revisions = revisions(tx, from)?;
        if let [first, .., live] = revisions.as_slice() {
            let between = (first.revision.number, live.revision.number);
            versions(tx, Bound::Ended, between, visit)?;
            versions(tx, Bound::Began, between, visit)?;
        }
        let mut selection = TextSelection::new(text_steps(tx)?, state.texts, from);
        texts(tx, &mut selection, visit)?;
        let (text_states, texts_since) = selection.into_parts();
        Ok(History {
            state,
            revisions,
            text_states,
            texts_since,
        })
    })
}

fn revisions(tx: &mut Tx<'_>, from: &HistoryStart) -> Result<Vec<HistoryRevision>, StoreError> {
    let sql = "select number, id, created_at, former_id, created, changed, retired, \
               max(created_at) over (order by number) \
               from vitrine.revision, vitrine.state \
               where number <= revision_number \
                  and number >= greatest($1, coalesce(oldest_readable, 0)) \
               order by number desc";
    let mut selection = Selection::new(from);
    tx.each(sql, values![from.revision], |row| {
        let revision = HistoryRevision {
            revision: Revision {
                number: row.count(0)?,
                id: row.get(1)?,
                created_at: from_millis(row.get(2)?)?,
            },
            former_id: row.get(3)?,
        };
        let counts = [row.count(4)?, row.count(5)?, row.count(6)?];
        selection.take(revision, from_millis(row.get(7)?)?, counts);
        Ok(())
    })?;
    Ok(selection.into_ascending())
}

/// Index of the column of the revision, after [`PRODUCT_COLUMNS`].
const REVISION: usize = ProductRow::COLUMNS;

/// Returns the SQL for the versions that ended or began after revision $1, up to $2.
fn versions_of(bound: Bound) -> String {
    // Indexes are named: otherwise SQLite may scan all products to find a few.
    let (column, index) = match bound {
        Bound::Ended => ("until_revision", "product_retired"),
        Bound::Began => ("from_revision", "product_appeared"),
    };
    let versions = VERSIONS.replace(
        "product_version v",
        &format!("product_version v /*sqlite indexed by {index}*/"),
    );
    format!(
        "select {PRODUCT_COLUMNS}, v.{column} from {versions} \
         where v.{column} > $1 and v.{column} <= $2"
    )
}

/// Visits the versions that ended or began after the revision `after`, up to `last`.
fn versions(
    tx: &mut Tx<'_>,
    bound: Bound,
    (after, last): (u64, u64),
    visit: HistoryVisitor<'_>,
) -> Result<(), StoreError> {
    let (mut facts, mut unpacked) = (FactsCache::new(), Vec::new());
    tx.each(&versions_of(bound), values![after, last], |row| {
        let read = ProductRow::read(row, &mut unpacked).and_then(|product| {
            facts.version(
                [product.code, product.document],
                product.is_orderable,
                [product.countries, product.categories],
                &product.stored_digest(row)?,
            )
        });
        let version = match read {
            Ok(version) => Some(version),
            Err(StoreError::Damaged(_)) => None,
            Err(error) => return Err(error),
        };
        visit(bound.item(row.count(REVISION)?, version)).map_err(StoreError::Visitor)
    })
}

/// Returns all recorded steps of the counter of texts, ascending.
fn text_steps(tx: &mut Tx<'_>) -> Result<Vec<TextState>, StoreError> {
    let sql = "select counter_before, counter, max(changed_at) from vitrine.text_change \
               group by counter_before, counter order by counter";
    tx.rows(sql, &[], |row| {
        Ok(TextState {
            before: row.count(0)?,
            after: row.count(1)?,
            changed_at: from_millis(row.get(2)?)?,
        })
    })
}

const CHANGED_TEXTS: &str = "select distinct c.counter, v.code from vitrine.text_change c \
     /*sqlite cross*/ join vitrine.product_text t on t.digest = c.digest \
     /*sqlite cross*/ join vitrine.product_version v on v.id = t.product_version_id \
     where c.counter > $1 and c.counter <= $2 and v.until_revision is null \
     order by c.counter desc limit $3";

/// Visits the live products that name a text whose status changed by one of the selected steps.
fn texts(
    tx: &mut Tx<'_>,
    selection: &mut TextSelection<'_>,
    visit: HistoryVisitor<'_>,
) -> Result<(), StoreError> {
    let Some([after, last, limit]) = selection.bounds() else {
        return Ok(());
    };
    tx.each(CHANGED_TEXTS, values![after, last, limit], |row| {
        let (texts, code) = (row.count(0)?, row.get(1)?);
        match selection.take(texts) {
            true => visit(HistoryItem::Text { texts, code }).map_err(StoreError::Visitor),
            false => Ok(()),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::plan;

    #[test]
    fn reading_the_history_scans_no_table_of_products() {
        let versions = [Bound::Ended, Bound::Began].map(versions_of);
        for sql in [&versions[0], &versions[1], CHANGED_TEXTS] {
            let plan = plan(sql);
            assert!(!plan.contains("SCAN"), "{sql}\n{plan}");
        }
    }
}
