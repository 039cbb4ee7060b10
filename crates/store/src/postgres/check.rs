//! Checks of the database by the rules of this crate, as of one moment, while others write. References are left to
//! PostgreSQL's constraints, and files to its checksums and `pg_amcheck`.

use tokio_postgres::Row;
use vitrine_model::content::TextName;

use super::history::own_texts;
use super::session::{Session, get};
use super::{assortments, audit, keys, operators as stored_operators};
use crate::audit::Chain;
use crate::check::found::{
    API_KEY, BASE, Findings, KEY_USE_ORPHAN, MOVE_AND_RESTORE, RESTORE, Rule, STATE, TEXT_NAME,
    TEXT_ORPHAN, UNREADABLE, VERSION_DIGEST, VERSION_SPAN,
};
use crate::check::{
    live_problem, overlapping_span, span_queries, span_without_revisions, text_digest, text_rows,
    version, version_facts,
};
use crate::problem::Problem;
use crate::{StoreError, check, digest};

pub(super) const CHECKING: &str = "checking the store";

/// Checks one part of the store.
type Part = fn(&mut Session, &mut Findings) -> Result<(), StoreError>;

const PARTS: [Part; 13] = [
    state,
    counters,
    api_keys,
    assortments,
    webhooks,
    bases,
    operators,
    audit_log,
    version_spans,
    versions,
    text_names,
    texts,
    orphans,
];

/// See [`Store::check`](crate::Store::check).
pub(super) fn check(session: &mut Session) -> Result<Vec<Problem>, StoreError> {
    let mut found = Findings::default();
    for part in PARTS {
        match part(session, &mut found) {
            // Unreadable data is a finding, too.
            Err(StoreError::Damaged(what)) if session.is_usable() => {
                found.add(&UNREADABLE, "the database".to_owned(), what);
            }
            outcome => outcome?,
        }
    }
    let mut problems = found.into_problems();
    for problem in &mut problems {
        if [RESTORE, MOVE_AND_RESTORE].contains(&problem.advice) {
            problem.advice = "restore the last good dump of the database with `pg_restore`";
        }
    }
    Ok(problems)
}

fn state(session: &mut Session, found: &mut Findings) -> Result<(), StoreError> {
    let mut add = |what| found.add(&STATE, "the live revision".to_owned(), what);
    let sql = "select s.revision_number, s.revision_id, r.id, s.oldest_readable \
               from vitrine.state s left join vitrine.revision r on r.number = s.revision_number";
    let rows = session.rows(CHECKING, sql, &[])?;
    for row in &rows {
        let number: Option<i64> = get(row, 0)?;
        if let Some(what) = live_problem((number, get(row, 1)?), get(row, 2)?) {
            add(what);
        }
        let (live, oldest) = (number.unwrap_or_default(), get::<Option<i64>>(row, 3)?);
        if let Some(oldest) = oldest.filter(|oldest| *oldest > live) {
            add(format!(
                "is {live}, but all before {oldest} are marked as pruned"
            ));
        }
    }
    if rows.len() != 1 {
        add(format!("has {} rows instead of one", rows.len()));
    }
    Ok(())
}

fn counters(session: &mut Session, found: &mut Findings) -> Result<(), StoreError> {
    let sql = "select texts_counter, keys_counter, assortments_counter from vitrine.state";
    session.each_row(CHECKING, sql, &[], |row| {
        let (texts, keys, assortments) = (get(row, 0)?, get(row, 1)?, get(row, 2)?);
        let counters = [
            ("texts", texts),
            ("keys", keys),
            ("assortments", assortments),
        ];
        check::counters(found, &counters);
        Ok(())
    })?;
    let sql = "select number, created, changed, retired, unchanged from vitrine.revision";
    session.each_row(CHECKING, sql, &[], |row| {
        let counts = [get(row, 1)?, get(row, 2)?, get(row, 3)?, get(row, 4)?];
        check::revision_counts(found, get(row, 0)?, counts);
        Ok(())
    })
}

fn api_keys(session: &mut Session, found: &mut Findings) -> Result<(), StoreError> {
    keys::each(session, |prefix, row| {
        check::key(found, prefix, row);
        Ok(())
    })?;
    let sql = "select prefix from vitrine.api_key \
               where (quota_requests is null) <> (quota_seconds is null)";
    session.each_row(CHECKING, sql, &[], |row| {
        let prefix: &str = get(row, 0)?;
        let what = "its quota is invalid".to_owned();
        found.add(&API_KEY, format!("key {prefix}"), what);
        Ok(())
    })?;
    let sql = "select prefix from vitrine.api_key_use \
               where prefix not in (select prefix from vitrine.api_key)";
    session.each_row(CHECKING, sql, &[], |row| {
        let prefix: &str = get(row, 0)?;
        let what = "has a last use, but doesn't exist".to_owned();
        found.add(&KEY_USE_ORPHAN, format!("key {prefix}"), what);
        Ok(())
    })
}

fn assortments(session: &mut Session, found: &mut Findings) -> Result<(), StoreError> {
    assortments::each(session, |place, stored| {
        check::assortment(found, place, stored);
    })?;
    let sql = "select prefix, assortment from vitrine.api_key where revoked_at is null and assortment is not null \
               and assortment not in (select name from vitrine.assortment_version \
                  where replaced_at is null and rules is not null)";
    session.each_row(CHECKING, sql, &[], |row| {
        check::key_assortment(found, get(row, 0)?, get(row, 1)?);
        Ok(())
    })
}

fn webhooks(session: &mut Session, found: &mut Findings) -> Result<(), StoreError> {
    let sql = "select id, document from vitrine.webhook_endpoint order by number";
    session.each_row(CHECKING, sql, &[], |row| {
        check::webhook(found, get(row, 0)?, get(row, 1)?);
        Ok(())
    })
}

fn bases(session: &mut Session, found: &mut Findings) -> Result<(), StoreError> {
    let sql = "select code, from_revision, product, digest, \
                  (select count(*) from vitrine.base_text where base_version_id = base_version.id) \
               from vitrine.base_version";
    session.each_row(CHECKING, sql, &[], |row| {
        let (code, place) = (get(row, 0)?, check::base_place(get(row, 0)?, get(row, 1)?));
        check::base(
            found,
            place,
            (code, get(row, 2)?),
            get(row, 3)?,
            get(row, 4)?,
        );
        Ok(())
    })?;
    spans(
        session,
        found,
        ("vitrine.base_version", &BASE, check::base_place),
    )
}

fn operators(session: &mut Session, found: &mut Findings) -> Result<(), StoreError> {
    stored_operators::each(session, |row| check::operator(found, row))
}

fn audit_log(session: &mut Session, found: &mut Findings) -> Result<(), StoreError> {
    let mut chain = Chain::default();
    audit::each(session, |row| {
        check::audit_entry(found, &mut chain, row);
    })
}

fn version_spans(session: &mut Session, found: &mut Findings) -> Result<(), StoreError> {
    spans(
        session,
        found,
        ("vitrine.product_version", &VERSION_SPAN, version),
    )
}

/// Checks that spans of a code don't overlap, and begin and end with existing revisions: in a table, by its rule and the place of
/// its rows.
fn spans(
    session: &mut Session,
    found: &mut Findings,
    (table, rule, place): (&str, &'static Rule, fn(&str, i64) -> String),
) -> Result<(), StoreError> {
    let [overlapping, without_revisions] = span_queries(table, "vitrine.revision");
    session.each_row(CHECKING, &overlapping, &[], |row| {
        let from = get(row, 1)?;
        let what = overlapping_span(from, get(row, 2)?, get(row, 3)?);
        found.add(rule, place(get(row, 0)?, from), what);
        Ok(())
    })?;
    session.each_row(CHECKING, &without_revisions, &[], |row| {
        let from = get(row, 1)?;
        let what = span_without_revisions(from, get(row, 2)?);
        found.add(rule, place(get(row, 0)?, from), what);
        Ok(())
    })
}

/// Checks each version's document, the columns beside it, and the digest of all.
fn versions(session: &mut Session, found: &mut Findings) -> Result<(), StoreError> {
    let sql = "select v.code, v.from_revision, v.document, v.content_start, v.content_end, \
                  v.discount_multiplier, v.countries, v.categories, v.digest, v.is_orderable, \
                  t.names, t.digests, t.sources \
               from vitrine.product_version v left join ( \
                  select product_version_id, array_agg(name) as names, \
                     array_agg(digest) as digests, array_agg(source_url) as sources \
                  from vitrine.product_text group by product_version_id) t \
               on t.product_version_id = v.id";
    session.each_row(CHECKING, sql, &[], |row| version_row(row, found))
}

fn version_row(row: &Row, found: &mut Findings) -> Result<(), StoreError> {
    let place = version(get(row, 0)?, get(row, 1)?);
    let facts = [get(row, 0)?, get(row, 6)?, get(row, 7)?];
    let document: &str = get(row, 2)?;
    let range = (get(row, 3)?, get(row, 4)?);
    version_facts(found, &place, facts, Some(document), range);
    // Unreadable texts are reported by `text_names`.
    let Ok(own_texts) = own_texts(row, 10) else {
        return Ok(());
    };
    let mut parts = [""; 5];
    for (part, column) in parts.iter_mut().zip([0, 2, 5, 6, 7]) {
        *part = get(row, column)?;
    }
    let digest = digest::digest(parts, i64::from(get::<bool>(row, 9)?), &own_texts);
    if get::<&[u8]>(row, 8)? != digest {
        let what = "isn't what was loaded: its digest doesn't match".to_owned();
        found.add(&VERSION_DIGEST, place, what);
    } else if range != (None, None) {
        text_rows(found, &place, document, &own_texts);
    }
    Ok(())
}

/// Checks that texts of products have valid names.
fn text_names(session: &mut Session, found: &mut Findings) -> Result<(), StoreError> {
    let sql = "select t.name, v.code, v.from_revision from vitrine.product_text t \
               join vitrine.product_version v on v.id = t.product_version_id";
    session.each_row(CHECKING, sql, &[], |row| {
        let name: &str = get(row, 0)?;
        if name.parse::<TextName>().is_err() {
            let place = version(get(row, 1)?, get(row, 2)?);
            found.add(
                &TEXT_NAME,
                place,
                format!("has a text with the unknown name `{name}`"),
            );
        }
        Ok(())
    })
}

/// Checks that each text unpacks, and that its digest is the one that it is stored under.
fn texts(session: &mut Session, found: &mut Findings) -> Result<(), StoreError> {
    let sql = "select encode(digest, 'hex'), digest, markdown from vitrine.markdown_text";
    session.each_row(CHECKING, sql, &[], |row| {
        text_digest(found, get(row, 0)?, get(row, 1)?, get(row, 2)?);
        Ok(())
    })
}

/// Reports texts that no version names. Texts that were taken down are kept on purpose: they are still down if they are
/// loaded again.
fn orphans(session: &mut Session, found: &mut Findings) -> Result<(), StoreError> {
    let sql = "select encode(digest, 'hex'), length(markdown)::bigint from vitrine.markdown_text x \
               where taken_down_at is null and not exists \
                  (select 1 from vitrine.product_text t where t.digest = x.digest) \
               and not exists (select 1 from vitrine.base_text t where t.digest = x.digest)";
    session.each_row(CHECKING, sql, &[], |row| {
        let bytes: i64 = get(row, 1)?;
        let what = format!("is named by no product and takes {bytes} bytes");
        found.add(&TEXT_ORPHAN, format!("text {}", get::<&str>(row, 0)?), what);
        Ok(())
    })
}
