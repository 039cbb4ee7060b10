//! Checks of all stored data, as of one moment and while others write. Of an SQLite file also its structure and its references;
//! PostgreSQL checks references itself, and files by its checksums and `pg_amcheck`.

use std::collections::{BTreeMap, HashMap};

use rusqlite::Connection;
use serde_json::value::RawValue;
use vitrine_model::code::ProductCode;
use vitrine_model::content::{PackedMarkdown, TextDigest, TextName};
use vitrine_model::geo::Country;
use vitrine_model::hexadecimal::Hexadecimal;
use vitrine_model::key::KeyRecord;

use crate::db::{Db, Row, Tx, WORK_TIMEOUT, values};
use crate::document::unpack_into;
use crate::named::named;
use crate::record::OwnText;
use crate::sqlite::during;
use crate::values::own_text;
use crate::webhooks::{Endpoint, from_json};
use crate::{StoreError, assortment, audit, digest, keys, operators};

const CHECKING: &str = "checking the store";

/// Number of versions that are checked at once, with their texts.
const BATCH: u32 = 1_000;

/// A problem that a check found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Stable name of the broken rule.
    pub rule: &'static str,
    /// Severity of the rule.
    pub severity: Severity,
    /// The row or the part of the store concerned.
    pub place: String,
    /// Description of the problem.
    pub what: String,
    /// Advice to the operator.
    pub advice: &'static str,
}

named! {
    /// Severity of a [`Problem`].
    pub enum Severity {
        /// Harmless.
        Warning = "warning",
        /// The store differs from what was written to it.
        Fault = "fault",
    }
}

/// Checks one part of the store.
type Part = fn(&mut Tx<'_>, &mut Findings) -> Result<(), StoreError>;

/// Parts that both databases have.
const PARTS: [Part; 8] = [
    queries,
    api_keys,
    assortment::check,
    endpoints,
    operators::check,
    audit::check,
    versions,
    texts,
];

/// Rows that break a rule, each as its place and the problem.
type Query = (&'static Rule, &'static str);

const OF_FILES: [Query; 2] = [
    (
        &INTEGRITY,
        "select 'the file', integrity_check from pragma_integrity_check where integrity_check <> 'ok'",
    ),
    // `QUERIES` reports the others more precisely.
    (
        &REFERENCE,
        "select \"table\" || ', row ' || coalesce(rowid, 0), 'refers to a missing row of ' || parent \
         from pragma_foreign_key_check \
         where \"table\" not in ('state', 'product_text', 'fetched_text')",
    ),
];

const QUERIES: [Query; 15] = [
    (
        &STATE,
        "select 'the live revision', 'is ' || coalesce(s.revision_number::text, 'none') || ' with id ' || \
            coalesce(s.revision_id, 'none') || ', but that revision has id ' || coalesce(r.id, 'none') \
         from vitrine.state s left join vitrine.revision r on r.number = s.revision_number \
         where s.revision_id is distinct from r.id or s.revision_number is distinct from r.number",
    ),
    (
        &STATE,
        "select 'the live revision', 'is ' || coalesce(revision_number, 0) || ', but all before ' || \
            oldest_readable || ' are marked as pruned' from vitrine.state \
         where oldest_readable > coalesce(revision_number, 0) \
            or (oldest_readable is not null \
               and oldest_readable not in (select number from vitrine.revision))",
    ),
    (
        &STATE,
        "select 'the live revision', 'has ' || count(*) || ' rows instead of one' from vitrine.state \
         having count(*) <> 1",
    ),
    (
        &COUNTER,
        "select 'the counter of texts', 'is ' || texts_counter || ', below zero' \
         from vitrine.state where texts_counter < 0",
    ),
    (
        &COUNTER,
        "select 'the counter of keys', 'is ' || keys_counter || ', below zero' \
         from vitrine.state where keys_counter < 0",
    ),
    (
        &COUNTER,
        "select 'the counter of assortments', 'is ' || assortments_counter || ', below zero' \
         from vitrine.state where assortments_counter < 0",
    ),
    (
        &COUNTER,
        "select 'revision ' || number, 'counts products below zero' from vitrine.revision \
         where created < 0 or changed < 0 or retired < 0 or unchanged < 0",
    ),
    (
        // SQLite's booleans are numbers.
        &API_KEY,
        "select 'key ' || prefix, 'its kind or its quota is invalid' from vitrine.api_key \
         where is_test not in (false, true) or (quota_requests is null) <> (quota_seconds is null)",
    ),
    (
        &KEY_USE_ORPHAN,
        "select 'key ' || prefix, 'has a last use, but doesn''t exist' from vitrine.api_key_use \
         where prefix not in (select prefix from vitrine.api_key)",
    ),
    (
        &KEY_ASSORTMENT,
        "select 'key ' || prefix, 'has the assortment ' || assortment || ', which doesn''t exist' \
         from vitrine.api_key where revoked_at is null and assortment is not null and assortment not in \
            (select name from vitrine.assortment_version \
             where replaced_at is null and rules is not null)",
    ),
    (
        &TEXT_REFERENCE,
        "select 'text ' || encode(t.digest, 'hex'), \
            'belongs to version ' || product_version_id || ', which doesn''t exist' \
         from vitrine.product_text t where product_version_id not in \
            (select id from vitrine.product_version)",
    ),
    (
        &TEXT_REFERENCE,
        "select coalesce('product ' || v.code || ' of revision ' || v.from_revision, 'a missing version'), \
            'its ' || name || ' is text ' || encode(t.digest, 'hex') || ', which doesn''t exist' \
         from vitrine.product_text t left join vitrine.product_version v on v.id = product_version_id \
         where not exists (select 1 from vitrine.markdown_text x where x.digest = t.digest)",
    ),
    (
        &TEXT_REFERENCE,
        "select 'the text fetched from ' || url, \
            'is text ' || encode(f.digest, 'hex') || ', which doesn''t exist' \
         from vitrine.fetched_text f where not exists \
            (select 1 from vitrine.markdown_text x where x.digest = f.digest)",
    ),
    // Texts that were taken down are kept on purpose: they are still down if they are loaded again.
    (
        &TEXT_ORPHAN,
        "select 'text ' || encode(x.digest, 'hex'), \
            'is named by no product and takes ' || length(markdown) || ' bytes' \
         from vitrine.markdown_text x where taken_down_at is null \
            and not exists (select 1 from vitrine.product_text t where t.digest = x.digest)",
    ),
    (
        &BASE,
        "select 'base of product ' || b.code || ' of revision ' || b.from_revision, \
            'is version ' || b.version_id || ', which isn''t one of the product' \
         from vitrine.product_base b left join vitrine.product_version v on v.id = b.version_id \
         where v.code is distinct from b.code",
    ),
];

/// Spans of versions that overlap, or that don't begin and end with existing revisions. Bases have them, too; versions that are only
/// bases have the revisions 0 and 0.
const SPANS: [&str; 2] = [
    "select 'product ' || code || ' of revision ' || from_revision, \
            case when until_revision <= from_revision \
            then 'ends with revision ' || until_revision || ' already' \
            else 'is still live when revision ' || next_from || ' adds the next version' end \
         from (select code, from_revision, until_revision, lead(from_revision) \
               over (partition by code order by from_revision) as next_from \
            from vitrine.product_version where from_revision > 0) span \
         where until_revision <= from_revision \
            or next_from < until_revision or (until_revision is null and next_from is not null)",
    "select 'product ' || code || ' of revision ' || from_revision, 'is live until ' || \
            coalesce('revision ' || until_revision, 'now') || ', and not all of these revisions exist' \
         from vitrine.product_version \
         where from_revision > 0 and (from_revision not in (select number from vitrine.revision) \
            or until_revision not in (select number from vitrine.revision))",
];

/// Maximum number of problems reported for each rule; the rest is only counted.
const MAX_PER_RULE: u64 = 100;

/// A rule of a check.
#[derive(Clone, Copy)]
pub(crate) struct Rule {
    name: &'static str,
    severity: Severity,
    advice: &'static str,
}

impl Rule {
    fn problem(self, place: String, what: String) -> Problem {
        let Self {
            name: rule,
            severity,
            advice,
        } = self;
        Problem {
            rule,
            severity,
            place,
            what,
            advice,
        }
    }
}

const fn fault(name: &'static str, advice: &'static str) -> Rule {
    rule(name, Severity::Fault, advice)
}

const fn rule(name: &'static str, severity: Severity, advice: &'static str) -> Rule {
    Rule {
        name,
        severity,
        advice,
    }
}

const RESTORE: &str = "restore the last good backup: `vitrine restore FILE`";
const MOVE_AND_RESTORE: &str =
    "suspect the disk; move the store and the files beside it away, and `vitrine restore FILE`";

const INTEGRITY: Rule = fault("integrity", MOVE_AND_RESTORE);
const UNREADABLE: Rule = fault("unreadable", MOVE_AND_RESTORE);
const REFERENCE: Rule = fault("reference", RESTORE);
const STATE: Rule = fault("live_revision", RESTORE);
const COUNTER: Rule = fault("counter", RESTORE);
const API_KEY: Rule = fault("api_key", RESTORE);
const API_KEY_DIGEST: Rule = fault(
    "api_key_digest",
    "review the key in `vitrine keys list`, then rotate or revoke it: that writes a new digest",
);
const KEY_ASSORTMENT: Rule = fault(
    "key_assortment",
    "give it another assortment (`vitrine keys set KEY --assortment NAME`), or set that one again (`vitrine assortments set`)",
);
pub(crate) const OPERATOR: Rule = fault(
    "operator",
    "set the operator again (`vitrine operators set`) or remove it; until then it can't sign in",
);
pub(crate) const ASSORTMENT: Rule = fault("assortment", RESTORE);
const WEBHOOK: Rule = fault("webhook", RESTORE);
const BASE: Rule = fault("base", RESTORE);
pub(crate) const AUDIT_ENTRY: Rule = fault(
    AUDIT_RULE,
    "compare `vitrine audit` with that of a backup, and find out who can write to the store; nothing mends the log",
);
/// The rule of the audit log. Its faults don't make a backup unusable: they harm nothing that is served.
pub(crate) const AUDIT_RULE: &str = "audit_entry";
const VERSION_SPAN: Rule = fault("version_life", RESTORE);
const DOCUMENT: Rule = fault("document", RESTORE);
const CONTENT_RANGE: Rule = fault("content_range", RESTORE);
const PRODUCT_FACTS: Rule = fault("product_facts", RESTORE);
const VERSION_DIGEST: Rule = fault("version_digest", RESTORE);
const TEXT_NAME: Rule = fault("text_name", RESTORE);
const TEXT_REFERENCE: Rule = fault("text_reference", RESTORE);
const TEXT_DIGEST: Rule = fault("text_digest", RESTORE);
const TEXT_ORPHAN: Rule = rule(
    "text_orphan",
    Severity::Warning,
    "no action needed: it is never served; `vitrine prune` deletes it",
);
const KEY_USE_ORPHAN: Rule = rule(
    "key_use_orphan",
    Severity::Warning,
    "no action needed: it grants no access",
);

/// Findings so far.
#[derive(Default)]
pub(crate) struct Findings {
    problems: Vec<Problem>,
    /// Number of problems of each rule, by its name.
    counts: BTreeMap<&'static str, (u64, Rule)>,
}

impl Findings {
    pub(crate) fn add(&mut self, rule: &Rule, place: String, what: String) {
        let (count, _) = self.counts.entry(rule.name).or_insert((0, *rule));
        *count += 1;
        if *count <= MAX_PER_RULE {
            self.problems.push(rule.problem(place, what));
        }
    }

    /// Returns all problems, with a summary for each rule that has more than are reported.
    fn into_problems(mut self) -> Vec<Problem> {
        for (count, rule) in self.counts.into_values() {
            if count > MAX_PER_RULE {
                let what = format!("{} more problems of this rule", count - MAX_PER_RULE);
                self.problems
                    .push(rule.problem("elsewhere".to_owned(), what));
            }
        }
        self.problems
    }
}

/// Checks a PostgreSQL store. See [`Store::check`](crate::Store::check).
pub(crate) fn check(db: Db<'_>) -> Result<Vec<Problem>, StoreError> {
    let mut problems = db.read_within(WORK_TIMEOUT, CHECKING, |tx| {
        run(tx, "the database", &PARTS).map(Findings::into_problems)
    })?;
    for problem in &mut problems {
        if [RESTORE, MOVE_AND_RESTORE].contains(&problem.advice) {
            problem.advice = "restore the last good dump of the database with `pg_restore`";
        }
    }
    Ok(problems)
}

/// Checks an SQLite file: a store or a backup. A store in use has its endpoints in a file of their own.
pub(crate) fn check_file(connection: &mut Connection) -> Result<Vec<Problem>, StoreError> {
    file(connection, &[&[of_files as Part][..], &PARTS].concat())
}

/// Checks the file of the endpoints of an SQLite store in use.
pub(crate) fn check_webhooks(connection: &mut Connection) -> Result<Vec<Problem>, StoreError> {
    file(connection, &[of_files, endpoints])
}

fn file(connection: &mut Connection, parts: &[Part]) -> Result<Vec<Problem>, StoreError> {
    let transaction = connection.transaction().map_err(during(CHECKING))?;
    let tx = &mut Tx::sqlite(&transaction, CHECKING);
    run(tx, "the file", parts).map(Findings::into_problems)
}

fn run(tx: &mut Tx<'_>, place: &str, parts: &[Part]) -> Result<Findings, StoreError> {
    let mut found = Findings::default();
    for part in parts {
        match part(tx, &mut found) {
            // Unreadable data is a finding, too, and the other parts go on.
            Err(StoreError::Damaged(what)) if tx.is_usable() => {
                found.add(&UNREADABLE, place.to_owned(), what);
            }
            outcome => outcome?,
        }
    }
    Ok(found)
}

fn query(tx: &mut Tx<'_>, found: &mut Findings, rule: &Rule, sql: &str) -> Result<(), StoreError> {
    tx.each(&format!("{sql} /*scan*/"), &[], |row| {
        found.add(rule, row.lossy(0)?, row.lossy(1)?);
        Ok(())
    })
}

fn of_files(tx: &mut Tx<'_>, found: &mut Findings) -> Result<(), StoreError> {
    (OF_FILES.iter()).try_for_each(|(rule, sql)| query(tx, found, rule, sql))
}

fn queries(tx: &mut Tx<'_>, found: &mut Findings) -> Result<(), StoreError> {
    (QUERIES.iter()).try_for_each(|(rule, sql)| query(tx, found, rule, sql))?;
    let names = TextName::ALL.map(|name| format!("'{}'", name.as_str()));
    let sql = format!(
        "select 'product ' || code || ' of revision ' || from_revision, \
            'has a text with the unknown name `' || name || '`' \
         from vitrine.product_text join vitrine.product_version on id = product_version_id \
         where name not in ({})",
        names.join(", ")
    );
    query(tx, found, &TEXT_NAME, &sql)?;
    for sql in SPANS {
        query(tx, found, &VERSION_SPAN, sql)?;
        let of_bases = sql.replace("'product '", "'base of product '");
        let of_bases = of_bases.replace("product_version", "product_base");
        query(tx, found, &BASE, &of_bases)?;
    }
    Ok(())
}

/// Checks that a key can have the values of its row, and that its digest is the stored one.
fn api_keys(tx: &mut Tx<'_>, found: &mut Findings) -> Result<(), StoreError> {
    for (prefix, row) in keys::rows(tx)? {
        let is_intact = row
            .as_ref()
            .is_ok_and(|row| row.stored_digest == row.digest());
        let (rule, what) = match row.and_then(KeyRecord::try_from) {
            Err(error) => (API_KEY, error.to_string()),
            Ok(record) => match record.fault() {
                Some(what) => (API_KEY, what.to_owned()),
                None if is_intact => continue,
                None => {
                    let what =
                        "was changed by something other than Vitrine: its digest doesn't match";
                    (API_KEY_DIGEST, what.to_owned())
                }
            },
        };
        found.add(&rule, format!("key {prefix}"), what);
    }
    Ok(())
}

fn endpoints(tx: &mut Tx<'_>, found: &mut Findings) -> Result<(), StoreError> {
    let sql = "select id, document from vitrine.webhook_endpoint";
    tx.each(sql, &[], |row| {
        let id: &str = row.get(0)?;
        let what = match from_json::<Endpoint>(row.get(1)?) {
            Ok(endpoint) if endpoint.id == id => return Ok(()),
            Ok(_) => "has the document of another one".to_owned(),
            Err(error) => error.to_string(),
        };
        found.add(&WEBHOOK, format!("webhook endpoint {id}"), what);
        Ok(())
    })
}

/// Texts of some versions, by the version's id. `None` for a version with an unreadable text, which `text_names` reports.
type TextsOfVersions = HashMap<i64, Option<Vec<OwnText>>>;

fn texts_of(tx: &mut Tx<'_>, after: i64, until: i64) -> Result<TextsOfVersions, StoreError> {
    let sql = "select product_version_id, name, digest, source_url from vitrine.product_text \
               where product_version_id > $1 and product_version_id <= $2";
    let mut texts = TextsOfVersions::new();
    tx.each(sql, values![after, until], |row| {
        let of_version = texts.entry(row.get(0)?).or_insert_with(|| Some(Vec::new()));
        match own_text(&row.lossy(1)?, row.get(2)?, row.get(3)?) {
            Ok(text) => of_version.iter_mut().for_each(|all| all.push(text.clone())),
            Err(_) => *of_version = None,
        }
        Ok(())
    })?;
    Ok(texts)
}

/// Checks each version's document, the columns beside it, and the digest of all.
fn versions(tx: &mut Tx<'_>, found: &mut Findings) -> Result<(), StoreError> {
    let end = "select max(id) from (select id from vitrine.product_version where id > $1 \
               order by id limit $2) batch having count(*) > 0";
    let sql = "select id, code, from_revision, document, content_start, content_end, \
                  discount_multiplier, countries, categories, digest, is_orderable \
               from vitrine.product_version \
               left join vitrine.product_document on product_version_id = id \
               where id > $1 and id <= $2";
    let (mut last, mut unpacked) = (i64::MIN, Vec::new());
    while let Some(end) = tx.row(end, values![last, BATCH], |row| row.get(0))? {
        let texts = texts_of(tx, last, end)?;
        tx.each(sql, values![last, end], |row| {
            let own_texts = match texts.get(&row.get::<i64>(0)?) {
                Some(texts) => texts.as_deref(),
                None => Some(&[][..]),
            };
            version_row(row, own_texts, &mut unpacked, found)
        })?;
        last = end;
    }
    Ok(())
}

fn version_row(
    row: &Row<'_>,
    own_texts: Option<&[OwnText]>,
    unpacked: &mut Vec<u8>,
    found: &mut Findings,
) -> Result<(), StoreError> {
    let place = format!(
        "product {} of revision {}",
        row.lossy(1)?,
        row.get::<i64>(2)?
    );
    let mut add = |rule, what: &str| found.add(rule, place.clone(), what.to_owned());
    let text = |column| row.get::<&str>(column).ok();
    if let Some(what) = fact_problem(text(1), text(7), text(8)) {
        add(&PRODUCT_FACTS, what);
    }
    let packed = row.get::<&[u8]>(3);
    let Ok(document) = packed.and_then(|packed| unpack_into(packed, unpacked)) else {
        add(&DOCUMENT, "its document can't be read");
        return Ok(());
    };
    if serde_json::from_str::<&RawValue>(document).is_err() {
        add(&DOCUMENT, "its document isn't JSON");
    }
    let range: (Option<i64>, Option<i64>) = (row.get(4)?, row.get(5)?);
    if !range_fits(document, range) {
        let what = "its content resources aren't in the stored range";
        add(&CONTENT_RANGE, what);
    }
    let Some(own_texts) = own_texts else {
        return Ok(());
    };
    let column = |column| text(column).unwrap_or_default();
    let parts = [column(1), document, column(6), column(7), column(8)];
    let digest = digest::digest(parts, row.number_or_boolean(10)?, own_texts);
    if row.get::<&[u8]>(9).ok() != Some(&digest[..]) {
        let what = "isn't what was loaded: its digest doesn't match";
        add(&VERSION_DIGEST, what);
    } else if range != (None, None) {
        for own in own_texts {
            let (name, digest) = (own.name.as_str(), &own.digest);
            if !document.contains(&format!("\"{name}{TEXT_FIELD}{digest}.md\"")) {
                let what = format!("its {name} is text {digest}, but its document names another");
                add(&TEXT_REFERENCE, &what);
            }
        }
        let (named, kept) = (document.matches(TEXT_FIELD).count(), own_texts.len());
        if named > kept {
            let what = format!("its document names {named} texts, but {kept} are stored");
            add(&TEXT_REFERENCE, &what);
        }
    }
    Ok(())
}

/// Part of a document in front of the digest of each text that the store has.
const TEXT_FIELD: &str = "_markdown_url\":\"texts/";

/// Returns the first problem that would make the version unreadable.
fn fact_problem(
    code: Option<&str>,
    countries: Option<&str>,
    categories: Option<&str>,
) -> Option<&'static str> {
    let list = |json: Option<&str>| serde_json::from_str::<Vec<String>>(json?).ok();
    let is_country = |country: &String| country.parse::<Country>().is_ok();
    if code.is_none_or(|code| code.parse::<ProductCode>().is_err()) {
        return Some("its code is invalid");
    }
    if !list(countries).is_some_and(|countries| countries.iter().all(is_country)) {
        return Some("its countries are invalid");
    }
    if list(categories).is_none() {
        return Some("its categories are invalid");
    }
    None
}

fn range_fits(document: &str, range: (Option<i64>, Option<i64>)) -> bool {
    match range {
        (None, None) => true,
        (Some(start), Some(end)) => match (usize::try_from(start), usize::try_from(end)) {
            (Ok(start), Ok(end)) => digest::is_content(document, &(start..end)),
            _ => false,
        },
        _ => false,
    }
}

/// Checks that each text unpacks, and that its digest is the one that it is stored under.
fn texts(tx: &mut Tx<'_>, found: &mut Findings) -> Result<(), StoreError> {
    let sql = "select digest, markdown from vitrine.markdown_text /*scan*/";
    tx.each(sql, &[], |row| {
        let digest: &[u8] = row.get(0)?;
        let markdown = PackedMarkdown::from_bytes(row.get(1).unwrap_or_default());
        let what = match markdown.unpack().as_deref().map(TextDigest::of) {
            Ok(own) if digest == own.as_bytes() => return Ok(()),
            Ok(own) => format!("contains text {own}"),
            Err(_) => "can't be unpacked".to_owned(),
        };
        found.add(&TEXT_DIGEST, format!("text {}", Hexadecimal(digest)), what);
        Ok(())
    })
}
