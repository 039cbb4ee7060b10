//! Confirmations of acts: one that is sent again, by a second click or a page that is loaded again, must not act again.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use crate::browser::answer::{Page, Shown};

/// Number of confirmations that are remembered.
const MAX_CONFIRMED: usize = 1_000;

/// Page of an act that was done, locked while it is being done.
type DonePage = Arc<Mutex<Option<Page>>>;

/// Confirmations that were sent to this server, by their random names; without a page once the act was done.
#[derive(Default)]
pub(in crate::browser) struct Confirmed(Mutex<VecDeque<(String, Option<DonePage>)>>);

impl Confirmed {
    /// Does an act, unless it was done before: then returns `None`. `act` returns its page, and true if it was done; after a failure it
    /// can be confirmed again. A confirmation that is repeated while the act is being done gets the page of the first: a browser shows
    /// only the answer to the last click.
    pub(super) fn once(&self, once: &str, act: impl FnOnce() -> (Shown, bool)) -> Option<Shown> {
        let done = self.page_of(once)?;
        let mut page = done.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(page) = &*page {
            return Some(Ok(page.clone()));
        }
        let (shown, is_done) = act();
        if is_done && let Ok(shown) = &shown {
            *page = Some(shown.clone());
            // Only repetitions that wait still have the page, which may show a new key.
            self.forget_page(once);
        }
        Some(shown)
    }

    /// Returns the place of the page; `None` if the act was done before.
    fn page_of(&self, once: &str) -> Option<DonePage> {
        let mut sent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, done)) = sent.iter().find(|(known, _)| known == once) {
            return done.clone();
        }
        if sent.len() == MAX_CONFIRMED {
            sent.pop_front();
        }
        let done = DonePage::default();
        sent.push_back((once.to_owned(), Some(Arc::clone(&done))));
        Some(done)
    }

    fn forget_page(&self, once: &str) {
        let mut sent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, done)) = sent.iter_mut().find(|(known, _)| known == once) {
            *done = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use http::StatusCode;

    use super::*;
    use crate::browser::answer::plain;

    fn page(words: &'static str) -> Shown {
        Ok(plain(StatusCode::OK, words))
    }

    #[test]
    fn failed_act_can_be_confirmed_again_until_it_is_done() {
        let confirmed = Confirmed::default();
        for is_done in [false, false, true] {
            let act = || (page("page"), is_done);
            assert!(confirmed.once("a", act).is_some());
        }
        let again = confirmed.once("a", || unreachable!("it was done"));
        assert!(again.is_none());
        assert!(confirmed.once("b", || (page("other"), true)).is_some());
    }

    #[test]
    fn second_click_gets_the_page_of_the_first() {
        let confirmed = &Confirmed::default();
        let (begin, has_begun) = mpsc::channel();
        std::thread::scope(|scope| {
            let second = scope.spawn(move || {
                has_begun.recv().expect("the first click");
                confirmed.once("a", || unreachable!("the first click does it"))
            });
            let first = confirmed.once("a", || {
                begin.send(()).expect("a second click");
                // The list, the first click and the second one have the page.
                let is_waited_for = || {
                    let sent = confirmed.0.lock().expect("no panic");
                    sent[0]
                        .1
                        .as_ref()
                        .is_some_and(|page| Arc::strong_count(page) == 3)
                };
                while !is_waited_for() {
                    std::thread::yield_now();
                }
                (page("a key"), true)
            });
            assert!(first.is_some());
            let second = second.join().expect("no panic").expect("a page");
            assert_eq!(second.map(|page| page.status()).ok(), Some(StatusCode::OK));
        });
        let again = confirmed.once("a", || unreachable!("it was done"));
        assert!(again.is_none());
    }
}
