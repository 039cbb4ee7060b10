//! SQL functions that pack and unpack documents, for tests that write them.

use std::path::Path;

use rusqlite::Connection;
use rusqlite::functions::FunctionFlags;
use vitrine_store::document::{PackedDocument, unpack};

/// SQL that takes away what schema 8 of SQLite added, but for the number of the schema; bases are dropped.
#[allow(dead_code, reason = "not all tests go back to an earlier schema")]
pub(crate) const BEFORE_SCHEMA_8: &str = "pragma foreign_keys = off; \
     alter table product_version add column document text not null default ''; \
     update product_version set document = unpack_document( \
        (select document from product_document where product_version_id = product_version.id)); \
     drop table product_document;";

/// Opens a store's file, with `pack_document(text)` and `unpack_document(blob)`.
pub(crate) fn connect(path: &Path) -> Connection {
    let connection = Connection::open(path).unwrap();
    let flags = FunctionFlags::SQLITE_UTF8;
    connection
        .create_scalar_function("pack_document", 1, flags, |context| {
            let packed = PackedDocument::pack(context.get_raw(0).as_bytes().unwrap_or_default());
            Ok(packed.unwrap().as_bytes().to_vec())
        })
        .unwrap();
    connection
        .create_scalar_function("unpack_document", 1, flags, |context| {
            Ok(unpack(context.get_raw(0).as_bytes().unwrap_or_default()).unwrap())
        })
        .unwrap();
    connection
}
