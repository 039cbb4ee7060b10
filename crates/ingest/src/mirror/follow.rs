//! A copy that follows its source: changes are asked for with a request that the source holds back until there are some,
//! and published once they make a copy of one moment.

use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use vitrine_store::Store;

use super::collect::{Collected, FeedResult, Start, collect};
use super::publish::{Changes, products, revision_after};
use super::source::Source;
use super::state::{Held, Publishing, StateFile};
use super::{NO_TEMPORARY_FILE, TextForm, loaded_revision, outcome, texts};
use crate::jitter;
use crate::load::progress::Silent;
use crate::load::report::Report;
use crate::load::{self, LoadSettings, Opened};

/// Minimum time between two walks, if the token of the first one is refused.
const MIN_WALK_INTERVAL: Duration = Duration::from_secs(30);

/// Minimum time of a wait that ends without changes; after a shorter one the next request is delayed.
const MIN_WAIT: Duration = Duration::from_secs(1);

/// Number of polls after which a source that has never shown a feed is asked for one again.
const POLLS_PER_LOOK: u32 = 10;

/// A mirror that follows its source.
#[derive(Debug)]
pub struct Follower {
    source: Source,
    texts: TextForm,
    state: Option<StateFile>,
    held: Option<Held>,
    /// Time of the last walk.
    walked: Option<Instant>,
    /// Number of rounds since the source was last asked for its feed; none while it has one.
    polls: Option<u32>,
    /// True if the source has shown a feed in this run.
    has_seen_feed: bool,
}

/// News of the source.
#[derive(Debug)]
pub enum News {
    /// The store has its catalog.
    None {
        /// Pause that the next request should be delayed by.
        pause: Duration,
    },
    /// Changes, which make a copy of one moment.
    Changes(Changes),
    /// The source has no feed: poll it.
    NoFeed,
}

impl Follower {
    /// A mirror that goes on from the copy that the store has, if the state file knows it.
    ///
    /// # Errors
    ///
    /// If the store can't be read.
    pub fn new(
        source: Source,
        texts: TextForm,
        state: Option<StateFile>,
        store: &Store,
    ) -> anyhow::Result<Self> {
        let held = state
            .as_ref()
            .map(|state| state.held(store, source.base(), texts));
        Ok(Self {
            source,
            texts,
            held: held.transpose()?.flatten(),
            state,
            walked: None,
            polls: None,
            has_seen_feed: false,
        })
    }

    /// Returns the number of products, if it is known.
    #[must_use]
    pub fn products(&self) -> Option<u64> {
        self.held.as_ref()?.products
    }

    /// Returns true unless the source is polled.
    #[must_use]
    pub fn is_following(&self) -> bool {
        self.polls.is_none()
    }

    /// Waits for news of the source. The store isn't changed, whenever this is dropped.
    ///
    /// # Errors
    ///
    /// If the source can't be asked, or doesn't answer as the contract says.
    pub async fn fetch(&mut self, store: &Store) -> anyhow::Result<News> {
        if let Some(polls) = &mut self.polls {
            *polls += 1;
            if *polls < POLLS_PER_LOOK && !self.has_seen_feed {
                return Ok(News::NoFeed);
            }
        }
        let mut looks_again = true;
        loop {
            self.forget_if_foreign(store)?;
            let held = self.held.as_ref();
            let since = held.map(|held| (held.token.clone(), held.version));
            let is_whole = since.is_none();
            if is_whole && looks_again {
                self.source.look_again();
            }
            let start = Start {
                since,
                is_known: self.has_seen_feed,
            };
            let asked = Instant::now();
            let collected = match collect(&self.source, start).await? {
                FeedResult::Collected(collected) => collected,
                FeedResult::Absent => {
                    if self.polls.replace(0).is_none() {
                        tracing::info!("the source has no feed of changes; polling");
                    }
                    return Ok(News::NoFeed);
                }
                FeedResult::Gone => {
                    self.forget_gone(is_whole)?;
                    continue;
                }
                FeedResult::OtherVersion => {
                    tracing::info!("the source's API version changed; reading its whole catalog");
                    self.held = None;
                    // Within a walk it fell back: once more would be without an end.
                    looks_again = !is_whole;
                    continue;
                }
            };
            (self.polls, self.has_seen_feed) = (None, true);
            if is_whole {
                self.walked = Some(Instant::now());
            } else {
                self.forget_if_foreign(store)?;
                if self.held.is_none() {
                    continue;
                }
            }
            return self.news(store, collected, is_whole, asked).await;
        }
    }

    /// Forgets the copy if another command has published since: the next walk undoes that.
    fn forget_if_foreign(&mut self, store: &Store) -> anyhow::Result<()> {
        if self.held.is_some() {
            let live = store.state()?.revision_id;
            self.held = self
                .held
                .take()
                .filter(|held| live.as_ref() == Some(&held.revision_id));
        }
        Ok(())
    }

    /// Forgets the copy whose token is gone.
    fn forget_gone(&mut self, is_whole: bool) -> anyhow::Result<()> {
        let base = self.source.base();
        self.held = None;
        let is_soon = |walked: Instant| walked.elapsed() < MIN_WALK_INTERVAL;
        if is_whole || self.walked.take().is_some_and(is_soon) {
            bail!("{base} ended a token that it had just given");
        }
        tracing::warn!("the source ended the token; reading its whole catalog");
        Ok(())
    }

    async fn news(
        &mut self,
        store: &Store,
        collected: Collected,
        is_whole: bool,
        asked: Instant,
    ) -> anyhow::Result<News> {
        let Collected {
            pending,
            next,
            version,
            arrived,
            pause,
        } = collected;
        if let Some(held) = self.held.as_mut().filter(|_| pending.is_empty()) {
            held.token = next;
            self.save(None);
            let is_short = asked.elapsed() < MIN_WAIT;
            let pause = pause.or_else(|| is_short.then(|| jitter::slight(MIN_WAIT)));
            let pause = pause.unwrap_or_default();
            return Ok(News::None { pause });
        }
        let (records, gone) = pending.finish()?;
        let is_without_records = records.metadata().context(NO_TEMPORARY_FILE)?.len() == 0;
        let records = match self.texts {
            TextForm::Addresses => records,
            TextForm::Markdown => texts::bring(&self.source, store, records).await?,
        };
        Ok(News::Changes(Changes {
            records,
            gone: (!is_whole).then_some(gone),
            is_without_records,
            next,
            version,
            arrived,
        }))
    }

    /// Publishes changes: a load with these settings. If it is refused, the token stays. Returns nothing, and changes nothing,
    /// if they are changes of another revision than the live one: the next walk replaces that.
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
        let before = store.state()?.revision_id;
        let held_id = self.held.as_ref().map(|held| held.revision_id.clone());
        if !is_whole && held_id != before {
            self.held = None;
            return Ok(None);
        }
        let after = match is_whole {
            true => before.clone(),
            false => held_id,
        };
        let publishing = changes.publishing(after).context(NO_TEMPORARY_FILE)?;
        self.save(Some(publishing));
        let name = format!("{}/v2/product/changes", self.source.base());
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
            let old = self.held.take();
            let revision_id = match is_whole {
                true => loaded_revision(&report, before, store),
                false => revision_after(&report, before, old.as_ref(), store),
            };
            let products = products(&report, old.filter(|_| !is_whole));
            self.held = revision_id.map(|revision_id| Held {
                token: changes.next,
                version: changes.version,
                revision_id,
                products,
            });
        }
        // Also after a refusal: what follows it in the history is another writer's.
        self.save(None);
        Ok(Some(report))
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

#[cfg(test)]
mod tests;
