//! Refuses statements that scan a growing table, while tests run: a missing index isn't noticed in small stores.
//!
//! A statement that has to read all rows says so with `/*scan*/`. Looks at the plan of each statement once,
//! if `VITRINE_TEST_SCANS` is set; part of builds with fail points only.

use std::collections::{HashMap, HashSet};
use std::sync::{LazyLock, Mutex, PoisonError};

use super::{On, Tx, Value, dialect, value};
use crate::StoreError;
use crate::sqlite::during;

/// Tables that grow with products, revisions, keys, requests or operators' work.
const GROWING: [&str; 15] = [
    "revision",
    "product_version",
    "product_document",
    "product_text",
    "product_base",
    "markdown_text",
    "fetched_text",
    "text_change",
    "catalog_override",
    "api_key",
    "api_key_use",
    "api_key_day",
    "assortment_version",
    "audit_entry",
    "webhook_attempt",
];

/// Indexes of the few rows that are open, as opposed to ended.
const SMALL: [&str; 3] = ["open_override", "text_taken_down", "current_assortment"];

static IS_ON: LazyLock<bool> = LazyLock::new(|| std::env::var_os("VITRINE_TEST_SCANS").is_some());
static SEEN: LazyLock<Mutex<HashSet<(bool, String)>>> = LazyLock::new(Mutex::default);

impl Tx<'_> {
    /// Panics if a statement scans a growing table.
    pub(super) fn refuse_scans(&mut self, sql: &str, values: &[Value<'_>]) {
        if !*IS_ON || sql.contains("/*scan*/") || !sql.contains("vitrine.") {
            return;
        }
        let is_sqlite = matches!(self.connection, On::Sqlite(_));
        let mut seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
        if !seen.insert((is_sqlite, sql.to_owned())) {
            return;
        }
        drop(seen);
        // The statement itself reports an error.
        let scans = self.scans(sql, values).unwrap_or_default();
        assert!(
            scans.is_empty(),
            "a statement scans {scans:?}; give it an index, or `/*scan*/` if it has to read all rows: {sql}"
        );
    }

    fn scans(&mut self, sql: &str, values: &[Value<'_>]) -> Result<Vec<String>, StoreError> {
        let doing = self.doing;
        match &mut self.connection {
            On::Sqlite(connection) => {
                let names = names(sql);
                let sql = format!("explain query plan {}", dialect::sqlite(sql));
                let mut statement = connection.prepare(&sql).map_err(during(doing))?;
                let steps = statement
                    .query_map(rusqlite::params_from_iter(values), |row| row.get(3))
                    .and_then(Iterator::collect::<Result<Vec<String>, _>>);
                let steps = steps.map_err(during(doing))?;
                // Without sorting, a limit ends a scan early.
                let is_bounded =
                    sql.contains(" limit ") && !steps.iter().any(|step| step.contains("ORDER BY"));
                let is_scan = |step: &&String| {
                    let words: Vec<&str> = step.split_whitespace().collect();
                    !is_bounded
                        && words[0] == "SCAN"
                        && names.contains_key(words[1])
                        && !SMALL.iter().any(|index| words.contains(index))
                };
                Ok(steps.iter().filter(is_scan).cloned().collect())
            }
            On::Postgres(session) => {
                // A join of two whole tables would be best for the few rows of a test. Once PostgreSQL has counted them, any
                // plan is as good as another.
                let settings = "savepoint plan; set local enable_seqscan = off; \
                                set local enable_hashjoin = off; set local enable_mergejoin = off";
                session.run(doing, settings)?;
                let sql = format!("explain {sql}");
                let explained = session.rows(doing, &sql, &value::params(values));
                session.run(doing, "rollback to savepoint plan")?;
                let lines: Vec<String> = explained?.iter().map(|row| row.get(0)).collect();
                let counted = "select 1 from pg_catalog.pg_class where reltuples >= 0 \
                               and relkind = 'r' and relnamespace = 'vitrine'::regnamespace limit 1";
                Ok(match session.row(doing, counted, &[])? {
                    Some(_) => Vec::new(),
                    None => postgres_scans(&lines),
                })
            }
        }
    }
}

/// Returns the growing tables of a statement, by the names that they have in it.
fn names(sql: &str) -> HashMap<&str, &str> {
    let is_separator = |c: char| c.is_whitespace() || "(),".contains(c);
    let words: Vec<&str> = sql.split(is_separator).collect();
    let mut names = HashMap::new();
    for (at, word) in words.iter().enumerate() {
        let table = word.strip_prefix("vitrine.").unwrap_or_default();
        if GROWING.contains(&table) {
            names.insert(table, table);
            let mut next = words[at + 1..].iter().filter(|word| **word != "as");
            names.extend(next.next().map(|alias| (*alias, table)));
        }
    }
    names
}

/// Returns the steps of PostgreSQL's plan that read a growing table without a condition of an index.
fn postgres_scans(lines: &[String]) -> Vec<String> {
    // Without sorting, a limit ends a scan early.
    let has = |node: &str| lines.iter().any(|line| line.contains(node));
    if has("Limit") && !has("Sort") {
        return Vec::new();
    }
    let is_scan = |at: usize| {
        let (_, on) = lines[at].split_once(" on ")?;
        let table = on.split_whitespace().next()?;
        let mut details = lines[at + 1..]
            .iter()
            .take_while(|line| !line.contains("->"));
        let is_conditional = details.any(|line| line.contains("Index Cond"))
            || lines[at].contains("Bitmap")
            || SMALL.iter().any(|index| lines[at].contains(index));
        (lines[at].contains("Scan") && GROWING.contains(&table) && !is_conditional).then_some(())
    };
    let scans = (0..lines.len()).filter(|at| is_scan(*at).is_some());
    scans.map(|at| lines[at].trim().to_owned()).collect()
}
