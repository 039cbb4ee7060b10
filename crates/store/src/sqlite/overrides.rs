//! Overrides, and the bases of products that they alter.

use jiff::Timestamp;
use rusqlite::types::ToSqlOutput;
use rusqlite::{Connection, Row, params};
use vitrine_model::code::ProductCode;
use vitrine_model::revision::Revision;

use super::live_versions::LiveVersion;
use super::publish::{PUBLISHING, SqlitePublication};
use super::{SqliteStore, during, history, open};
use crate::StoreError;
use crate::base::texts_json;
use crate::fail_point::FailPoint;
use crate::overrides::{
    BaseHint, NewOverride, NextInstant, OverriddenProduct, OverrideEnd, OverrideStatus,
    OverrideStore, StorePublication, StoredOverride,
};
use crate::prepared::{DocumentForm, PreparedProduct};
use crate::record::{Moment, OwnText, ProductVisitor, StoredProduct};
use crate::values::{code, from_millis};

const READING: &str = "reading the overrides";

const OVERRIDES: &str = "select number, definition, from_at, until_at, created_at, created_by, note, status, \
                         ended_at, ended_by, end_note from catalog_override";

const INSERT_BASE: &str = "insert into base_version (code, from_revision, own_texts, digest, content_start, content_end, \
                           discount_multiplier, is_orderable, countries, categories, document) \
                           values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";

/// The live version of a product, in the order of [`INSERT_BASE`], then its id and the digest of its record. Not in one statement
/// with the insert: before a statement that may insert several rows changes a page, SQLite keeps the old one, to undo it.
const LIVE_AS_BASE: &str = "select digest, content_start, content_end, discount_multiplier, is_orderable, countries, categories, \
                            (select document from product_document where product_version_id = v.id), id, record_digest \
                            from product_version v where code = ? and until_revision is null";

impl OverrideStore for SqliteStore {
    fn overrides(&self) -> Result<Vec<StoredOverride>, StoreError> {
        read(&self.quick()?.connection, "order by number")
    }

    fn overrides_to_check(&self) -> Result<Vec<StoredOverride>, StoreError> {
        read(&open::backup(&self.path)?, "order by number")
    }

    fn now(&self) -> Result<Timestamp, StoreError> {
        Ok(Timestamp::now())
    }

    fn next_instant(&self) -> Result<Option<NextInstant>, StoreError> {
        let sql = "select min(case status when 'scheduled' then from_at else until_at end) \
                   from catalog_override where status <> 'ended'";
        let mut quick = self.quick()?;
        let found = quick
            .connection
            .prepare_cached(sql)
            .and_then(|mut statement| statement.query_row([], |row| row.get(0)))
            .map_err(during(READING));
        quick.close_on_error(&found)?;
        let found: Option<i64> = found?;
        let at = found.map(from_millis).transpose()?;
        Ok(at.map(|at| NextInstant {
            at,
            now: Timestamp::now(),
        }))
    }

    fn publishes_when_serving(&self) -> bool {
        true
    }

    fn read_base(
        &self,
        moment: Moment,
        visit: ProductVisitor<'_>,
    ) -> Result<Option<Revision>, StoreError> {
        history::at(&mut self.connect()?, moment, |transaction, revision| {
            history::visit_bases(transaction, moment, &BaseHint::default(), visit)?;
            Ok(revision)
        })
    }

    fn read_live_base(&self, hint: &BaseHint, visit: ProductVisitor<'_>) -> Result<(), StoreError> {
        let mut connection = self.connect()?;
        let transaction = connection.transaction().map_err(during(READING))?;
        history::visit_bases(&transaction, Moment::Live, hint, visit)
    }

    fn read_live_bases_of(
        &self,
        codes: &[ProductCode],
        visit: ProductVisitor<'_>,
    ) -> Result<(), StoreError> {
        let mut connection = self.connect()?;
        let transaction = connection.transaction().map_err(during(READING))?;
        for code in codes {
            if let Some(base) = base_or_product(&transaction, code, Moment::Live)? {
                visit(base).map_err(StoreError::Visitor)?;
            }
        }
        Ok(())
    }

    fn base_product(
        &self,
        code: &ProductCode,
        moment: Moment,
    ) -> Result<Option<StoredProduct>, StoreError> {
        history::at(&mut self.quick()?.connection, moment, |transaction, _| {
            base_or_product(transaction, code, moment)
        })
        .map(Option::flatten)
    }
}

impl SqlitePublication {
    /// Stores the texts of the base that was inserted last.
    fn put_base_texts(&mut self, texts: &[OwnText]) -> Result<(), StoreError> {
        let id = self.connection.last_insert_rowid();
        for own in texts {
            self.execute(
                "insert into base_text (base_version_id, digest) values (?, ?) on conflict do nothing",
                params![id, own.digest.as_bytes()],
            )?;
        }
        FailPoint::PublishBasePut.pass()?;
        self.has_bases = true;
        Ok(())
    }
}

/// Returns the base of a product at a moment: the one stored beside it, or the product itself.
fn base_or_product(
    connection: &Connection,
    code: &ProductCode,
    moment: Moment,
) -> Result<Option<StoredProduct>, StoreError> {
    match history::base(connection, code, moment)? {
        Some(base) => Ok(Some(base)),
        None => history::product(connection, code, moment),
    }
}

fn read(connection: &Connection, rest: &str) -> Result<Vec<StoredOverride>, StoreError> {
    let sql = format!("{OVERRIDES} {rest}");
    let mut statement = connection.prepare(&sql).map_err(during(READING))?;
    let mut rows = statement.query([]).map_err(during(READING))?;
    let mut overrides = Vec::new();
    while let Some(row) = rows.next().map_err(during(READING))? {
        overrides.push(stored(row)?);
    }
    Ok(overrides)
}

fn stored(row: &Row<'_>) -> Result<StoredOverride, StoreError> {
    let millis = |column| -> Result<Option<Timestamp>, StoreError> {
        let millis: Option<i64> = row.get(column).map_err(during(READING))?;
        millis.map(from_millis).transpose()
    };
    let text = |column| row.get(column).map_err(during(READING));
    let required = |time: Option<Timestamp>| {
        time.ok_or_else(|| StoreError::Damaged("an override has no time".to_owned()))
    };
    let status: String = row.get(7).map_err(during(READING))?;
    let ended = match millis(8)? {
        None => None,
        Some(at) => Some(OverrideEnd {
            at,
            by: text(9)?,
            note: text(10)?,
        }),
    };
    Ok(StoredOverride {
        number: row.get(0).map_err(during(READING))?,
        made: NewOverride {
            definition: row.get(1).map_err(during(READING))?,
            from: required(millis(2)?)?,
            until: millis(3)?,
            created_at: required(millis(4)?)?,
            created_by: row.get(5).map_err(during(READING))?,
            note: text(6)?,
            status: OverrideStatus::parse(&status)?,
        },
        ended,
    })
}

impl StorePublication for SqlitePublication {
    fn now(&mut self) -> Result<Timestamp, StoreError> {
        Ok(Timestamp::now())
    }

    fn open_overrides(&mut self) -> Result<Vec<StoredOverride>, StoreError> {
        read(&self.connection, "where status <> 'ended' order by number")
    }

    fn add_override(&mut self, new: &NewOverride) -> Result<u64, StoreError> {
        self.execute(
            "insert into catalog_override (definition, from_at, until_at, created_at, created_by, note, status) \
             values (?, ?, ?, ?, ?, ?, ?)",
            params![
                new.definition,
                new.from.as_millisecond(),
                new.until.map(Timestamp::as_millisecond),
                new.created_at.as_millisecond(),
                new.created_by,
                new.note,
                new.status.as_str(),
            ],
        )?;
        FailPoint::OverridesWritten.pass()?;
        self.has_others = true;
        Ok(self.connection.last_insert_rowid().unsigned_abs())
    }

    fn set_override(&mut self, number: u64, end: Option<&OverrideEnd>) -> Result<(), StoreError> {
        match end {
            None => self.execute(
                "update catalog_override set status = 'active' where number = ?",
                [number],
            )?,
            Some(OverrideEnd { at, by, note }) => self.execute(
                "update catalog_override set status = 'ended', ended_at = ?, ended_by = ?, end_note = ? \
                 where number = ?",
                params![at.as_millisecond(), by, note, number],
            )?,
        };
        FailPoint::OverridesWritten.pass()?;
        self.has_others = true;
        Ok(())
    }

    fn overridden(&mut self) -> Result<Vec<OverriddenProduct>, StoreError> {
        let sql = "select code, not exists (select 1 from product_version v \
                      where v.code = b.code and v.until_revision is null) \
                   from base_version b where until_revision is null order by code";
        let mut statement = self
            .connection
            .prepare_cached(sql)
            .map_err(during(PUBLISHING))?;
        let mut rows = statement.query([]).map_err(during(PUBLISHING))?;
        let mut found = Vec::new();
        while let Some(row) = rows.next().map_err(during(PUBLISHING))? {
            let stored: String = row.get(0).map_err(during(PUBLISHING))?;
            found.push(OverriddenProduct {
                code: code(&stored)?,
                is_hidden: row.get(1).map_err(during(PUBLISHING))?,
            });
        }
        Ok(found)
    }

    fn bases(&mut self, codes: &[&ProductCode]) -> Result<Vec<StoredProduct>, StoreError> {
        let mut found = Vec::new();
        for code in codes {
            found.extend(history::base(&self.connection, code, Moment::Live)?);
        }
        Ok(found)
    }

    fn put_base(&mut self, mut base: PreparedProduct) -> Result<(), StoreError> {
        base.pack(DocumentForm::Packed)?;
        let (product, [countries, categories]) = (base.product(), base.lists());
        self.end_base(&product.code)?;
        self.execute(
            INSERT_BASE,
            params![
                product.code.as_str(),
                self.number,
                texts_json(&product.own_texts)?,
                base.digest().0,
                product.content.as_ref().map(|range| range.start),
                product.content.as_ref().map(|range| range.end),
                product.discount_multiplier,
                product.is_orderable,
                countries,
                categories,
                base.packed(),
            ],
        )?;
        self.put_base_texts(&product.own_texts)
    }

    fn keep_live_as_base(&mut self, live: &StoredProduct) -> Result<(), StoreError> {
        let (code, texts) = (live.code.as_str(), texts_json(&live.own_texts)?);
        let copy = || -> rusqlite::Result<LiveVersion> {
            let mut insert = self.connection.prepare_cached(INSERT_BASE)?;
            insert.raw_bind_parameter(1, code)?;
            insert.raw_bind_parameter(2, self.number)?;
            insert.raw_bind_parameter(3, texts)?;
            let mut statement = self.connection.prepare_cached(LIVE_AS_BASE)?;
            statement.query_row([code], |row| {
                for column in 0..8 {
                    insert.raw_bind_parameter(
                        4 + column,
                        ToSqlOutput::Borrowed(row.get_ref(column)?),
                    )?;
                }
                insert.raw_execute()?;
                LiveVersion::read(row, [8, 0, 9])
            })
        };
        let version = copy().map_err(during(PUBLISHING))?;
        // It is replaced or ended next.
        self.known.insert(live.code.clone(), Some(version));
        self.put_base_texts(&live.own_texts)
    }

    fn end_base(&mut self, code: &ProductCode) -> Result<(), StoreError> {
        let ended = self.execute(
            "update base_version set until_revision = ? \
             where id = (select id from base_version where code = ? and until_revision is null)",
            params![self.number, code.as_str()],
        )?;
        self.has_bases |= ended > 0;
        Ok(())
    }
}
