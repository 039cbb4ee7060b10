//! Mirroring: the catalog of another server of this contract is read over HTTP and replaces the store's own.
//!
//! - [`source`]: the mirrored server: address, key, requests
//! - `pages`: its whole catalog, as of one moment
//! - `texts`: the Markdown of its texts
//! - `version`: the API version that it is asked for
//! - [`follow`]: a copy that follows its changes; `feed`: requests for them; `collect`: answers until they make a copy of one
//!   moment; `pending`: changes until they are loaded; [`publish`]: their load; [`state`]: the file from which a restart goes on
//!
//! Nothing changes before everything was read: the load is one transaction.

mod collect;
mod feed;
pub mod follow;
mod pages;
mod pending;
pub mod publish;
pub mod source;
pub mod state;
mod texts;
mod version;

use std::fs::File;
use std::io::Seek as _;

use anyhow::Context as _;
use vitrine_store::Store;

use crate::load::plan::Plan;
use crate::load::progress::Silent;
use crate::load::report::{Applied, Outcome, Report};
use crate::load::{self, LoadSettings, Opened};
use pages::Walk;
use source::Source;

/// Error message if the disk fails while a catalog is read, before anything is loaded.
const NO_TEMPORARY_FILE: &str =
    "a temporary file failed; nothing was changed; check the disk (TMPDIR) and try again";

/// Handling of texts that the source holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextForm {
    /// The mirror's products name the source's addresses.
    Addresses,
    /// The mirror has the texts, too.
    Markdown,
}

/// A mirror of one source.
#[derive(Debug)]
pub struct Mirror {
    source: Source,
    texts: TextForm,
    last: Option<LastLoaded>,
}

/// State after the last load: if neither side has changed since, there is nothing to do.
#[derive(Debug)]
struct LastLoaded {
    walk: Walk,
    /// Id of the revision that has it.
    revision_id: String,
}

/// Catalog of the source, ready to be loaded.
#[derive(Debug)]
pub struct Fetched {
    walk: Walk,
    records: Records,
}

/// Records of a catalog.
#[derive(Debug)]
enum Records {
    /// A file of records to load.
    New(File),
    /// The revision with this id has them already.
    Held { revision_id: String },
}

impl Fetched {
    /// Returns the number of products.
    #[must_use]
    pub fn products(&self) -> usize {
        self.walk.products()
    }
}

impl Mirror {
    /// Returns a mirror that has loaded nothing yet.
    #[must_use]
    pub fn new(source: Source, texts: TextForm) -> Self {
        Self {
            source,
            texts,
            last: None,
        }
    }

    /// Reads the source's catalog. Doesn't change the store; cancelling is safe.
    ///
    /// # Errors
    ///
    /// If the source can't be read, or violates the contract.
    pub async fn fetch(&mut self, store: &Store) -> anyhow::Result<Fetched> {
        let is_current = match &self.last {
            Some(LastLoaded { walk, revision_id }) => {
                store.state()?.revision_id.as_ref() == Some(revision_id)
                    && walk.is_current(&self.source).await?
            }
            None => false,
        };
        if let Some(LastLoaded { walk, revision_id }) = self.last.take_if(|_| is_current) {
            let records = Records::Held { revision_id };
            return Ok(Fetched { walk, records });
        }
        let mut file = tempfile::tempfile().context(NO_TEMPORARY_FILE)?;
        let walk = pages::read(&self.source, &mut file).await?;
        let file = match self.texts {
            TextForm::Addresses => file,
            TextForm::Markdown => texts::bring(&self.source, store, file).await?,
        };
        let records = Records::New(file);
        Ok(Fetched { walk, records })
    }

    /// Loads the fetched catalog with these settings.
    ///
    /// # Errors
    ///
    /// If the store can't be written. Then nothing has changed.
    pub fn load(
        &mut self,
        store: &Store,
        fetched: Fetched,
        settings: LoadSettings,
    ) -> anyhow::Result<Report> {
        let Fetched { walk, records } = fetched;
        let mut file = match records {
            Records::New(file) => file,
            Records::Held { revision_id } => {
                let report = unchanged(&walk);
                self.last = Some(LastLoaded { walk, revision_id });
                return Ok(report);
            }
        };
        file.rewind().context(NO_TEMPORARY_FILE)?;
        // Each line is a product of the list.
        let name = format!("{}/v2/product", self.source.base());
        let input = Opened::new(name, Box::new(file));
        let before = store.state()?.revision_id;
        let report = load::load(store, vec![input], settings, &Silent)?;
        if outcome(&report).is_success() {
            let revision_id = loaded_revision(&report, before, store);
            self.last = revision_id.map(|revision_id| LastLoaded { walk, revision_id });
        }
        Ok(report)
    }
}

/// Returns the id of the revision that has the loaded catalog; `before` is the id of the live one before the load.
///
/// Other writers are possible: the revision that is live after the load may be theirs. Taken for the load's own, it
/// would never be replaced.
fn loaded_revision(report: &Report, before: Option<String>, store: &Store) -> Option<String> {
    match &report.applied.as_ref()?.outcome {
        Outcome::Published(revision) => Some(revision.id.clone()),
        // The load has succeeded: if the store can't be read now, the next round only reads all pages again.
        Outcome::Unchanged => before.filter(|before| {
            let now = store.state();
            now.is_ok_and(|now| now.revision_id.as_ref() == Some(before))
        }),
        Outcome::Planned | Outcome::Refused => None,
    }
}

/// Returns the report that a load of the same products would give.
fn unchanged(walk: &Walk) -> Report {
    let products = walk.products() as u64;
    let applied = Applied {
        outcome: Outcome::Unchanged,
        plan: Plan::unchanged(products),
        exceeded: Vec::new(),
        ineffective: Vec::new(),
    };
    Report::of(products, Some(applied))
}

/// Outcome of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RoundOutcome {
    /// A revision was published.
    Published,
    /// The store had the source's catalog already.
    Unchanged,
    /// The source's catalog has faults; nothing was changed.
    Refused,
    /// The source couldn't be read, or the store couldn't be written.
    Failed,
}

impl RoundOutcome {
    /// All outcomes.
    pub const ALL: [Self; 4] = [
        Self::Published,
        Self::Unchanged,
        Self::Refused,
        Self::Failed,
    ];

    /// Returns the outcome in a word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Published => "published",
            Self::Unchanged => "unchanged",
            Self::Refused => "refused",
            Self::Failed => "failed",
        }
    }

    /// Returns true if the store now has the source's catalog.
    #[must_use]
    pub const fn is_success(self) -> bool {
        matches!(self, Self::Published | Self::Unchanged)
    }
}

/// Returns the outcome of a round from its load's report.
#[must_use]
pub fn outcome(report: &Report) -> RoundOutcome {
    match report.applied.as_ref().map(|applied| &applied.outcome) {
        Some(Outcome::Published(_)) => RoundOutcome::Published,
        Some(Outcome::Unchanged) => RoundOutcome::Unchanged,
        Some(Outcome::Planned | Outcome::Refused) | None => RoundOutcome::Refused,
    }
}
