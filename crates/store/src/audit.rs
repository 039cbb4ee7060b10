//! The audit log: an entry for each change of a key, of an assortment, of a text's status, of an override or of an operator, and for
//! each rollback and restore.
//!
//! The store writes entries in the transaction of the change, by comparing what was there before with what is there after: the
//! fields that differ. A secret is never among them. Each entry's digest covers that of the entry before.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use vitrine_model::content::TextDigest;
use vitrine_model::hexadecimal::Hexadecimal;
use vitrine_model::key::{KeyKind, KeyRecord};

use crate::assortment::AssortmentVersion;
use crate::check::{AUDIT_ENTRY, Findings};
use crate::db::{Column, Row, Tx, values};
use crate::digest::RowHash;
use crate::fail_point::FailPoint;
use crate::named::named;
use crate::operators::Operator;
use crate::overrides::OverrideStatus;
use crate::values::{from_millis, text_digest};
use crate::webhooks::Endpoint;
use crate::{StoreError, TextStatus, keys};

pub(crate) const READING: &str = "reading the audit log";

/// Columns of an entry.
const COLUMNS: &str =
    "number, changed_at, changed_by, note, action, subject_kind, subject, changes, digest";

/// Author, reason and kind of a change, for the audit log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditContext {
    /// Name of the author.
    pub by: String,
    /// Reason, in the author's words.
    pub note: Option<String>,
    /// Command.
    pub action: AuditAction,
    /// Confirmation by an operator in the console, at most once in a log: a change with one that the log has is refused.
    pub confirmation: Option<Confirmation>,
}

/// SHA-256 of the random name of a confirmation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confirmation(String);

impl Confirmation {
    /// Returns the confirmation of a name.
    #[must_use]
    pub fn of(name: &str) -> Self {
        Self(Hexadecimal(&Sha256::digest(name)).to_string())
    }
}

named! {
    /// Action that changes keys, assortments, texts, webhooks, overrides, operators or everything; with its name in the log.
    pub enum AuditAction {
        CreateKey = "create",
        SetKey = "set",
        RotateKey = "rotate",
        RevokeKey = "revoke",
        SetAssortment = "set",
        RemoveAssortment = "remove",
        AcceptAssortments = "accept",
        TakeDownText = "take-down",
        PutBackText = "put-back",
        CreateWebhook = "create",
        PauseWebhook = "pause",
        EnableWebhook = "enable",
        RetryWebhook = "retry",
        RotateWebhook = "rotate",
        TestWebhook = "test",
        ReplayWebhook = "replay",
        DeleteWebhook = "delete",
        MakeOverride = "create",
        EndOverride = "end",
        RollBack = "roll-back",
        AddOperator = "add",
        SetOperator = "set",
        RemoveOperator = "remove",
        Restore = "restore",
    }
}

/// An entry of the audit log. Action and kinds are texts: a newer release may have written others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    /// Number, from 1.
    pub number: u64,
    /// Time of the change.
    pub at: Timestamp,
    /// Name of the author.
    pub by: String,
    /// Reason, in the author's words.
    pub note: Option<String>,
    /// Name of the [`AuditAction`].
    pub action: String,
    /// Kind of the subject: `key`, `assortment`, `text`, `webhook`, `override`, `operator` or `store`.
    pub subject_kind: String,
    /// Prefix of a key, name of an assortment or an operator, digest of a text, id of an endpoint, number of an override, path of
    /// the backup, or `catalog`.
    pub subject: String,
    /// Fields that changed.
    pub changes: Vec<FieldChange>,
}

/// A field that changed. Values are texts, as commands print them; none was or is unset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldChange {
    /// Name of the field.
    pub field: String,
    /// Value before.
    pub before: Option<String>,
    /// Value after.
    pub after: Option<String>,
}

/// Change by an action that publishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PublishedChange {
    /// An override: its number, and its status before and after.
    Override {
        /// Number.
        number: u64,
        /// Status before; none if it was made.
        before: Option<OverrideStatus>,
        /// Status after.
        after: OverrideStatus,
    },
    /// The live revision.
    Revision {
        /// Number of the revision that was live, if there was one.
        before: Option<u64>,
        /// Number of the revision that is live again.
        after: u64,
    },
}

impl crate::Store {
    /// Returns the newest entries of the audit log, at most `limit` of them, newest first: of all, or of one subject.
    pub fn audit(&self, subject: Option<&str>, limit: u32) -> Result<Vec<AuditEntry>, StoreError> {
        // One statement for each case, so that each uses its index.
        let (condition, values) = match subject {
            Some(subject) => ("where subject = $2", values![limit, subject].to_vec()),
            None => ("", values![limit].to_vec()),
        };
        let sql = format!(
            "select {COLUMNS} from vitrine.audit_entry {condition} order by number desc limit $1"
        );
        self.db().read(READING, |tx| tx.rows(&sql, &values, entry))
    }

    /// Returns true if the audit log has this confirmation: what was confirmed is done.
    pub fn is_confirmed(&self, confirmation: &Confirmation) -> Result<bool, StoreError> {
        let db = self.db();
        db.quick(READING, |tx| has_confirmation(tx, confirmation))
    }
}

fn entry(row: &Row<'_>) -> Result<AuditEntry, StoreError> {
    let (number, changes): (i64, &str) = (row.get(0)?, row.get(7)?);
    let damaged = || StoreError::Damaged(format!("the audit log's entry {number} is unreadable"));
    Ok(AuditEntry {
        number: u64::try_from(number).map_err(|_| damaged())?,
        at: from_millis(row.get(1)?)?,
        by: row.get(2)?,
        note: row.get(3)?,
        action: row.get(4)?,
        subject_kind: row.get(5)?,
        subject: row.get(6)?,
        changes: serde_json::from_str(changes).map_err(|_| damaged())?,
    })
}

fn has_confirmation(tx: &mut Tx<'_>, confirmation: &Confirmation) -> Result<bool, StoreError> {
    let sql = "select exists (select 1 from vitrine.audit_entry where confirmation = $1)";
    tx.value(sql, values![&confirmation.0])
}

/// Position in the audit log of a store: its newest entry at a moment. The digest of an entry stands for all entries up to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditPosition {
    store_id: String,
    /// Number and digest; none in an empty log.
    newest: Option<(i64, Vec<u8>)>,
}

impl AuditPosition {
    /// Returns true if both positions are of one store.
    #[must_use]
    pub fn is_of_same_store(&self, other: &Self) -> bool {
        self.store_id == other.store_id
    }

    /// Returns the number of the newest entry, if the log still has it: if not, the store was replaced or put back.
    pub(crate) fn found_in(&self, tx: &mut Tx<'_>) -> Result<Option<i64>, StoreError> {
        let Some((number, digest)) = &self.newest else {
            return Ok(None);
        };
        let sql = "select exists (select 1 from vitrine.audit_entry \
                      where number = $1 and digest = $2) \
                      and store_id = $3 from vitrine.state";
        let is_there: bool = tx.value(sql, values![*number, digest, &self.store_id])?;
        Ok(is_there.then_some(*number))
    }
}

/// Returns the position of this moment.
pub(crate) fn position(tx: &mut Tx<'_>) -> Result<AuditPosition, StoreError> {
    Ok(AuditPosition {
        store_id: tx.value("select store_id from vitrine.state", &[])?,
        newest: newest(tx)?,
    })
}

/// Returns number and digest of the newest entry.
fn newest(tx: &mut Tx<'_>) -> Result<Option<(i64, Vec<u8>)>, StoreError> {
    let sql = "select number, digest from vitrine.audit_entry order by number desc limit 1";
    tx.row(sql, &[], |row| Ok((row.get(0)?, row.get(1)?)))
}

/// Returns the prefixes of the keys that changed since a position; `None` if that isn't in the log, or if a change of the whole
/// store, such as a restore, or more than `limit` changes followed it.
pub(crate) fn keys_since(
    tx: &mut Tx<'_>,
    since: &AuditPosition,
    limit: u32,
) -> Result<Option<BTreeSet<String>>, StoreError> {
    let Some(after) = since.found_in(tx)? else {
        return Ok(None);
    };
    let sql = "select subject_kind, subject from vitrine.audit_entry \
               where number > $1 and subject_kind in ('key', 'store') order by number limit $2";
    let entry = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
    let entries: Vec<(String, String)> = tx.rows(sql, values![after, limit + 1], entry)?;
    let is_listed =
        entries.len() <= limit as usize && entries.iter().all(|(kind, _)| kind == "key");
    let prefixes = entries.into_iter().map(|(_, prefix)| prefix);
    Ok(is_listed.then(|| prefixes.collect()))
}

/// Writes an entry for each change. In PostgreSQL the caller holds the lock of keys.
pub(crate) fn write(
    tx: &mut Tx<'_>,
    context: &AuditContext,
    changes: Vec<Change>,
) -> Result<(), StoreError> {
    let tx = &mut tx.doing("writing the audit log");
    let mut confirmation = context.confirmation.as_ref();
    if let Some(confirmation) = confirmation.filter(|_| !changes.is_empty())
        && has_confirmation(tx, confirmation)?
    {
        return Err(StoreError::Confirmed);
    }
    let last = newest(tx)?.map(|(number, digest)| (number, Some(digest)));
    let (mut number, mut before) = last.unwrap_or_default();
    let sql = format!(
        "insert into vitrine.audit_entry ({COLUMNS}, confirmation) \
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"
    );
    let (now, note) = (Timestamp::now().as_millisecond(), context.note.as_deref());
    for change in changes {
        number += 1;
        let fields = serde_json::to_string(&change.fields)
            .map_err(|error| StoreError::Damaged(error.to_string()))?;
        let (action, kind) = (context.action.as_str(), change.subject_kind);
        let texts = [&*context.by, action, kind, &change.subject, &fields];
        let digest = digest((number, now), before.as_deref(), note, texts);
        let [by, action, kind, subject, fields] = texts;
        let confirmation = confirmation.take().map(|confirmation| &confirmation.0);
        let values = values![
            number,
            now,
            by,
            note,
            action,
            kind,
            subject,
            fields,
            &digest,
            confirmation
        ];
        tx.execute(&sql, values)?;
        before = Some(digest.into());
        FailPoint::AuditWritten.pass()?;
    }
    Ok(())
}

/// Returns the digest of an entry's columns but the confirmation, and of the digest before: a missing entry shows, too.
fn digest(
    (number, at): (i64, i64),
    before: Option<&[u8]>,
    note: Option<&str>,
    [by, action, kind, subject, changes]: [&str; 5],
) -> [u8; 16] {
    RowHash::of(values![
        number, at, before, note, by, action, kind, subject, changes
    ])
}

/// Checks that each entry is as it was written, and follows the one before.
pub(crate) fn check(tx: &mut Tx<'_>, found: &mut Findings) -> Result<(), StoreError> {
    let (mut last, mut before): (i64, Option<Vec<u8>>) = (0, None);
    let sql = format!("select {COLUMNS} from vitrine.audit_entry /*scan*/ order by number");
    tx.each(&sql, &[], |row| {
        let (number, stored): (i64, Vec<u8>) = (row.get(0)?, row.get(8)?);
        let [by, action] = [row.get(2)?, row.get(4)?];
        let texts = [by, action, row.get(5)?, row.get(6)?, row.get(7)?];
        let digest = digest((number, row.get(1)?), before.as_deref(), row.get(3)?, texts);
        if number != last + 1 || stored != digest {
            let place = format!("entry {number} of the audit log");
            let what = "was changed, or one before it was removed: its digest doesn't match";
            found.add(&AUDIT_ENTRY, place, what.to_owned());
        }
        (last, before) = (number, Some(stored));
        Ok(())
    })
}

/// A change of one subject, to be written.
pub(crate) struct Change {
    subject_kind: &'static str,
    subject: String,
    fields: Vec<FieldChange>,
}

/// Fields of a subject with their values, in the order of the log.
type Fields<const N: usize> = [(&'static str, Option<String>); N];

impl Change {
    /// Returns the change with the fields that differ. All values of one that is missing are unset.
    fn new<const N: usize>(
        subject_kind: &'static str,
        subject: &impl ToString,
        before: Option<Fields<N>>,
        after: Option<Fields<N>>,
    ) -> Self {
        let unset = |fields: &Fields<N>| fields.each_ref().map(|(name, _)| (*name, None));
        let (before, after) = match (before, after) {
            (None, Some(after)) => (Some(unset(&after)), Some(after)),
            (Some(before), None) => (Some(before.clone()), Some(unset(&before))),
            both => both,
        };
        let values = before
            .into_iter()
            .flatten()
            .zip(after.into_iter().flatten());
        let differing = values.filter(|((_, before), (_, after))| before != after);
        let fields = differing.map(|((name, before), (_, after))| FieldChange {
            field: name.to_owned(),
            before,
            after,
        });
        Self {
            subject_kind,
            subject: subject.to_string(),
            fields: fields.collect(),
        }
    }

    /// Returns the change of one field.
    fn one(
        subject_kind: &'static str,
        subject: &impl ToString,
        field: &'static str,
        before: Option<String>,
        after: Option<String>,
    ) -> Self {
        let (before, after) = ([(field, before)], [(field, after)]);
        Self::new(subject_kind, subject, Some(before), Some(after))
    }

    /// Adds a field whose values aren't logged.
    fn with_secret(mut self, field: &str, differs: bool) -> Self {
        self.fields.extend(differs.then(|| FieldChange {
            field: field.to_owned(),
            before: None,
            after: None,
        }));
        self
    }

    fn if_any(self) -> Option<Self> {
        (!self.fields.is_empty()).then_some(self)
    }
}

fn key_fields(record: &KeyRecord) -> Fields<9> {
    let KeyRecord {
        prefix: _,
        label,
        // Compared, but never shown.
        secret_hash: _,
        kind,
        api_version,
        quota,
        assortment,
        created_at,
        expires_at,
        revoked_at,
        rotated_at,
        // A use is no change.
        last_used_at: _,
    } = record;
    // As it is stored.
    let stored = |time: Timestamp| Timestamp::from_millisecond(time.as_millisecond());
    let time = |time: Option<Timestamp>| time.map(|time| stored(time).unwrap_or(time).to_string());
    let kind = match kind {
        KeyKind::Live => "live",
        KeyKind::Test => "test",
    };
    [
        ("label", Some(label.clone())),
        ("kind", Some(kind.to_owned())),
        ("api_version", api_version.clone()),
        ("quota", quota.map(|quota| quota.to_string())),
        ("assortment", assortment.clone()),
        ("created_at", time(Some(*created_at))),
        ("expires_at", time(*expires_at)),
        ("revoked_at", time(*revoked_at)),
        ("rotated_at", time(*rotated_at)),
    ]
}

/// Returns the change from one record of a key to another; none if they don't differ.
fn key_change(before: Option<&KeyRecord>, after: Option<&KeyRecord>) -> Option<Change> {
    let prefix = &after.or(before)?.prefix;
    let secret_differs = before.zip(after).is_some_and(|(before, after)| {
        before.secret_hash.as_bytes() != after.secret_hash.as_bytes()
    });
    Change::new("key", prefix, before.map(key_fields), after.map(key_fields))
        .with_secret("secret", secret_differs)
        .if_any()
}

fn by_prefix(records: &[KeyRecord]) -> HashMap<&str, &KeyRecord> {
    let records = records.iter();
    records
        .map(|record| (record.prefix.as_str(), record))
        .collect()
}

/// Returns the changes by writing `written` over all keys.
pub(crate) fn written_keys(all: &[KeyRecord], written: &[KeyRecord]) -> Vec<Change> {
    let all = by_prefix(all);
    let change = |record: &KeyRecord| key_change(all.get(&*record.prefix).copied(), Some(record));
    written.iter().filter_map(change).collect()
}

/// Returns the change of a text's status; none if it stays.
pub(crate) fn text_change(
    digest: &TextDigest,
    before: TextStatus,
    after: TextStatus,
) -> Option<Change> {
    let [before, after] = [before, after].map(|status| match status {
        TextStatus::Served => Some("served".to_owned()),
        TextStatus::TakenDown => Some("taken_down".to_owned()),
    });
    Change::one("text", digest, "status", before, after).if_any()
}

/// Returns the change by a new version of an assortment, or by its removal. `before` is the number of the live version.
pub(crate) fn assortment_change(before: Option<u32>, after: &AssortmentVersion) -> Change {
    let live = after.rules.is_some().then_some(after.number);
    let [before, live] = [before, live].map(|number| number.map(|number| number.to_string()));
    Change::one("assortment", &after.name, "version", before, live)
}

fn webhook_fields(endpoint: &Endpoint) -> Fields<8> {
    let Endpoint {
        id: _,
        key,
        url,
        filters,
        api_version,
        format,
        created_at: _,
        status,
        // Deliverers write it, too.
        status_reason: _,
        secrets,
        progress,
        // Asking for a test is no change.
        test: _,
    } = endpoint;
    let newest = secrets.first();
    let newest = newest.map(|secret| Hexadecimal(&secret.salt[..4]).to_string());
    [
        ("key", Some(key.clone())),
        ("url", Some(url.clone())),
        ("filters", Some(filters.clone())),
        ("api_version", api_version.clone()),
        ("format", Some(format.as_str().to_owned())),
        ("status", Some(status.as_str().to_owned())),
        ("secrets", newest),
        ("position", Some(progress.position.clone())),
    ]
}

/// Returns the change of a webhook endpoint; none of its fields may differ.
pub(crate) fn webhook_change(before: Option<&Endpoint>, after: Option<&Endpoint>) -> Change {
    let id = after.or(before).map_or("", |endpoint| &endpoint.id);
    let (before, after) = (before.map(webhook_fields), after.map(webhook_fields));
    Change::new("webhook", &id, before, after)
}

/// Returns the change of an operator. Of a password it says only that it was replaced.
pub(crate) fn operator_change(before: Option<&Operator>, after: Option<&Operator>) -> Change {
    let fields = |operator: &Operator| {
        let sign_in = match operator.password {
            Some(_) => "password",
            None => "proxy",
        };
        [
            ("role", Some(operator.role.to_string())),
            ("sign_in", Some(sign_in.to_owned())),
        ]
    };
    let name = after
        .or(before)
        .map_or("", |operator| operator.name.as_str());
    let password = |operator: Option<&Operator>| operator.and_then(|one| one.password.clone());
    let passwords = password(before).zip(password(after));
    Change::new("operator", &name, before.map(fields), after.map(fields))
        .with_secret("password", passwords.is_some_and(|(old, new)| old != new))
}

/// Returns the change by accepting the assortments of a store.
pub(crate) fn accepted_assortments() -> Change {
    Change::new::<0>("store", &"assortments", None, None)
}

/// Returns the change by an action that publishes.
pub(crate) fn published_change(change: PublishedChange) -> Change {
    let text = |number: u64| Some(number.to_string());
    match change {
        PublishedChange::Override {
            number,
            before,
            after,
        } => {
            let status = |status: OverrideStatus| status.as_str().to_owned();
            let (before, after) = (before.map(status), Some(status(after)));
            Change::one("override", &number, "status", before, after)
        }
        PublishedChange::Revision { before, after } => {
            let before = before.and_then(text);
            Change::one("store", &"catalog", "revision", before, text(after))
        }
    }
}

/// Keys, texts taken down, assortments, overrides and live revision of a store at a moment: all that a restore changes of what the
/// log has.
#[derive(Clone)]
pub(crate) struct Standing {
    keys: Vec<KeyRecord>,
    taken_down: BTreeSet<TextDigest>,
    /// Live assortments by name, with number and id of the version.
    assortments: BTreeMap<String, (i64, String)>,
    /// Overrides that haven't ended by number, with their status and definition.
    overrides: BTreeMap<i64, (String, String)>,
    revision: Option<i64>,
}

/// Returns the state that a restore compares. Keys and texts with unreadable values are left out.
pub(crate) fn standing(tx: &mut Tx<'_>) -> Result<Standing, StoreError> {
    let sql = "select digest from vitrine.markdown_text where taken_down_at is not null";
    let mut taken_down = BTreeSet::new();
    tx.each(sql, &[], |row| {
        taken_down.extend(text_digest(row.get(0)?).ok());
        Ok(())
    })?;
    let assortments = "select name, number, id from vitrine.assortment_version \
                       where replaced_at is null and rules is not null";
    let overrides =
        "select number, status, definition from vitrine.catalog_override where status <> 'ended'";
    let keys = keys::rows(tx)?.into_iter();
    Ok(Standing {
        keys: (keys.filter_map(|(_, row)| row.ok()?.try_into().ok())).collect(),
        taken_down,
        assortments: by_first(tx, assortments)?,
        overrides: by_first(tx, overrides)?,
        revision: tx.value("select revision_number from vitrine.state", &[])?,
    })
}

/// Returns the rows of a query by their first column.
fn by_first<N, A, B>(tx: &mut Tx<'_>, sql: &str) -> Result<BTreeMap<N, (A, B)>, StoreError>
where
    N: for<'r> Column<'r> + Ord,
    A: for<'r> Column<'r>,
    B: for<'r> Column<'r>,
{
    let row = |row: &Row<'_>| Ok((row.get(0)?, (row.get(1)?, row.get(2)?)));
    Ok(tx.rows(sql, &[], row)?.into_iter().collect())
}

/// Returns the changes by restoring a backup: of the store, which there is always, then of keys, texts, assortments and overrides that
/// differ.
pub(crate) fn restored(backup: &Path, before: &Standing, after: &Standing) -> Vec<Change> {
    let number = |standing: &Standing| standing.revision.map(|number| number.to_string());
    let (old, new) = (number(before), number(after));
    let mut changes = vec![Change::one(
        "store",
        &backup.display(),
        "revision",
        old,
        new,
    )];
    let kept = by_prefix(&after.keys);
    let gone = |record: &&KeyRecord| !kept.contains_key(&*record.prefix);
    let gone = before.keys.iter().filter(gone);
    changes.extend(gone.filter_map(|record| key_change(Some(record), None)));
    changes.extend(written_keys(&before.keys, &after.keys));
    let new = after.taken_down.difference(&before.taken_down);
    changes.extend(
        new.filter_map(|text| text_change(text, TextStatus::Served, TextStatus::TakenDown)),
    );
    let (old, new) = (&before.assortments, &after.assortments);
    changes.extend(replaced("assortment", "version", old, new));
    let (old, new) = (&before.overrides, &after.overrides);
    changes.extend(replaced("override", "status", old, new));
    changes
}

/// Returns the changes of things by their names, of those that differ; a field has the first of their two values.
fn replaced<N: Ord + ToString, V: PartialEq + ToString>(
    subject_kind: &'static str,
    field: &'static str,
    before: &BTreeMap<N, (V, String)>,
    after: &BTreeMap<N, (V, String)>,
) -> Vec<Change> {
    let names: BTreeSet<&N> = before.keys().chain(after.keys()).collect();
    let change = |name| {
        let (before, after) = (before.get(name), after.get(name));
        let value = |one: Option<&(V, String)>| one.map(|(value, _)| value.to_string());
        let change = || Change::one(subject_kind, name, field, value(before), value(after));
        (before != after).then(change)
    };
    names.into_iter().filter_map(change).collect()
}

/// Returns the changes by creating a store from a backup, whose log has its keys and texts.
pub(crate) fn created(backup: &Path, after: &Standing) -> Vec<Change> {
    let before = Standing {
        revision: None,
        ..after.clone()
    };
    restored(backup, &before, after)
}
