//! Packing what earlier releases stored as text, in the migration to schema 8.

use rusqlite::functions::FunctionFlags;
use rusqlite::{Connection, params};

use super::during;
use crate::StoreError;
use crate::base::{base_digest, base_of, texts_json};
use crate::document::PackedDocument;
use crate::prepared::PreparedProduct;

/// Schema since which documents are packed.
pub(super) const SCHEMA: u32 = 8;

const PACKING: &str = "migrating the store";

/// Adds the SQL function that packs a document, for the migration. It packs whatever bytes it gets, so that a damaged document stays
/// one.
pub(super) fn add_function(connection: &Connection) -> rusqlite::Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    connection.create_scalar_function("pack_document", 1, flags, |context| {
        let bytes = context.get_raw(0).as_bytes().unwrap_or_default();
        let packed = PackedDocument::pack(bytes);
        let packed = packed.map_err(|error| rusqlite::Error::UserFunctionError(error.into()))?;
        Ok(packed.as_bytes().to_vec())
    })
}

/// Moves bases from one column of JSON into columns like those of versions. One that can't be read stays unreadable, and one that
/// doesn't match its digest still doesn't.
pub(super) fn move_bases(connection: &Connection) -> Result<(), StoreError> {
    let failed = during(PACKING);
    let ids: Vec<i64> = connection
        .prepare("select id from base_version")
        .and_then(|mut sql| sql.query_map([], |row| row.get(0))?.collect())
        .map_err(&failed)?;
    let mut read = connection
        .prepare("select code, json, digest from base_version where id = ?")
        .map_err(&failed)?;
    let mut write = connection
        .prepare(
            "update base_version set digest = ?, content_start = ?, content_end = ?, \
             discount_multiplier = ?, is_orderable = ?, countries = ?, categories = ?, own_texts = ?, \
             document = ? where id = ?",
        )
        .map_err(&failed)?;
    let mut spoil = connection
        .prepare("update base_version set document = ? where id = ?")
        .map_err(&failed)?;
    for id in ids {
        let (code, json, digest) = read
            .query_row([id], |row| {
                let bytes = |column| {
                    row.get_ref(column)
                        .map(|value| value.as_bytes().map(<[u8]>::to_vec))
                };
                Ok((bytes(0)?, bytes(1)?, bytes(2)?))
            })
            .map_err(&failed)?;
        // Columns have the types of their table.
        let [code, json, digest] = [code, json, digest].map(Result::unwrap_or_default);
        let (code, text) = (
            String::from_utf8_lossy(&code),
            String::from_utf8_lossy(&json),
        );
        let Ok(base) = base_of(&code, &text) else {
            let packed = PackedDocument::pack(&json)?;
            spoil.execute((packed.as_bytes(), id)).map_err(&failed)?;
            continue;
        };
        let is_intact = base_digest(&code, &text)[..] == digest[..];
        let mut base = PreparedProduct::new(base)?;
        base.pack()?;
        let own_digest = base.digest().0;
        let digest = if is_intact {
            &own_digest[..]
        } else {
            &digest[..]
        };
        let [countries, categories] = base.lists();
        let product = base.product();
        write
            .execute(params![
                digest,
                product.content.as_ref().map(|range| range.start),
                product.content.as_ref().map(|range| range.end),
                product.discount_multiplier,
                product.is_orderable,
                countries,
                categories,
                texts_json(&product.own_texts)?,
                base.packed(),
                id,
            ])
            .map_err(&failed)?;
    }
    connection
        .execute_batch("alter table base_version drop column json")
        .map_err(&failed)
}
