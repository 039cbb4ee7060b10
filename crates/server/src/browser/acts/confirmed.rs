//! Confirmations of acts: one that is sent again, by a second click or a page that is loaded again, must not act again.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::browser::answer::Page;

/// Number of confirmations that are remembered.
const MAX_CONFIRMED: usize = 1_000;

/// Maximum time that a repeated confirmation waits for the first one: longer than acts wait for another writer.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// Confirmations that were sent to this server.
#[derive(Default)]
pub(in crate::browser) struct Confirmed {
    sent: Mutex<VecDeque<Sent>>,
    ended: Condvar,
}

struct Sent {
    once: String,
    state: State,
}

enum State {
    /// With the number of repetitions that wait for its page.
    Running(usize),
    /// With its page, while repetitions wait for it: a browser shows only the answer to the last click.
    Done(Option<Page>, usize),
}

/// Answer to a confirmation.
pub(super) enum Begun<'c> {
    /// It is the first; the act is to be done.
    First(Confirmation<'c>),
    /// It was done meanwhile, with this page.
    Meanwhile(Page),
    /// It was done before.
    Before,
}

/// An act that is being done. Without [`done`](Self::done) it can be confirmed again.
pub(super) struct Confirmation<'c> {
    all: &'c Confirmed,
    once: &'c str,
}

impl Confirmed {
    /// Begins an act. Waits while the same confirmation is being answered.
    pub(super) fn begin<'c>(&'c self, once: &'c str) -> Begun<'c> {
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        let mut waits = false;
        loop {
            let found = sent.iter_mut().find(|one| one.once == once);
            match found.map(|one| &mut one.state) {
                None => {
                    if sent.len() == MAX_CONFIRMED {
                        sent.pop_front();
                    }
                    sent.push_back(Sent {
                        once: once.to_owned(),
                        state: State::Running(0),
                    });
                    return Begun::First(Confirmation { all: self, once });
                }
                Some(State::Running(waiting)) => {
                    *waiting += usize::from(!waits);
                    waits = true;
                }
                Some(State::Done(page, waiting)) if waits => {
                    *waiting = waiting.saturating_sub(1);
                    let own = match waiting {
                        0 => page.take(),
                        _ => page.clone(),
                    };
                    return own.map_or(Begun::Before, Begun::Meanwhile);
                }
                Some(State::Done(..)) => return Begun::Before,
            }
            let (held, timed_out) = self
                .ended
                .wait_timeout(sent, MAX_WAIT)
                .unwrap_or_else(PoisonError::into_inner);
            sent = held;
            if timed_out.timed_out() {
                return Begun::Before;
            }
        }
    }

    fn end(&self, once: &str, page: Option<&Page>) {
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        match page {
            None => sent.retain(|one| one.once != once || matches!(one.state, State::Done(..))),
            Some(page) => {
                if let Some(one) = sent.iter_mut().find(|one| one.once == once) {
                    let waiting = match one.state {
                        State::Running(waiting) | State::Done(_, waiting) => waiting,
                    };
                    let kept = (waiting > 0).then(|| page.clone());
                    one.state = State::Done(kept, waiting);
                }
            }
        }
        drop(sent);
        self.ended.notify_all();
    }
}

impl Confirmation<'_> {
    /// Notes that the act was done, with this page.
    pub(super) fn done(self, page: &Page) {
        self.all.end(self.once, Some(page));
    }
}

impl Drop for Confirmation<'_> {
    fn drop(&mut self) {
        self.all.end(self.once, None);
    }
}
