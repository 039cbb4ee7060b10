//! Rows that a publish stores beside the effective products: overrides, and the bases of products.

use jiff::Timestamp;
use vitrine_model::code::ProductCode;

use super::{Part, Publish};
use crate::StoreError;
use crate::db::values;
use crate::fail_point::FailPoint;
use crate::moments;
use crate::overrides::{self, NewOverride, OverriddenProduct, OverrideEnd, StoredOverride};
use crate::prepared::PreparedProduct;
use crate::record::{Moment, StoredProduct};
use crate::values::code;

impl Publish {
    /// Returns the time, by the clock of the store.
    ///
    /// # Errors
    ///
    /// If the store can't be read.
    pub fn now(&mut self) -> Result<Timestamp, StoreError> {
        overrides::now(&mut self.writer.tx())
    }

    /// Returns the overrides that haven't ended, oldest first.
    ///
    /// # Errors
    ///
    /// If the store can't be read.
    pub fn open_overrides(&mut self) -> Result<Vec<StoredOverride>, StoreError> {
        let open = "where status <> 'ended' order by number";
        overrides::read(&mut self.writer.tx(), open)
    }

    /// Stores an override. Returns its number.
    ///
    /// # Errors
    ///
    /// If the store can't be written.
    pub fn add_override(&mut self, new: &NewOverride) -> Result<u64, StoreError> {
        self.refuse_in_a_plan()?;
        let sql = "insert into vitrine.catalog_override \
                   (number, definition, from_at, until_at, created_at, created_by, note, status) \
                   select coalesce(max(number), 0) + 1, $1, $2, $3, $4, $5, $6, $7 \
                   from vitrine.catalog_override returning number";
        let values = values![
            &new.definition,
            new.from.as_millisecond(),
            new.until.map(Timestamp::as_millisecond),
            new.created_at.as_millisecond(),
            &new.created_by,
            &new.note,
            new.status.as_str(),
        ];
        let number: i64 = self.writer.tx().value(sql, values)?;
        FailPoint::OverridesWritten.pass()?;
        self.has_others = true;
        Ok(number.unsigned_abs())
    }

    /// Lets an override begin, or end.
    ///
    /// # Errors
    ///
    /// If the store can't be written.
    pub fn set_override(
        &mut self,
        number: u64,
        end: Option<&OverrideEnd>,
    ) -> Result<(), StoreError> {
        self.refuse_in_a_plan()?;
        let mut tx = self.writer.tx();
        match end {
            None => {
                let sql = "update vitrine.catalog_override set status = 'active' where number = $1";
                tx.execute(sql, values![number])?;
            }
            Some(OverrideEnd { at, by, note }) => {
                let sql = "update vitrine.catalog_override set status = 'ended', \
                           ended_at = $1, ended_by = $2, end_note = $3 where number = $4";
                tx.execute(sql, values![at.as_millisecond(), by, note, number])?;
            }
        }
        FailPoint::OverridesWritten.pass()?;
        self.has_others = true;
        Ok(())
    }

    /// Announces the live products that are put or retired next, so that a store across a network can look them up
    /// together. Changes nothing.
    ///
    /// # Errors
    ///
    /// If the store can't be read.
    pub fn announce(&mut self, codes: &[&ProductCode]) -> Result<(), StoreError> {
        self.fetch_all(codes, Part::Digests)
    }

    /// Returns the live products with a base beside them, in ascending order of codes.
    ///
    /// # Errors
    ///
    /// If the store can't be read.
    pub fn overridden(&mut self) -> Result<Vec<OverriddenProduct>, StoreError> {
        let sql = "select code, not exists (select 1 from vitrine.product_version v \
                      where v.code = b.code and v.until_revision is null) \
                   from vitrine.product_base b /*scan*/ where until_revision is null order by code";
        self.writer.tx().rows(sql, &[], |row| {
            Ok(OverriddenProduct {
                code: code(row.get(0)?)?,
                is_hidden: row.get(1)?,
            })
        })
    }

    /// Returns the bases of these products, as far as they have one beside them, as they were when this publish began.
    ///
    /// # Errors
    ///
    /// If the store can't be read.
    pub fn bases(&mut self, codes: &[&ProductCode]) -> Result<Vec<StoredProduct>, StoreError> {
        let codes: Vec<&str> = codes.iter().map(|code| code.as_str()).collect();
        // What this publish has put waits in the buffer: it isn't found, and needn't be.
        moments::bases_of(&mut self.writer.tx(), &codes, Moment::Live)
    }

    /// Stores the base of a product beside it, instead of the one before, from which it differs. Call it once for a
    /// product.
    ///
    /// # Errors
    ///
    /// If the store can't be written.
    pub fn put_base(&mut self, base: PreparedProduct) -> Result<(), StoreError> {
        self.pending.put_base(self.next_id, base);
        self.next_id += 1;
        self.has_new_base()
    }

    /// Stores a live product, which has no base beside it, as its own base. Call it before the product is put or
    /// retired.
    ///
    /// # Errors
    ///
    /// If the store can't be read or written.
    pub fn keep_live_as_base(&mut self, live: &StoredProduct) -> Result<(), StoreError> {
        self.pending.keep_live_as_base(&live.code);
        self.has_new_base()
    }

    /// Ends the base beside a product, whose base is the product itself from now on.
    ///
    /// # Errors
    ///
    /// If the store can't be written.
    pub fn end_base(&mut self, code: &ProductCode) -> Result<(), StoreError> {
        self.pending.end_base(code);
        self.send_if_full()
    }
}

impl Publish {
    fn has_new_base(&mut self) -> Result<(), StoreError> {
        FailPoint::PublishBasePut.pass()?;
        self.has_bases = true;
        self.send_if_full()
    }
}
