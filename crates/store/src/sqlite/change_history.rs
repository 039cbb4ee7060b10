//! Reading the history of changes as of one moment.

use rusqlite::{Connection, Row, Transaction};
use vitrine_model::revision::Revision;

use super::catalog::{is_value_error, state, text};
use super::during;
use crate::StoreError;
use crate::history::{
    Bound, Facts, FactsCache, History, HistoryItem, HistoryRevision, HistoryStart, HistoryVisitor,
    Selection, TextState, chain,
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
    let text_states = chain(&text_steps(&transaction)?, state.texts, from.texts);
    if let [first, ..] = text_states.as_slice() {
        let between = (first.before, state.texts);
        texts(&transaction, between, &text_states, visit)?;
    }
    Ok(History {
        state,
        revisions,
        text_states,
    })
}

fn revisions(
    transaction: &Transaction<'_>,
    from: &HistoryStart,
) -> Result<Vec<HistoryRevision>, StoreError> {
    // No revision has a number beyond SQLite's integers.
    let oldest = i64::try_from(from.revision).unwrap_or(i64::MAX);
    let sql = "select number, id, created_at, former_id, created, changed, retired \
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
        if !selection.take(revision, counts) {
            break;
        }
    }
    Ok(selection.into_ascending())
}

// Indexes are named: otherwise SQLite may scan all products to find a few.
const ENDED: &str = "select until_revision, code, is_orderable, countries, categories, document \
     from product_version indexed by product_retired \
     where until_revision > ?1 and until_revision <= ?2";
const BEGAN: &str = "select from_revision, code, is_orderable, countries, categories, document \
     from product_version indexed by product_appeared \
     where from_revision > ?1 and from_revision <= ?2";

/// Visits the versions that ended or began after the revision `after`, up to `last`.
fn versions(
    transaction: &Transaction<'_>,
    bound: Bound,
    (after, last): (u64, u64),
    visit: HistoryVisitor<'_>,
) -> Result<(), StoreError> {
    let sql = match bound {
        Bound::Ended => ENDED,
        Bound::Began => BEGAN,
    };
    let mut statement = transaction.prepare(sql).map_err(during(READING))?;
    let mut rows = statement.query((after, last)).map_err(during(READING))?;
    let mut lists = FactsCache::new();
    while let Some(row) = rows.next().map_err(during(READING))? {
        let version = match version(row, &mut lists) {
            Ok(version) => Some(version),
            Err(error) if is_value_error(&error) => None,
            Err(error) => return Err(error),
        };
        visit(bound.item(get(row, 0)?, version)).map_err(StoreError::Visitor)?;
    }
    Ok(())
}

fn version<'r>(
    row: &'r Row<'_>,
    lists: &'r mut FactsCache,
) -> Result<(&'r str, Facts<'r>), StoreError> {
    let is_orderable: i64 = get(row, 2)?;
    let parts = [text(row, 3)?, text(row, 4)?];
    let facts = lists.facts(is_orderable != 0, parts, text(row, 5)?)?;
    Ok((text(row, 1)?, facts))
}

/// Returns all recorded steps of the counter of texts, newest first.
fn text_steps(transaction: &Transaction<'_>) -> Result<Vec<TextState>, StoreError> {
    let sql = "select distinct counter_before, counter from text_change order by counter desc";
    let mut statement = transaction.prepare(sql).map_err(during(READING))?;
    let step = |row: &Row<'_>| {
        Ok(TextState {
            before: row.get(0)?,
            after: row.get(1)?,
        })
    };
    let steps = statement.query_map([], step);
    steps.and_then(Iterator::collect).map_err(during(READING))
}

// `cross join` fixes the order of joins.
const CHANGED_TEXTS: &str = "select distinct c.counter, v.code from text_change c \
     cross join product_text t on t.digest = c.digest \
     cross join product_version v on v.id = t.product_version_id \
     where c.counter > ?1 and c.counter <= ?2 and v.until_revision is null";

/// Visits the live products that name a text whose status changed by one of `steps`, which are between two states.
fn texts(
    transaction: &Transaction<'_>,
    between: (u64, u64),
    steps: &[TextState],
    visit: HistoryVisitor<'_>,
) -> Result<(), StoreError> {
    let mut statement = transaction
        .prepare(CHANGED_TEXTS)
        .map_err(during(READING))?;
    let mut rows = statement.query(between).map_err(during(READING))?;
    while let Some(row) = rows.next().map_err(during(READING))? {
        let (texts, code) = (get(row, 0)?, text(row, 1)?);
        if steps
            .binary_search_by_key(&texts, |step| step.after)
            .is_ok()
        {
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
        for sql in [ENDED, BEGAN, CHANGED_TEXTS] {
            let plan = plan(sql);
            assert!(!plan.contains("SCAN"), "{sql}\n{plan}");
        }
    }
}
