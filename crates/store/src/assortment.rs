//! Assortments: their stored versions, the store's methods about them, and the rules of a change. Rules are opaque JSON here.
//!
//! - `stored`: the stored versions; `restore_plan`: the keys that would see by other rules after a restore

mod restore_plan;
mod stored;

use std::collections::HashSet;
use std::path::Path;

use jiff::Timestamp;
use vitrine_model::key::KeyRecord;

use crate::audit::{AuditAction, AuditContext, Confirmation};
use crate::db::values;
use crate::digest::RowHash;
use crate::record::StoreState;
use crate::values::{from_millis, random_id};
use crate::{StoreError, sqlite};

pub(crate) use restore_plan::View;
pub use restore_plan::{KeyView, RestorePlan, RestoredKey};
pub(crate) use stored::{accept, each, is_live, live};

/// Maximum number of live assortments (docs/contract/assortments.md#limits).
pub const MAX_ASSORTMENTS: u64 = 10_000;

/// Maximum number of product codes in the rules of all live assortments.
pub const MAX_CODES: u64 = 10_000_000;

/// Maximum number of keys that a refused removal names.
pub(crate) const MAX_NAMED_KEYS: usize = 10;

/// A version of an assortment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AssortmentVersion {
    /// Name of the assortment.
    pub name: String,
    /// Number of the version, from 1.
    pub number: u32,
    /// Random id: numbers repeat after a restore.
    pub id: String,
    /// Time of the change, never before that of the former version.
    pub created_at: Timestamp,
    /// Author of the change.
    pub by: Option<String>,
    /// Reason of the change.
    pub note: Option<String>,
    /// Rules, JSON; `None` for a removal.
    pub rules: Option<String>,
}

/// A change of an assortment.
#[derive(Debug, Clone)]
pub struct NewAssortment {
    /// Name of the assortment.
    pub name: String,
    /// Rules, JSON; `None` removes it.
    pub rules: Option<String>,
    /// Number of product codes in the rules, of which all assortments together have at most [`MAX_CODES`].
    pub codes: u32,
    /// Author of the change.
    pub by: Option<String>,
    /// Reason of the change.
    pub note: Option<String>,
    /// Confirmation by an operator in the console.
    pub confirmation: Option<Confirmation>,
}

impl NewAssortment {
    /// Returns its author and reason, for the audit log.
    pub(crate) fn context(&self) -> AuditContext {
        AuditContext {
            by: self.by.clone().unwrap_or_else(|| "unknown".to_owned()),
            note: self.note.clone(),
            action: match self.rules {
                Some(_) => AuditAction::SetAssortment,
                None => AuditAction::RemoveAssortment,
            },
            confirmation: self.confirmation.clone(),
        }
    }
}

/// Keys and live assortments of one moment.
#[derive(Debug, Clone)]
pub struct LiveAssortments {
    /// [`state`](crate::Store::state) of that moment.
    pub state: StoreState,
    /// All keys, oldest first.
    pub keys: Vec<KeyRecord>,
    /// Names of all live assortments, ascending, each with the id of its live version.
    pub names: Vec<(String, String)>,
    /// Live versions that the caller didn't know, by name.
    pub changed: Vec<AssortmentVersion>,
}

impl crate::Store {
    /// Reads the keys, and the live assortments whose name and id aren't in `known`, as of one moment. It takes as long
    /// as the unknown rules are; [`read_keys`](crate::Store::read_keys) doesn't wait for it.
    ///
    /// # Errors
    ///
    /// If the store can't be read.
    pub fn read_assortments(
        &self,
        known: &[(String, String)],
    ) -> Result<LiveAssortments, StoreError> {
        stored::read(self.db(), known)
    }

    /// Returns the live versions of all assortments, by name.
    ///
    /// # Errors
    ///
    /// If the store can't be read.
    pub fn assortments(&self) -> Result<Vec<AssortmentVersion>, StoreError> {
        stored::read_live(self.db())
    }

    /// Returns the versions of an assortment, removals included, at most `limit` of them, newest first.
    ///
    /// # Errors
    ///
    /// If the store can't be read.
    pub fn assortment_versions(
        &self,
        name: &str,
        limit: u32,
    ) -> Result<Vec<AssortmentVersion>, StoreError> {
        let rest = "name = $1 order by number desc limit $2";
        stored::select(self.db(), rest, values![name, limit])
    }

    /// Returns the versions, removals included, that were current at `since` or later, at most `limit` of them, newest
    /// first: for each name they follow each other without a gap, down to the one that was current at `since` unless the
    /// limit cuts them off.
    ///
    /// # Errors
    ///
    /// If the store can't be read.
    pub fn assortment_history(
        &self,
        since: Timestamp,
        limit: u32,
    ) -> Result<Vec<AssortmentVersion>, StoreError> {
        let rest = "replaced_at is null or replaced_at >= $1 \
                    order by created_at desc, name, number desc limit $2";
        let values = values![since.as_millisecond(), limit];
        stored::select(self.db(), rest, values)
    }

    /// Writes the next version of an assortment, if the live one has the id `expected` (`None`: there is no live one).
    /// Returns the version.
    ///
    /// # Errors
    ///
    /// If another version is live ([`StoreError::AssortmentChanged`]), keys that aren't revoked use an assortment that is
    /// to be removed ([`StoreError::AssortmentInUse`]), there would be too many assortments or codes
    /// ([`StoreError::AssortmentLimit`]), or the store can't be written.
    pub fn set_assortment(
        &self,
        new: &NewAssortment,
        expected: Option<&str>,
    ) -> Result<AssortmentVersion, StoreError> {
        stored::set(self.db(), new, expected)
    }

    /// Accepts the assortments as they are: [`StoreState::assortments_accepted`] becomes later than before. Servers may
    /// have known newer ones, if the database was put back by its own tools.
    ///
    /// # Errors
    ///
    /// If the store can't be written.
    pub fn accept_assortments(&self, context: &AuditContext) -> Result<(), StoreError> {
        stored::accept_now(self.db(), context)
    }

    /// Returns the keys that would be usable after a [`restore`](crate::Store::restore) of the backup at `path` and see by
    /// other rules than now. Only the backup's keys and assortments are read and nothing is locked: keys that are created
    /// or changed, or assortments that are edited, before the restore aren't considered.
    ///
    /// # Errors
    ///
    /// If the file is no store, is damaged or has another format, or the store can't be read.
    pub fn plan_restore(&self, path: &Path) -> Result<RestorePlan, StoreError> {
        let then = sqlite::view_of_backup(path)?;
        let live = self.read_assortments(&[])?;
        let now = View::new(live.keys, live.changed);
        Ok(restore_plan::plan(&now, &then, Timestamp::now()))
    }
}

/// The current version of an assortment, which may be a removal.
pub(crate) struct Current {
    pub(crate) number: u32,
    pub(crate) id: String,
    pub(crate) created_at: i64,
    pub(crate) is_live: bool,
}

/// Returns the number of the live version.
pub(crate) fn live_number(current: Option<&Current>) -> Option<u32> {
    let live = current.filter(|current| current.is_live);
    live.map(|live| live.number)
}

/// Returns the version that `new` makes after `current`, if the live one has the id `expected`.
pub(crate) fn next_version(
    new: &NewAssortment,
    current: Option<&Current>,
    expected: Option<&str>,
) -> Result<AssortmentVersion, StoreError> {
    let live = current.filter(|current| current.is_live);
    if live.map(|live| live.id.as_str()) != expected {
        return Err(StoreError::AssortmentChanged {
            name: new.name.clone(),
            live: live.map(|live| live.number),
        });
    }
    if new.rules.is_none() && live.is_none() {
        return Err(StoreError::NoAssortment {
            name: new.name.clone(),
        });
    }
    let now = Timestamp::now().as_millisecond();
    let before = current.map_or(now, |current| current.created_at);
    Ok(AssortmentVersion {
        name: new.name.clone(),
        number: current.map_or(0, |current| current.number) + 1,
        id: random_id()?,
        // Clocks may have been set back.
        created_at: from_millis(now.max(before))?,
        by: new.by.clone(),
        note: new.note.clone(),
        rules: new.rules.clone(),
    })
}

/// Refuses the removal of an assortment that is in use. `prefixes` are those of the keys that use it and aren't revoked.
pub(crate) fn ensure_unused(name: &str, mut prefixes: Vec<String>) -> Result<(), StoreError> {
    if prefixes.is_empty() {
        return Ok(());
    }
    let keys = prefixes.len();
    prefixes.truncate(MAX_NAMED_KEYS);
    Err(StoreError::AssortmentInUse {
        name: name.to_owned(),
        keys,
        prefixes,
    })
}

/// Refuses a change after which the live assortments would be too many, or have too many codes.
pub(crate) fn ensure_limits(assortments: u64, codes: u64) -> Result<(), StoreError> {
    for (what, count, limit) in [
        ("assortments", assortments, MAX_ASSORTMENTS),
        ("codes in all assortments", codes, MAX_CODES),
    ] {
        if count > limit {
            return Err(StoreError::AssortmentLimit { what, count, limit });
        }
    }
    Ok(())
}

/// Refuses a key that isn't revoked and names an assortment that isn't live.
pub(crate) fn ensure_live(
    record: &KeyRecord,
    is_live: impl FnOnce(&str) -> Result<bool, StoreError>,
) -> Result<(), StoreError> {
    match &record.assortment {
        Some(name) if record.revoked_at.is_none() && !is_live(name)? => {
            Err(StoreError::NoAssortment { name: name.clone() })
        }
        _ => Ok(()),
    }
}

/// Returns the ids among `names` that `known` lacks.
pub(crate) fn unknown_ids<'n>(
    names: &'n [(String, String)],
    known: &[(String, String)],
) -> Vec<&'n str> {
    let known: HashSet<_> = known.iter().collect();
    let unknown = names.iter().filter(|name| !known.contains(name));
    unknown.map(|(_, id)| id.as_str()).collect()
}

/// Converts the stored number of a version.
pub(crate) fn version_number(number: i64) -> Result<u32, StoreError> {
    u32::try_from(number)
        .map_err(|_| StoreError::Damaged(format!("invalid number {number} of an assortment")))
}

/// Returns the digest of all columns of a version but the time of its replacement.
pub(crate) fn digest(version: &AssortmentVersion, codes: i64) -> [u8; 16] {
    let AssortmentVersion {
        name,
        number,
        id,
        created_at,
        by,
        note,
        rules,
    } = version;
    let mut hash = RowHash::default();
    for text in [
        Some(name),
        Some(id),
        by.as_ref(),
        note.as_ref(),
        rules.as_ref(),
    ] {
        hash.bytes(text.map(String::as_bytes));
    }
    for number in [i64::from(*number), created_at.as_millisecond(), codes] {
        hash.number(Some(number));
    }
    hash.finish()
}
