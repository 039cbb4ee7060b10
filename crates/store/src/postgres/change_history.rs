//! Reading the history of changes as of one moment: rows are streamed, never all in memory.

use tokio_postgres::Row;
use vitrine_model::revision::Revision;

use super::SORT_TIMEOUT;
use super::catalog::{CODE, OWN_TEXTS, PRODUCT_COLUMNS, state, stored_digest};
use super::history::{self, FORCE_INDEX_LOOKUPS};
use super::session::{Session, Typed, count, get, number};
use crate::StoreError;
use crate::history::{
    Bound, Facts, FactsCache, History, HistoryItem, HistoryRevision, HistoryStart, HistoryVisitor,
    Selection, TextSelection, TextState,
};
use crate::record::StoredDigest;
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
    let mut selection = TextSelection::new(text_steps(session)?, state.texts, from);
    texts(session, &mut selection, visit)?;
    let (text_states, texts_since) = selection.into_parts();
    Ok(History {
        state,
        revisions,
        text_states,
        texts_since,
    })
}

fn revisions(
    session: &mut Session,
    from: &HistoryStart,
) -> Result<Vec<HistoryRevision>, StoreError> {
    let sql = "select number, id, created_at, former_id, created, changed, retired, \
               max(created_at) over (order by number) \
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
        let counts = [count(row, 4)?, count(row, 5)?, count(row, 6)?];
        selection.take(revision, from_millis(get(row, 7)?)?, counts);
        Ok(())
    })?;
    Ok(selection.into_ascending())
}

/// Index of the column of the revision, after that of the code.
const REVISION: usize = CODE + 1;

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
        "select {PRODUCT_COLUMNS}, v.code, v.{column} from vitrine.product_version v {OWN_TEXTS} \
         where v.{column} > $1 and v.{column} <= $2"
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
        visit(bound.item(count(row, REVISION)?, version)).map_err(StoreError::Visitor)
    })
}

fn version<'r>(
    row: &'r Row,
    lists: &'r mut FactsCache,
) -> Result<(&'r str, Facts<'r>), StoreError> {
    let is_orderable = get(row, 4)?;
    let lists_json = [get(row, 5)?, get(row, 6)?];
    let parts = [get(row, 7)?, lists_json[0], lists_json[1]];
    let own_texts = history::own_texts(row, 9)?;
    let digest = StoredDigest::new(
        stored_digest(row)?,
        i64::from(is_orderable),
        parts,
        &own_texts,
    );
    let names = [get(row, CODE)?, get(row, 1)?];
    lists.version(names, is_orderable, lists_json, &digest)
}

/// Returns all recorded steps of the counter of texts, ascending.
fn text_steps(session: &mut Session) -> Result<Vec<TextState>, StoreError> {
    let sql = "select counter_before, counter, max(changed_at) from vitrine.text_change \
               group by counter_before, counter order by counter";
    let step = |row: &Row| {
        Ok(TextState {
            before: count(row, 0)?,
            after: count(row, 1)?,
            changed_at: from_millis(get(row, 2)?)?,
        })
    };
    session.rows(READING, sql, &[])?.iter().map(step).collect()
}

/// Visits the live products that name a text whose status changed by one of the selected steps.
fn texts(
    session: &mut Session,
    selection: &mut TextSelection<'_>,
    visit: HistoryVisitor<'_>,
) -> Result<(), StoreError> {
    let Some(bounds) = selection.bounds() else {
        return Ok(());
    };
    let sql = "select distinct c.counter, v.code from vitrine.text_change c \
               join vitrine.product_text t on t.digest = c.digest \
               join vitrine.product_version v on v.id = t.product_version_id \
               where c.counter > $1 and c.counter <= $2 and v.until_revision is null \
               order by c.counter desc limit $3";
    let params = bounds.map(number);
    let params = params.each_ref().map(Typed::param);
    session.each_row(READING, sql, &params, |row| {
        let (texts, code) = (count(row, 0)?, get(row, 1)?);
        match selection.take(texts) {
            true => visit(HistoryItem::Text { texts, code }).map_err(StoreError::Visitor),
            false => Ok(()),
        }
    })
}
