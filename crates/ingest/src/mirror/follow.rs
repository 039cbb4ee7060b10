//! A copy that follows its source: changes are asked for with a request that the source holds back until there are some,
//! and published once they make a copy of one moment.

use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use sha2::{Digest, Sha256};
use vitrine_store::Store;

use super::feed::{self, FeedAnswer, Token};
use super::pages::MAX_PAGES;
use super::pending::Pending;
use super::source::Source;
use super::state::{Held, Publishing, StateFile, id_before};
use super::{NO_TEMPORARY_FILE, TextForm, loaded_revision, outcome, texts};
use crate::jitter;
use crate::load::apply::{Mode, Retirement, hexadecimal};
use crate::load::progress::Silent;
use crate::load::report::{Outcome, Place, Report};
use crate::load::{self, LoadSettings, Opened};

/// Maximum number of answers until they make a copy of one moment.
const MAX_ANSWERS: usize = 2 * MAX_PAGES;

/// Minimum time between two walks, if the token of the first one is refused.
const MIN_WALK_INTERVAL: Duration = Duration::from_secs(30);

/// Minimum time of a wait that ends without changes; after a shorter one the next request is delayed.
const MIN_WAIT: Duration = Duration::from_secs(1);

/// Number of polls of a source without a feed after which it is asked for one again.
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

/// Changes that are ready to be loaded.
#[derive(Debug)]
pub struct Changes {
    records: File,
    /// Codes of products that aren't visible any more; none if the records are the whole catalog.
    gone: Option<Vec<String>>,
    is_without_records: bool,
    next: Token,
    arrived: Instant,
}

impl Changes {
    /// Returns the time at which the first of the answers arrived.
    #[must_use]
    pub fn arrived(&self) -> Instant {
        self.arrived
    }
}

/// Answers that make a copy of one moment.
struct Collected {
    pending: Pending,
    next: Token,
    arrived: Instant,
    pause: Option<Duration>,
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
        store: &dyn Store,
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
        })
    }

    /// Returns the number of products, if it is known.
    #[must_use]
    pub fn products(&self) -> Option<u64> {
        self.held.as_ref()?.products
    }

    /// Waits for news of the source. The store isn't changed, whenever this is dropped.
    ///
    /// # Errors
    ///
    /// If the source can't be asked, or doesn't answer as the contract says.
    pub async fn fetch(&mut self, store: &dyn Store) -> anyhow::Result<News> {
        if let Some(polls) = &mut self.polls {
            *polls += 1;
            if *polls < POLLS_PER_LOOK {
                return Ok(News::NoFeed);
            }
        }
        loop {
            self.forget_if_foreign(store)?;
            let since = self.held.as_ref().map(|held| held.token.clone());
            let is_whole = since.is_none();
            let asked = Instant::now();
            let collected = match collect(&self.source, since).await? {
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
            };
            self.polls = None;
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
    fn forget_if_foreign(&mut self, store: &dyn Store) -> anyhow::Result<()> {
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
        store: &dyn Store,
        collected: Collected,
        is_whole: bool,
        asked: Instant,
    ) -> anyhow::Result<News> {
        let Collected {
            pending,
            next,
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
            arrived,
        }))
    }

    /// Publishes changes: a load with these settings. If it is refused, the token stays.
    ///
    /// # Errors
    ///
    /// If the store can't be written. Then nothing has changed.
    pub fn load(
        &mut self,
        store: &dyn Store,
        changes: Changes,
        settings: LoadSettings,
    ) -> anyhow::Result<Report> {
        let Changes {
            mut records,
            gone,
            is_without_records,
            next,
            ..
        } = changes;
        let source_digest = digest(&mut records).context(NO_TEMPORARY_FILE)?;
        let name = format!("{}/v2/product/changes", self.source.base());
        let is_whole = gone.is_none();
        let mode = match gone {
            None => Mode::Replace,
            Some(gone) => Mode::Merge {
                retire: retirements(&gone, &name),
            },
        };
        // Of a whole catalog without products, the load says what is wrong.
        let inputs = match is_without_records && !is_whole {
            true => Vec::new(),
            false => vec![Opened::new(name, Box::new(records))],
        };
        let before = store.state()?.revision_id;
        self.save(Some(Publishing {
            token: next.clone(),
            source_digest,
            after: before.clone(),
        }));
        let settings = LoadSettings { mode, ..settings };
        let report = load::load(store, inputs, settings, &Silent)?;
        if outcome(&report).is_success() {
            let old = self.held.take();
            let revision_id = match is_whole {
                true => loaded_revision(&report, before, store),
                false => revision_after(&report, before, old.as_ref(), store),
            };
            let products = products(&report, old.filter(|_| !is_whole));
            self.held = revision_id.map(|revision_id| Held {
                token: next,
                revision_id,
                products,
            });
        }
        // Also after a refusal: what follows it in the history is another writer's.
        self.save(None);
        Ok(report)
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

/// Result of asking the feed.
enum FeedResult {
    Collected(Collected),
    Gone,
    Absent,
}

/// Collects answers until the copy that they change is one of one moment: after a walk of one answer from such a copy, else
/// once a following answer is empty.
async fn collect(source: &Source, since: Option<Token>) -> anyhow::Result<FeedResult> {
    let mut pending = Pending::new()?;
    let mut token = since;
    let mut arrived = None;
    let (mut is_of_one_moment, mut is_first) = (true, true);
    for _ in 0..MAX_ANSWERS {
        let answer = feed::ask(source, token.as_ref(), arrived.is_none()).await?;
        let page = match answer {
            FeedAnswer::Page(page) => page,
            FeedAnswer::Gone => return Ok(FeedResult::Gone),
            FeedAnswer::Absent => return Ok(FeedResult::Absent),
        };
        let arrived = *arrived.get_or_insert_with(Instant::now);
        if page.has_more && token.as_ref() == Some(&page.next) {
            bail!("the feed of {} doesn't advance", source.base());
        }
        let is_empty = page.changes.is_empty();
        pending.take(page.changes)?;
        let is_whole_walk = is_first && !page.has_more;
        if is_whole_walk && (is_of_one_moment || is_empty) {
            return Ok(FeedResult::Collected(Collected {
                pending,
                next: page.next,
                arrived,
                pause: page.pause,
            }));
        }
        is_of_one_moment = false;
        is_first = !page.has_more;
        token = Some(page.next);
    }
    bail!(
        "the catalog of {} changed during each of {MAX_ANSWERS} answers; try again when it changes less often",
        source.base()
    )
}

fn retirements(gone: &[String], name: &str) -> Vec<Retirement> {
    let place = Place::file(name);
    // A text that isn't a code is none of a live product.
    let codes = gone.iter().filter_map(|code| code.parse().ok());
    codes
        .map(|code| Retirement {
            code,
            place: place.clone(),
        })
        .collect()
}

/// Returns the digest of a file, as a load notes it, and rewinds the file.
fn digest(file: &mut File) -> std::io::Result<String> {
    let mut digest = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    file.rewind()?;
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            read => digest.update(&buffer[..read]),
        }
    }
    file.rewind()?;
    Ok(hexadecimal(digest))
}

/// Returns the id of the revision that changes were loaded into, if it is the copy: the one before must have been, too.
fn revision_after(
    report: &Report,
    before: Option<String>,
    held: Option<&Held>,
    store: &dyn Store,
) -> Option<String> {
    let copy = &held?.revision_id;
    if let Outcome::Published(revision) = &report.applied.as_ref()?.outcome {
        let parent = id_before(store, revision.number).ok().flatten();
        return (parent.as_ref() == Some(copy)).then(|| revision.id.clone());
    }
    loaded_revision(report, before, store).filter(|revision_id| revision_id == copy)
}

/// Returns the number of products after a load; `held` is the copy that it changed a part of.
fn products(report: &Report, held: Option<Held>) -> Option<u64> {
    let counts = report.applied.as_ref()?.plan.counts();
    match held {
        None => Some(counts.created + counts.changed + counts.unchanged),
        Some(held) => (held.products? + counts.created).checked_sub(counts.retired),
    }
}
