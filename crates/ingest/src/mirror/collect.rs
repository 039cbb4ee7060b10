//! Answers of the feed, collected until together they make a copy of one moment.

use std::time::{Duration, Instant};

use anyhow::bail;

use super::feed::{self, FeedAnswer, Request, Token};
use super::pages::MAX_PAGES;
use super::pending::Pending;
use super::source::Source;
use super::version::SourceVersion;

/// Maximum number of answers until they make a copy of one moment.
const MAX_ANSWERS: usize = 2 * MAX_PAGES;

/// State of the mirror before its requests.
#[derive(Debug)]
pub(super) struct Start {
    /// Token of the copy and the API version that it was made with; none for a walk of the whole catalog.
    pub(super) since: Option<(Token, SourceVersion)>,
    /// True if the source is known to have a feed.
    pub(super) is_known: bool,
}

/// Answers that make a copy of one moment.
pub(super) struct Collected {
    pub(super) pending: Pending,
    pub(super) next: Token,
    pub(super) version: SourceVersion,
    pub(super) arrived: Instant,
    pub(super) pause: Option<Duration>,
}

/// Result of asking the feed.
pub(super) enum FeedResult {
    Collected(Collected),
    /// The token can't be continued.
    Gone,
    /// The source has no feed.
    Absent,
    /// The source answers in another API version than the copy has.
    OtherVersion,
}

/// Collects answers until the copy that they change is one of one moment: after a walk of one answer from such a copy, else
/// once a following answer is empty.
///
/// # Errors
///
/// If the source can't be asked, or doesn't answer as the contract says.
pub(super) async fn collect(source: &Source, start: Start) -> anyhow::Result<FeedResult> {
    let mut pending = Pending::new()?;
    let (mut token, mut version) = start.since.unzip();
    // Whether a token's version is the source's shows only an answer: don't wait for changes until then.
    let fits = version.is_none_or(|version| version == source.version());
    let mut arrived = None;
    let (mut is_of_one_moment, mut is_first) = (true, true);
    for _ in 0..MAX_ANSWERS {
        let request = Request {
            since: token.as_ref(),
            waits: fits && arrived.is_none(),
            is_known: start.is_known,
        };
        let answer = feed::ask(source, request).await?;
        let answered = source.version();
        if *version.get_or_insert(answered) != answered {
            return Ok(FeedResult::OtherVersion);
        }
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
                version: answered,
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
