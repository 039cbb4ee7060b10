//! Rows of results.

use rusqlite::types::ValueRef;

use crate::StoreError;

/// A row, whose columns are read by their position from 0.
pub(crate) enum Row<'r> {
    Sqlite(&'r rusqlite::Row<'r>),
    Postgres(&'r tokio_postgres::Row),
}

impl<'r> Row<'r> {
    /// Returns a column.
    ///
    /// # Errors
    ///
    /// [`StoreError::Damaged`] if the column has another type.
    pub(crate) fn get<T: Column<'r>>(&self, column: usize) -> Result<T, StoreError> {
        let damaged = |why: String| StoreError::Damaged(format!("column {column}: {why}"));
        match self {
            Self::Sqlite(row) => {
                let value = row
                    .get_ref(column)
                    .map_err(|error| damaged(error.to_string()))?;
                let found = value.data_type();
                T::of_sqlite(value).ok_or_else(|| damaged(format!("unexpected {found}")))
            }
            Self::Postgres(row) => {
                T::of_postgres(row, column).map_err(|error| damaged(error.to_string()))
            }
        }
    }

    /// Returns a column with a text, for a report: even one that isn't UTF-8.
    ///
    /// # Errors
    ///
    /// If the column can't be read.
    pub(crate) fn lossy(&self, column: usize) -> Result<String, StoreError> {
        match self {
            Self::Sqlite(row) => match row.get_ref(column) {
                Ok(ValueRef::Text(bytes) | ValueRef::Blob(bytes)) => {
                    Ok(String::from_utf8_lossy(bytes).into_owned())
                }
                _ => Ok("?".to_owned()),
            },
            Self::Postgres(_) => self.get(column),
        }
    }

    /// Returns a boolean column as it is stored: SQLite may have any number in it.
    ///
    /// # Errors
    ///
    /// If the column has another type.
    pub(crate) fn number_or_boolean(&self, column: usize) -> Result<i64, StoreError> {
        match self {
            Self::Sqlite(_) => self.get(column),
            Self::Postgres(_) => self.get::<bool>(column).map(i64::from),
        }
    }

    /// Returns a column with a number that is never negative.
    ///
    /// # Errors
    ///
    /// [`StoreError::Damaged`] if it is something else.
    pub(crate) fn count(&self, column: usize) -> Result<u64, StoreError> {
        let number: i64 = self.get(column)?;
        u64::try_from(number).map_err(|_| StoreError::Damaged(format!("invalid count {number}")))
    }
}

/// A type that columns have.
pub(crate) trait Column<'r>: Sized {
    fn of_sqlite(value: ValueRef<'r>) -> Option<Self>;

    fn of_postgres(
        row: &'r tokio_postgres::Row,
        column: usize,
    ) -> Result<Self, tokio_postgres::Error>;
}

macro_rules! columns {
    ($($own:ty => $($pattern:pat => $made:expr),+;)*) => {
        $(impl<'r> Column<'r> for $own {
            fn of_sqlite(value: ValueRef<'r>) -> Option<Self> {
                match value {
                    $($pattern => $made,)+
                    _ => None,
                }
            }

            fn of_postgres(
                row: &'r tokio_postgres::Row,
                column: usize,
            ) -> Result<Self, tokio_postgres::Error> {
                row.try_get(column)
            }
        }

        impl<'r> Column<'r> for Option<$own> {
            fn of_sqlite(value: ValueRef<'r>) -> Option<Self> {
                match value {
                    ValueRef::Null => Some(None),
                    value => <$own>::of_sqlite(value).map(Some),
                }
            }

            fn of_postgres(
                row: &'r tokio_postgres::Row,
                column: usize,
            ) -> Result<Self, tokio_postgres::Error> {
                row.try_get(column)
            }
        })*
    };
}

columns! {
    bool => ValueRef::Integer(0) => Some(false), ValueRef::Integer(1) => Some(true);
    i64 => ValueRef::Integer(value) => Some(value);
    &'r str => ValueRef::Text(bytes) => std::str::from_utf8(bytes).ok();
    String => ValueRef::Text(bytes) => std::str::from_utf8(bytes).ok().map(str::to_owned);
    &'r [u8] => ValueRef::Blob(bytes) => Some(bytes);
    Vec<u8> => ValueRef::Blob(bytes) => Some(bytes.to_vec());
}
