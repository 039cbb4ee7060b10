//! The keys file: the keys, their assortments and the time of the last contact with the store, for a start while the store is unreachable.
//! It has hashes instead of secrets. It is written at once when keys change, and every few seconds for the time of the
//! last contact.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use vitrine_ingest::assortments;
use vitrine_model::assortment::{AssortmentState, AssortmentTable, NewVersion};
use vitrine_model::hexadecimal::{self, Hexadecimal};
use vitrine_model::key::{KeyKind, KeyRecord, KeyTable, SecretHash};

use super::follow_assortments::assortment;
use super::state_file::State;
use crate::metrics::state_files::StateFileKind;
use crate::panic_point::PanicPoint;

/// The keys with what they see, and the time of the last contact.
#[derive(Debug)]
pub(super) struct SavedKeys {
    pub(super) keys: Arc<KeyTable>,
    pub(super) contact: Timestamp,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Content {
    contact: Timestamp,
    keys: Vec<Key>,
    /// Left out if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    assortments: Option<Assortments>,
}

/// Assortments of the keys.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Assortments {
    counter: u64,
    accepted_at: Option<Timestamp>,
    held: BTreeSet<String>,
    live: Vec<Version>,
}

/// Live version of an assortment.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Version {
    name: String,
    number: u32,
    id: String,
    since: Timestamp,
    rules: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Key {
    prefix: String,
    label: String,
    secret_hash: String,
    test: bool,
    api_version: Option<String>,
    quota: Option<String>,
    created_at: Timestamp,
    expires_at: Option<Timestamp>,
    revoked_at: Option<Timestamp>,
    rotated_at: Option<Timestamp>,
    last_used_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    assortment: Option<String>,
}

impl From<&KeyRecord> for Key {
    fn from(record: &KeyRecord) -> Self {
        Self {
            prefix: record.prefix.clone(),
            label: record.label.clone(),
            secret_hash: Hexadecimal(record.secret_hash.as_bytes()).to_string(),
            test: record.kind == KeyKind::Test,
            api_version: record.api_version.clone(),
            quota: record.quota.map(|quota| quota.to_string()),
            created_at: record.created_at,
            expires_at: record.expires_at,
            revoked_at: record.revoked_at,
            rotated_at: record.rotated_at,
            last_used_at: record.last_used_at,
            assortment: record.assortment.clone(),
        }
    }
}

impl Assortments {
    /// Returns what is written of a table; `None` if there is nothing in it.
    fn of(table: &AssortmentTable) -> Option<Self> {
        let AssortmentState {
            counter,
            accepted_at,
        } = table.state;
        let live = table.iter().map(|known| Version {
            name: known.live().name().to_owned(),
            number: known.number(),
            id: known.version_id().to_owned(),
            since: known.since(),
            rules: assortments::to_json(known.live().rules()),
        });
        (counter > 0).then(|| Self {
            counter,
            accepted_at,
            held: table.held.clone(),
            live: live.collect(),
        })
    }

    /// Returns the table. Versions whose rules can't be read are left out, so that their keys see nothing.
    fn into_table(self) -> AssortmentTable {
        let new = |version: Version| {
            Some(NewVersion {
                assortment: assortment(&version.name, &version.id, &version.rules)?,
                number: version.number,
                version_id: version.id,
                since: version.since,
            })
        };
        let state = AssortmentState {
            counter: self.counter,
            accepted_at: self.accepted_at,
        };
        let live = self.live.into_iter().filter_map(new).collect();
        let mut table = AssortmentTable::default().updated(&HashSet::new(), live, state);
        table.held = self.held;
        table
    }
}

impl Key {
    fn into_record(self) -> Option<KeyRecord> {
        let quota = self.quota.map(|quota| quota.parse());
        Some(KeyRecord {
            secret_hash: SecretHash::from_bytes(hexadecimal::read(&self.secret_hash)?),
            prefix: self.prefix,
            label: self.label,
            kind: if self.test {
                KeyKind::Test
            } else {
                KeyKind::Live
            },
            api_version: self.api_version,
            quota: quota.transpose().ok()?,
            created_at: self.created_at,
            expires_at: self.expires_at,
            revoked_at: self.revoked_at,
            rotated_at: self.rotated_at,
            last_used_at: self.last_used_at,
            assortment: self.assortment,
        })
    }
}

impl State for SavedKeys {
    const KIND: StateFileKind = StateFileKind::Keys;
    const FORMAT: u64 = 2;
    const IS_URGENT: bool = true;
    type Header = Content;

    fn to_parts(&self) -> (Content, Vec<Bytes>) {
        PanicPoint::KeysFile.pass();
        let content = Content {
            contact: self.contact,
            keys: self.keys.records().map(Key::from).collect(),
            assortments: Assortments::of(self.keys.assortments()),
        };
        (content, Vec::new())
    }

    fn from_parts(content: Content, _: Vec<Bytes>) -> Option<Self> {
        let keys = content.keys.into_iter().map(Key::into_record);
        let keys = KeyTable::new(keys.collect::<Option<_>>()?, &KeyTable::default());
        let assortments = content.assortments.map(Assortments::into_table);
        let keys = keys.with_assortments(Arc::new(assortments.unwrap_or_default()));
        Some(Self {
            keys: Arc::new(keys),
            contact: content.contact,
        })
    }
}
