//! Inserting many rows at once.

use super::copy::Rows;
use super::{On, Tx, Value, prepare};
use crate::StoreError;
use crate::postgres::Session;
use crate::sqlite::during;

/// Size of a batch of PostgreSQL, in bytes.
const BATCH_BYTES: usize = 1 << 20;

/// Rows of a statement that skips existing ones.
const BATCH_ROWS: usize = 500;

/// Table into which rows are inserted.
pub(crate) struct Insert<'c> {
    on: OnInsert<'c>,
}

enum OnInsert<'c> {
    Sqlite {
        statement: rusqlite::CachedStatement<'c>,
        doing: &'static str,
    },
    Postgres {
        rows: Rows,
        sql: String,
        session: &'c mut Session,
        doing: &'static str,
    },
}

impl Insert<'_> {
    /// Inserts a row.
    pub(crate) fn row(&mut self, values: &[Value<'_>]) -> Result<(), StoreError> {
        match &mut self.on {
            OnInsert::Sqlite { statement, doing } => statement
                .execute(rusqlite::params_from_iter(values))
                .map(drop)
                .map_err(during(doing)),
            OnInsert::Postgres { rows, .. } => {
                rows.push(values);
                match rows.len_bytes() > BATCH_BYTES {
                    true => self.send(),
                    false => Ok(()),
                }
            }
        }
    }

    fn send(&mut self) -> Result<(), StoreError> {
        match &mut self.on {
            OnInsert::Postgres {
                rows,
                sql,
                session,
                doing,
            } if !rows.is_empty() => session.copy_in(doing, sql, rows.take()),
            _ => Ok(()),
        }
    }
}

/// Returns `(?1, ?2), (?3, ?4), …`.
fn places(rows: usize, columns: usize) -> String {
    let row = |row: usize| {
        let places: Vec<String> = (1..=columns)
            .map(|column| format!("${}", row * columns + column))
            .collect();
        format!("({})", places.join(", "))
    };
    (0..rows).map(row).collect::<Vec<_>>().join(", ")
}

impl Tx<'_> {
    /// Inserts the rows that `write` writes into a table, which is followed by its columns in brackets.
    pub(crate) fn insert_rows(
        &mut self,
        table: &str,
        write: impl FnOnce(&mut Insert<'_>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let doing = self.doing;
        let on = match &mut self.connection {
            On::Sqlite(connection) => {
                let columns = table.matches(',').count() + 1;
                let sql = format!("insert into {table} values {}", places(1, columns));
                let statement = prepare(connection, &sql, doing)?;
                OnInsert::Sqlite { statement, doing }
            }
            On::Postgres(session) => OnInsert::Postgres {
                rows: Rows::default(),
                sql: format!("copy {table} from stdin (format binary)"),
                session,
                doing,
            },
        };
        let mut insert = Insert { on };
        write(&mut insert)?;
        insert.send()
    }

    /// Runs a statement for batches of rows: `{}` in it becomes their values, as in `insert into … values {}`.
    pub(crate) fn with_rows<const COLUMNS: usize>(
        &mut self,
        sql: &str,
        rows: &[[Value<'_>; COLUMNS]],
    ) -> Result<(), StoreError> {
        for rows in rows.chunks(BATCH_ROWS) {
            let sql = sql.replace("{}", &places(rows.len(), COLUMNS));
            self.execute(&sql, rows.as_flattened())?;
        }
        Ok(())
    }
}
