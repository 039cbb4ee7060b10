//! The history of changes: what each revision and each texts state changed, read as of one moment. Rows are streamed, never all
//! in memory.

use jiff::Timestamp;
use vitrine_model::geo::Country;
use vitrine_model::revision::Revision;

use crate::StoreError;
use crate::catalog::{self, PRODUCT_COLUMNS, ProductRow, VERSIONS};
use crate::db::{Plan, Row, Tx, values};
use crate::record::StoreState;
use crate::values::{ListCache, from_millis};

/// Start of a read of the history, and its bounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryStart {
    /// Number of the oldest revision to return.
    pub revision: u64,
    /// Texts state ([`StoreState::texts`]) after which changes of texts are visited; all recorded ones if it is none or
    /// unknown.
    pub texts: Option<u64>,
    /// Time; revisions and texts states that were replaced until then are left out.
    pub since: Timestamp,
    /// Maximum number of product changes of the revisions after the first, and of changes by texts; older revisions and
    /// texts states are left out beyond it.
    pub max_changes: u64,
}

/// Revisions and texts states as of one moment, whose changes were visited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct History {
    /// State of the store.
    pub state: StoreState,
    /// Readable revisions, ascending and without a gap; the last is the live one. The changes by the first one aren't
    /// visited. Empty if nothing was published, or if the start is beyond the live revision.
    pub revisions: Vec<HistoryRevision>,
    /// Recorded texts states, ascending; each begins with the end of the one before, the last ends with
    /// [`StoreState::texts`]. Those before a change that wasn't recorded are left out. Changes by the step before the first
    /// one may be visited, too.
    pub text_states: Vec<TextState>,
    /// Time at which the state before these began, if the step to it is recorded.
    pub texts_since: Option<Timestamp>,
}

/// A revision of the history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryRevision {
    /// The revision.
    pub revision: Revision,
    /// Id that it had before a restore gave it a new one.
    pub former_id: Option<String>,
}

/// A step of [`StoreState::texts`]: texts were taken down or put back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextState {
    /// Texts state before the step.
    pub before: u64,
    /// Texts state after the step.
    pub after: u64,
    /// Time of the step, or of an earlier one if that is later.
    pub changed_at: Timestamp,
}

/// Version of a product, with what selectors look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version<'a> {
    /// Number of the revision with which it began or ended.
    pub revision: u64,
    /// Product code.
    pub code: &'a str,
    /// True if the product can be ordered.
    pub is_orderable: bool,
    /// Countries in which it can be redeemed.
    pub countries: &'a [Country],
    /// Categories.
    pub categories: &'a [Box<str>],
    /// Canonical document, which has the others.
    pub document: &'a str,
}

/// Item of [`read_history`](crate::Store::read_history).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HistoryItem<'a> {
    /// A version ended: the product was changed or retired.
    Ended(Version<'a>),
    /// A version began: the product was created or changed.
    Began(Version<'a>),
    /// A live product names a text whose status changed.
    Text {
        /// Texts state after the change.
        texts: u64,
        /// Product code.
        code: &'a str,
    },
    /// A version that began or ended with this revision can't be read: what it changed is unknown.
    Damaged {
        /// Number of the revision.
        revision: u64,
    },
}

/// Callback for each item of the history.
pub type HistoryVisitor<'v> =
    &'v mut dyn for<'i> FnMut(
        HistoryItem<'i>,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>>;

impl crate::Store {
    /// Reads what the revisions and texts states after `from` changed, as of one moment and in any order: versions of
    /// products that began or ended, and live products that name a text taken down or put back. Pruned revisions are left
    /// out.
    ///
    /// # Errors
    ///
    /// If the store can't be read, or `visit` fails.
    pub fn read_history(
        &self,
        from: &HistoryStart,
        visit: HistoryVisitor<'_>,
    ) -> Result<History, StoreError> {
        self.db().read("reading the history of changes", |tx| {
            let state = catalog::state(tx)?;
            tx.plan(Plan::IndexLookups)?;
            tx.wait_for_sorts();
            let revisions = revisions(tx, from)?;
            if let [first, .., live] = revisions.as_slice() {
                let between = (first.revision.number, live.revision.number);
                versions(tx, Bound::Ended, between, visit)?;
                versions(tx, Bound::Began, between, visit)?;
            }
            let steps = text_steps(tx)?;
            let mut text_states = chain(&steps, state.texts, from);
            texts(tx, &mut text_states, state.texts, from.max_changes, visit)?;
            let first = text_states
                .first()
                .map_or(state.texts, |first| first.before);
            let before = steps.iter().find(|step| step.after == first);
            Ok(History {
                state,
                revisions,
                text_states,
                texts_since: before.map(|step| step.changed_at),
            })
        })
    }
}

/// Returns the revisions within the bounds, ascending and without a gap. The clocks of publishers differ: a revision was replaced
/// at the latest time of those before the next.
fn revisions(tx: &mut Tx<'_>, from: &HistoryStart) -> Result<Vec<HistoryRevision>, StoreError> {
    let sql = "select number, id, created_at, former_id, created, changed, retired, \
               max(created_at) over (order by number) \
               from vitrine.revision \
               where number <= (select revision_number from vitrine.state) \
                  and number >= (select greatest($1, coalesce(oldest_readable, 0)) from vitrine.state) \
               order by number desc";
    let mut taken: Vec<HistoryRevision> = Vec::new();
    let (mut is_cut, mut changes, mut replaced_at) = (false, 0_u64, Timestamp::MAX);
    tx.each(sql, values![from.revision], |row| {
        let number = row.count(0)?;
        let is_next = taken.last().is_none_or(|newer| {
            number + 1 == newer.revision.number
                && replaced_at > from.since
                && changes <= from.max_changes
        });
        is_cut |= !is_next;
        if is_cut {
            return Ok(());
        }
        taken.push(HistoryRevision {
            revision: Revision {
                number,
                id: row.get(1)?,
                created_at: from_millis(row.get(2)?)?,
            },
            former_id: row.get(3)?,
        });
        for column in 4..7 {
            changes = changes.saturating_add(row.count(column)?);
        }
        replaced_at = from_millis(row.get(7)?)?;
        Ok(())
    })?;
    taken.reverse();
    Ok(taken)
}

/// End of a version's span.
#[derive(Debug, Clone, Copy)]
enum Bound {
    Ended,
    Began,
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

/// Caches of the lists of countries and categories.
type Lists = (ListCache<Country>, ListCache<Box<str>>);

/// Visits the versions that ended or began after the revision `after`, up to `last`.
fn versions(
    tx: &mut Tx<'_>,
    bound: Bound,
    (after, last): (u64, u64),
    visit: HistoryVisitor<'_>,
) -> Result<(), StoreError> {
    let countries = ListCache::new(|text| text.parse().ok());
    let mut lists: Lists = (countries, ListCache::new(|text| Some(text.into())));
    let mut unpacked = Vec::new();
    tx.each(&versions_of(bound), values![after, last], |row| {
        let revision = row.count(REVISION)?;
        let item = match (bound, version(row, revision, &mut lists, &mut unpacked)) {
            (Bound::Ended, Ok(version)) => HistoryItem::Ended(version),
            (Bound::Began, Ok(version)) => HistoryItem::Began(version),
            (_, Err(StoreError::Damaged(_))) => HistoryItem::Damaged { revision },
            (_, Err(error)) => return Err(error),
        };
        visit(item).map_err(StoreError::Visitor)
    })
}

/// Reads a version.
///
/// # Errors
///
/// If it doesn't match its digest, or has lists that aren't.
fn version<'r>(
    row: &Row<'r>,
    revision: u64,
    (countries, categories): &'r mut Lists,
    unpacked: &'r mut Vec<u8>,
) -> Result<Version<'r>, StoreError> {
    let product = ProductRow::read(row, unpacked)?;
    let digest = product.stored_digest(row)?;
    let (code, document) = (product.code, product.document);
    if !digest.matches(code, document, None) {
        let damage = format!("a version of {code} doesn't match its digest");
        return Err(StoreError::Damaged(damage));
    }
    Ok(Version {
        revision,
        code,
        is_orderable: product.is_orderable,
        countries: countries.get(product.countries)?,
        categories: categories.get(product.categories)?,
        document,
    })
}

/// Returns all recorded steps of the counter of texts, newest first.
fn text_steps(tx: &mut Tx<'_>) -> Result<Vec<TextState>, StoreError> {
    let sql = "select counter_before, counter, max(changed_at) from vitrine.text_change /*scan*/ \
               group by counter_before, counter order by counter";
    let steps = tx.rows(sql, &[], |row| {
        Ok(TextState {
            before: row.count(0)?,
            after: row.count(1)?,
            changed_at: from_millis(row.get(2)?)?,
        })
    })?;
    Ok(newest_first(steps))
}

/// Reverses steps. One by an earlier clock counts as of the time of the one before.
fn newest_first(mut steps: Vec<TextState>) -> Vec<TextState> {
    let mut latest = Timestamp::MIN;
    for step in &mut steps {
        latest = latest.max(step.changed_at);
        step.changed_at = latest;
    }
    steps.reverse();
    steps
}

/// Returns the steps that lead to the texts state `now` without a gap, ascending, from the start's state or time on. `steps` are
/// newest first.
fn chain(steps: &[TextState], now: u64, from: &HistoryStart) -> Vec<TextState> {
    let mut chain = Vec::new();
    let mut at = now;
    for step in steps {
        if from.texts == Some(at) || step.after < at {
            break;
        }
        if step.after == at && step.before < at {
            if step.changed_at <= from.since {
                break;
            }
            chain.push(*step);
            at = step.before;
        }
    }
    chain.reverse();
    chain
}

const CHANGED_TEXTS: &str = "select distinct c.counter, v.code from vitrine.text_change c \
     /*sqlite cross*/ join vitrine.product_text t on t.digest = c.digest \
     /*sqlite cross*/ join vitrine.product_version v on v.id = t.product_version_id \
     where c.counter > $1 and c.counter <= $2 and v.until_revision is null \
     order by c.counter desc limit $3";

/// Visits the live products that name a text whose status changed by one of the steps, newest first. A change beyond the maximum
/// drops its step and older ones.
fn texts(
    tx: &mut Tx<'_>,
    steps: &mut Vec<TextState>,
    now: u64,
    max_changes: u64,
    visit: HistoryVisitor<'_>,
) -> Result<(), StoreError> {
    let Some(first) = steps.first() else {
        return Ok(());
    };
    let (after, limit) = (first.before, max_changes.saturating_add(1));
    let mut changes = 0;
    tx.each(CHANGED_TEXTS, values![after, now, limit], |row| {
        let (texts, code) = (row.count(0)?, row.get(1)?);
        changes += 1;
        if changes > max_changes {
            steps.retain(|step| step.after > texts);
        } else if steps.iter().any(|step| step.after == texts) {
            visit(HistoryItem::Text { texts, code }).map_err(StoreError::Visitor)?;
        }
        Ok(())
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

    const EVERYTHING: HistoryStart = HistoryStart {
        revision: 0,
        texts: None,
        since: Timestamp::MIN,
        max_changes: u64::MAX,
    };

    /// Returns the chain of steps, each of which was made a second after the one before.
    fn chained(steps: &[(u64, u64)], now: u64, from: &HistoryStart) -> Vec<(u64, u64)> {
        let step = |(&(before, after), at)| TextState {
            before,
            after,
            changed_at: Timestamp::from_second(at).unwrap(),
        };
        let steps = newest_first(steps.iter().zip(1..).map(step).collect());
        let chain = chain(&steps, now, from);
        chain.iter().map(|step| (step.before, step.after)).collect()
    }

    #[test]
    fn chain_of_texts_states_ends_at_a_gap_or_the_start() {
        let steps = [(0, 2), (2, 4), (5, 7), (5, 7), (7, 9)];
        let found = |now, texts| {
            chained(
                &steps,
                now,
                &HistoryStart {
                    texts,
                    ..EVERYTHING
                },
            )
        };
        assert_eq!(found(9, None), [(5, 7), (7, 9)], "4 → 5 is a gap");
        assert_eq!(found(9, Some(7)), [(7, 9)]);
        assert_eq!(found(9, Some(9)), []);
        for unknown in [0, 4, 6, 10] {
            assert_eq!(found(9, Some(unknown)), [(5, 7), (7, 9)]);
        }
        // A step isn't recorded, or steps are newer than the state: nothing leads there.
        for now in [0, 3, 8, 11] {
            assert_eq!(found(now, None), []);
        }
        let damaged = chained(&[(12, 9), (9, 9)], 9, &EVERYTHING);
        assert_eq!(damaged, [], "damaged steps");
    }

    #[test]
    fn chain_of_texts_states_begins_after_the_time() {
        let steps = [(0, 2), (2, 4), (4, 6)];
        for (since, expected) in [
            (0, &steps[..]),
            (1, &steps[1..]),
            (2, &steps[2..]),
            (3, &[]),
        ] {
            let since = Timestamp::from_second(since).unwrap();
            let from = HistoryStart {
                since,
                ..EVERYTHING
            };
            assert_eq!(chained(&steps, 6, &from), expected);
        }
    }

    #[test]
    fn texts_state_of_a_late_clock_counts_as_of_the_one_before() {
        let step = |before, at| TextState {
            before,
            after: before + 1,
            changed_at: Timestamp::from_second(at).unwrap(),
        };
        let steps = newest_first(vec![step(0, 40), step(1, 60), step(2, 10)]);
        assert_eq!(steps, [step(2, 60), step(1, 60), step(0, 40)]);
        let from = HistoryStart {
            since: Timestamp::from_second(50).unwrap(),
            ..EVERYTHING
        };
        assert_eq!(chain(&steps, 3, &from), [step(1, 60), step(2, 60)]);
    }
}
