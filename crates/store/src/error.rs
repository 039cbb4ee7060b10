//! What can go wrong with a store, in words for the operator.

use std::fmt;
use std::path::PathBuf;

/// A store failed. Whatever was being written is as it was before.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The address names no kind of store.
    #[error("`{url}` is no store's address; give `sqlite:PATH`, such as `sqlite:vitrine.db`")]
    UnknownAddress {
        /// The address.
        url: String,
    },
    /// There is no store, and none was to be made.
    #[error(
        "there is no store at {}; `vitrine load` or `vitrine keys create` makes one, or check `--store`",
        path.display()
    )]
    Missing {
        /// Where it should be.
        path: PathBuf,
    },
    /// The file is something else.
    #[error("{} is no Vitrine store: {reason}", path.display())]
    NotAStore {
        /// The file.
        path: PathBuf,
        /// What speaks against it.
        reason: String,
    },
    /// The store was made by a newer release.
    #[error(
        "{} has schema {found}, and this release knows {known}; use the newer release",
        path.display()
    )]
    NewerSchema {
        /// The file.
        path: PathBuf,
        /// The file's schema.
        found: u32,
        /// The newest one known.
        known: u32,
    },
    /// The store that was followed was replaced by a new one.
    #[error(
        "nothing was ever published in the store that is there now, so it can't be the one that the live catalog came from; what is live stays: bring the right store back, or load into this one and start the server anew"
    )]
    Emptied,
    /// Another process is writing.
    #[error(
        "another process{} is writing to the store, and wasn't done after {waited_seconds} seconds; nothing was changed, try again when it is done",
        holder.as_ref().map_or_else(String::new, |holder| format!(" ({holder})"))
    )]
    Busy {
        /// How long this one waited.
        waited_seconds: u64,
        /// Who is writing, where the system tells.
        holder: Option<Holder>,
    },
    /// Something has the name of the file to be made.
    #[error(
        "{} is there already, and nothing is ever overwritten; give another name, or move it away",
        path.display()
    )]
    Exists {
        /// What is in the way.
        path: PathBuf,
    },
    /// The backup can't be restored.
    #[error("{} can't be restored: {reason}; nothing was changed", path.display())]
    UnusableBackup {
        /// The backup.
        path: PathBuf,
        /// What speaks against it.
        reason: String,
    },
    /// The revision isn't kept any more.
    #[error(
        "revision {number} was pruned: what it held is gone; the oldest that can be read is revision {oldest_readable}"
    )]
    Pruned {
        /// The revision.
        number: u64,
        /// The oldest that can be read.
        oldest_readable: u64,
    },
    /// There is no room.
    #[error(
        "the disk (or the store's quota) is full; nothing was changed, make room and try again"
    )]
    Full,
    /// The caller's own part failed while the store was read.
    #[error("the catalog can't be used")]
    Visitor(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// What rests in the store isn't as it was written.
    #[error("the store is damaged: {0}")]
    Damaged(String),
    /// The file can't be opened or made.
    #[error("can't open {}; nothing was changed, look after its permissions and the disk, and try again", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A file beside the store, or a backup, can't be made or written.
    #[error("can't {doing} {}; nothing was changed, look after the disk and try again", path.display())]
    File {
        /// A verb.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The disk failed, before anything was changed.
    #[error(
        "the disk failed while {doing}; nothing was changed, look after the disk, then run `vitrine check` and try again"
    )]
    Disk {
        /// What was being done.
        doing: &'static str,
        /// What the database says.
        #[source]
        source: rusqlite::Error,
    },
    /// The disk failed in the last step.
    #[error(
        "the disk failed at the very end of {doing}: it was changed wholly or not at all; look after the disk, run `vitrine check`, see which (`vitrine history`, `vitrine keys list`), and do it again where it wasn't"
    )]
    DiskAtCommit {
        /// What was being done.
        doing: &'static str,
        /// What the database says.
        #[source]
        source: rusqlite::Error,
    },
    /// Anything else that the database says.
    #[error("the database failed while {doing}; nothing was changed")]
    Database {
        /// What was being done.
        doing: &'static str,
        /// What it says.
        #[source]
        source: rusqlite::Error,
    },
}

/// A process that is writing to a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// Its number.
    pub process: u32,
    /// Its command line; empty where it can't be read.
    pub command: String,
}

impl fmt::Display for Holder {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "process {}", self.process)?;
        match self.command.as_str() {
            "" => Ok(()),
            command => write!(out, ", `{command}`"),
        }
    }
}
