//! Mirroring: the catalog of another server of this contract, read over HTTP and loaded in place of the
//! store's own.
//!
//! - [`source`]: that server, its address and its key
//! - `pages`: its whole catalog, as of one moment
//! - `texts`: the Markdown of its texts
//! - [`metrics`]: what is told of each round
//!
//! Nothing is changed before everything has been read: the load is one transaction.

pub mod metrics;
mod pages;
pub mod source;
mod texts;

use std::io::Seek as _;

use anyhow::Context as _;
use vitrine_store::Store;

use crate::load::plan::Plan;
use crate::load::progress::Silent;
use crate::load::report::{Applied, Outcome, Report};
use crate::load::{self, Opened, Settings};
use metrics::RoundOutcome;
use pages::Walk;
use source::Source;

/// What is said where the disk fails while a catalog is gathered: before anything is loaded.
const NO_TEMPORARY_FILE: &str =
    "a temporary file failed; nothing was changed, look after the disk (TMPDIR) and try again";

/// What becomes of texts that the source holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextForm {
    /// The mirror names the source's addresses.
    Addresses,
    /// The mirror holds them too.
    Markdown,
}

/// A mirror of one source.
#[derive(Debug)]
pub struct Mirror {
    source: Source,
    texts: TextForm,
    last: Option<LastLoaded>,
}

/// What was loaded last: where neither side has changed since, there is nothing to do.
#[derive(Debug)]
struct LastLoaded {
    walk: Walk,
    /// The id of the revision that was live then.
    revision_id: Option<String>,
}

/// The source's catalog, read and ready to be loaded.
#[derive(Debug)]
pub struct Fetched {
    walk: Walk,
    /// The records to load; `None` where the store has them already.
    file: Option<std::fs::File>,
}

impl Fetched {
    /// How many products there are.
    #[must_use]
    pub fn products(&self) -> usize {
        self.walk.products()
    }
}

impl Mirror {
    /// A mirror that has loaded nothing yet.
    #[must_use]
    pub fn new(source: Source, texts: TextForm) -> Self {
        Self {
            source,
            texts,
            last: None,
        }
    }

    /// Reads the source's catalog. The store isn't changed, whenever this is dropped.
    ///
    /// # Errors
    ///
    /// Where the source can't be read, or doesn't answer as the contract says.
    pub async fn fetch(&mut self, store: &dyn Store) -> anyhow::Result<Fetched> {
        let is_current = match &self.last {
            Some(LastLoaded { walk, revision_id }) => {
                store.changes()?.revision_id == *revision_id
                    && walk.is_current(&self.source).await?
            }
            None => false,
        };
        if let Some(LastLoaded { walk, .. }) = self.last.take_if(|_| is_current) {
            return Ok(Fetched { walk, file: None });
        }
        let mut file = tempfile::tempfile().context(NO_TEMPORARY_FILE)?;
        let walk = pages::read(&self.source, &mut file).await?;
        let file = match self.texts {
            TextForm::Addresses => file,
            TextForm::Markdown => texts::bring(&self.source, store, file).await?,
        };
        let file = Some(file);
        Ok(Fetched { walk, file })
    }

    /// Makes what was read the catalog of the store: a load with these settings.
    ///
    /// # Errors
    ///
    /// Where the store can't be written. Then nothing has changed.
    pub fn load(
        &mut self,
        store: &dyn Store,
        fetched: Fetched,
        settings: Settings,
    ) -> anyhow::Result<Report> {
        let Fetched { walk, file } = fetched;
        let report = match file {
            Some(mut file) => {
                file.rewind().context(NO_TEMPORARY_FILE)?;
                // A line of it is a product of the list.
                let name = format!("{}/v2/product", self.source.base());
                let input = Opened::new(name, Box::new(file));
                load::load(store, vec![input], settings, &Silent)?
            }
            None => unchanged(&walk),
        };
        if outcome(&report).is_success() {
            let revision_id = store.changes()?.revision_id;
            self.last = Some(LastLoaded { walk, revision_id });
        }
        Ok(report)
    }
}

/// What a load of the same products would report.
fn unchanged(walk: &Walk) -> Report {
    let products = walk.products() as u64;
    let applied = Applied {
        outcome: Outcome::Unchanged,
        plan: Plan::unchanged(products),
        exceeded: Vec::new(),
    };
    Report::of(products, Some(applied))
}

/// What a load came to.
#[must_use]
pub fn outcome(report: &Report) -> RoundOutcome {
    match report.applied.as_ref().map(|applied| &applied.outcome) {
        Some(Outcome::Published(_)) => RoundOutcome::Published,
        Some(Outcome::Unchanged) => RoundOutcome::Unchanged,
        Some(Outcome::Planned | Outcome::Refused) | None => RoundOutcome::Refused,
    }
}
