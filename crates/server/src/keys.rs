//! Changes of API keys, which commands and the console make alike: new keys, successors, other values, revocations.

use anyhow::{anyhow, bail};
use jiff::Timestamp;
use vitrine_model::key::{KeyKind, KeyRecord, KeyStatus, NewKey};
use vitrine_model::quota::Quota;
use vitrine_store::Store;
use vitrine_store::audit::AuditContext;

/// Returns a new key.
pub(crate) fn new_key(kind: KeyKind) -> anyhow::Result<NewKey> {
    let mut random = [0; NewKey::RANDOM_BYTES];
    getrandom::fill(&mut random)?;
    Ok(NewKey::from_random(kind, &random))
}

/// A key's successor, and the keys that end because of it.
pub(crate) struct Rotated {
    /// The new key.
    pub(crate) key: NewKey,
    /// Its record.
    pub(crate) successor: KeyRecord,
    /// Records of the keys that expire.
    pub(crate) ending: Vec<KeyRecord>,
}

/// Creates a successor of the single key in use that `name` means; the old key expires at `overlap_ends` at the latest.
pub(crate) fn rotate(
    store: &Store,
    name: &str,
    (now, overlap_ends): (Timestamp, Timestamp),
    context: &AuditContext,
) -> anyhow::Result<Rotated> {
    let prefix = prefix_of(name);
    let mut outcome = Err(anyhow!(
        "no key in use has the label or prefix `{prefix}`; see `vitrine keys list`"
    ));
    store.change_keys(context, asked(&[name]).as_deref(), &mut |records| {
        let in_use: Vec<&KeyRecord> = records
            .iter()
            .filter(|record| means(records, name, record))
            .filter(|record| record.is_active(now) && record.rotated_at.is_none())
            .collect();
        let [old] = in_use.as_slice() else {
            if !in_use.is_empty() {
                outcome = Err(anyhow!(
                    "{} keys in use have the label `{name}`; rotate one by its prefix, see `vitrine keys list`",
                    in_use.len()
                ));
            }
            return Vec::new();
        };
        match new_key(old.kind) {
            Ok(key) => {
                let successor = successor(old, &key, now);
                let ending = ending(records, old, now, overlap_ends);
                let changed = ending.iter().chain([&successor]).cloned().collect();
                outcome = Ok(Rotated {
                    key,
                    successor,
                    ending,
                });
                changed
            }
            Err(error) => {
                outcome = Err(error);
                Vec::new()
            }
        }
    })?;
    outcome
}

/// Returns the keys that end once `old` is rotated, as they are then: keys rotated earlier expire at the latest with this one.
pub(crate) fn ending(
    records: &[KeyRecord],
    old: &KeyRecord,
    now: Timestamp,
    overlap_ends: Timestamp,
) -> Vec<KeyRecord> {
    predecessors(records, old, now)
        .into_iter()
        .chain([old])
        .map(|record| expiring_record(record, now, overlap_ends))
        .collect()
}

/// Returns the names that the store may look for; `None` if one of them may have a secret in it, which mustn't reach a
/// database.
fn asked<'n>(names: &[&'n str]) -> Option<Vec<&'n str>> {
    let has_secret = names.iter().any(|name| prefix_of(name) != *name);
    (!has_secret).then(|| names.to_vec())
}

/// Returns true if a name, or a whole key, means a key: by its prefix, or else, if no key has that prefix, by its label.
fn means(records: &[KeyRecord], name: &str, record: &KeyRecord) -> bool {
    let prefix = prefix_of(name);
    match records.iter().any(|record| record.prefix == prefix) {
        true => record.prefix == prefix,
        false => record.label == name,
    }
}

/// Returns the keys that were rotated before `old` was created and are still accepted. None if several keys of the
/// label are in use, because then it's unknown whose predecessors they are.
fn predecessors<'r>(
    records: &'r [KeyRecord],
    old: &KeyRecord,
    now: Timestamp,
) -> Vec<&'r KeyRecord> {
    let (rotated, in_use): (Vec<_>, Vec<_>) = records
        .iter()
        .filter(|record| record.label == old.label && record.is_active(now))
        .partition(|record| record.rotated_at.is_some());
    match in_use.len() {
        1 => rotated,
        _ => Vec::new(),
    }
}

/// Returns the record of a successor, with the same label, kind, version, assortment, quota and expiry.
fn successor(old: &KeyRecord, key: &NewKey, now: Timestamp) -> KeyRecord {
    KeyRecord {
        prefix: key.prefix().to_owned(),
        secret_hash: key.secret_hash(),
        created_at: now,
        last_used_at: None,
        ..old.clone()
    }
}

/// Returns the record of a rotated key, which expires at the end of the overlap at the latest.
fn expiring_record(old: &KeyRecord, now: Timestamp, overlap_ends: Timestamp) -> KeyRecord {
    let expires = old
        .expires_at
        .map_or(overlap_ends, |own| own.min(overlap_ends));
    KeyRecord {
        expires_at: Some(expires),
        rotated_at: old.rotated_at.or(Some(now)),
        ..old.clone()
    }
}

/// New values; `None` leaves the old one, `Some(None)` removes it.
#[derive(Default)]
pub(crate) struct Changes {
    pub(crate) label: Option<String>,
    pub(crate) expires_at: Option<Option<Timestamp>>,
    pub(crate) api_version: Option<Option<String>>,
    pub(crate) assortment: Option<Option<String>>,
    pub(crate) quota: Option<Option<Quota>>,
}

/// The key isn't as the change was decided on.
#[derive(Debug, thiserror::Error)]
#[error("the key {0} was changed meanwhile; nothing was changed, look at it and try again")]
pub(crate) struct ChangedMeanwhile(String);

/// Changes the key that a name means; returns it as it was and as it is.
pub(crate) fn change(
    store: &Store,
    name: &str,
    changes: &Changes,
    now: Timestamp,
    context: &AuditContext,
) -> anyhow::Result<(KeyRecord, KeyRecord)> {
    change_if(store, name, (changes, &|_| true), now, context)
}

/// As [`change`], if the key is as expected in the transaction that changes it; otherwise fails with [`ChangedMeanwhile`].
pub(crate) fn change_if(
    store: &Store,
    name: &str,
    (changes, is_expected): (&Changes, &dyn Fn(&KeyRecord) -> bool),
    now: Timestamp,
    context: &AuditContext,
) -> anyhow::Result<(KeyRecord, KeyRecord)> {
    let mut outcome = None;
    store.change_keys(context, asked(&[name]).as_deref(), &mut |records| {
        let found = find(records, name, now).and_then(|before| {
            if !is_expected(before) {
                return Err(ChangedMeanwhile(before.prefix.clone()).into());
            }
            let after = changes.applied_to(before);
            Ok((before.clone(), after))
        });
        let changed = match &found {
            Ok((before, after)) if values(before) != values(after) => vec![after.clone()],
            _ => Vec::new(),
        };
        outcome = Some(found);
        changed
    })?;
    outcome.unwrap_or_else(|| Err(anyhow!("the keys weren't read")))
}

impl Changes {
    /// Returns the record with the new values.
    pub(crate) fn applied_to(&self, record: &KeyRecord) -> KeyRecord {
        let Self {
            label,
            expires_at,
            api_version,
            assortment,
            quota,
        } = self;
        KeyRecord {
            label: label.as_ref().unwrap_or(&record.label).clone(),
            expires_at: expires_at.unwrap_or(record.expires_at),
            api_version: api_version.as_ref().unwrap_or(&record.api_version).clone(),
            assortment: assortment.as_ref().unwrap_or(&record.assortment).clone(),
            quota: quota.unwrap_or(record.quota),
            ..record.clone()
        }
    }
}

/// Returns the key that a name means: that of the prefix, or the only one of the label that is in use, or else the only one
/// that isn't revoked.
fn find<'r>(records: &'r [KeyRecord], name: &str, now: Timestamp) -> anyhow::Result<&'r KeyRecord> {
    let prefix = prefix_of(name);
    let is_revoked = |record: &KeyRecord| record.status(now) == KeyStatus::Revoked;
    if let Some(record) = records.iter().find(|record| record.prefix == prefix) {
        return match is_revoked(record) {
            true => Err(anyhow!(
                "the key {prefix} is revoked for good; create another one"
            )),
            false => Ok(record),
        };
    }
    let labelled = records.iter().filter(|record| record.label == name);
    let labelled: Vec<&KeyRecord> = labelled.filter(|record| !is_revoked(record)).collect();
    let in_use = labelled.iter().filter(|record| record.is_active(now));
    let in_use: Vec<&KeyRecord> = in_use.copied().collect();
    let meant = if in_use.is_empty() { labelled } else { in_use };
    match meant.as_slice() {
        [record] => Ok(record),
        [] => Err(anyhow!(
            "no key has the prefix or label `{prefix}`; nothing was changed, see `vitrine keys list`"
        )),
        several => Err(anyhow!(
            "{} keys have the label `{name}`; change one by its prefix, see `vitrine keys list`",
            several.len()
        )),
    }
}

/// Returns the values that can be changed, with their names, for people; `None` for one that isn't set.
fn values(record: &KeyRecord) -> [(&'static str, Option<String>); 5] {
    [
        ("label", Some(record.label.clone())),
        ("expiry", record.expires_at.map(|at| at.to_string())),
        ("API version", record.api_version.clone()),
        ("assortment", record.assortment.clone()),
        ("quota", record.quota.map(|quota| quota.to_string())),
    ]
}

/// Says what changed, for people.
pub(crate) fn described(before: &KeyRecord, after: &KeyRecord) -> String {
    let or_none = |value: Option<String>| value.unwrap_or_else(|| "none".to_owned());
    let changed = values(before).into_iter().zip(values(after));
    let changed: Vec<String> = changed
        .filter(|((_, before), (_, after))| before != after)
        .map(|((name, before), (_, after))| {
            format!("{name} {} → {}", or_none(before), or_none(after))
        })
        .collect();
    match changed.is_empty() {
        true => format!("{}: nothing differs\n", after.prefix),
        false => format!("{}: {}\n", after.prefix, changed.join(", ")),
    }
}

/// Revokes all keys that these names mean; returns the prefixes of those that weren't revoked before.
pub(crate) fn revoke(
    store: &Store,
    names: &[String],
    now: Timestamp,
    context: &AuditContext,
) -> anyhow::Result<Vec<String>> {
    let mut unknown = Vec::new();
    let mut revoked: Vec<String> = Vec::new();
    let asked_names: Vec<&str> = names.iter().map(String::as_str).collect();
    store.change_keys(context, asked(&asked_names).as_deref(), &mut |records| {
        let means = |name: &str, record: &KeyRecord| means(records, name, record);
        let is_unknown = |name: &&String| !records.iter().any(|record| means(name, record));
        let names_unknown = names.iter().filter(is_unknown);
        unknown = names_unknown
            .map(|name| prefix_of(name).to_owned())
            .collect();
        if !unknown.is_empty() {
            return Vec::new();
        }
        let meant = records
            .iter()
            .filter(|record| record.revoked_at.is_none())
            .filter(|record| names.iter().any(|name| means(name, record)));
        let revoke = |record: &KeyRecord| KeyRecord {
            revoked_at: Some(now),
            ..record.clone()
        };
        let changed: Vec<KeyRecord> = meant.map(revoke).collect();
        revoked = changed.iter().map(|record| record.prefix.clone()).collect();
        changed
    })?;
    if !unknown.is_empty() {
        bail!(
            "no key has the prefix or label `{}`; nothing was revoked, see `vitrine keys list`",
            unknown.join("`, `")
        );
    }
    Ok(revoked)
}

/// Minimum length of the end of a name that may be a partially copied secret.
const SECRET_BYTES: usize = 32;

/// Returns the prefix of a whole key; of other names, the name with the dots of its label. The result may be printed:
/// anything that may be a secret is cut off.
pub(crate) fn prefix_of(name: &str) -> &str {
    let may_be_secret = |end: &str| {
        end.len() >= SECRET_BYTES && end.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    match name.split_once('.') {
        Some((start, end)) if start.contains(NewKey::START) || may_be_secret(end) => start,
        _ => name,
    }
}
