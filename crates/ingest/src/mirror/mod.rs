//! Mirroring: the catalog of another server of this contract is read over HTTP and replaces the store's own.
//!
//! - [`source`]: the mirrored server and its clients
//! - `feed`: its changes, collected until they make a copy of one moment; `pending`: changes until they are loaded
//! - `walk`: the pages of a source without a feed
//! - `texts`: the Markdown of its texts
//! - `publish`: changes that are ready to be loaded; [`state`]: the file from which a restart goes on
//!
//! Nothing changes before everything was read: the load is one transaction.

mod feed;
mod pending;
mod publish;
pub mod source;
pub mod state;
mod texts;
mod walk;

use std::fs::File;
use std::time::Instant;

use anyhow::Context as _;
use vitrine_client::{ApiVersion, Error, ErrorType};
use vitrine_store::Store;

use crate::load::plan::Plan;
use crate::load::progress::Silent;
use crate::load::report::{Applied, Outcome, Report};
use crate::load::{self, LoadSettings, Opened};
use feed::{Collected, Feed};
pub use publish::Changes;
use publish::{Origin, products, revision_after};
use source::{Source, error_type};
use state::{Held, Publishing, StateFile};
use walk::Walk;

/// Error message if the disk fails while a catalog is read, before anything is loaded.
const NO_TEMPORARY_FILE: &str =
    "a temporary file failed; nothing was changed; check the disk (TMPDIR) and try again";

/// API version that a source is asked for first, with discounts of up to six digits.
const NEWEST: ApiVersion = ApiVersion::V2026_12_01;
/// API version that all sources have, with discounts of two digits.
const OLDEST: ApiVersion = ApiVersion::V2024_02_05;

/// Number of polls after which a source that has never shown a feed is asked for one again.
const POLLS_PER_LOOK: u32 = 10;

/// Handling of texts that the source holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextForm {
    /// The mirror's products name the source's addresses.
    Addresses,
    /// The mirror has the texts, too.
    Markdown,
}

/// Handling of a source that has no news.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// The source may hold its answer until something changes.
    Yes,
    /// The source answers at once.
    No,
}

/// A mirror of one source: of its feed of changes, or of its pages if it has none.
#[derive(Debug)]
pub struct Mirror {
    source: Source,
    texts: TextForm,
    wait: Wait,
    state: Option<StateFile>,
    /// Copy made of the feed.
    held: Option<Held>,
    /// Copy made of pages, and the id of the revision that has it.
    walked: Option<(Walk, String)>,
    /// Running sync.
    feed: Option<Feed>,
    /// Number of rounds since the source was last asked for its feed; none while it has one.
    polls: Option<u32>,
    /// True if the source has shown a feed in this run.
    has_seen_feed: bool,
}

/// News of the source.
#[derive(Debug)]
pub enum News {
    /// The store has its catalog.
    Unchanged,
    /// Changes, which make a copy of one moment.
    Changes(Changes),
}

impl Mirror {
    /// Returns a mirror that goes on from the copy that the store has, if the state file knows it.
    ///
    /// # Errors
    ///
    /// If the store can't be read.
    pub fn new(
        source: Source,
        texts: TextForm,
        wait: Wait,
        state: Option<StateFile>,
        store: &Store,
    ) -> anyhow::Result<Self> {
        let held = state
            .as_ref()
            .map(|state| state.held(store, source.base(), texts));
        Ok(Self {
            source,
            texts,
            wait,
            held: held.transpose()?.flatten(),
            state,
            walked: None,
            feed: None,
            polls: None,
            has_seen_feed: false,
        })
    }

    /// Returns the number of products, if it is known.
    #[must_use]
    pub fn products(&self) -> Option<u64> {
        match self.polls {
            None => self.held.as_ref()?.products,
            Some(_) => Some(self.walked.as_ref()?.0.products),
        }
    }

    /// Returns the report that a load of the same products would give.
    #[must_use]
    pub fn unchanged(&self) -> Report {
        let products = self.products().unwrap_or_default();
        let applied = Applied {
            outcome: Outcome::Unchanged,
            plan: Plan::unchanged(products),
            exceeded: Vec::new(),
            ineffective: Vec::new(),
        };
        Report::of(products, Some(applied))
    }

    /// Returns true if the source holds its answers until something changes.
    #[must_use]
    pub fn is_following(&self) -> bool {
        self.wait == Wait::Yes && self.polls.is_none()
    }

    /// Asks for news of the source. Doesn't change the store; cancelling is safe.
    ///
    /// # Errors
    ///
    /// If the source can't be read, or violates the contract.
    pub async fn fetch(&mut self, store: &Store) -> anyhow::Result<News> {
        let is_due = match &mut self.polls {
            None => true,
            Some(polls) => {
                *polls += 1;
                *polls >= POLLS_PER_LOOK || self.has_seen_feed
            }
        };
        if is_due {
            if let Some(news) = self.follow(store).await? {
                return Ok(news);
            }
            if self.polls.replace(0).is_none() && self.wait == Wait::Yes {
                tracing::info!("the source has no feed of changes; polling");
            }
        }
        self.walk(store).await
    }

    /// Collects changes of the feed; `None` if the source has none.
    async fn follow(&mut self, store: &Store) -> anyhow::Result<Option<News>> {
        if self.wait == Wait::No {
            self.feed = None;
        }
        let mut version = NEWEST;
        loop {
            self.forget_if_foreign(store)?;
            // A token belongs to the version of its copy.
            let held = self.held.as_ref().filter(|held| held.version == version);
            let token = held.map(|held| held.token.clone());
            let mut feed = match self.feed.take() {
                Some(feed) => feed,
                None => Feed::new(&self.source, version, token)?,
            };
            let error = match feed.collect(&self.source).await {
                Ok((collected, next)) => {
                    (self.polls, self.has_seen_feed) = (None, true);
                    self.forget_if_foreign(store)?;
                    if self.held.is_none() && !collected.is_whole {
                        continue;
                    }
                    let news = self.news(store, collected, next, feed.version).await?;
                    self.feed = Some(feed);
                    return Ok(Some(news));
                }
                Err(error) => error,
            };
            let is = |judge: &dyn Fn(&Error) -> bool| error.downcast_ref().is_some_and(judge);
            let is_known = self.has_seen_feed || feed.has_token();
            if lacks_version(&error) && feed.version == NEWEST {
                version = OLDEST;
            } else if is(&feed::is_about_token) && self.held.take().is_some() {
                tracing::warn!("the source refuses the token; reading its whole catalog");
            } else if is(&|error| feed::is_absent(error, is_known)) {
                return Ok(None);
            } else {
                return Err(self.source.failed(feed::PATH, error));
            }
        }
    }

    /// Forgets the copy if another command has published since: the next sync begins with the whole catalog, which undoes
    /// that.
    fn forget_if_foreign(&mut self, store: &Store) -> anyhow::Result<()> {
        if let Some(held) = &self.held
            && store.state()?.revision_id.as_ref() != Some(&held.revision_id)
        {
            (self.held, self.feed) = (None, None);
        }
        Ok(())
    }

    async fn news(
        &mut self,
        store: &Store,
        collected: Collected,
        next: String,
        version: ApiVersion,
    ) -> anyhow::Result<News> {
        let Collected {
            pending,
            is_whole,
            arrived,
            ..
        } = collected;
        let is_same = !is_whole && pending.is_empty();
        if let Some(held) = self.held.as_mut().filter(|_| is_same) {
            held.token = next;
            self.save(None);
            return Ok(News::Unchanged);
        }
        if self
            .held
            .as_ref()
            .is_some_and(|held| held.version != version)
        {
            tracing::info!("the source's API version changed; reading its whole catalog");
        }
        let (records, gone) = pending.finish()?;
        let origin = Origin::Feed { next, version };
        let gone = (!is_whole).then_some(gone);
        self.changes(store, records, gone, origin, arrived).await
    }

    /// Reads the pages of a source without a feed.
    async fn walk(&mut self, store: &Store) -> anyhow::Result<News> {
        if let Some((walk, revision_id)) = &self.walked
            && store.state()?.revision_id.as_ref() == Some(revision_id)
        {
            match walk.is_current(&self.source).await {
                Ok(true) => return Ok(News::Unchanged),
                Err(error) if !lacks_version(&error) => return Err(error),
                Ok(false) | Err(_) => {}
            }
        }
        let arrived = Instant::now();
        let records = tempfile::tempfile().context(NO_TEMPORARY_FILE)?;
        let walk = match walk::read(&self.source, NEWEST, &records).await {
            Err(error) if lacks_version(&error) => {
                walk::read(&self.source, OLDEST, &records).await?
            }
            walk => walk?,
        };
        let origin = Origin::Pages(walk);
        self.changes(store, records, None, origin, arrived).await
    }

    async fn changes(
        &self,
        store: &Store,
        records: File,
        gone: Option<Vec<String>>,
        origin: Origin,
        arrived: Instant,
    ) -> anyhow::Result<News> {
        let is_without_records = records.metadata().context(NO_TEMPORARY_FILE)?.len() == 0;
        let records = match self.texts {
            TextForm::Addresses => records,
            TextForm::Markdown => texts::bring(&self.source, store, records).await?,
        };
        Ok(News::Changes(Changes {
            records,
            gone,
            is_without_records,
            origin,
            arrived,
        }))
    }

    /// Publishes changes: a load with these settings. If it is refused, the token stays. Returns nothing, and changes nothing,
    /// if they are changes of another revision than the live one: the next sync replaces that.
    ///
    /// # Errors
    ///
    /// If the store can't be written. Then nothing has changed.
    pub fn load(
        &mut self,
        store: &Store,
        mut changes: Changes,
        settings: LoadSettings,
    ) -> anyhow::Result<Option<Report>> {
        let is_whole = changes.is_whole();
        if self.wait == Wait::No && self.retires_all(&changes) {
            // The next sync reads the whole catalog, and a load of none is refused.
            (self.held, self.feed) = (None, None);
            return Ok(None);
        }
        let before = store.state()?.revision_id;
        let held_id = self.held.as_ref().map(|held| held.revision_id.clone());
        // Unless the changes are published, the sync begins again with the token of the copy.
        let feed = self.feed.take();
        if !is_whole && held_id != before {
            self.held = None;
            return Ok(None);
        }
        let after = match is_whole {
            true => before.clone(),
            false => held_id,
        };
        let publishing = changes.publishing(after).context(NO_TEMPORARY_FILE)?;
        self.save(publishing);
        let name = format!("{}{}", self.source.base(), changes.origin.path());
        let settings = LoadSettings {
            mode: changes.mode(&name),
            digest_prefix: changes.digest_prefix(),
            ..settings
        };
        // Of a whole catalog without products, the load says what is wrong.
        let inputs = match changes.is_without_records && !is_whole {
            true => Vec::new(),
            false => vec![Opened::new(name, Box::new(changes.records))],
        };
        let report = load::load(store, inputs, settings, &Silent)?;
        if outcome(&report).is_success() {
            match changes.origin {
                Origin::Feed { next, version } => {
                    let old = self.held.take();
                    let revision_id = match is_whole {
                        true => loaded_revision(&report, before, store),
                        false => revision_after(&report, before, old.as_ref(), store),
                    };
                    let products = products(&report, old.filter(|_| !is_whole));
                    self.held = revision_id.map(|revision_id| Held {
                        token: next,
                        version,
                        revision_id,
                        products,
                    });
                    self.feed = feed.filter(|_| self.held.is_some());
                }
                Origin::Pages(walk) => {
                    let revision_id = loaded_revision(&report, before, store);
                    self.walked = revision_id.map(|revision_id| (walk, revision_id));
                }
            }
        }
        // Also after a refusal: what follows it in the history is another writer's.
        self.save(None);
        Ok(Some(report))
    }

    /// Returns true if changes would leave nothing of the copy.
    fn retires_all(&self, changes: &Changes) -> bool {
        let gone = changes.gone.as_ref().map_or(0, Vec::len) as u64;
        let held = self.held.as_ref().and_then(|held| held.products);
        changes.is_without_records && gone > 0 && held.is_none_or(|held| gone >= held)
    }

    /// Writes the state file. A failure costs a walk after a restart, nothing else.
    fn save(&mut self, publishing: Option<Publishing>) {
        let Some(state) = &mut self.state else {
            return;
        };
        let held = self.held.clone();
        if let Err(error) = state.save(self.source.base(), self.texts, held, publishing) {
            let error: &dyn std::error::Error = error.as_ref();
            tracing::error!(
                error,
                "the state file wasn't written; a restart will read the whole catalog"
            );
        }
    }
}

/// Returns true if an error says that the source doesn't have the requested API version.
fn lacks_version(error: &anyhow::Error) -> bool {
    let kind = error.downcast_ref().and_then(error_type);
    kind == Some(ErrorType::InvalidVersion)
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

#[cfg(test)]
mod tests;
