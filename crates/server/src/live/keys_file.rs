//! The keys file: the keys, their assortments and the time of the last contact with the store, for a start while the store is unreachable.
//! It has hashes instead of secrets, and only its owner can read it.
//!
//! Its first line is the SHA-256 of the rest, which is JSON. It is written under another name, synced and renamed: at
//! once when keys change, and every few seconds for the time of the last contact.

use std::collections::{BTreeSet, HashSet};
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;
use vitrine_ingest::assortments;
use vitrine_model::assortment::{AssortmentState, AssortmentTable, NewVersion};
use vitrine_model::hexadecimal::Hexadecimal;
use vitrine_model::key::{KeyKind, KeyRecord, KeyTable, SecretHash};

use super::Live;
use super::background::lower_priority;
use super::follow_assortments::assortment;
use super::state_directory::{PARTIAL_KEYS_PREFIX, StateDirectory};
use super::state_file::record_write;
use crate::boot_time::BootTime;
use crate::metrics::state_files::StateFile;
use crate::panic_point::PanicPoint;
use crate::panics::caught;

/// Interval between writes without changes of keys: the file's contact is older than the real one by at most this.
const REFRESH_INTERVAL: Duration = Duration::from_secs(10);

/// Version of the format.
const FORMAT: u32 = 1;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    format: u32,
    /// See [`StateDirectory`].
    store_address: String,
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
            secret_hash: SecretHash::from_bytes(from_hexadecimal(&self.secret_hash)?),
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

fn from_hexadecimal(digits: &str) -> Option<[u8; 32]> {
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    let byte = |pair: &[u8; 2]| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok();
    let bytes: Option<Vec<u8>> = pairs.iter().map(byte).collect();
    bytes.filter(|_| rest.is_empty())?.try_into().ok()
}

/// Reason that a file isn't used.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReadError {
    #[error("it can't be read")]
    Io(#[from] io::Error),
    #[error("it is damaged, or of another format")]
    Damaged,
    #[error("it is of another store")]
    OtherStore,
}

/// Returns the keys with what they see, and the time of the last contact.
pub(super) fn read(directory: &StateDirectory) -> Result<(KeyTable, Timestamp), ReadError> {
    let text = std::fs::read_to_string(directory.keys_file())?;
    let (sum, json) = text.split_once('\n').ok_or(ReadError::Damaged)?;
    if Hexadecimal(&Sha256::digest(json)).to_string() != sum {
        return Err(ReadError::Damaged);
    }
    let content: Content = serde_json::from_str(json).map_err(|_| ReadError::Damaged)?;
    if content.format != FORMAT {
        return Err(ReadError::Damaged);
    }
    if content.store_address != directory.store_address {
        return Err(ReadError::OtherStore);
    }
    let keys = content.keys.into_iter().map(Key::into_record);
    let keys: Option<Vec<_>> = keys.collect();
    let keys = KeyTable::new(keys.ok_or(ReadError::Damaged)?, &KeyTable::default());
    let assortments = content.assortments.map(Assortments::into_table);
    let keys = keys.with_assortments(Arc::new(assortments.unwrap_or_default()));
    Ok((keys, content.contact))
}

fn write(directory: &StateDirectory, keys: &KeyTable, contact: Timestamp) -> io::Result<()> {
    let json = serde_json::to_string(&Content {
        format: FORMAT,
        store_address: directory.store_address.clone(),
        contact,
        keys: keys.records().map(Key::from).collect(),
        assortments: Assortments::of(keys.assortments()),
    })?;
    // Only its owner can read a temporary file; it is removed if this fails.
    let mut file = NamedTempFile::with_prefix_in(PARTIAL_KEYS_PREFIX, directory.path())?;
    writeln!(file, "{}", Hexadecimal(&Sha256::digest(&json)))?;
    file.write_all(json.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(directory.keys_file())?;
    directory.sync()
}

/// Writer of the keys file, on a separate thread: a slow disk mustn't delay a revocation.
#[derive(Debug)]
pub(super) struct KeysFileWriter(Sender<()>);

impl KeysFileWriter {
    /// Starts the thread, which ends after this is dropped; the end of the server doesn't wait for it.
    ///
    /// # Errors
    ///
    /// If no thread can be started.
    pub(super) fn start(directory: StateDirectory, live: Arc<Live>) -> io::Result<Self> {
        let (changed, changes) = channel();
        std::thread::Builder::new()
            .name("keys-file".to_owned())
            .spawn(move || {
                lower_priority();
                run(&directory, &live, &changes);
            })?;
        Ok(Self(changed))
    }

    /// Queues a write of changed keys.
    pub(super) fn write(&self) {
        // Without the thread there is no file; the server goes on.
        let _ = self.0.send(());
    }
}

fn run(directory: &StateDirectory, live: &Live, changes: &Receiver<()>) {
    let mut written = None;
    loop {
        let changed = match changes.recv_timeout(REFRESH_INTERVAL) {
            Ok(()) => {
                // One write is enough for all changes that wait.
                while changes.try_recv().is_ok() {}
                true
            }
            Err(RecvTimeoutError::Timeout) => false,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        // The age before the keys: keys set in between are younger.
        let now = BootTime::now();
        let Some(age) = live.contact.age(now) else {
            continue;
        };
        let contact = now.milliseconds() - age.as_millis() as i64;
        // Without a new contact the file is up to date.
        if !changed && written.is_some_and(|written| contact <= written) {
            continue;
        }
        let written_now = caught(|| {
            PanicPoint::KeysFile.pass();
            write(directory, &live.keys(), Timestamp::now() - age)
        });
        // A failed write is tried again at the next interval.
        if record_write(live, StateFile::Keys, written_now) {
            written = Some(contact);
        }
    }
}
