//! The files of the state directory: one format for the snapshot, the journal and the keys, and a thread that writes each.
//!
//! A file is written under another name, synced and renamed, and never edited. All of it is checked before any of it is
//! used. Only its owner can read it.
//!
//! | Part | Content |
//! | --- | --- |
//! | mark | 16 bytes |
//! | format | 8 bytes: version of the content's format; 8 bytes: length of the header |
//! | checksum | 16 bytes: XXH3-128 of the header |
//! | header | JSON: build, address of the store, lengths and checksum of the parts, and what the content adds |
//! | parts | bytes of the content |
//!
//! Numbers are little-endian.

use std::fs::File;
use std::io::{self, BufWriter, Read as _, Write as _};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;
use vitrine_model::hexadecimal::Hexadecimal;
use xxhash_rust::xxh3::{Xxh3Default, xxh3_128};

use super::Live;
use super::background::lower_priority;
use super::state_directory::StateDirectory;
use crate::error_chain::ErrorChain;
use crate::metrics::state_files::StateFileKind;
use crate::panics::caught;

const MARK: [u8; 16] = *b"Vitrine-state\0\0\0";

/// Content of a state file.
pub(super) trait State: Sized + Send + 'static {
    const KIND: StateFileKind;
    /// Version of the format of header and parts.
    const FORMAT: u64;
    /// True if only the program that wrote it can use it.
    const IS_OF_BUILD: bool = false;
    /// True if it is written at once. Otherwise a catalog that changes all the time isn't written all the time.
    const IS_URGENT: bool = false;
    /// Part of the header that the content adds.
    type Header: Serialize + DeserializeOwned;

    /// Returns header and parts.
    fn to_parts(&self) -> (Self::Header, Vec<Bytes>);

    /// Returns the content; `None` if it is invalid.
    fn from_parts(header: Self::Header, parts: Vec<Bytes>) -> Option<Self>;

    /// Logs that it was written.
    fn log_written(&self) {}
}

#[derive(Serialize, Deserialize)]
struct Header<H> {
    /// Digest of the program that wrote the file.
    build: String,
    /// See [`StateDirectory`].
    store_address: String,
    /// Length of each part, in bytes.
    parts: Vec<u64>,
    /// XXH3-128 of all parts.
    checksum: String,
    content: H,
}

/// XXH3-128 of the running program's file; its version alone if that can't be read.
static BUILD: LazyLock<String> = LazyLock::new(|| {
    let digest = || {
        let mut sum = Xxh3Default::new();
        io::copy(&mut File::open(std::env::current_exe()?)?, &mut sum)?;
        Ok::<_, io::Error>(hexadecimal(&sum))
    };
    digest().unwrap_or_else(|_| env!("CARGO_PKG_VERSION").to_owned())
});

fn hexadecimal(sum: &Xxh3Default) -> String {
    Hexadecimal(&sum.digest128().to_be_bytes()).to_string()
}

/// Reason that a file isn't used.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReadError {
    #[error("it can't be read")]
    Io(#[from] io::Error),
    #[error("it is damaged")]
    Damaged,
    #[error("it is of another format or build")]
    OtherFormat,
    #[error("it is of another store, or of other settings")]
    OtherStore,
}

impl ReadError {
    /// Returns true if there is no file.
    pub(super) fn is_missing(&self) -> bool {
        matches!(self, Self::Io(error) if error.kind() == io::ErrorKind::NotFound)
    }
}

/// An opened file, read from its start to its end.
struct Source {
    file: File,
    /// Number of bytes that weren't read yet.
    left: u64,
}

impl Source {
    /// Returns the next `length` bytes, in memory of their own: that of a block is freed with it.
    fn take(&mut self, length: u64) -> Result<Bytes, ReadError> {
        // A damaged file may have any length here.
        self.left = self.left.checked_sub(length).ok_or(ReadError::Damaged)?;
        let mut bytes = vec![0; usize::try_from(length).map_err(|_| ReadError::Damaged)?];
        self.file.read_exact(&mut bytes)?;
        Ok(bytes.into())
    }
}

/// Header as bytes, which aren't checked yet.
struct RawHeader {
    format: u64,
    checksum: [u8; 16],
    json: Bytes,
}

impl StateDirectory {
    /// Returns whether the directory has a catalog of the store, of whatever format; then a store that is empty now isn't
    /// the same one.
    #[must_use]
    pub fn has_catalog(&self) -> bool {
        #[derive(Deserialize)]
        struct Named {
            store_address: String,
        }
        let opened = self.open(StateFileKind::Snapshot).ok();
        let named = opened.and_then(|(header, _)| serde_json::from_slice(&header.json).ok());
        named.is_some_and(|named: Named| named.store_address == self.store_address)
    }

    fn open(&self, kind: StateFileKind) -> Result<(RawHeader, Source), ReadError> {
        let file = File::open(self.file(kind))?;
        let left = file.metadata()?.len();
        let mut source = Source { file, left };
        let preamble = source.take(3 * 16)?;
        let ([mark, numbers, checksum], _) = preamble.as_chunks() else {
            return Err(ReadError::Damaged);
        };
        let ([format, length], _) = numbers.as_chunks() else {
            return Err(ReadError::Damaged);
        };
        if *mark != MARK {
            return Err(ReadError::Damaged);
        }
        let header = RawHeader {
            format: u64::from_le_bytes(*format),
            checksum: *checksum,
            json: source.take(u64::from_le_bytes(*length))?,
        };
        Ok((header, source))
    }

    /// Reads and checks a whole file, if `fits` is true of what the content added to the header, and of whether the store
    /// has the address that it had.
    ///
    /// # Errors
    ///
    /// If the file doesn't exist, is damaged or belongs to something else.
    pub(super) fn read<T: State>(
        &self,
        fits: impl FnOnce(&T::Header, bool) -> bool,
    ) -> Result<T, ReadError> {
        let (header, mut source) = self.open(T::KIND)?;
        if header.format != T::FORMAT {
            return Err(ReadError::OtherFormat);
        }
        if xxh3_128(&header.json).to_le_bytes() != header.checksum {
            return Err(ReadError::Damaged);
        }
        let header: Header<T::Header> =
            serde_json::from_slice(&header.json).map_err(|_| ReadError::Damaged)?;
        if T::IS_OF_BUILD && header.build != *BUILD {
            return Err(ReadError::OtherFormat);
        }
        if !fits(&header.content, header.store_address == self.store_address) {
            return Err(ReadError::OtherStore);
        }
        let mut sum = Xxh3Default::new();
        let part = |length: &u64| source.take(*length).inspect(|part| sum.update(part));
        let parts: Vec<Bytes> = header.parts.iter().map(part).collect::<Result<_, _>>()?;
        if source.left > 0 || hexadecimal(&sum) != header.checksum {
            return Err(ReadError::Damaged);
        }
        T::from_parts(header.content, parts).ok_or(ReadError::Damaged)
    }

    /// Writes a file, and replaces the previous one after it is synced to disk.
    ///
    /// # Errors
    ///
    /// If the file can't be written. The previous one stays then.
    pub(super) fn write<T: State>(&self, content: &T) -> io::Result<()> {
        let (content, parts) = content.to_parts();
        let mut sum = Xxh3Default::new();
        parts.iter().for_each(|part| sum.update(part));
        let header = serde_json::to_vec(&Header {
            build: BUILD.clone(),
            store_address: self.store_address.clone(),
            parts: parts.iter().map(|part| part.len() as u64).collect(),
            checksum: hexadecimal(&sum),
            content,
        })?;
        // Only its owner can read a temporary file; it is removed if this fails.
        let file = NamedTempFile::with_prefix_in(T::KIND.partial_prefix(), &self.path)?;
        let mut out = BufWriter::with_capacity(1 << 20, file.as_file());
        out.write_all(&MARK)?;
        out.write_all(&T::FORMAT.to_le_bytes())?;
        out.write_all(&(header.len() as u64).to_le_bytes())?;
        out.write_all(&xxh3_128(&header).to_le_bytes())?;
        out.write_all(&header)?;
        parts.iter().try_for_each(|part| out.write_all(part))?;
        out.flush()?;
        drop(out);
        file.as_file().sync_all()?;
        file.persist(self.file(T::KIND))?;
        // So that the rename is durable.
        File::open(&self.path)?.sync_all()
    }
}

/// Time without a newer content after which a file is written.
const DEBOUNCE: Duration = Duration::from_secs(1);

/// Maximum delay of a write if newer contents never pause.
const MAX_DELAY: Duration = Duration::from_secs(60);

/// Pause after a write, as a multiple of its duration: a large catalog that changes all the time isn't written all the
/// time.
const PAUSE_PER_WRITE: u32 = 50;

/// Pause after a failed write, doubled with each further one up to the maximum: a full disk may have room again.
const MIN_RETRY_PAUSE: Duration = Duration::from_secs(1);
const MAX_RETRY_PAUSE: Duration = Duration::from_secs(60);

/// A file of the state directory, which a separate thread writes: a slow disk must delay neither a catalog nor a revocation.
#[derive(Debug)]
pub(super) struct StateFile<T> {
    directory: StateDirectory,
    queue: Queue<T>,
}

/// Queue of the contents to write. Only the newest is kept: while a large catalog is written, several older ones would
/// take much memory.
#[derive(Debug)]
struct Queue<T> {
    newest: Arc<Mutex<Option<T>>>,
    wake: Sender<()>,
}

impl<T> Queue<T> {
    fn push(&self, content: T) {
        *lock(&self.newest) = Some(content);
        // Without the thread there is no file; the server goes on.
        let _ = self.wake.send(());
    }
}

fn lock<T>(newest: &Mutex<Option<T>>) -> MutexGuard<'_, Option<T>> {
    newest.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<T: State> StateFile<T> {
    /// Starts the thread, which ends after this is dropped; the end of the server doesn't wait for it. The next start
    /// removes an incomplete file.
    ///
    /// # Errors
    ///
    /// If no thread can be started.
    pub(super) fn start(directory: &StateDirectory, live: &Arc<Live>) -> io::Result<Self> {
        // Its metrics are there before the first write.
        let writes = live.metrics.state_files.of(T::KIND);
        if let Some(written) = directory.written(T::KIND) {
            writes.found(written);
        }
        let (wake, wakes) = channel();
        let newest = Arc::default();
        let (to_write, place, live) = (Arc::clone(&newest), directory.clone(), Arc::clone(live));
        std::thread::Builder::new()
            .name(T::KIND.title().replace(' ', "-"))
            .spawn(move || {
                lower_priority();
                run(&wakes, &to_write, |content| write(&place, &live, content));
            })?;
        Ok(Self {
            directory: directory.clone(),
            queue: Queue { newest, wake },
        })
    }

    /// Reads the file: see [`StateDirectory::read`].
    pub(super) fn read(&self, fits: impl FnOnce(&T::Header, bool) -> bool) -> Result<T, ReadError> {
        self.directory.read(fits)
    }

    /// Queues a content.
    pub(super) fn write(&self, content: T) {
        self.queue.push(content);
    }
}

/// Writes a content, counts the outcome, and logs the first failure of several. Returns true if the file was written.
fn write<T: State>(directory: &StateDirectory, live: &Live, content: &T) -> bool {
    let written = caught(|| directory.write(content));
    let outcome = written.unwrap_or_else(|panicked| Err(io::Error::other(panicked)));
    let is_first_failure = live.metrics.state_files.of(T::KIND).record(&outcome);
    match &outcome {
        Ok(()) => content.log_written(),
        Err(error) if is_first_failure => {
            let error = ErrorChain(error);
            tracing::warn!(%error, "the {} can't be written; trying again", T::KIND.title());
        }
        Err(_) => {}
    }
    outcome.is_ok()
}

/// Calls `write` with the newest content, until it returns true.
fn run<T: State>(wakes: &Receiver<()>, newest: &Mutex<Option<T>>, write: impl Fn(&T) -> bool) {
    let mut not_before = Instant::now();
    let mut retry_pause = MIN_RETRY_PAUSE;
    // Times of the next write, and of the first wake since the last one.
    let (mut due, mut waits_since) = (None::<Instant>, None);
    loop {
        let woken = match due {
            None => wakes.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(due) => wakes.recv_timeout(due.saturating_duration_since(Instant::now())),
        };
        let now = Instant::now();
        match woken {
            Ok(()) if T::IS_URGENT => {}
            Ok(()) => {
                let at_last = *waits_since.get_or_insert(now) + MAX_DELAY;
                due = Some((now + DEBOUNCE).min(at_last).max(not_before));
                continue;
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        (due, waits_since) = (None, None);
        let Some(content) = lock(newest).take() else {
            continue;
        };
        let is_written = write(&content);
        let mut pause = now.elapsed() * PAUSE_PER_WRITE;
        if is_written {
            retry_pause = MIN_RETRY_PAUSE;
        } else {
            // Unless there is a newer one.
            lock(newest).get_or_insert(content);
            pause = pause.clamp(retry_pause, MAX_RETRY_PAUSE);
            due = Some(Instant::now() + pause);
            retry_pause = (retry_pause * 2).min(MAX_RETRY_PAUSE);
        }
        not_before = Instant::now() + pause;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_newest_content_is_queued() {
        // No thread reads the queue.
        let (wake, _wakes) = channel();
        let queue = Queue {
            newest: Arc::default(),
            wake,
        };
        let contents: [Arc<u8>; 3] = std::array::from_fn(|_| Arc::default());
        for content in &contents {
            queue.push(Arc::clone(content));
        }
        assert_eq!(contents.each_ref().map(Arc::strong_count), [1, 1, 2]);
    }
}
