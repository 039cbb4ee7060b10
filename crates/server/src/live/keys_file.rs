//! The keys file: which keys open the door, and when the store last said so, for a start while the store is
//! away. It holds no secret, only hashes, and is for its owner only.
//!
//! It has a line with the SHA-256 of the rest, and then JSON. It is written under another name, synced and
//! renamed: at once when keys change, and every few seconds since the contact with the store goes on.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;
use vitrine_model::hexadecimal::Hexadecimal;
use vitrine_model::key::{KeyKind, KeyRecord, KeyTable, SecretHash};

use super::Live;
use super::background::lower_priority;
use super::state_directory::{HALF_WRITTEN_KEYS, StateDirectory};
use crate::error_chain::ErrorChain;
use crate::panic_point::PanicPoint;
use crate::panics::caught;

/// How much younger the keys may really be than the file says.
const WRITTEN_EVERY: Duration = Duration::from_secs(10);

/// Counts changes of the format.
const FORMAT: u32 = 1;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    format: u32,
    /// See [`StateDirectory`].
    store_address: String,
    contact: Timestamp,
    keys: Vec<Key>,
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
        }
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
        })
    }
}

fn from_hexadecimal(digits: &str) -> Option<[u8; 32]> {
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    let byte = |pair: &[u8; 2]| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok();
    let bytes: Option<Vec<u8>> = pairs.iter().map(byte).collect();
    bytes.filter(|_| rest.is_empty())?.try_into().ok()
}

/// Why a file isn't used.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReadError {
    #[error("it can't be read")]
    Io(#[from] io::Error),
    #[error("it is damaged, or of another format")]
    Damaged,
    #[error("it is of another store")]
    OtherStore,
}

/// Reads the keys, and when they were the store's.
pub(super) fn read(directory: &StateDirectory) -> Result<(Vec<KeyRecord>, Timestamp), ReadError> {
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
    Ok((keys.ok_or(ReadError::Damaged)?, content.contact))
}

fn write(directory: &StateDirectory, keys: &KeyTable, contact: Timestamp) -> io::Result<()> {
    let json = serde_json::to_string(&Content {
        format: FORMAT,
        store_address: directory.store_address.clone(),
        contact,
        keys: keys.records().map(Key::from).collect(),
    })?;
    // A temporary file is for its owner only, and goes where this fails.
    let mut file = NamedTempFile::with_prefix_in(HALF_WRITTEN_KEYS, directory.path())?;
    writeln!(file, "{}", Hexadecimal(&Sha256::digest(&json)))?;
    file.write_all(json.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(directory.keys_file())?;
    directory.sync()
}

/// Keeps the keys file of a running server, on a thread of its own: a slow disk mustn't delay a revocation.
#[derive(Debug)]
pub(super) struct KeysKeeper(Sender<()>);

impl KeysKeeper {
    /// Starts the thread. It ends after this was dropped; a server that ends doesn't wait for it.
    ///
    /// # Errors
    ///
    /// Where the system gives no thread.
    pub(super) fn start(directory: StateDirectory, live: Arc<Live>) -> io::Result<Self> {
        let (changed, changes) = channel();
        std::thread::Builder::new()
            .name("keys-file".to_owned())
            .spawn(move || {
                lower_priority();
                keep(&directory, &live, &changes);
            })?;
        Ok(Self(changed))
    }

    /// The store's keys have changed.
    pub(super) fn write(&self) {
        // Without the thread there is no file, and the server goes on.
        let _ = self.0.send(());
    }
}

fn keep(directory: &StateDirectory, live: &Live, changes: &Receiver<()>) {
    let mut failing = false;
    let mut written: Option<Instant> = None;
    loop {
        let changed = match changes.recv_timeout(WRITTEN_EVERY) {
            Ok(()) => true,
            Err(RecvTimeoutError::Timeout) => false,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        // The age first: keys that come in between are younger than it.
        let now = Instant::now();
        let Some(age) = live.contact.age(now) else {
            continue;
        };
        let contact = now.checked_sub(age);
        // While the store is away, the file is as true as it was.
        if !changed && written.is_some() && contact <= written {
            continue;
        }
        let written_now = caught(|| {
            PanicPoint::KeysFile.pass();
            write(directory, &live.keys(), Timestamp::now() - age)
        });
        match written_now.unwrap_or_else(|panicked| Err(io::Error::other(panicked))) {
            Ok(()) => {
                written = contact;
                failing = false;
            }
            Err(error) if !failing => {
                let error = ErrorChain(&error);
                tracing::warn!(%error, "the keys file can't be written");
                failing = true;
            }
            Err(_) => {}
        }
    }
}
