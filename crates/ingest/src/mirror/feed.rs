//! The source's feed of changes (docs/contract/changes.md): a sync, whose changes are collected until they make a copy of one
//! moment.

use std::time::Instant;

use anyhow::bail;
use vitrine_client::{ApiVersion, Error, ErrorType, Json, Results, SyncEvent};

use super::pending::Pending;
use super::source::{MAX_PAUSE, Source, error_type};
use super::walk::MAX_PAGES;

/// Path of the feed.
pub(super) const PATH: &str = "/v2/product/changes";

/// Maximum number of answers until they make a copy of one moment.
const MAX_ANSWERS: usize = 2 * MAX_PAGES;

/// A running sync.
#[derive(Debug)]
pub(super) struct Feed {
    events: Results<SyncEvent<Json>>,
    /// API version that it asks for.
    pub(super) version: ApiVersion,
    /// Last token.
    token: Option<String>,
    collected: Collected,
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
}

impl Collected {
    fn none_yet() -> anyhow::Result<Self> {
        Ok(Self {
            pending: Pending::new()?,
            is_whole: false,
            arrived: Instant::now(),
            answers: 0,
        })
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
                    if collected.answers == 0 {
                        collected.arrived = Instant::now();
                    }
                    collected.answers += 1;
                    collected.pending.take(changes)?;
                    self.token = Some(token.clone());
                    if at_rest {
                        let next = Collected::none_yet()?;
                        return Ok((std::mem::replace(collected, next), token));
                    }
                    if collected.answers > MAX_ANSWERS {
                        bail!(
                            "the catalog changed during each of {MAX_ANSWERS} answers; try again later"
                        );
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
