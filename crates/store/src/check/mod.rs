//! Checks of stored data: the rules, and the checks of single rows.
//!
//! - `found`: the rules, and the collection of findings; `run`: the parts of a check

pub(crate) mod found;
pub(crate) mod run;

use serde_json::value::RawValue;
use vitrine_model::code::ProductCode;
use vitrine_model::content::{PackedMarkdown, TextDigest};
use vitrine_model::geo::Country;
use vitrine_model::key::KeyRecord;

use crate::StoreError;
use crate::assortment::{self, AssortmentVersion};
use crate::audit::{AuditRow, Chain};
use crate::digest::is_content;
use crate::operators::{Operator, OperatorRow};
use crate::record::OwnText;
use crate::values::KeyRow;
use crate::webhooks::{self, Endpoint};
use found::{
    API_KEY, API_KEY_DIGEST, ASSORTMENT, AUDIT_ENTRY, CONTENT_RANGE, COUNTER, DOCUMENT, Findings,
    KEY_ASSORTMENT, OPERATOR, PRODUCT_FACTS, TEXT_DIGEST, TEXT_REFERENCE, WEBHOOK,
};

/// Returns the name of a version in a report.
pub(crate) fn version(code: &str, from_revision: i64) -> String {
    format!("product {code} of revision {from_revision}")
}

/// Checks the columns of a version; `None` for one that isn't UTF-8.
pub(crate) fn version_facts(
    found: &mut Findings,
    place: &str,
    [code, countries, categories]: [Option<&str>; 3],
    document: Option<&str>,
    range: (Option<i64>, Option<i64>),
) {
    let mut add = |rule, what: &str| found.add(rule, place.to_owned(), what.to_owned());
    if let Some(what) = fact_problem(code, countries, categories) {
        add(&PRODUCT_FACTS, what);
    }
    let Some(document) = document else {
        add(&DOCUMENT, "its document can't be read");
        return;
    };
    if serde_json::from_str::<&RawValue>(document).is_err() {
        add(&DOCUMENT, "its document isn't JSON");
    }
    if !range_fits(document, range.0, range.1) {
        add(
            &CONTENT_RANGE,
            "its content resources aren't in the stored range",
        );
    }
}

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

fn range_fits(document: &str, start: Option<i64>, end: Option<i64>) -> bool {
    match (start, end) {
        (None, None) => true,
        (Some(start), Some(end)) => match (usize::try_from(start), usize::try_from(end)) {
            (Ok(start), Ok(end)) => is_content(document, &(start..end)),
            _ => false,
        },
        _ => false,
    }
}

/// Describes a span that overlaps the next version's, or that ends before it begins.
pub(crate) fn overlapping_span(from: i64, until: Option<i64>, next: Option<i64>) -> String {
    match (until, next) {
        (Some(until), _) if until <= from => format!("ends with revision {until} already"),
        (_, next) => format!(
            "is still live when revision {} adds the next version",
            next.unwrap_or_default()
        ),
    }
}

/// Describes a span whose revisions don't exist.
pub(crate) fn span_without_revisions(from: i64, until: Option<i64>) -> String {
    let until = until.map_or_else(String::new, |until| format!(" until {until}"));
    format!("is live from revision {from}{until}, and not all of these exist")
}

/// Describes the problem of the live revision, if there is one: `live` has its number and id by the state, `kept` the
/// id of the stored revision of that number.
pub(crate) fn live_problem(
    live: (Option<i64>, Option<&str>),
    kept: Option<&str>,
) -> Option<String> {
    match live {
        (None, None) => None,
        (Some(number), Some(_)) if kept.is_none() => {
            Some(format!("is {number}, which doesn't exist"))
        }
        (Some(_), Some(id)) if kept == Some(id) => None,
        (Some(number), Some(id)) => {
            let kept = kept.unwrap_or_default();
            Some(format!(
                "is {number} with id {id}, but revision {number} has id {kept}"
            ))
        }
        (Some(number), None) => Some(format!("is {number} and has no id")),
        (None, Some(id)) => Some(format!("has id {id} and no number")),
    }
}

/// Checks the counters of the live state.
pub(crate) fn counters(found: &mut Findings, counters: &[(&str, i64)]) {
    for (of, count) in counters {
        if *count < 0 {
            let place = format!("the counter of {of}");
            found.add(&COUNTER, place, format!("is {count}, below zero"));
        }
    }
}

/// Checks the counts of a revision.
pub(crate) fn revision_counts(found: &mut Findings, number: i64, counts: [i64; 4]) {
    if let Some(count) = counts.into_iter().find(|count| *count < 0) {
        let what = format!("counts {count} products, below zero");
        found.add(&COUNTER, format!("revision {number}"), what);
    }
}

/// Checks a key's row: that a key can have such values, and that its digest is the stored one.
pub(crate) fn key(found: &mut Findings, prefix: &str, row: Result<KeyRow, StoreError>) {
    let mut add = |rule, what: &str| found.add(rule, format!("key {prefix}"), what.to_owned());
    let read = row.and_then(|row| {
        let digests = (row.digest(), row.stored_digest.clone());
        Ok((digests, KeyRecord::try_from(row)?))
    });
    let ((digest, stored), record) = match read {
        Ok(read) => read,
        Err(error) => return add(&API_KEY, &error.to_string()),
    };
    if let Some(what) = record.fault() {
        return add(&API_KEY, what);
    }
    if stored != digest {
        add(
            &API_KEY_DIGEST,
            "was changed by something other than Vitrine: its digest doesn't match",
        );
    }
}

/// Reports a key that isn't revoked and whose assortment isn't live.
pub(crate) fn key_assortment(found: &mut Findings, prefix: &str, name: &str) {
    let what = format!("has the assortment {name}, which doesn't exist");
    found.add(&KEY_ASSORTMENT, format!("key {prefix}"), what);
}

/// A stored version of an assortment, with the columns that [`AssortmentVersion`] lacks.
pub(crate) struct StoredAssortment {
    pub(crate) version: AssortmentVersion,
    pub(crate) is_current: bool,
    pub(crate) is_newest: bool,
    pub(crate) codes: i64,
    pub(crate) digest: Vec<u8>,
}

/// Checks a version of an assortment: that its digest is the stored one, and that the newest of its name is current.
pub(crate) fn assortment(
    found: &mut Findings,
    (name, number): (&str, i64),
    stored: Result<StoredAssortment, StoreError>,
) {
    let place = format!("assortment {name}, version {number}");
    let mut add = |what: &str| found.add(&ASSORTMENT, place.clone(), what.to_owned());
    match stored {
        Err(error) => add(&error.to_string()),
        Ok(stored) => {
            if stored.digest != assortment::digest(&stored.version, stored.codes) {
                add("isn't what was written: its digest doesn't match");
            }
            match (stored.is_newest, stored.is_current) {
                (true, false) => add("is the newest one, and marked as replaced"),
                (false, true) => add("isn't the newest one, and not marked as replaced"),
                _ => {}
            }
        }
    }
}

/// Checks an operator: that its digest is the stored one, and that it can be read.
pub(crate) fn operator(found: &mut Findings, row: OperatorRow) {
    let place = format!("operator {}", row.name);
    if let Err(error) = Operator::try_from(row) {
        found.add(&OPERATOR, place, error.to_string());
    }
}

/// Checks a webhook endpoint.
pub(crate) fn webhook(found: &mut Findings, id: &str, document: &str) {
    let what = match webhooks::from_json::<Endpoint>(document) {
        Ok(endpoint) if endpoint.id == id => return,
        Ok(_) => "has the document of another one".to_owned(),
        Err(error) => error.to_string(),
    };
    found.add(&WEBHOOK, format!("webhook endpoint {id}"), what);
}

/// Returns the queries for spans of a table that overlap, and for those that don't begin and end with revisions of
/// another table. The first one has the beginning of the next span, too.
pub(crate) fn span_queries(table: &str, revisions: &str) -> [String; 2] {
    [
        format!(
            "with span as ( \
               select code, from_revision, until_revision, \
                      lead(from_revision) over (partition by code order by from_revision, id) as next_from \
               from {table}) \
             select code, from_revision, until_revision, next_from from span \
             where until_revision <= from_revision \
                or (next_from is not null and (until_revision is null or until_revision > next_from))"
        ),
        format!(
            "select code, from_revision, until_revision from {table} \
             where from_revision not in (select number from {revisions}) \
                or until_revision not in (select number from {revisions})"
        ),
    ]
}

/// Returns the place of a product's base.
pub(crate) fn base_place(code: &str, from_revision: i64) -> String {
    format!("base of product {code} of revision {from_revision}")
}

/// Checks an entry of the audit log; call it with all of them in order.
pub(crate) fn audit_entry(found: &mut Findings, chain: &mut Chain, row: &AuditRow) {
    if !chain.fits(row) {
        found.add(
            &AUDIT_ENTRY,
            format!("entry {} of the audit log", row.number),
            "was changed, or one before it was removed: its digest doesn't match".to_owned(),
        );
    }
}

/// Part of a document in front of the digest of each text that the store has.
const TEXT_FIELD: &str = "_markdown_url\":\"texts/";

/// Checks that the texts of a version are those that its document names.
pub(crate) fn text_rows(found: &mut Findings, place: &str, document: &str, own_texts: &[OwnText]) {
    let mut add = |what| found.add(&TEXT_REFERENCE, place.to_owned(), what);
    for own in own_texts {
        let field = format!("\"{}{TEXT_FIELD}{}.md\"", own.name.as_str(), own.digest);
        if !document.contains(&field) {
            let name = own.name.as_str();
            add(format!(
                "its {name} is text {}, but its document names another",
                own.digest
            ));
        }
    }
    let (named, kept) = (document.matches(TEXT_FIELD).count(), own_texts.len());
    if named > kept {
        add(format!(
            "its document names {named} texts, but {kept} are stored"
        ));
    }
}

/// Checks that a text unpacks, and that its digest is the one that it is stored under.
pub(crate) fn text_digest(found: &mut Findings, hex: &str, digest: &[u8], markdown: &[u8]) {
    let place = format!("text {hex}");
    match PackedMarkdown::from_bytes(markdown).unpack() {
        Err(_) => found.add(&TEXT_DIGEST, place, "can't be unpacked".to_owned()),
        Ok(markdown) => {
            let own = TextDigest::of(&markdown);
            if digest != own.as_bytes() {
                found.add(&TEXT_DIGEST, place, format!("contains text {own}"));
            }
        }
    }
}
