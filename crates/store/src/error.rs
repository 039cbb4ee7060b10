//! What can go wrong with a store, in words for the operator.

use std::fmt;
use std::path::PathBuf;

/// What was behind an error: what a database, or the system, says.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// A store failed. Unless the variant says otherwise (at the end of a commit), what was being written is as it was before.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The address names no kind of store.
    #[error(
        "`{url}` is no store's address; give `sqlite:PATH`, such as `sqlite:vitrine.db`, or `postgres://USER@HOST/DATABASE`"
    )]
    UnknownAddress {
        /// The address, without a password.
        url: String,
    },
    /// The address is that of a PostgreSQL store, but for a part of it.
    #[error("the store's address {place} can't be used: {reason}")]
    WrongAddress {
        /// The address, without a password.
        place: String,
        /// What is wrong with it, and what would be right.
        reason: String,
    },
    /// There is no store, and none was to be made.
    #[error(
        "there is no store at {place}; `vitrine load` or `vitrine keys create` makes one, or check `--store`"
    )]
    Missing {
        /// Where it should be.
        place: String,
    },
    /// The file, or what lies in the database, is something else.
    #[error("{place} is no Vitrine store: {reason}")]
    NotAStore {
        /// The file or the database.
        place: String,
        /// What speaks against it.
        reason: String,
    },
    /// The store was made by a newer release.
    #[error("{place} has schema {found}, and this release knows {known}; use the newer release")]
    NewerSchema {
        /// The file or the database.
        place: String,
        /// Its schema.
        found: u32,
        /// The newest one known.
        known: u32,
    },
    /// The store that was followed was replaced by a new one.
    #[error(
        "nothing was ever published in the store that is there now, so it can't be the one that the live catalog came from; what is live stays: bring the right store back, or load into this one and start the server anew"
    )]
    Emptied,
    /// A store that is only read has a schema of an older release.
    #[error(
        "{place} has schema {found}, and this release needs {known}, but nothing is written there; let this release open the store that it follows: `vitrine history --store …` does"
    )]
    OlderSchema {
        /// The database.
        place: String,
        /// Its schema.
        found: u32,
        /// The one needed.
        known: u32,
    },
    /// The store is only read.
    #[error("{place} is only read (a replica): nothing can be written there")]
    ReadOnly {
        /// The database.
        place: String,
    },
    /// This kind of store doesn't do this itself.
    #[error("{0}")]
    Unsupported(&'static str),
    /// The database can't be reached, or doesn't answer in time.
    #[error(
        "can't reach the database at {place} ({doing}); see that it runs and can be reached from here, and try again"
    )]
    Unreachable {
        /// Its address, without a password.
        place: String,
        /// What was being done.
        doing: &'static str,
        /// What the system, or the database, says.
        #[source]
        source: Cause,
    },
    /// The database lets this user in no further.
    #[error(
        "the database at {place} refuses ({doing}); check the user, the password, the database's name and what is granted there"
    )]
    Refused {
        /// Its address, without a password.
        place: String,
        /// What was being done.
        doing: &'static str,
        /// What the database says.
        #[source]
        source: Cause,
    },
    /// The connection broke in the last step.
    #[error(
        "the connection to the database broke at the very end of {doing}: it was changed wholly or not at all; see which (`vitrine history`, `vitrine keys list`), and do it again where it wasn't"
    )]
    UnreachableAtCommit {
        /// What was being done.
        doing: &'static str,
        /// What the system, or the database, says.
        #[source]
        source: Cause,
    },
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
    Visitor(#[source] Cause),
    /// What rests in the store isn't as it was written.
    #[error("the store is damaged: {0}")]
    Damaged(String),
    /// The file can't be opened or made.
    #[error("can't open {}; check its permissions and the disk, and try again", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A file beside the store, or a backup, can't be made or written.
    #[error("can't {doing} {}; check the disk and try again", path.display())]
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
        "the disk failed while {doing}; check the disk, then run `vitrine check` and try again"
    )]
    Disk {
        /// What was being done.
        doing: &'static str,
        /// What the database says.
        #[source]
        source: Cause,
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
        source: Cause,
    },
    /// Anything else that the database says.
    #[error("the database failed while {doing}; run `vitrine check` and try again")]
    Database {
        /// What was being done.
        doing: &'static str,
        /// What it says.
        #[source]
        source: Cause,
    },
}

impl StoreError {
    /// Returns whether a transaction that ends with this error changed nothing, and the message doesn't say so itself:
    /// it may be that of a read.
    #[must_use]
    pub fn rolled_back(&self) -> bool {
        matches!(
            self,
            // The caller's part is done before the commit.
            Self::Visitor(_)
                | Self::Unreachable { .. }
                | Self::Refused { .. }
                | Self::Open { .. }
                | Self::File { .. }
                | Self::Disk { .. }
                | Self::Database { .. }
        )
    }

    /// Whether what is wrong may be put right where the store is, so that a server may wait for it that has
    /// nothing else to serve: the database is away, busy, full, only read for now, refuses the user, or has no
    /// store (yet), or one that a release like this one has still to migrate. Not so: what the server was told
    /// is wrong, or what is there is another program's, a newer release's, or damaged.
    #[must_use]
    pub fn may_come_back(&self) -> bool {
        matches!(
            self,
            Self::Unreachable { .. }
                | Self::UnreachableAtCommit { .. }
                | Self::Refused { .. }
                | Self::Missing { .. }
                | Self::OlderSchema { .. }
                | Self::Busy { .. }
                | Self::ReadOnly { .. }
                | Self::Full
        )
    }
}

/// Who is writing to a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Holder {
    /// A process of this machine.
    Process {
        /// Its number.
        number: u32,
        /// Its command line; empty where it can't be read.
        command: String,
    },
    /// A session of the database, as it names itself there.
    Session(String),
}

impl fmt::Display for Holder {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process { number, command } if command.is_empty() => {
                write!(out, "process {number}")
            }
            Self::Process { number, command } => write!(out, "process {number}, `{command}`"),
            Self::Session(name) => out.write_str(name),
        }
    }
}
