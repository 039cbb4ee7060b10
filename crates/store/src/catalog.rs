//! The live catalog.

use crate::StoreError;
use crate::db::Tx;
use crate::record::StoreState;
use crate::values::from_millis;

/// See [`Store::state`](crate::Store::state).
pub(crate) fn state(tx: &mut Tx<'_>) -> Result<StoreState, StoreError> {
    let sql = "select store_id, revision_id, texts_counter, keys_counter, assortments_counter, \
                  assortments_accepted from vitrine.state";
    let state = tx.row(sql, &[], |row| {
        Ok(StoreState {
            store_id: row.get(0)?,
            revision_id: row.get(1)?,
            texts: row.count(2)?,
            keys: row.count(3)?,
            assortments: row.count(4)?,
            assortments_accepted: row.get::<Option<i64>>(5)?.map(from_millis).transpose()?,
        })
    })?;
    state.ok_or_else(|| StoreError::Damaged("the row of its state is missing".to_owned()))
}
