//! Assortments: their stored versions, the store's methods about them, and the rules of a change. Rules are opaque JSON here.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use vitrine_model::key::KeyRecord;

use crate::audit::{
    self, AuditAction, AuditContext, AuditPosition, Confirmation, accepted_assortments,
    assortment_change,
};
use crate::check::{ASSORTMENT, Findings};
use crate::db::{Row, Tx, Value, values};
use crate::digest::RowHash;
use crate::fail_point::FailPoint;
use crate::keys::KeysRead;
use crate::postgres::Lock;
use crate::values::{from_millis, random_id, random_step};
use crate::{StoreError, keys, sqlite};

const READING: &str = "reading the assortments";
const WRITING: &str = "writing an assortment";

/// Columns of a version, in the order in which [`version`] reads them.
const VERSION: &str = "name, number, id, created_at, changed_by, note, rules";

/// SQL condition for live versions.
const IS_LIVE: &str = "replaced_at is null and rules is not null";

/// Maximum number of live assortments (docs/contract/assortments.md#limits).
const MAX_ASSORTMENTS: u64 = 10_000;

/// Maximum number of product codes in the rules of all live assortments.
pub const MAX_CODES: u64 = 10_000_000;

/// Maximum number of keys that a refused removal names.
const MAX_NAMED_KEYS: usize = 10;

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

/// Live assortments and keys of one moment.
#[derive(Debug, Clone)]
pub struct LiveAssortments {
    /// Keys of that moment, with its state.
    pub keys: KeysRead,
    /// Names of all live assortments, ascending, each with the id of its live version.
    pub names: Vec<(String, String)>,
    /// Live versions that the caller didn't know, by name.
    pub changed: Vec<AssortmentVersion>,
}

/// Result of [`plan_restore`](crate::Store::plan_restore).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RestorePlan {
    /// Keys that would be usable and see by other rules than now, oldest first.
    pub keys: Vec<RestoredKey>,
}

/// A key that a restore would change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoredKey {
    /// Name in lists and logs.
    pub prefix: String,
    /// Name for people, in the backup.
    pub label: String,
    /// View of the catalog now.
    pub now: KeyView,
    /// View of the catalog after the restore.
    pub then: KeyView,
}

/// A key's view of the catalog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyView {
    /// Nothing: there is no such key, or its assortment isn't live.
    Unknown,
    /// Everything: it has no assortment.
    Everything,
    /// The part that its assortment shows.
    Assortment {
        /// Name of the assortment.
        name: String,
        /// Rules, JSON.
        rules: Arc<str>,
    },
}

impl crate::Store {
    /// Reads the live assortments whose name and id aren't in `known`, and as of the same moment the keys, as
    /// [`read_keys`](crate::Store::read_keys) does. It takes as long as the unknown rules are; `read_keys` doesn't wait for it.
    pub fn read_assortments(
        &self,
        known: &[(String, String)],
        since: Option<&AuditPosition>,
    ) -> Result<LiveAssortments, StoreError> {
        let sql = format!(
            "select name, id from vitrine.assortment_version where {IS_LIVE} order by name"
        );
        self.db().read(READING, |tx| {
            let names = tx.rows(&sql, &[], |row| Ok((row.get(0)?, row.get(1)?)))?;
            let known: HashSet<&(String, String)> = known.iter().collect();
            let unknown = names.iter().filter(|name| !known.contains(name));
            let unknown: Vec<&str> = unknown.map(|(_, id)| id.as_str()).collect();
            let changed = match unknown.is_empty() {
                true => Vec::new(),
                // Of a server that starts, all are unknown.
                false => versions(
                    tx,
                    "id = any($1) /*scan*/ order by name",
                    values![&unknown[..]],
                )?,
            };
            Ok(LiveAssortments {
                keys: keys::read(tx, since)?,
                changed,
                names,
            })
        })
    }

    /// Returns the live versions of all assortments, by name.
    pub fn assortments(&self) -> Result<Vec<AssortmentVersion>, StoreError> {
        self.db().read(READING, live)
    }

    /// Returns the versions of an assortment, removals included, at most `limit` of them, newest first.
    pub fn assortment_versions(
        &self,
        name: &str,
        limit: u32,
    ) -> Result<Vec<AssortmentVersion>, StoreError> {
        let rest = "name = $1 order by number desc limit $2";
        let db = self.db();
        db.read(READING, |tx| versions(tx, rest, values![name, limit]))
    }

    /// Returns the versions, removals included, that were current at `since` or later, at most `limit` of them, newest
    /// first: for each name they follow each other without a gap, down to the one that was current at `since` unless the
    /// limit cuts them off.
    pub fn assortment_history(
        &self,
        since: Timestamp,
        limit: u32,
    ) -> Result<Vec<AssortmentVersion>, StoreError> {
        let rest = "/*scan*/ replaced_at is null or replaced_at >= $1 \
                    order by created_at desc, name, number desc limit $2";
        let values = values![since.as_millisecond(), limit];
        self.db().read(READING, |tx| versions(tx, rest, values))
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
        // With the lock of keys: they must go on naming live assortments.
        let committed = FailPoint::AssortmentsCommitted;
        self.db().write(Lock::Keys, committed, WRITING, |tx| {
            let (before, version) = next_version(tx, new, expected)?;
            if new.rules.is_none() {
                ensure_unused(tx, &new.name)?;
            }
            write(tx, &version, new.codes.into())?;
            if new.rules.is_some() {
                ensure_limits(tx)?;
            }
            let context = AuditContext {
                by: new.by.clone().unwrap_or_else(|| "unknown".to_owned()),
                note: new.note.clone(),
                action: match new.rules {
                    Some(_) => AuditAction::SetAssortment,
                    None => AuditAction::RemoveAssortment,
                },
                confirmation: new.confirmation.clone(),
            };
            let change = assortment_change(before, &version);
            audit::write(tx, &context, vec![change])?;
            count(tx)?;
            FailPoint::AssortmentsCounted.pass()?;
            tx.notify()?;
            Ok(version)
        })
    }

    /// Accepts the assortments as they are: [`assortments_accepted`](crate::record::StoreState::assortments_accepted) becomes
    /// later than before. Servers may have known newer ones, if the database was put back by its own tools.
    pub fn accept_assortments(&self, context: &AuditContext) -> Result<(), StoreError> {
        let committed = FailPoint::AssortmentsCommitted;
        self.db().write(Lock::Keys, committed, WRITING, |tx| {
            accept(tx)?;
            audit::write(tx, context, vec![accepted_assortments()])?;
            tx.notify()
        })
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
        let now = self
            .db()
            .read(READING, |tx| Ok(View::new(keys::records(tx)?, live(tx)?)))?;
        Ok(plan(&now, &then, Timestamp::now()))
    }
}

/// Returns the live versions, by name.
pub(crate) fn live(tx: &mut Tx<'_>) -> Result<Vec<AssortmentVersion>, StoreError> {
    versions(tx, &format!("{IS_LIVE} order by name"), &[])
}

/// Reads the versions that a condition selects, followed by what else a query may have.
fn versions(
    tx: &mut Tx<'_>,
    rest: &str,
    values: &[Value<'_>],
) -> Result<Vec<AssortmentVersion>, StoreError> {
    let sql = format!("select {VERSION} from vitrine.assortment_version where {rest}");
    tx.rows(&sql, values, version)
}

fn version(row: &Row<'_>) -> Result<AssortmentVersion, StoreError> {
    Ok(AssortmentVersion {
        name: row.get(0)?,
        number: number(row)?,
        id: row.get(2)?,
        created_at: from_millis(row.get(3)?)?,
        by: row.get(4)?,
        note: row.get(5)?,
        rules: row.get(6)?,
    })
}

/// Returns whether there is a live assortment of this name.
pub(crate) fn is_live(tx: &mut Tx<'_>, name: &str) -> Result<bool, StoreError> {
    let sql = format!(
        "select exists (select 1 from vitrine.assortment_version where name = $1 and {IS_LIVE})"
    );
    tx.value(&sql, values![name])
}

/// Reads the number of a version.
fn number(row: &Row<'_>) -> Result<u32, StoreError> {
    let number: i64 = row.get(1)?;
    let damaged = |_| StoreError::Damaged(format!("invalid number {number} of an assortment"));
    number.try_into().map_err(damaged)
}

/// Returns the version that `new` makes, if the live one has the id `expected`; and the number of the live one.
fn next_version(
    tx: &mut Tx<'_>,
    new: &NewAssortment,
    expected: Option<&str>,
) -> Result<(Option<u32>, AssortmentVersion), StoreError> {
    let current = versions(tx, "name = $1 and replaced_at is null", values![&new.name])?.pop();
    let (name, live) = (
        new.name.clone(),
        current.as_ref().filter(|version| version.rules.is_some()),
    );
    let live_number = live.map(|live| live.number);
    if live.map(|live| live.id.as_str()) != expected {
        let live = live_number;
        return Err(StoreError::AssortmentChanged { name, live });
    }
    if new.rules.is_none() && live.is_none() {
        return Err(StoreError::NoAssortment { name });
    }
    // Clocks may have been set back.
    let before = current
        .as_ref()
        .map_or(Timestamp::MIN, |current| current.created_at);
    let version = AssortmentVersion {
        name,
        number: current.map_or(0, |current| current.number) + 1,
        id: random_id()?,
        created_at: from_millis(Timestamp::now().max(before).as_millisecond())?,
        by: new.by.clone(),
        note: new.note.clone(),
        rules: new.rules.clone(),
    };
    Ok((live_number, version))
}

/// Refuses the removal of an assortment that keys use which aren't revoked.
fn ensure_unused(tx: &mut Tx<'_>, name: &str) -> Result<(), StoreError> {
    let sql = "select prefix from vitrine.api_key /*scan*/ where assortment = $1 and revoked_at is null \
               order by created_at, prefix";
    let mut prefixes: Vec<String> = tx.rows(sql, values![name], |row| row.get(0))?;
    let keys = prefixes.len();
    prefixes.truncate(MAX_NAMED_KEYS);
    let name = name.to_owned();
    match keys {
        0 => Ok(()),
        _ => Err(StoreError::AssortmentInUse {
            name,
            keys,
            prefixes,
        }),
    }
}

/// Refuses a change after which the live assortments are too many, or have too many codes.
fn ensure_limits(tx: &mut Tx<'_>) -> Result<(), StoreError> {
    let sql = format!(
        "select count(*), coalesce(sum(codes), 0)::bigint from vitrine.assortment_version where {IS_LIVE}"
    );
    let counts = tx.row(&sql, &[], |row| Ok((row.count(0)?, row.count(1)?)))?;
    let (assortments, codes) = counts.unwrap_or_default();
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

fn write(tx: &mut Tx<'_>, version: &AssortmentVersion, codes: i64) -> Result<(), StoreError> {
    let created_at = version.created_at.as_millisecond();
    let sql = "update vitrine.assortment_version set replaced_at = $2 \
               where name = $1 and replaced_at is null";
    tx.execute(sql, values![&version.name, created_at])?;
    FailPoint::AssortmentsReplaced.pass()?;
    let sql = "insert into vitrine.assortment_version \
               (name, number, id, created_at, changed_by, note, codes, digest, rules) \
               values ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
    let digest = digest(version, codes);
    let values = values![
        &version.name,
        version.number,
        &version.id,
        created_at,
        &version.by,
        &version.note,
        codes,
        &digest,
        &version.rules,
    ];
    tx.execute(sql, values)?;
    FailPoint::AssortmentsWritten.pass()
}

/// Increments the counter by a random step, as [`keys::count`] does that of keys.
fn count(tx: &mut Tx<'_>) -> Result<(), StoreError> {
    let sql = "update vitrine.state set assortments_counter = assortments_counter + $1";
    tx.execute(sql, values![random_step()?]).map(drop)
}

/// Increments the counter, and accepts the assortments as they are: later than before, whatever the clock says.
pub(crate) fn accept(tx: &mut Tx<'_>) -> Result<(), StoreError> {
    count(tx)?;
    let sql = "update vitrine.state \
               set assortments_accepted = greatest(coalesce(assortments_accepted, 0) + 1, $1)";
    tx.execute(sql, values![Timestamp::now().as_millisecond()])?;
    FailPoint::AssortmentsAccepted.pass()
}

/// Returns the digest of all columns of a version but the time of its replacement.
fn digest(version: &AssortmentVersion, codes: i64) -> [u8; 16] {
    let AssortmentVersion {
        name,
        number,
        id,
        created_at,
        by,
        note,
        rules,
    } = version;
    let created_at = created_at.as_millisecond();
    RowHash::of(values![
        name, id, by, note, rules, *number, created_at, codes
    ])
}

/// Checks that each version has the digest that is stored with it, and that the newest of its name is current.
pub(crate) fn check(tx: &mut Tx<'_>, found: &mut Findings) -> Result<(), StoreError> {
    let sql = format!(
        "select {VERSION}, replaced_at is null, \
           number = max(number) over (partition by name), codes, digest \
         from vitrine.assortment_version /*scan*/ order by name, number"
    );
    let is_written = |row: &Row<'_>| {
        let digest = digest(&version(row)?, row.get(9)?);
        Ok::<bool, StoreError>(row.get::<&[u8]>(10)? == digest)
    };
    tx.each(&sql, &[], |row| {
        let place = format!(
            "assortment {}, version {}",
            row.lossy(0)?,
            row.get::<i64>(1)?
        );
        let mut add = |what: &str| found.add(&ASSORTMENT, place.clone(), what.to_owned());
        match is_written(row) {
            Err(error) => add(&error.to_string()),
            Ok(false) => add("isn't what was written: its digest doesn't match"),
            Ok(true) => {}
        }
        match (row.get(8)?, row.get(7)?) {
            (true, false) => add("is the newest one, and marked as replaced"),
            (false, true) => add("isn't the newest one, and not marked as replaced"),
            _ => {}
        }
        Ok(())
    })
}

/// Keys of a store, and the rules of its live assortments.
pub(crate) struct View {
    keys: Vec<KeyRecord>,
    rules: HashMap<String, Arc<str>>,
}

impl View {
    pub(crate) fn new(keys: Vec<KeyRecord>, live: Vec<AssortmentVersion>) -> Self {
        let rules = |version: AssortmentVersion| Some((version.name, version.rules?.into()));
        Self {
            keys,
            rules: live.into_iter().filter_map(rules).collect(),
        }
    }

    fn of(&self, key: &KeyRecord) -> KeyView {
        let Some(name) = &key.assortment else {
            return KeyView::Everything;
        };
        match self.rules.get(name) {
            None => KeyView::Unknown,
            Some(rules) => KeyView::Assortment {
                name: name.clone(),
                rules: Arc::clone(rules),
            },
        }
    }
}

/// Compares the views of all keys that a restore would leave usable at `moment`: revoked keys stay revoked, and the earlier
/// expiry counts.
fn plan(now: &View, then: &View, moment: Timestamp) -> RestorePlan {
    let standing = now.keys.iter().map(|key| (key.prefix.as_str(), key));
    let standing: HashMap<&str, &KeyRecord> = standing.collect();
    let restored = |key: &KeyRecord| {
        let before = standing.get(key.prefix.as_str());
        let is_usable =
            key.is_active(moment) && before.is_none_or(|before| before.is_active(moment));
        let restored = RestoredKey {
            prefix: key.prefix.clone(),
            label: key.label.clone(),
            now: before.map_or(KeyView::Unknown, |before| now.of(before)),
            then: then.of(key),
        };
        (is_usable && restored.now != restored.then).then_some(restored)
    };
    RestorePlan {
        keys: then.keys.iter().filter_map(restored).collect(),
    }
}
