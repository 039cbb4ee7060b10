//! Pauses of a sync: none while there is progress, growing ones otherwise, so that no server can keep it busy.

use std::cmp;
use std::time::Duration;

use tokio::time::Instant;

use crate::retry::Retries;

/// Time without trouble after which the next pause is a short one again, beside the longest pause.
const CALM: Duration = Duration::from_secs(60);

/// Maximum number of empty pages of one walk that are followed without a pause: a server looks at thousands of products for
/// each.
const MAX_EMPTY_PAGES: u32 = 1_000;

/// Properties of a page that decide on the pause after it.
pub(crate) struct Answer<'p> {
    /// Last code of the page.
    pub(crate) last_code: Option<&'p str>,
    /// True if the token is that of the request.
    pub(crate) is_same_token: bool,
    pub(crate) has_more: bool,
    /// Time for which the server was allowed to hold the answer; `None` if it was asked for the state of the copy.
    pub(crate) wait: Option<Duration>,
    /// True if the server asks for a pause (`Retry-After`), which the caller makes.
    pub(crate) asks_for_pause: bool,
}

/// Pauses between requests.
pub(crate) struct Pacing {
    retries: Retries,
    /// Failures and answers without progress, without a calm time between them.
    setbacks: u32,
    last_setback: Option<Instant>,
    /// Last code of the current walk.
    last_code: Option<String>,
    /// Number of empty pages of the current walk.
    empty_pages: u32,
}

impl Pacing {
    pub(crate) fn new(retries: Retries) -> Self {
        Self {
            retries,
            setbacks: 0,
            last_setback: None,
            last_code: None,
            empty_pages: 0,
        }
    }

    /// Begins a new walk: its codes ascend from the first.
    pub(crate) fn restart_walk(&mut self) {
        (self.last_code, self.empty_pages) = (None, 0);
    }

    /// Returns the pause after a page.
    pub(crate) fn after_page(
        &mut self,
        answer: &Answer<'_>,
        sent: Instant,
        now: Instant,
    ) -> Duration {
        let elapsed = now.saturating_duration_since(sent);
        // Codes ascend through a walk.
        let is_ascending = answer.last_code > self.last_code.as_deref();
        let is_progress = match (answer.has_more, answer.last_code, answer.wait) {
            (true, Some(_), _) => is_ascending,
            // The server looked at products that this client doesn't see.
            (true, None, _) => !answer.is_same_token && self.empty_pages < MAX_EMPTY_PAGES,
            (false, Some(_), _) => !answer.is_same_token,
            // A server that holds no more answers says when to ask again.
            (false, None, Some(_)) if answer.asks_for_pause => true,
            (false, None, Some(wait)) => !wait.is_zero() && elapsed >= wait / 2,
            (false, None, None) => true,
        };
        match (answer.has_more, answer.last_code) {
            (true, Some(code)) => {
                self.last_code = cmp::max(self.last_code.take(), Some(code.to_owned()));
            }
            // The catalog may have changed during the walk: then its changes follow, from the first code.
            (true, None) => (self.last_code, self.empty_pages) = (None, self.empty_pages + 1),
            (false, _) => self.restart_walk(),
        }
        match (is_progress, answer.has_more) {
            (true, true) => Duration::ZERO,
            // Not more often than this, even if the server has changes all the time.
            (true, false) => self.retries.first_pause.saturating_sub(elapsed),
            (false, _) => self.after_failure(now),
        }
    }

    /// Returns the pause after a failure, longer with each one.
    pub(crate) fn after_failure(&mut self, now: Instant) -> Duration {
        let calm = CALM.saturating_add(self.retries.longest_pause);
        let is_calm = |last: Instant| now.saturating_duration_since(last) > calm;
        if self.last_setback.is_none_or(is_calm) {
            self.setbacks = 0;
        }
        self.setbacks = self.setbacks.saturating_add(1);
        self.last_setback = Some(now);
        self.retries.pause(self.setbacks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAIT: Duration = Duration::from_secs(40);
    const SECOND: Duration = Duration::from_secs(1);

    fn pacing() -> Pacing {
        Pacing::new(Retries::default())
    }

    fn answer(code: Option<&str>, has_more: bool, wait: Option<Duration>) -> Answer<'_> {
        Answer {
            last_code: code,
            is_same_token: false,
            has_more,
            wait,
            asks_for_pause: false,
        }
    }

    #[test]
    fn progress_is_followed_by_no_growing_pause() {
        let now = Instant::now();
        let first_pause = Retries::default().first_pause;
        let mut pacing = pacing();
        for code in ["A", "B", "C"] {
            let page = answer(Some(code), true, None);
            assert_eq!(pacing.after_page(&page, now, now), Duration::ZERO);
        }
        for (elapsed, expected) in [
            (Duration::ZERO, first_pause),
            (first_pause / 2, first_pause / 2),
            (SECOND, Duration::ZERO),
        ] {
            // The next walk begins with any code.
            for page in [
                answer(Some("A"), false, Some(WAIT)),
                answer(Some("A"), false, None),
                answer(None, false, None),
            ] {
                assert_eq!(pacing.after_page(&page, now, now + elapsed), expected);
            }
        }
        let held = answer(None, false, Some(WAIT));
        assert_eq!(pacing.after_page(&held, now, now + WAIT), Duration::ZERO);
        let full = Answer {
            asks_for_pause: true,
            ..held
        };
        assert_eq!(pacing.after_page(&full, now, now), first_pause);
        assert_eq!(pacing.setbacks, 0);
    }

    #[test]
    fn answers_without_progress_are_setbacks() {
        let now = Instant::now();
        for page in [
            Answer {
                is_same_token: true,
                ..answer(None, true, None)
            },
            answer(Some("B"), true, None),
            answer(Some("A"), true, Some(WAIT)),
            answer(None, false, Some(WAIT)),
            answer(None, false, Some(Duration::ZERO)),
            Answer {
                is_same_token: true,
                ..answer(Some("C"), false, Some(WAIT))
            },
        ] {
            let mut pacing = pacing();
            pacing.after_page(&answer(Some("B"), true, None), now, now);
            pacing.after_page(&page, now, now);
            assert_eq!(pacing.setbacks, 1, "{:?}", page.last_code);
        }
        // The second page of a walk that never gets on, in spite of its last one.
        let mut pacing = pacing();
        for expected in 0..10 {
            pacing.after_page(&answer(Some("B"), true, None), now, now);
            assert_eq!(pacing.setbacks, expected);
        }
    }

    #[test]
    fn empty_pages_with_more_are_progress_up_to_a_maximum() {
        let now = Instant::now();
        let mut pacing = pacing();
        let (empty, last) = (answer(None, true, None), answer(Some("A"), false, None));
        for _ in 0..MAX_EMPTY_PAGES {
            assert_eq!(pacing.after_page(&empty, now, now), Duration::ZERO);
        }
        assert_eq!(pacing.setbacks, 0);
        pacing.after_page(&empty, now, now);
        assert_eq!(pacing.setbacks, 1);
        // The next walk has as many again, and begins with any code.
        pacing.after_page(&last, now, now + SECOND);
        pacing.after_page(&answer(Some("B"), true, None), now, now);
        pacing.after_page(&empty, now, now);
        let page = answer(Some("A"), true, None);
        assert_eq!(pacing.after_page(&page, now, now), Duration::ZERO);
        assert_eq!(pacing.setbacks, 1);
    }

    #[test]
    fn setbacks_are_forgotten_after_a_calm_time() {
        let now = Instant::now();
        let mut pacing = pacing();
        for expected in 1..50 {
            let pause = pacing.after_failure(now + expected * SECOND);
            assert!(pause <= Retries::default().longest_pause, "{pause:?}");
            assert_eq!(pacing.setbacks, expected);
        }
        pacing.after_failure(now + 49 * SECOND + CALM);
        assert_eq!(pacing.setbacks, 50);
        let later = now + 49 * SECOND + 2 * CALM + 11 * SECOND;
        let pause = pacing.after_failure(later);
        assert_eq!(pacing.setbacks, 1);
        assert!(pause <= Retries::default().first_pause, "{pause:?}");
    }
}
