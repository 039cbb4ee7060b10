//! SQL functions that make the columns of PostgreSQL, where documents aren't packed, of those of SQLite.

use rusqlite::Connection;
use rusqlite::functions::{Context, FunctionFlags};

use crate::StoreError;
use crate::base::{base_digest, base_json, texts_of_json};
use crate::document::unpack;
use crate::record::StoredProduct;
use crate::values::{self, read_lists};

/// Adds the functions to a connection.
pub(super) fn add_functions(connection: &Connection) -> rusqlite::Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    connection.create_scalar_function("unpack_document", 1, flags, |context| {
        unpack(bytes(context, 0)).map_err(failed)
    })?;
    connection.create_scalar_function("base_json", 9, flags, |context| {
        base_json(&base(context)?).map_err(failed)
    })?;
    connection.create_scalar_function("base_digest", 2, flags, |context| {
        Ok(base_digest(&context.get::<String>(0)?, &context.get::<String>(1)?).to_vec())
    })
}

fn failed(error: StoreError) -> rusqlite::Error {
    rusqlite::Error::UserFunctionError(error.into())
}

fn bytes<'c>(context: &'c Context<'_>, column: usize) -> &'c [u8] {
    context.get_raw(column).as_bytes().unwrap_or_default()
}

/// Reads a base from the arguments of `base_json`.
fn base(context: &Context<'_>) -> rusqlite::Result<StoredProduct> {
    let text = |column| context.get::<String>(column);
    let (start, end): (Option<usize>, Option<usize>) = (context.get(2)?, context.get(3)?);
    let code = text(0)?;
    let lists = read_lists(&code, &text(6)?, &text(7)?);
    let (countries, categories) = lists.map_err(failed)?;
    Ok(StoredProduct {
        code: values::code(&code).map_err(failed)?,
        document: unpack(bytes(context, 1)).map_err(failed)?,
        content: start.zip(end).map(|(start, end)| start..end),
        discount_multiplier: text(4)?,
        is_orderable: context.get(5)?,
        countries,
        categories,
        own_texts: texts_of_json(&text(8)?).map_err(failed)?,
    })
}
