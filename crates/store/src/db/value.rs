//! Parameters of statements.

use rusqlite::types::{ToSqlOutput, ValueRef};
use tokio_postgres::types::{ToSql, Type};

/// A parameter. A missing one has a type, too: PostgreSQL plans a statement before it sees the values.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Value<'v> {
    Boolean(Option<bool>),
    Integer(Option<i64>),
    Text(Option<&'v str>),
    Bytes(Option<&'v [u8]>),
    /// For `= any($1)`.
    Texts(&'v [&'v str]),
    /// Likewise.
    Integers(&'v [i64]),
}

/// Makes the parameters of a statement from its values.
macro_rules! values {
    ($($value:expr),* $(,)?) => { &[$($crate::db::Value::from($value)),*] };
}
pub(crate) use values;

macro_rules! from {
    ($($own:ty => |$value:ident| $made:expr;)*) => {
        $(impl<'v> From<$own> for Value<'v> {
            fn from($value: $own) -> Self {
                $made
            }
        })*
    };
}

from! {
    bool => |value| Self::Boolean(Some(value));
    Option<bool> => |value| Self::Boolean(value);
    i64 => |value| Self::Integer(Some(value));
    u32 => |value| Self::Integer(Some(value.into()));
    // No number of ours is that large; one that somebody asks for isn't found.
    u64 => |value| Self::Integer(Some(i64::try_from(value).unwrap_or(i64::MAX)));
    Option<i64> => |value| Self::Integer(value);
    &'v str => |value| Self::Text(Some(value));
    &'v String => |value| Self::Text(Some(value));
    Option<&'v str> => |value| Self::Text(value);
    Option<&'v String> => |value| Self::Text(value.map(String::as_str));
    &'v Option<String> => |value| Self::Text(value.as_deref());
    &'v [u8] => |value| Self::Bytes(Some(value));
    &'v Vec<u8> => |value| Self::Bytes(Some(value));
    Option<&'v [u8]> => |value| Self::Bytes(value);
    &'v [&'v str] => |value| Self::Texts(value);
    &'v [i64] => |value| Self::Integers(value);
}

impl<'v, const N: usize> From<&'v [u8; N]> for Value<'v> {
    fn from(value: &'v [u8; N]) -> Self {
        Self::Bytes(Some(value))
    }
}

impl rusqlite::ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let value = match self {
            Self::Boolean(value) => value.map(|value| ValueRef::Integer(value.into())),
            Self::Integer(value) => value.map(ValueRef::Integer),
            Self::Text(value) => value.map(|text| ValueRef::Text(text.as_bytes())),
            Self::Bytes(value) => value.map(ValueRef::Blob),
            Self::Texts(texts) => return json(texts),
            Self::Integers(numbers) => return json(numbers),
        };
        Ok(ToSqlOutput::Borrowed(value.unwrap_or(ValueRef::Null)))
    }
}

/// Returns an array as SQLite takes it.
fn json<T: serde::Serialize>(array: &[T]) -> rusqlite::Result<ToSqlOutput<'static>> {
    let json = serde_json::to_string(array);
    let json = json.map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
    Ok(ToSqlOutput::from(json))
}

/// Returns the parameters as PostgreSQL's driver takes them.
pub(super) fn params<'v>(values: &'v [Value<'v>]) -> Vec<(&'v (dyn ToSql + Sync), Type)> {
    let param = |value: &'v Value<'v>| -> (&'v (dyn ToSql + Sync), Type) {
        match value {
            Value::Boolean(value) => (value, Type::BOOL),
            Value::Integer(value) => (value, Type::INT8),
            Value::Text(value) => (value, Type::TEXT),
            Value::Bytes(value) => (value, Type::BYTEA),
            Value::Texts(value) => (value, Type::TEXT_ARRAY),
            Value::Integers(value) => (value, Type::INT8_ARRAY),
        }
    };
    values.iter().map(param).collect()
}
