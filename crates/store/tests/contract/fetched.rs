//! Results of fetching outside URLs: stored with a publish, even without a revision.

use std::num::NonZeroU32;

use jiff::Timestamp;
use vitrine_model::content::TextDigest;
use vitrine_store::Publication as _;
use vitrine_store::record::{FetchedText, Keep, RevisionNote};
use vitrine_store::{Store, TextStatus};

use crate::Rule;
use crate::products::{product, product_with_text, publish, publish_texts, put_text, second};

pub const ALL: [Rule; 4] = [
    ("results of fetching are stored", fetched_is_remembered),
    (
        "results of fetching are stored without a revision",
        fetched_is_remembered_without_a_revision,
    ),
    (
        "a dropped publication stores no results",
        a_dropped_publication_remembers_nothing,
    ),
    (
        "a pruned text takes its results with it",
        pruned_with_its_text,
    ),
];

const URL: &str = "https://a.example/d.md";

fn fetched(markdown: &str, at: i64) -> FetchedText {
    FetchedText {
        url: URL.to_owned(),
        digest: TextDigest::of(markdown),
        etag: Some("W/\"ü\"".to_owned()),
        last_modified: None,
        fetched_at: second(at),
    }
}

/// Publishes a product with a fetched text. Returns whether that made a revision.
fn publish_fetched(store: &Store, markdown: &str, fetched: &FetchedText) -> bool {
    let mut publication = store.publish().unwrap();
    put_text(&mut *publication, markdown);
    publication.put(&product_with_text("A", markdown)).unwrap();
    publication.put_fetched(fetched).unwrap();
    let note = RevisionNote::default();
    publication.commit(second(20), &note).unwrap().is_some()
}

fn fetched_is_remembered(store: &Store) {
    assert_eq!(store.fetched_text(URL).unwrap(), None);
    for (markdown, at) in [("# one", 1), ("# two", 2)] {
        let fetched = fetched(markdown, at);
        assert!(publish_fetched(store, markdown, &fetched));
        let served = TextStatus::Served;
        assert_eq!(store.fetched_text(URL).unwrap(), Some((fetched, served)));
    }
    assert_eq!(store.fetched_text("https://a.example/").unwrap(), None);
    let two = TextDigest::of("# two");
    store
        .set_text_status(&two, TextStatus::TakenDown, &crate::audited::take_down())
        .unwrap();
    let (_, served) = store.fetched_text(URL).unwrap().unwrap();
    assert_eq!(served, TextStatus::TakenDown);
}

fn fetched_is_remembered_without_a_revision(store: &Store) {
    publish_texts(store, &[("A", "# one")], second(10));
    let before = store.state().unwrap();
    let fetched = FetchedText {
        etag: None,
        last_modified: Some("Sat, 21 Nov 2026 10:00:00 GMT".to_owned()),
        ..fetched("# one", 3)
    };
    assert!(!publish_fetched(store, "# one", &fetched));
    assert_eq!(store.state().unwrap(), before);
    let (found, _) = store.fetched_text(URL).unwrap().unwrap();
    assert_eq!(found, fetched);
}

fn a_dropped_publication_remembers_nothing(store: &Store) {
    publish_texts(store, &[("A", "# one")], second(10));
    let mut publication = store.publish().unwrap();
    publication.put_fetched(&fetched("# one", 3)).unwrap();
    drop(publication);
    assert_eq!(store.fetched_text(URL).unwrap(), None);
}

fn pruned_with_its_text(store: &Store) {
    assert!(publish_fetched(store, "# one", &fetched("# one", 1)));
    publish(store, &[product("B", "1")], second(30));
    let keep = Keep::Newest(NonZeroU32::MIN);
    assert_eq!(store.prune(keep, Timestamp::MAX).unwrap().texts, 1);
    assert_eq!(store.fetched_text(URL).unwrap(), None);
    let problems = store.check().unwrap();
    assert!(
        problems.iter().all(|problem| problem.rule == "document"),
        "{problems:?}"
    );
}
