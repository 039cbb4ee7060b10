//! Changes of keys, of texts, of webhooks, of operators and by restores: the fields that differ. A secret is never among them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use jiff::Timestamp;
use vitrine_model::content::TextDigest;
use vitrine_model::hexadecimal::Hexadecimal;
use vitrine_model::key::{KeyKind, KeyRecord};

use super::FieldChange;
use crate::TextStatus;
use crate::assortment::AssortmentVersion;
use crate::operators::Operator;
use crate::webhooks::Endpoint;

/// A change of one subject, to be written.
pub(crate) struct Change {
    pub(super) subject_kind: &'static str,
    pub(super) subject: String,
    pub(super) fields: Vec<FieldChange>,
}

/// Names of the fields of a key, in the order of [`key_values`].
const KEY_FIELDS: [&str; 9] = [
    "label",
    "kind",
    "api_version",
    "quota",
    "assortment",
    "created_at",
    "expires_at",
    "revoked_at",
    "rotated_at",
];

fn key_values(record: &KeyRecord) -> [Option<String>; KEY_FIELDS.len()] {
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
    let stored =
        |moment: Timestamp| Timestamp::from_millisecond(moment.as_millisecond()).unwrap_or(moment);
    let time = |moment: &Option<Timestamp>| moment.map(|moment| stored(moment).to_string());
    let kind = match kind {
        KeyKind::Live => "live",
        KeyKind::Test => "test",
    };
    [
        Some(label.clone()),
        Some(kind.to_owned()),
        api_version.clone(),
        quota.map(|quota| quota.to_string()),
        assortment.clone(),
        time(&Some(*created_at)),
        time(expires_at),
        time(revoked_at),
        time(rotated_at),
    ]
}

/// Returns the fields that differ.
pub(super) fn differences(
    names: &[&str],
    before: impl IntoIterator<Item = Option<String>>,
    after: impl IntoIterator<Item = Option<String>>,
) -> Vec<FieldChange> {
    let values = before.into_iter().zip(after);
    let fields = names.iter().zip(values);
    fields
        .filter(|(_, (before, after))| before != after)
        .map(|(name, (before, after))| FieldChange {
            field: (*name).to_owned(),
            before,
            after,
        })
        .collect()
}

/// Returns the change from one record of a key to another; none if they don't differ.
fn key_change(before: Option<&KeyRecord>, after: Option<&KeyRecord>) -> Option<Change> {
    let prefix = &after.or(before)?.prefix;
    let values = |record: Option<&KeyRecord>| record.map(key_values).unwrap_or_default();
    let mut fields = differences(&KEY_FIELDS, values(before), values(after));
    if let (Some(before), Some(after)) = (before, after)
        && before.secret_hash.as_bytes() != after.secret_hash.as_bytes()
    {
        fields.push(FieldChange {
            field: "secret".to_owned(),
            before: None,
            after: None,
        });
    }
    (!fields.is_empty()).then(|| Change {
        subject_kind: "key",
        subject: prefix.clone(),
        fields,
    })
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
    let change = |record: &KeyRecord| {
        let before = all.get(record.prefix.as_str()).copied();
        key_change(before, Some(record))
    };
    written.iter().filter_map(change).collect()
}

/// Returns the change of a text's status; none if it stays.
pub(crate) fn text_change(
    digest: &TextDigest,
    before: TextStatus,
    after: TextStatus,
) -> Option<Change> {
    let value = |status| match status {
        TextStatus::Served => "served",
        TextStatus::TakenDown => "taken_down",
    };
    let [before, after] = [before, after].map(|status| [Some(value(status).to_owned())]);
    let fields = differences(&["status"], before, after);
    (!fields.is_empty()).then(|| Change {
        subject_kind: "text",
        subject: digest.to_string(),
        fields,
    })
}

/// Returns the change by a new version of an assortment, or by its removal. `before` is the number of the live version.
pub(crate) fn assortment_change(before: Option<u32>, after: &AssortmentVersion) -> Change {
    let number = |number: u32| number.to_string();
    let live = after.rules.is_some().then_some(after.number);
    Change {
        subject_kind: "assortment",
        subject: after.name.clone(),
        fields: differences(&["version"], [before.map(number)], [live.map(number)]),
    }
}

/// Names of the fields of a webhook endpoint, in the order of [`webhook_values`].
const WEBHOOK_FIELDS: [&str; 8] = [
    "key",
    "url",
    "filters",
    "api_version",
    "format",
    "status",
    "secrets",
    "position",
];

fn webhook_values(endpoint: &Endpoint) -> [Option<String>; WEBHOOK_FIELDS.len()] {
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
    let newest = secrets
        .first()
        .map(|secret| Hexadecimal(&secret.salt[..4]).to_string());
    [
        Some(key.clone()),
        Some(url.clone()),
        Some(filters.clone()),
        api_version.clone(),
        Some(format.as_str().to_owned()),
        Some(status.as_str().to_owned()),
        newest,
        Some(progress.position.clone()),
    ]
}

/// Returns the change of a webhook endpoint; none of its fields may differ.
pub(crate) fn webhook_change(before: Option<&Endpoint>, after: Option<&Endpoint>) -> Change {
    let values = |endpoint: Option<&Endpoint>| endpoint.map(webhook_values).unwrap_or_default();
    let subject = after.or(before).map(|endpoint| endpoint.id.clone());
    Change {
        subject_kind: "webhook",
        subject: subject.unwrap_or_default(),
        fields: differences(&WEBHOOK_FIELDS, values(before), values(after)),
    }
}

/// Returns the change of an operator. Of a password it says only that it was replaced.
pub(crate) fn operator_change(before: Option<&Operator>, after: Option<&Operator>) -> Change {
    let values = |operator: Option<&Operator>| {
        let sign_in = |operator: &Operator| match operator.password {
            Some(_) => "password",
            None => "proxy",
        };
        [
            operator.map(|operator| operator.role.as_str().to_owned()),
            operator.map(|operator| sign_in(operator).to_owned()),
        ]
    };
    let mut fields = differences(&["role", "sign_in"], values(before), values(after));
    if let (Some(before), Some(after)) = (before, after)
        && let (Some(old), Some(new)) = (&before.password, &after.password)
        && old != new
    {
        fields.push(FieldChange {
            field: "password".to_owned(),
            before: None,
            after: None,
        });
    }
    let subject = after.or(before).map(|operator| operator.name.to_string());
    Change {
        subject_kind: "operator",
        subject: subject.unwrap_or_default(),
        fields,
    }
}

/// Returns the change by accepting the assortments of a store.
pub(crate) fn accepted_assortments() -> Change {
    Change {
        subject_kind: "store",
        subject: "assortments".to_owned(),
        fields: Vec::new(),
    }
}

/// Keys, texts taken down, assortments, overrides and live revision of a store at a moment: all that a restore changes of what the
/// log tells.
#[derive(Clone)]
pub(crate) struct Standing {
    pub(crate) keys: Vec<KeyRecord>,
    pub(crate) taken_down: BTreeSet<TextDigest>,
    /// Live assortments by name, with number and id of the version.
    pub(crate) assortments: BTreeMap<String, (i64, String)>,
    /// Overrides that haven't ended by number, with their definition and status.
    pub(crate) overrides: BTreeMap<i64, (String, String)>,
    pub(crate) revision: Option<u64>,
}

/// Returns the changes by a restore: of the store, which there is always, then of keys, texts, assortments and overrides that differ.
pub(crate) fn restored(backup: &str, before: &Standing, after: &Standing) -> Vec<Change> {
    let number = |standing: &Standing| standing.revision.map(|number| number.to_string());
    let mut changes = vec![Change {
        subject_kind: "store",
        subject: backup.to_owned(),
        fields: differences(&["revision"], [number(before)], [number(after)]),
    }];
    let kept = by_prefix(&after.keys);
    let gone = before.keys.iter();
    let gone = gone.filter(|record| !kept.contains_key(record.prefix.as_str()));
    changes.extend(gone.filter_map(|record| key_change(Some(record), None)));
    changes.extend(written_keys(&before.keys, &after.keys));
    let status = |standing: &Standing, digest| match standing.taken_down.contains(digest) {
        true => TextStatus::TakenDown,
        false => TextStatus::Served,
    };
    changes.extend(
        after
            .taken_down
            .iter()
            .filter_map(|text| text_change(text, status(before, text), TextStatus::TakenDown)),
    );
    let version = |(number, _): &(i64, String)| number.to_string();
    let assortments = ("assortment", "version");
    changes.extend(replaced(
        assortments,
        &before.assortments,
        &after.assortments,
        version,
    ));
    let status = |(_, status): &(String, String)| status.clone();
    let overrides = ("override", "status");
    changes.extend(replaced(
        overrides,
        &before.overrides,
        &after.overrides,
        status,
    ));
    changes
}

/// Returns the changes of things by their names, each with the value of one field: of those that aren't the same any more.
fn replaced<N: Ord + ToString, T: PartialEq>(
    (subject_kind, field): (&'static str, &'static str),
    before: &BTreeMap<N, T>,
    after: &BTreeMap<N, T>,
    value: impl Fn(&T) -> String,
) -> Vec<Change> {
    let names: BTreeSet<&N> = before.keys().chain(after.keys()).collect();
    let differs = |name: &&N| before.get(name) != after.get(name);
    (names.into_iter().filter(differs))
        .map(|name| Change {
            subject_kind,
            subject: name.to_string(),
            fields: differences(
                &[field],
                [before.get(name).map(&value)],
                [after.get(name).map(&value)],
            ),
        })
        .collect()
}

/// Returns the change by creating a store from a backup, whose log tells of its keys and texts.
pub(crate) fn created(backup: &str, after: &Standing) -> Vec<Change> {
    let before = Standing {
        revision: None,
        ..after.clone()
    };
    restored(backup, &before, after)
}

/// Returns the name of a backup in the log.
pub(crate) fn named(backup: &Path) -> String {
    backup.display().to_string()
}
