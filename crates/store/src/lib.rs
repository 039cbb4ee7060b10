//! Where things rest: one trait, and the stores behind it.
//!
//! Every revision of every product is kept until it is pruned; nothing is rewritten. A publish is one transaction and
//! one revision. Only this crate knows SQL, and it knows no JSON name: a product is to it a text
//! (`document`) with the few facts that indexes and loads need beside it. Only `seal` knows a name in it: that of the content
//! resources, whose place is kept apart.
//!
//! # Layout
//!
//! - [`Store`]: what a store does; [`Publication`]: a publish in progress
//! - [`record`]: what goes in and comes out
//! - [`problem`]: what a check finds
//! - [`error`]: what can go wrong
//! - [`fail_point`]: where tests let a write fail
//! - `address`: which store is meant, and how it is opened
//! - `sqlite`: the embedded store; `postgres`: the one that many servers share
//! - `values`, `check`: what both keep in the same form, and what both look for; `seal`: the digest of a stored product

mod address;
mod check;
pub mod error;
pub mod fail_point;
mod postgres;
pub mod problem;
mod publication;
pub mod record;
mod seal;
mod sqlite;
mod values;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use vitrine_model::code::ProductCode;
use vitrine_model::content::{PackedMarkdown, TextDigest};
use vitrine_model::key::KeyRecord;
use vitrine_model::revision::Revision;

pub use address::StoreAddress;
pub use error::StoreError;
use problem::Problem;
pub use publication::Publication;
use record::{
    Changes, FetchedText, ItemVisitor, Keep, Life, Moment, ProductVisitor, Pruned,
    PublishedRevision, StoredProduct, Touch, Touched,
};

/// A place where the catalog and its keys rest.
///
/// All calls block; servers make them on threads of their own, never on a request's way.
pub trait Store: Send + Sync {
    /// What there is, in one cheap read: call it often and read more only where it differs.
    ///
    /// # Errors
    ///
    /// Where the store can't be read.
    fn changes(&self) -> Result<Changes, StoreError>;

    /// How often followers should ask for [`changes`](Self::changes): often enough for the second that the
    /// contract promises, and seldom enough for a store that many servers ask.
    fn poll_every(&self) -> Duration;

    /// Calls `hint` soon after something may have changed, from a thread of the store's own, until what this
    /// returns is dropped; `None` where the store has no such way. It is a hint: it may come for nothing and
    /// may not come, so followers poll all the same.
    fn hint_changes(&self, hint: Hint) -> Option<HintGuard>;

    /// Reads the live catalog as of one moment: first its products in ascending order of codes, then,
    /// in ascending order of digests, the texts that they name or named until less than `texts_kept_since` ago.
    ///
    /// Returns the [`changes`](Self::changes) of that moment and the live revision, or `None` where nothing was
    /// published yet.
    ///
    /// # Errors
    ///
    /// Where the store can't be read, or `visit` fails.
    fn read_catalog(
        &self,
        texts_kept_since: Timestamp,
        visit: ItemVisitor<'_>,
    ) -> Result<(Changes, Option<Revision>), StoreError>;

    /// Reads what differs between the revision `since` and the live one, as of one moment: first the products
    /// that are others now or were retired, in ascending order of codes, then the texts that products of
    /// either name, as [`read_catalog`](Self::read_catalog) would. It may give more, never less.
    ///
    /// Returns the [`changes`](Self::changes) of that moment and the live revision; or `None`, having visited nothing,
    /// where it isn't known what changed, where that is more than `most_products`, or `since` was replaced before
    /// `texts_kept_since`: a text that isn't served any more couldn't be told of. Texts taken down and put back aren't
    /// told: see [`Changes::texts`].
    ///
    /// # Errors
    ///
    /// Where the store can't be read, or `visit` fails.
    fn read_changes(
        &self,
        since: &Revision,
        most_products: u32,
        texts_kept_since: Timestamp,
        visit: ItemVisitor<'_>,
    ) -> Result<(Changes, Option<Revision>), StoreError>;

    /// Empties the write-ahead log beside an SQLite store once it has become large, as far as others let it: waits for
    /// them briefly. A server calls this every few seconds. Returns the log's size in bytes; `None` for a store that
    /// looks after its log itself.
    ///
    /// # Errors
    ///
    /// If the log can't be read or the store can't be written.
    fn tidy_log(&self) -> Result<Option<u64>, StoreError> {
        Ok(None)
    }

    /// The newest revisions, `most` of them at most, the newest first.
    ///
    /// # Errors
    ///
    /// Where the store can't be read.
    fn revisions(&self, most: u32) -> Result<Vec<PublishedRevision>, StoreError>;

    /// The revision of this number, where there is one.
    ///
    /// # Errors
    ///
    /// Where the store can't be read.
    fn revision(&self, number: u64) -> Result<Option<PublishedRevision>, StoreError>;

    /// Reads the products of a moment, in ascending order of codes. Returns its revision, or `None`
    /// where there is no such revision.
    ///
    /// # Errors
    ///
    /// Where the store can't be read, `visit` fails, or the revision was pruned
    /// ([`StoreError::Pruned`]).
    fn read_products(
        &self,
        moment: Moment,
        visit: ProductVisitor<'_>,
    ) -> Result<Option<Revision>, StoreError>;

    /// One product at a moment; `None` if it wasn't live then, or there is no such revision.
    ///
    /// # Errors
    ///
    /// Where the store can't be read, or the revision was pruned ([`StoreError::Pruned`]).
    fn product(
        &self,
        code: &ProductCode,
        moment: Moment,
    ) -> Result<Option<StoredProduct>, StoreError>;

    /// From which revision to which the versions of a product live that are kept, the newest first and `most` of
    /// them at most. Between them the product wasn't live.
    ///
    /// # Errors
    ///
    /// Where the store can't be read.
    fn lives(&self, code: &ProductCode, most: u32) -> Result<Vec<Life>, StoreError>;

    /// Returns the products that the revision of this number changed, in ascending order of codes: at most `most`, only
    /// those above `after`, and only those to which `how` happened; none if there is no such revision.
    ///
    /// # Errors
    ///
    /// Where the store can't be read, or the revision was pruned ([`StoreError::Pruned`]).
    fn touched(
        &self,
        number: u64,
        how: Option<Touch>,
        after: Option<&ProductCode>,
        most: u32,
    ) -> Result<Vec<Touched>, StoreError>;

    /// A text's Markdown, whether it is served or was taken down.
    ///
    /// # Errors
    ///
    /// Where the store can't be read.
    fn text(&self, digest: &TextDigest) -> Result<Option<PackedMarkdown>, StoreError>;

    /// What an outside address gave, and whether that text is served or was taken down.
    ///
    /// # Errors
    ///
    /// Where the store can't be read.
    fn fetched_text(&self, url: &str) -> Result<Option<(FetchedText, TextServed)>, StoreError>;

    /// Begins a publish. There is one at a time: this waits for another, and gives up in the end
    /// with [`StoreError::Busy`].
    ///
    /// # Errors
    ///
    /// Where the store can't be written.
    fn publish(&self) -> Result<Box<dyn Publication + '_>, StoreError>;

    /// Takes a text down at once, or puts it back. Returns whether the store has such a text.
    ///
    /// # Errors
    ///
    /// Where the store can't be written.
    fn set_text_served(&self, digest: &TextDigest, served: TextServed) -> Result<bool, StoreError>;

    /// Says what [`prune`](Self::prune) would free now, and changes nothing.
    ///
    /// # Errors
    ///
    /// Where the store can't be read.
    fn plan_prune(&self, keep: Keep, texts_kept_since: Timestamp) -> Result<Pruned, StoreError>;

    /// Frees what no revision sees that is kept: versions of products, and texts that nothing names any
    /// more. Versions replaced after `texts_kept_since` stay while they have texts, which
    /// [`read_catalog`](Self::read_catalog) still shows; a text that was taken down stays. What is
    /// live doesn't change, and this is no change in the sense of [`changes`](Self::changes). The
    /// revisions' own records stay.
    ///
    /// First, in a transaction of its own, older revisions can't be read any more; then rows go in
    /// transactions of moderate size, between which others read and write. Interrupted anywhere, it
    /// leaves a store that is whole; the next prune frees the rest.
    ///
    /// # Errors
    ///
    /// Where the store can't be written.
    fn prune(&self, keep: Keep, texts_kept_since: Timestamp) -> Result<Pruned, StoreError>;

    /// All keys, oldest first.
    ///
    /// # Errors
    ///
    /// Where the store can't be read.
    fn keys(&self) -> Result<Vec<KeyRecord>, StoreError> {
        Ok(self.read_keys()?.1)
    }

    /// As [`keys`](Self::keys), with the [`changes`](Self::changes) of the same moment.
    ///
    /// # Errors
    ///
    /// Where the store can't be read.
    fn read_keys(&self) -> Result<(Changes, Vec<KeyRecord>), StoreError>;

    /// Reads the keys and writes what `decide` makes of them, in one transaction.
    ///
    /// # Errors
    ///
    /// Where the store can't be written.
    fn change_keys(&self, decide: KeyDecision<'_>) -> Result<(), StoreError>;

    /// Writes down when keys were last used. This is no change in the sense of [`changes`](Self::changes).
    /// While another process writes, it fails at once with [`StoreError::Busy`]: try again later.
    ///
    /// # Errors
    ///
    /// Where the store can't be written.
    fn record_key_use(&self, uses: &[(String, Timestamp)]) -> Result<(), StoreError>;

    /// Looks whether all that rests here is what was written, as of one moment and while others
    /// write. Returns what isn't. It reads everything: it takes as long as that does.
    ///
    /// # Errors
    ///
    /// Where the store can't be read at all.
    fn check(&self) -> Result<Vec<Problem>, StoreError>;

    /// Copies the store as of one moment into a new file, while others read and write. The file is
    /// for its owner only and has its name once all of it is on the disk. Returns the live revision
    /// in it.
    ///
    /// # Errors
    ///
    /// Where the file is there already ([`StoreError::Exists`]) or can't be written, or the store
    /// can't be read.
    fn backup(&self, path: &Path) -> Result<Option<Revision>, StoreError>;

    /// Puts what a backup holds in the place of all that rests here: catalog, history, texts and keys,
    /// in one transaction, so that servers see the old state or the new. The live revision gets a new
    /// id, by which servers see it; the store stays the same store. What was revoked or taken down
    /// here stays so. Returns the live revision.
    ///
    /// # Errors
    ///
    /// Where the file is no store, was made by a newer release, or doesn't pass [`check`](Self::check);
    /// where the store can't be written. Then nothing has changed.
    fn restore(&self, path: &Path) -> Result<Option<Revision>, StoreError>;
}

/// What is called when something may have changed. It must return at once.
pub type Hint = Arc<dyn Fn() + Send + Sync>;

/// While it lives, hints are given.
pub type HintGuard = Box<dyn std::any::Any + Send>;

/// Looks at all keys and says which records to write: new ones, and changed ones by their prefix.
pub type KeyDecision<'a> = &'a mut dyn FnMut(&[KeyRecord]) -> Vec<KeyRecord>;

/// Whether a text is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextServed {
    /// It was taken down.
    No,
    /// It is served while a revision names it.
    Yes,
}

/// Whether a store that isn't there is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfMissing {
    /// Make an empty one.
    Create,
    /// Refuse.
    Refuse,
}

/// Opens the store at `url`, such as `sqlite:vitrine.db`, with the usual patience: see [`StoreAddress::open`].
///
/// # Errors
///
/// As there.
pub fn open(url: &str, if_missing: IfMissing) -> Result<Arc<dyn Store>, StoreError> {
    let Ok(address) = url.parse::<StoreAddress>();
    address.open(if_missing, USUAL_PATIENCE)
}

/// How long a writer waits for another one, unless told otherwise.
pub const USUAL_PATIENCE: Duration = Duration::from_secs(30);
