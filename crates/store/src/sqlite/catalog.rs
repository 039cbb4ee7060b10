//! Reading the live catalog, as of one moment, without copying more than needed.

use std::collections::HashMap;
use std::ops::Range;

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, Transaction};
use vitrine_model::content::{PackedMarkdown, TextDigest, TextName};
use vitrine_model::place::Country;
use vitrine_model::revision::Revision;

use super::{bytes_32, during, from_millis};
use crate::StoreError;
use crate::record::{CatalogItem, ItemVisitor};

const READING: &str = "reading the catalog";

/// See [`Store::read_catalog`](crate::Store::read_catalog).
pub(super) fn read(
    connection: &mut Connection,
    texts_kept_since: Timestamp,
    visit: ItemVisitor<'_>,
) -> Result<Option<Revision>, StoreError> {
    // One read transaction: all that follows sees one state of the store.
    let transaction = connection.transaction().map_err(during(READING))?;
    let Some(revision) = live_revision(&transaction)? else {
        return Ok(None);
    };
    let texts = OwnTexts::read(&transaction)?;
    products(&transaction, &texts, visit)?;
    served_texts(&transaction, texts_kept_since, visit)?;
    Ok(Some(revision))
}

pub(super) fn live_revision(transaction: &Transaction<'_>) -> Result<Option<Revision>, StoreError> {
    let sql = "select number, id, created_at from revision \
               where number = (select revision_number from state)";
    let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
    let found: Option<(u64, String, i64)> = transaction
        .query_row(sql, [], read)
        .optional()
        .map_err(during(READING))?;
    found
        .map(|(number, id, millis)| {
            Ok(Revision {
                number,
                id,
                created_at: from_millis(millis)?,
            })
        })
        .transpose()
}

/// The texts held for live products, by the id of the product's version.
#[derive(Default)]
struct OwnTexts {
    served: HashMap<i64, Vec<(TextName, TextDigest)>>,
    taken_down: HashMap<i64, Vec<TextDigest>>,
}

impl OwnTexts {
    fn read(transaction: &Transaction<'_>) -> Result<Self, StoreError> {
        let sql = "select v.id, t.name, t.digest, x.taken_down_at is not null \
                   from product_text t \
                   join product_version v on v.id = t.product_version_id \
                   join text x on x.digest = t.digest \
                   where v.until_revision is null order by v.id";
        let mut statement = transaction.prepare(sql).map_err(during(READING))?;
        let mut rows = statement.query([]).map_err(during(READING))?;
        let mut texts = Self::default();
        while let Some(row) = rows.next().map_err(during(READING))? {
            let (id, name, digest, taken_down) = text_row(row)?;
            if taken_down {
                texts.taken_down.entry(id).or_default().push(digest);
            } else {
                texts.served.entry(id).or_default().push((name, digest));
            }
        }
        Ok(texts)
    }
}

fn text_row(row: &Row<'_>) -> Result<(i64, TextName, TextDigest, bool), StoreError> {
    let name: String = row.get(1).map_err(during(READING))?;
    let name = name
        .parse()
        .map_err(|_| StoreError::Damaged(format!("a text named `{name}`")))?;
    let digest: Vec<u8> = row.get(2).map_err(during(READING))?;
    Ok((
        row.get(0).map_err(during(READING))?,
        name,
        TextDigest::from_bytes(bytes_32(&digest)?),
        row.get(3).map_err(during(READING))?,
    ))
}

fn products(
    transaction: &Transaction<'_>,
    texts: &OwnTexts,
    visit: ItemVisitor<'_>,
) -> Result<(), StoreError> {
    let sql = "select id, code, document, content_start, content_end, is_orderable, countries, \
               categories from product_version where until_revision is null order by code";
    let mut statement = transaction.prepare(sql).map_err(during(READING))?;
    let mut rows = statement.query([]).map_err(during(READING))?;
    let mut countries = Lists::<Country>::new(|text| text.parse().ok());
    let mut categories = Lists::<Box<str>>::new(|text| Some(text.into()));
    while let Some(row) = rows.next().map_err(during(READING))? {
        let id: i64 = row.get(0).map_err(during(READING))?;
        let item = CatalogItem::Product {
            code: text(row, 1)?,
            document: text(row, 2)?,
            content: content_range(row, 3)?,
            is_orderable: row.get(5).map_err(during(READING))?,
            countries: countries.get(text(row, 6)?)?,
            categories: categories.get(text(row, 7)?)?,
            own_texts: texts.served.get(&id).map_or(&[], Vec::as_slice),
            taken_down: texts.taken_down.get(&id).map_or(&[], Vec::as_slice),
        };
        visit(item).map_err(StoreError::Visitor)?;
    }
    Ok(())
}

fn text<'r>(row: &'r Row<'_>, column: usize) -> Result<&'r str, StoreError> {
    row.get_ref(column)
        .map_err(during(READING))?
        .as_str()
        .map_err(|error| StoreError::Damaged(error.to_string()))
}

/// The two columns that say where in a document the content resources lie.
fn content_range(row: &Row<'_>, column: usize) -> Result<Option<Range<usize>>, StoreError> {
    let start: Option<usize> = row.get(column).map_err(during(READING))?;
    let end: Option<usize> = row.get(column + 1).map_err(during(READING))?;
    Ok(start.zip(end).map(|(start, end)| start..end))
}

/// JSON arrays of strings, each read once: most products share theirs with others.
struct Lists<T> {
    known: HashMap<String, Vec<T>>,
    parse: fn(&str) -> Option<T>,
}

impl<T> Lists<T> {
    fn new(parse: fn(&str) -> Option<T>) -> Self {
        Self {
            known: HashMap::new(),
            parse,
        }
    }

    fn get(&mut self, json: &str) -> Result<&[T], StoreError> {
        if !self.known.contains_key(json) {
            let damaged = || StoreError::Damaged(format!("a list that reads {json}"));
            let texts: Vec<String> = serde_json::from_str(json).map_err(|_| damaged())?;
            let values: Option<Vec<T>> = texts.iter().map(|text| (self.parse)(text)).collect();
            self.known
                .insert(json.to_owned(), values.ok_or_else(damaged)?);
        }
        Ok(self.known.get(json).map_or(&[], Vec::as_slice))
    }
}

fn served_texts(
    transaction: &Transaction<'_>,
    texts_kept_since: Timestamp,
    visit: ItemVisitor<'_>,
) -> Result<(), StoreError> {
    // A text is retired when the last version that names it was; a live one makes it live. Versions
    // retired before then aren't looked at, however long the history is.
    let sql = "select x.digest, x.markdown, \
                      max(v.until_revision is null), max(r.created_at) \
               from product_version v \
               join product_text t on t.product_version_id = v.id \
               join text x on x.digest = t.digest \
               left join revision r on r.number = v.until_revision \
               where x.taken_down_at is null and (v.until_revision is null \
                  or v.until_revision >= (select min(number) from revision where created_at > ?1)) \
               group by x.digest";
    let mut statement = transaction.prepare(sql).map_err(during(READING))?;
    let mut rows = statement
        .query([texts_kept_since.as_millisecond()])
        .map_err(during(READING))?;
    while let Some(row) = rows.next().map_err(during(READING))? {
        let digest: Vec<u8> = row.get(0).map_err(during(READING))?;
        let markdown: Vec<u8> = row.get(1).map_err(during(READING))?;
        let is_live: bool = row.get(2).map_err(during(READING))?;
        let retired_at: Option<i64> = row.get(3).map_err(during(READING))?;
        let item = CatalogItem::Text {
            digest: TextDigest::from_bytes(bytes_32(&digest)?),
            markdown: PackedMarkdown::from_bytes(&markdown),
            retired_at: match retired_at {
                Some(millis) if !is_live => Some(from_millis(millis)?),
                _ => None,
            },
        };
        visit(item).map_err(StoreError::Visitor)?;
    }
    Ok(())
}
