//! The source's feed of changes (docs/contract/changes.md): a sync, whose changes are collected until they make a copy of one
//! moment.

use std::time::{Duration, Instant};

use anyhow::bail;
use vitrine_client::{ApiVersion, Change, Error, ErrorType, Json, Results, SyncEvent};

use super::pending::Pending;
use super::source::{MAX_PAUSE, Source, error_type};
use super::walk::MAX_PAGES;

/// Path of the feed.
pub(super) const PATH: &str = "/v2/product/changes";

/// Maximum number of answers until they make a copy of one moment.
const MAX_ANSWERS: usize = 2 * MAX_PAGES;

/// Minimum time between two whole readings of a source that ends its tokens.
const MIN_WALK_INTERVAL: Duration = Duration::from_secs(30);

/// Maximum number of changes of an answer (docs/contract/changes.md).
const MAX_CHANGES: usize = 500;

/// Maximum numbers of answers in a row that promise more but don't get on: ones whose codes don't ascend, and empty ones.
const MAX_IDLE_ANSWERS: [usize; 2] = [10, 1_000];

/// A running sync.
#[derive(Debug)]
pub(super) struct Feed {
    events: Results<SyncEvent<Json>>,
    /// API version that it asks for.
    pub(super) version: ApiVersion,
    /// Last token.
    token: Option<String>,
    collected: Collected,
    /// Time at which the source last ended a token.
    token_ended: Option<Instant>,
}

/// Changes, which make a copy of one moment once the sync is at rest.
#[derive(Debug)]
pub(super) struct Collected {
    pub(super) pending: Pending,
    /// True if the changes are the whole catalog.
    pub(super) is_whole: bool,
    /// Time at which the first of the answers arrived.
    pub(super) arrived: Instant,
    answers: usize,
    /// Last code of the answer before, if that promised more.
    last_code: Option<String>,
    /// Numbers of answers in a row that didn't get on, as in [`MAX_IDLE_ANSWERS`].
    idle_answers: [usize; 2],
}

impl Collected {
    fn none_yet() -> anyhow::Result<Self> {
        Ok(Self {
            pending: Pending::new()?,
            is_whole: false,
            arrived: Instant::now(),
            answers: 0,
            last_code: None,
            idle_answers: [0; 2],
        })
    }

    /// Takes an answer.
    ///
    /// # Errors
    ///
    /// If it isn't as the contract says, or if answers don't get on.
    fn take(&mut self, changes: Vec<Change<Json>>, has_more: bool) -> anyhow::Result<()> {
        if self.answers == 0 {
            self.arrived = Instant::now();
        }
        self.answers += 1;
        if changes.len() > MAX_CHANGES {
            bail!("the answer has more than {MAX_CHANGES} changes");
        }
        let kind = usize::from(changes.is_empty());
        let last = changes.last().map(|change| change.code.clone());
        match has_more && last <= self.last_code {
            true => self.idle_answers[kind] += 1,
            false => self.idle_answers = [0; 2],
        }
        if self.idle_answers[kind] >= MAX_IDLE_ANSWERS[kind] {
            bail!("the feed doesn't advance");
        }
        self.last_code = last.filter(|_| has_more);
        self.pending.take(changes)?;
        if self.answers > MAX_ANSWERS {
            bail!("the catalog changed during each of {MAX_ANSWERS} answers; try again later");
        }
        Ok(())
    }
}

impl Feed {
    /// Returns a sync that continues from a token; without one, it begins with the whole catalog.
    pub(super) fn new(
        source: &Source,
        version: ApiVersion,
        token: Option<String>,
    ) -> anyhow::Result<Self> {
        let changes = source.client(version).changes().read_as();
        Ok(Self {
            events: changes.sync(token.clone()),
            version,
            token,
            collected: Collected::none_yet()?,
            token_ended: None,
        })
    }

    /// Returns true if a token was given or received.
    pub(super) fn has_token(&self) -> bool {
        self.token.is_some()
    }

    /// Collects changes until the sync is at rest. Returns them with the token of what follows.
    ///
    /// # Errors
    ///
    /// If the source can't be asked, or doesn't answer as the contract says. Then the sync has ended.
    pub(super) async fn collect(&mut self, source: &Source) -> anyhow::Result<(Collected, String)> {
        let mut failures = 0;
        while let Some(event) = self.events.next().await {
            match event? {
                SyncEvent::StartOver => {
                    if self.token.take().is_some() {
                        let now = Instant::now();
                        let before = self.token_ended.replace(now);
                        if before.is_some_and(|before| now - before < MIN_WALK_INTERVAL) {
                            bail!("the source ended a token that it had just given");
                        }
                        tracing::warn!("the source ended the token; reading its whole catalog");
                    }
                    self.collected = Collected::none_yet()?;
                    self.collected.is_whole = true;
                }
                SyncEvent::Changes {
                    changes,
                    token,
                    has_more,
                    at_rest,
                    ..
                } => {
                    failures = 0;
                    if has_more && self.token.as_ref() == Some(&token) {
                        bail!("the feed doesn't advance");
                    }
                    let collected = &mut self.collected;
                    collected.take(changes, has_more)?;
                    self.token = Some(token.clone());
                    // What was collected begins with a copy at rest, or with nothing: so one answer suffices.
                    if at_rest || (collected.answers == 1 && !has_more) {
                        let next = Collected::none_yet()?;
                        return Ok((std::mem::replace(collected, next), token));
                    }
                }
                SyncEvent::Retrying(error) => {
                    failures += 1;
                    if failures > source.retries || error.retry_after() > Some(MAX_PAUSE) {
                        return Err(error.into());
                    }
                    tracing::info!(%error, "a request failed and is sent again");
                }
                _ => {}
            }
        }
        bail!("the feed ended")
    }
}

/// Returns true if an error says that the source has no feed. `is_known` is true if it has shown one.
pub(super) fn is_absent(error: &Error, is_known: bool) -> bool {
    match (error.status(), error_type(error)) {
        (Some(404), Some(ErrorType::NotFound)) => true,
        // Of a source that has a feed, a stray refusal of a gateway isn't its word.
        (Some(404), _) => !is_known,
        // Gateways and servers of another make.
        (Some(403 | 405 | 501), _) => !is_known && error.api().is_none(),
        _ => false,
    }
}

/// Returns true if an error says that the token's form isn't known.
pub(super) fn is_about_token(error: &Error) -> bool {
    let refused = [ErrorType::PaginationError, ErrorType::BadRequest];
    error.status() == Some(400) && error_type(error).is_some_and(|kind| refused.contains(&kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_that_do_not_get_on_are_followed_only_for_a_while() {
        let change = |code: &str| {
            let json = format!(r#"[{{"code":"{code}","product":null}}]"#);
            serde_json::from_str::<Vec<Change<Json>>>(&json).unwrap()
        };
        let mut ascending = Collected::none_yet().unwrap();
        // Changes of products that are known already, from the first code again and again.
        for number in 0..100 {
            let code = format!("P{}", number % 5);
            ascending.take(change(&code), true).unwrap();
        }
        for (changes, most) in [
            (change("A"), MAX_IDLE_ANSWERS[0]),
            (Vec::new(), MAX_IDLE_ANSWERS[1]),
        ] {
            let mut collected = Collected::none_yet().unwrap();
            let taken = (0..2_000).take_while(|_| collected.take(changes.clone(), true).is_ok());
            assert!((most - 1..=most).contains(&taken.count()));
            let mut last = Collected::none_yet().unwrap();
            assert!((0..2_000).all(|_| last.take(changes.clone(), false).is_ok()));
        }
    }
}
