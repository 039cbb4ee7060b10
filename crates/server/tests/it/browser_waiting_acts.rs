//! Acts of operators that wait for another writer of the store, and the pages beside them.

use std::sync::mpsc;
use std::thread;

use vitrine::browser::acts::MAX_ACTS;
use vitrine_store::{IfMissing, open};

use crate::browser_acts::console;
use crate::harness::{PATIENCE, text};

#[test]
fn pages_are_quick_while_acts_wait_for_the_store() {
    let console = &console();
    let owner = &console.sign_in("owner");
    // This process is the other writer.
    let held = open(&console.store.url(), IfMissing::Refuse).expect("the store");
    let publication = held.publish().expect("a publish");
    let disable: (&str, &[(&str, &str)]) = ("/acts/disable", &[("code", "A-1")]);
    // In a database a change of keys doesn't wait for a load.
    let other = match console.store.database() {
        Some(_) => disable,
        None => (
            "/acts/create-key",
            &[("label", "partner"), ("confirm", "yes")][..],
        ),
    };
    let beyond = 4;
    thread::scope(|scope| {
        let (answered, answers) = mpsc::channel();
        for number in 0..MAX_ACTS + beyond {
            let answered = answered.clone();
            let (path, fields) = if number % 2 == 0 { disable } else { other };
            scope.spawn(move || answered.send(console.post_form(path, owner, fields)));
        }
        for _ in 0..beyond {
            let refused = answers.recv_timeout(PATIENCE).expect("an answer");
            let shown = text(&refused.body);
            assert_eq!(refused.status, 503, "{shown}");
            assert!(shown.contains("Too many acts wait"), "{shown}");
            assert!(shown.contains("Try again in a moment"), "{shown}");
        }
        for path in [
            "/",
            "/catalog",
            "/catalog/A-1",
            "/overrides",
            "/keys",
            "/audit",
            "/revisions",
            "/acts",
            "/acts/disable",
            "/acts/set-assortment?name=nordic",
        ] {
            assert_eq!(console.get(path, &owner.cookie()).status, 200, "{path}");
        }
        assert!(
            answers.try_recv().is_err(),
            "the acts still wait, and no page waited for them"
        );
        drop(publication);
        for _ in 0..MAX_ACTS {
            let done = answers.recv_timeout(PATIENCE).expect("an answer");
            assert_eq!(done.status, 200, "{}", text(&done.body));
        }
    });
}
