//! Errors of a store, with messages for the operator.

use std::path::PathBuf;

/// Cause of an error, as reported by the database or the system.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Failure of a store. Unless the variant says otherwise (at the end of a commit), nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The address names no kind of store, or a part of it is invalid.
    #[error("invalid store address `{place}`: {reason}")]
    WrongAddress {
        /// The address, without a password.
        place: String,
        /// Problem, and how to mend it.
        reason: String,
    },
    /// The store doesn't exist, and wasn't to be created.
    #[error(
        "there is no store at {place}; `vitrine load` or `vitrine keys create` makes one, or check `--store`"
    )]
    Missing {
        /// The file or the database.
        place: String,
    },
    /// The file or the database belongs to something else.
    #[error("{place} is not a Vitrine store: {reason}")]
    NotAStore {
        /// The file or the database.
        place: String,
        /// Reason.
        reason: String,
    },
    /// The store has a format that this version doesn't read.
    #[error(
        "{place} has the format {found} of another version of Vitrine; this one reads format {known}. To move the data: `vitrine export` with that version, then `vitrine load` with this one; create new keys"
    )]
    OtherFormat {
        /// The file or the database.
        place: String,
        /// Format of the store; `0.N` is one from before the first release.
        found: String,
        /// The format that this version reads and writes.
        known: usize,
    },
    /// An empty store replaced the one that was followed.
    #[error(
        "the store is empty now, so it isn't the one that the live catalog came from; the live catalog stays. Bring the right store back, or load into this one and restart the server"
    )]
    Emptied,
    /// The store is read-only.
    #[error("{place} is a read-only replica")]
    ReadOnly {
        /// The database.
        place: String,
    },
    /// The operation isn't supported by this kind of store, or not in this order.
    #[error("{0}")]
    Unsupported(&'static str),
    /// The database is unreachable or doesn't answer in time.
    #[error(
        "can't reach the database at {place} ({doing}); check that it is running and reachable from here, and try again"
    )]
    Unreachable {
        /// Address, without a password.
        place: String,
        /// Failed operation.
        doing: &'static str,
        /// Cause.
        #[source]
        source: Cause,
    },
    /// The database denies access to this user.
    #[error(
        "the database at {place} denied access ({doing}); check the user, the password, the name of the database and its grants"
    )]
    Refused {
        /// Address, without a password.
        place: String,
        /// Failed operation.
        doing: &'static str,
        /// Cause.
        #[source]
        source: Cause,
    },
    /// The connection broke during the commit.
    #[error(
        "lost the connection to the database while committing ({doing}): either everything was changed or nothing; check which (`vitrine history`, `vitrine keys list`), and try again if nothing was"
    )]
    UnreachableAtCommit {
        /// Failed operation.
        doing: &'static str,
        /// Cause.
        #[source]
        source: Cause,
    },
    /// Another process is writing.
    #[error(
        "the store is locked by {}; gave up after {waited_seconds} s; nothing was changed, try again later",
        holder.as_deref().unwrap_or("another process")
    )]
    Busy {
        /// Time that this process waited, in seconds.
        waited_seconds: u64,
        /// Application name and address of the session of PostgreSQL that writes, if it can be found.
        holder: Option<String>,
    },
    /// A file of that name exists.
    #[error(
        "{} already exists and won't be overwritten; choose another name, or move it away",
        path.display()
    )]
    Exists {
        /// The file or the database.
        path: PathBuf,
    },
    /// The backup can't be restored.
    #[error("{} can't be restored: {reason}; nothing was changed", path.display())]
    UnusableBackup {
        /// The backup.
        path: PathBuf,
        /// Reason.
        reason: String,
    },
    /// The revision was pruned.
    #[error(
        "revision {number} was pruned; the oldest revision that can be read is {oldest_readable}"
    )]
    Pruned {
        /// The revision.
        number: u64,
        /// Oldest revision that can be read.
        oldest_readable: u64,
    },
    /// Another version of the assortment is live than the caller expected.
    #[error(
        "the assortment {name} was changed meanwhile: {}; nothing was changed, look at it and try again",
        live.map_or_else(|| "there is none now".to_owned(), |number| format!("version {number} is live"))
    )]
    AssortmentChanged {
        /// Name of the assortment.
        name: String,
        /// Number of the live version, if there is one.
        live: Option<u32>,
    },
    /// There is no such assortment.
    #[error(
        "there is no assortment {name}; nothing was changed (`vitrine assortments list` shows all)"
    )]
    NoAssortment {
        /// Name of the assortment.
        name: String,
    },
    /// Keys use the assortment.
    #[error(
        "the assortment {name} is used by {keys} {} ({}{}); nothing was changed, give {} another one (`vitrine keys set KEY --assortment NAME`) or revoke {} first",
        if *keys == 1 { "key" } else { "keys" },
        prefixes.join(", "),
        if *keys > prefixes.len() { ", …" } else { "" },
        if *keys == 1 { "it" } else { "them" },
        if *keys == 1 { "it" } else { "them" }
    )]
    AssortmentInUse {
        /// Name of the assortment.
        name: String,
        /// Number of keys that use it and aren't revoked.
        keys: usize,
        /// Prefixes of the first ones.
        prefixes: Vec<String>,
    },
    /// The change would leave no owner.
    #[error(
        "{name} is the last owner; nothing was changed. Add another owner first: `vitrine operators add NAME --role owner`"
    )]
    LastOwner {
        /// Name of the operator.
        name: String,
    },
    /// A confirmation in the console was sent before, and done.
    #[error("this was confirmed and done before; nothing was changed now")]
    Confirmed,
    /// There would be too many assortments, or too many codes in them.
    #[error("there would be {count} {what}, and the limit is {limit}; nothing was changed")]
    AssortmentLimit {
        /// Counted things.
        what: &'static str,
        /// Number that there would be.
        count: u64,
        /// Maximum number.
        limit: u64,
    },
    /// The endpoint has no attempt to wait for.
    #[error("the endpoint {id} {reason}; nothing was changed")]
    NothingToRetry {
        /// Id of the endpoint.
        id: String,
        /// Reason.
        reason: &'static str,
    },
    /// The secrets of webhooks are derived from another key file.
    #[error(
        "the webhook key file isn't the one from which the secrets of this store's endpoints are derived; nothing was changed. Use that file, or delete all endpoints (`vitrine webhooks delete`) to begin with another"
    )]
    WebhookKeyDiffers,
    /// Everything was restored but the webhook endpoints.
    #[error(
        "everything was restored, but not the webhook endpoints, which are paused; mend the cause and restore again"
    )]
    WebhooksNotRestored(#[source] Cause),
    /// A change was made, but isn't in the audit log.
    #[error(
        "it was done, but isn't in the audit log, since the store couldn't be written; check the disk"
    )]
    NotAudited(#[source] Cause),
    /// The disk is full.
    #[error(
        "the disk (or the store's quota) is full; nothing was changed, free some space and try again"
    )]
    Full,
    /// The caller's callback failed while the store was read.
    #[error("the catalog can't be used")]
    Visitor(#[source] Cause),
    /// Stored data isn't as it was written.
    #[error("the store is damaged: {0}")]
    Damaged(String),
    /// A file of the store, one beside it, or a backup can't be opened, created or written.
    #[error("can't {doing} {}; check its permissions and the disk, and try again", path.display())]
    File {
        /// Failed operation, a verb.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// Cause.
        #[source]
        source: std::io::Error,
    },
    /// The disk failed, before anything was changed.
    #[error(
        "the disk failed while {doing}; check the disk, then run `vitrine check` and try again"
    )]
    Disk {
        /// Failed operation.
        doing: &'static str,
        /// Cause.
        #[source]
        source: Cause,
    },
    /// The disk failed during the commit.
    #[error(
        "the disk failed while committing ({doing}): either everything was changed or nothing; check the disk, run `vitrine check`, find out which (`vitrine history`, `vitrine keys list`), and try again if nothing was"
    )]
    DiskAtCommit {
        /// Failed operation.
        doing: &'static str,
        /// Cause.
        #[source]
        source: Cause,
    },
    /// Any other error of the database.
    #[error("the database failed while {doing}; run `vitrine check` and try again")]
    Database {
        /// Failed operation.
        doing: &'static str,
        /// Cause.
        #[source]
        source: Cause,
    },
}

impl StoreError {
    /// Returns whether a transaction that fails with this error changed nothing although the message doesn't say so,
    /// since it may be that of a read.
    #[must_use]
    pub fn rolled_back(&self) -> bool {
        matches!(
            self,
            // Callbacks run before the commit.
            Self::Visitor(_)
                | Self::Unreachable { .. }
                | Self::Refused { .. }
                | Self::File { .. }
                | Self::Disk { .. }
                | Self::Database { .. }
        )
    }

    /// Returns whether the cause may pass without a restart, so that a server may wait for it: the database is
    /// unreachable, busy, full or read-only, denies access, or the store doesn't exist yet.
    /// False for wrong settings, and for a store that is damaged, of another format or of another program.
    #[must_use]
    pub fn may_come_back(&self) -> bool {
        matches!(
            self,
            Self::Unreachable { .. }
                | Self::UnreachableAtCommit { .. }
                | Self::Refused { .. }
                | Self::Missing { .. }
                | Self::Busy { .. }
                | Self::ReadOnly { .. }
                | Self::Full
        )
    }
}
