//! Reading the history of changes as of one moment: rows are streamed, never all in memory.

use tokio_postgres::Row;
use vitrine_model::revision::Revision;

use super::SORT_TIMEOUT;
use super::catalog::state;
use super::history::FORCE_INDEX_LOOKUPS;
use super::session::{Session, Typed, count, get, number};
use crate::StoreError;
use crate::history::{
    Bound, Facts, FactsCache, History, HistoryItem, HistoryRevision, HistoryStart, HistoryVisitor,
    Selection, TextState, chain,
};
use crate::values::from_millis;

pub(super) const READING: &str = "reading the history of changes";

/// See [`Store::read_history`](crate::Store::read_history).
pub(super) fn read(
    session: &mut Session,
    from: &HistoryStart,
    visit: HistoryVisitor<'_>,
) -> Result<History, StoreError> {
    let state = state(session)?;
    session.run(READING, FORCE_INDEX_LOOKUPS)?;
    session.set_first_row_timeout(SORT_TIMEOUT);
    let revisions = revisions(session, from)?;
    if let [first, .., live] = revisions.as_slice() {
        let between = (first.revision.number, live.revision.number);
        versions(session, Bound::Ended, between, visit)?;
        versions(session, Bound::Began, between, visit)?;
    }
    let text_states = chain(&text_steps(session)?, state.texts, from.texts);
    if let [first, ..] = text_states.as_slice() {
        let between = (first.before, state.texts);
        texts(session, between, &text_states, visit)?;
    }
    Ok(History {
        state,
        revisions,
        text_states,
    })
}

fn revisions(
    session: &mut Session,
    from: &HistoryStart,
) -> Result<Vec<HistoryRevision>, StoreError> {
    let sql = "select number, id, created_at, former_id, created, changed, retired \
               from vitrine.revision, vitrine.state \
               where number <= revision_number and number >= greatest($1, oldest_readable) \
               order by number desc";
    let mut selection = Selection::new(from);
    session.each_row(READING, sql, &[number(from.revision).param()], |row| {
        let revision = HistoryRevision {
            revision: Revision {
                number: count(row, 0)?,
                id: get(row, 1)?,
                created_at: from_millis(get(row, 2)?)?,
            },
            former_id: get(row, 3)?,
        };
        selection.take(revision, [count(row, 4)?, count(row, 5)?, count(row, 6)?]);
        Ok(())
    })?;
    Ok(selection.into_ascending())
}

/// Visits the versions that ended or began after the revision `after`, up to `last`.
fn versions(
    session: &mut Session,
    bound: Bound,
    (after, last): (u64, u64),
    visit: HistoryVisitor<'_>,
) -> Result<(), StoreError> {
    let column = match bound {
        Bound::Ended => "until_revision",
        Bound::Began => "from_revision",
    };
    let sql = format!(
        "select {column}, code, is_orderable, countries, categories, document \
         from vitrine.product_version where {column} > $1 and {column} <= $2"
    );
    let params = [number(after), number(last)];
    let params = params.each_ref().map(Typed::param);
    let mut lists = FactsCache::new();
    session.each_row(READING, &sql, &params, |row| {
        let version = match version(row, &mut lists) {
            Ok(version) => Some(version),
            Err(StoreError::Damaged(_)) => None,
            Err(error) => return Err(error),
        };
        visit(bound.item(count(row, 0)?, version)).map_err(StoreError::Visitor)
    })
}

fn version<'r>(
    row: &'r Row,
    lists: &'r mut FactsCache,
) -> Result<(&'r str, Facts<'r>), StoreError> {
    let parts = [get(row, 3)?, get(row, 4)?];
    let facts = lists.facts(get(row, 2)?, parts, get(row, 5)?)?;
    Ok((get(row, 1)?, facts))
}

/// Returns all recorded steps of the counter of texts, newest first.
fn text_steps(session: &mut Session) -> Result<Vec<TextState>, StoreError> {
    let sql = "select distinct counter_before, counter from vitrine.text_change \
               order by counter desc";
    let step = |row: &Row| {
        Ok(TextState {
            before: count(row, 0)?,
            after: count(row, 1)?,
        })
    };
    session.rows(READING, sql, &[])?.iter().map(step).collect()
}

/// Visits the live products that name a text whose status changed by one of `steps`, which are between two states.
fn texts(
    session: &mut Session,
    (first, last): (u64, u64),
    steps: &[TextState],
    visit: HistoryVisitor<'_>,
) -> Result<(), StoreError> {
    let sql = "select distinct c.counter, v.code from vitrine.text_change c \
               join vitrine.product_text t on t.digest = c.digest \
               join vitrine.product_version v on v.id = t.product_version_id \
               where c.counter > $1 and c.counter <= $2 and v.until_revision is null";
    let params = [number(first), number(last)];
    let params = params.each_ref().map(Typed::param);
    session.each_row(READING, sql, &params, |row| {
        let (texts, code) = (count(row, 0)?, get(row, 1)?);
        match steps.binary_search_by_key(&texts, |step| step.after) {
            Ok(_) => visit(HistoryItem::Text { texts, code }).map_err(StoreError::Visitor),
            Err(_) => Ok(()),
        }
    })
}
