//! SQL functions that pack and unpack documents, for tests that write them.

use std::path::Path;

use rusqlite::Connection;
use rusqlite::functions::FunctionFlags;
use vitrine_store::document::{PackedDocument, unpack};

/// Opens a store's file, with `pack_document(text)` and `unpack_document(blob)`.
pub(crate) fn connect(path: &Path) -> Connection {
    let connection = Connection::open(path).expect("the store's file");
    let flags = FunctionFlags::SQLITE_UTF8;
    connection
        .create_scalar_function("pack_document", 1, flags, |context| {
            let packed = PackedDocument::pack(context.get_raw(0).as_bytes().unwrap_or_default());
            Ok(packed.expect("a packed document").as_bytes().to_vec())
        })
        .expect("a function");
    connection
        .create_scalar_function("unpack_document", 1, flags, |context| {
            let packed = context.get_raw(0).as_bytes().unwrap_or_default();
            Ok(unpack(packed).expect("a packed document"))
        })
        .expect("a function");
    connection
}
