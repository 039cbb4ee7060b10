//! Reading the history of changes as of one moment.

use rusqlite::{Connection, Row, Statement, Transaction};
use vitrine_model::revision::Revision;

use super::catalog::{PRODUCT_COLUMNS, Product, is_value_error, state, text};
use super::{during, history};
use crate::StoreError;
use crate::history::{
    Bound, Facts, FactsCache, History, HistoryItem, HistoryRevision, HistoryStart, HistoryVisitor,
    Selection, TextSelection, TextState,
};
use crate::values::from_millis;

const READING: &str = "reading the history of changes";

/// See [`Store::read_history`](crate::Store::read_history).
pub(super) fn read(
    connection: &mut Connection,
    from: &HistoryStart,
    visit: HistoryVisitor<'_>,
) -> Result<History, StoreError> {
    // One read transaction: all reads are of one state of the store.
    let transaction = connection.transaction().map_err(during(READING))?;
    let state = state(&transaction)?;
    let revisions = revisions(&transaction, from)?;
    if let [first, .., live] = revisions.as_slice() {
        let between = (first.revision.number, live.revision.number);
        versions(&transaction, Bound::Ended, between, visit)?;
        versions(&transaction, Bound::Began, between, visit)?;
    }
    let mut selection = TextSelection::new(text_steps(&transaction)?, state.texts, from);
    texts(&transaction, &mut selection, visit)?;
    let (text_states, texts_since) = selection.into_parts();
    Ok(History {
        state,
        revisions,
        text_states,
        texts_since,
    })
}

fn revisions(
    transaction: &Transaction<'_>,
    from: &HistoryStart,
) -> Result<Vec<HistoryRevision>, StoreError> {
    // No revision has a number beyond SQLite's integers.
    let oldest = i64::try_from(from.revision).unwrap_or(i64::MAX);
    let sql = "select number, id, created_at, former_id, created, changed, retired, \
               max(created_at) over (order by number) \
               from revision join state on only_row = 1 \
               where number <= revision_number and number >= max(?, coalesce(oldest_readable, 0)) \
               order by number desc";
    let mut statement = transaction.prepare(sql).map_err(during(READING))?;
    let mut rows = statement.query([oldest]).map_err(during(READING))?;
    let mut selection = Selection::new(from);
    while let Some(row) = rows.next().map_err(during(READING))? {
        let revision = HistoryRevision {
            revision: Revision {
                number: get(row, 0)?,
                id: get(row, 1)?,
                created_at: from_millis(get(row, 2)?)?,
            },
            former_id: get(row, 3)?,
        };
        let counts = [get(row, 4)?, get(row, 5)?, get(row, 6)?];
        if !selection.take(revision, from_millis(get(row, 7)?)?, counts) {
            break;
        }
    }
    Ok(selection.into_ascending())
}

/// Index of the column of the revision, after [`PRODUCT_COLUMNS`].
const REVISION: usize = 10;

/// Returns the SQL for the versions that ended or began after revision ?1, up to ?2.
fn versions_of(bound: Bound) -> String {
    // Indexes are named: otherwise SQLite may scan all products to find a few.
    let (column, index) = match bound {
        Bound::Ended => ("until_revision", "product_retired"),
        Bound::Began => ("from_revision", "product_appeared"),
    };
    format!(
        "select {PRODUCT_COLUMNS}, v.{column} from product_version v indexed by {index} \
         left join product_document d on d.product_version_id = v.id \
         where v.{column} > ?1 and v.{column} <= ?2"
    )
}

/// Visits the versions that ended or began after the revision `after`, up to `last`.
fn versions(
    transaction: &Transaction<'_>,
    bound: Bound,
    (after, last): (u64, u64),
    visit: HistoryVisitor<'_>,
) -> Result<(), StoreError> {
    let mut statement = transaction
        .prepare(&versions_of(bound))
        .map_err(during(READING))?;
    let mut rows = statement.query((after, last)).map_err(during(READING))?;
    let mut texts = history::prepare_texts(transaction)?;
    let (mut lists, mut unpacked) = (FactsCache::new(), Vec::new());
    while let Some(row) = rows.next().map_err(during(READING))? {
        let version = match version(row, &mut texts, &mut lists, &mut unpacked) {
            Ok(version) => Some(version),
            Err(error) if is_value_error(&error) => None,
            Err(error) => return Err(error),
        };
        visit(bound.item(get(row, REVISION)?, version)).map_err(StoreError::Visitor)?;
    }
    Ok(())
}

fn version<'r>(
    row: &'r Row<'_>,
    texts: &mut Statement<'_>,
    lists: &'r mut FactsCache,
    unpacked: &'r mut Vec<u8>,
) -> Result<(&'r str, Facts<'r>), StoreError> {
    let product = Product::read(row, texts, unpacked)??;
    lists.version(
        [product.code, product.document],
        product.is_orderable != 0,
        [product.countries, product.categories],
        &product.digest,
    )
}

/// Returns all recorded steps of the counter of texts, ascending.
fn text_steps(transaction: &Transaction<'_>) -> Result<Vec<TextState>, StoreError> {
    let sql = "select counter_before, counter, max(changed_at) from text_change \
               group by counter_before, counter order by counter";
    let mut statement = transaction.prepare(sql).map_err(during(READING))?;
    let mut rows = statement.query([]).map_err(during(READING))?;
    let mut steps = Vec::new();
    while let Some(row) = rows.next().map_err(during(READING))? {
        steps.push(TextState {
            before: get(row, 0)?,
            after: get(row, 1)?,
            changed_at: from_millis(get(row, 2)?)?,
        });
    }
    Ok(steps)
}

// `cross join` fixes the order of joins.
const CHANGED_TEXTS: &str = "select distinct c.counter, v.code from text_change c \
     cross join product_text t on t.digest = c.digest \
     cross join product_version v on v.id = t.product_version_id \
     where c.counter > ?1 and c.counter <= ?2 and v.until_revision is null \
     order by c.counter desc limit ?3";

/// Visits the live products that name a text whose status changed by one of the selected steps.
fn texts(
    transaction: &Transaction<'_>,
    selection: &mut TextSelection<'_>,
    visit: HistoryVisitor<'_>,
) -> Result<(), StoreError> {
    let Some(bounds) = selection.bounds() else {
        return Ok(());
    };
    let mut statement = transaction
        .prepare(CHANGED_TEXTS)
        .map_err(during(READING))?;
    let mut rows = statement.query(bounds).map_err(during(READING))?;
    while let Some(row) = rows.next().map_err(during(READING))? {
        let (texts, code) = (get(row, 0)?, text(row, 1)?);
        if selection.take(texts) {
            visit(HistoryItem::Text { texts, code }).map_err(StoreError::Visitor)?;
        }
    }
    Ok(())
}

fn get<T: rusqlite::types::FromSql>(row: &Row<'_>, column: usize) -> Result<T, StoreError> {
    row.get(column).map_err(during(READING))
}

#[cfg(test)]
mod tests {
    use super::super::catalog::tests::plan;
    use super::*;

    #[test]
    fn reading_the_history_scans_no_table_of_products() {
        let versions = [Bound::Ended, Bound::Began].map(versions_of);
        for sql in [&versions[0], &versions[1], CHANGED_TEXTS] {
            let plan = plan(sql);
            assert!(!plan.contains("SCAN"), "{sql}\n{plan}");
        }
    }
}
