//! Overrides, and the bases of products that they alter.

use std::collections::HashSet;

use jiff::Timestamp;
use tokio_postgres::Row;
use vitrine_model::code::ProductCode;
use vitrine_model::revision::Revision;

use super::publish::{BATCH, PUBLISHING, PostgresPublication};
use super::session::{Session, Typed, count, get, number};
use super::{BEGIN_READ, PostgresStore, READ_TIMEOUT, WORK_TIMEOUT, history};
use crate::base::{base_digest, base_json};
use crate::fail_point::FailPoint;
use crate::overrides::{
    BaseHint, NewOverride, NextInstant, OverriddenProduct, OverrideEnd, OverrideStatus,
    OverrideStore, StorePublication, StoredOverride,
};
use crate::prepared::PreparedProduct;
use crate::record::{Moment, ProductVisitor, StoredProduct};
use crate::values::{code, from_millis};
use crate::{Publication as _, StoreError};

const READING: &str = "reading the overrides";

const OVERRIDES: &str = "select number, definition, from_at, until_at, created_at, created_by, note, status, \
                         ended_at, ended_by, end_note from vitrine.catalog_override";

/// SQL for the time in milliseconds since 1970.
const NOW: &str = "(extract(epoch from clock_timestamp()) * 1000)::bigint";

impl OverrideStore for PostgresStore {
    fn overrides(&self) -> Result<Vec<StoredOverride>, StoreError> {
        self.read(READING, READ_TIMEOUT, |session| {
            read(session, "order by number")
        })
    }

    fn overrides_to_check(&self) -> Result<Vec<StoredOverride>, StoreError> {
        self.overrides()
    }

    fn now(&self) -> Result<Timestamp, StoreError> {
        let sql = format!("select {NOW}");
        from_millis(self.quick(|session| session.number(READING, &sql, &[]))?)
    }

    fn next_instant(&self) -> Result<Option<NextInstant>, StoreError> {
        let sql = format!(
            "select min(case status when 'scheduled' then from_at else until_at end), {NOW} \
             from vitrine.catalog_override where status <> 'ended'"
        );
        let row = self.quick(|session| session.row(READING, &sql, &[]))?;
        let Some(row) = row else {
            return Ok(None);
        };
        let at: Option<i64> = get(&row, 0)?;
        let now = from_millis(get(&row, 1)?)?;
        let at = at.map(from_millis).transpose()?;
        Ok(at.map(|at| NextInstant { at, now }))
    }

    fn publishes_when_serving(&self) -> bool {
        false
    }

    fn read_base(
        &self,
        moment: Moment,
        visit: ProductVisitor<'_>,
    ) -> Result<Option<Revision>, StoreError> {
        self.read(READING, WORK_TIMEOUT, |session| {
            history::at(session, moment, |session, revision| {
                history::visit_bases(session, moment, &BaseHint::default(), visit)?;
                Ok(revision)
            })
        })
    }

    fn read_live_base(&self, hint: &BaseHint, visit: ProductVisitor<'_>) -> Result<(), StoreError> {
        self.read(READING, WORK_TIMEOUT, |session| {
            history::visit_bases(session, Moment::Live, hint, visit)
        })
    }

    fn read_live_bases_of(
        &self,
        codes: &[ProductCode],
        visit: ProductVisitor<'_>,
    ) -> Result<(), StoreError> {
        self.read(READING, WORK_TIMEOUT, |session| {
            session.run(READING, history::FORCE_INDEX_LOOKUPS)?;
            for codes in codes.chunks(BATCH) {
                let codes: Vec<&str> = codes.iter().map(ProductCode::as_str).collect();
                for base in bases_or_products_of(session, &codes, Moment::Live)? {
                    visit(base).map_err(StoreError::Visitor)?;
                }
            }
            Ok(())
        })
    }

    fn base_product(
        &self,
        code: &ProductCode,
        moment: Moment,
    ) -> Result<Option<StoredProduct>, StoreError> {
        self.quick(|session| {
            session.transaction(READING, BEGIN_READ, |session| {
                history::at(session, moment, |session, _| {
                    let found = bases_or_products_of(session, &[code.as_str()], moment)?;
                    Ok(found.into_iter().next())
                })
            })
        })
        .map(Option::flatten)
    }
}

/// Returns the bases of products at a moment, in any order: those stored beside them, or the products themselves.
fn bases_or_products_of(
    session: &mut Session,
    codes: &[&str],
    moment: Moment,
) -> Result<Vec<StoredProduct>, StoreError> {
    let mut found = history::bases_of(session, codes, moment)?;
    let with_base: HashSet<&str> = found.iter().map(|base| base.code.as_str()).collect();
    let mut others = codes.to_vec();
    others.retain(|code| !with_base.contains(code));
    if !others.is_empty() {
        let products = history::products_of(session, &others, moment)?;
        found.extend(products.into_iter().map(|(_, _, product)| product));
    }
    Ok(found)
}

fn read(session: &mut Session, rest: &str) -> Result<Vec<StoredOverride>, StoreError> {
    let rows = session.rows(READING, &format!("{OVERRIDES} {rest}"), &[])?;
    rows.iter().map(stored).collect()
}

fn stored(row: &Row) -> Result<StoredOverride, StoreError> {
    let millis = |column| -> Result<Option<Timestamp>, StoreError> {
        get::<Option<i64>>(row, column)?
            .map(from_millis)
            .transpose()
    };
    let ended = match millis(8)? {
        None => None,
        Some(at) => Some(OverrideEnd {
            at,
            by: get(row, 9)?,
            note: get(row, 10)?,
        }),
    };
    Ok(StoredOverride {
        number: count(row, 0)?,
        made: NewOverride {
            definition: get(row, 1)?,
            from: from_millis(get(row, 2)?)?,
            until: millis(3)?,
            created_at: from_millis(get(row, 4)?)?,
            created_by: get(row, 5)?,
            note: get(row, 6)?,
            status: OverrideStatus::parse(get(row, 7)?)?,
        },
        ended,
    })
}

impl StorePublication for PostgresPublication {
    fn now(&mut self) -> Result<Timestamp, StoreError> {
        let sql = format!("select {NOW}");
        from_millis(self.session.number(PUBLISHING, &sql, &[])?)
    }

    fn open_overrides(&mut self) -> Result<Vec<StoredOverride>, StoreError> {
        read(&mut self.session, "where status <> 'ended' order by number")
    }

    fn add_override(&mut self, new: &NewOverride) -> Result<u64, StoreError> {
        let sql = "insert into vitrine.catalog_override \
                   (number, definition, from_at, until_at, created_at, created_by, note, status) \
                   select coalesce(max(number), 0) + 1, $1, $2, $3, $4, $5, $6, $7 \
                   from vitrine.catalog_override returning number";
        let number = self.session.number(
            PUBLISHING,
            sql,
            &[
                new.definition.param(),
                new.from.as_millisecond().param(),
                new.until.map(Timestamp::as_millisecond).param(),
                new.created_at.as_millisecond().param(),
                new.created_by.param(),
                new.note.param(),
                new.status.as_str().param(),
            ],
        )?;
        FailPoint::OverridesWritten.pass()?;
        self.has_others = true;
        Ok(number.unsigned_abs())
    }

    fn set_override(&mut self, number: u64, end: Option<&OverrideEnd>) -> Result<(), StoreError> {
        let number = super::session::number(number);
        match end {
            None => {
                let sql = "update vitrine.catalog_override set status = 'active' where number = $1";
                self.session.execute(PUBLISHING, sql, &[number.param()])?;
            }
            Some(OverrideEnd { at, by, note }) => {
                let sql = "update vitrine.catalog_override set status = 'ended', \
                           ended_at = $1, ended_by = $2, end_note = $3 where number = $4";
                let at = at.as_millisecond();
                let params = [at.param(), by.param(), note.param(), number.param()];
                self.session.execute(PUBLISHING, sql, &params)?;
            }
        }
        FailPoint::OverridesWritten.pass()?;
        self.has_others = true;
        Ok(())
    }

    fn announce(&mut self, codes: &[&ProductCode]) -> Result<(), StoreError> {
        self.live_digests(codes).map(drop)
    }

    fn overridden(&mut self) -> Result<Vec<OverriddenProduct>, StoreError> {
        let sql = "select code, not exists (select 1 from vitrine.product_version v \
                      where v.code = b.code and v.until_revision is null) \
                   from vitrine.base_version b where until_revision is null order by code";
        let mut found = Vec::new();
        self.session.each_row(PUBLISHING, sql, &[], |row| {
            found.push(OverriddenProduct {
                code: code(get(row, 0)?)?,
                is_hidden: get(row, 1)?,
            });
            Ok(())
        })?;
        Ok(found)
    }

    fn bases(&mut self, codes: &[&ProductCode]) -> Result<Vec<StoredProduct>, StoreError> {
        let codes: Vec<&str> = codes.iter().map(|code| code.as_str()).collect();
        // What this publish has put waits in the buffer: it isn't found, and needn't be.
        history::bases_of(&mut self.session, &codes, Moment::Live)
    }

    fn put_base(&mut self, base: PreparedProduct) -> Result<(), StoreError> {
        self.keep_live_as_base(base.product())
    }

    fn keep_live_as_base(&mut self, base: &StoredProduct) -> Result<(), StoreError> {
        let json = base_json(base)?;
        let digest = base_digest(base.code.as_str(), &json);
        let from = number(self.number);
        let base_id = self.next_base_id;
        self.next_base_id += 1;
        self.pending.put_base(base_id, from, base, &json, &digest);
        FailPoint::PublishBasePut.pass()?;
        self.has_bases = true;
        match self.pending.is_full() {
            true => self.send(),
            false => Ok(()),
        }
    }

    fn end_base(&mut self, code: &ProductCode) -> Result<(), StoreError> {
        self.pending.end_base(code);
        self.has_bases = true;
        match self.pending.is_full() {
            true => self.send(),
            false => Ok(()),
        }
    }
}
