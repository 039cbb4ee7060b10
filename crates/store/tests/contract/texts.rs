//! Texts: stored once per digest, served while a live product names them and for some time after, taken down at once.

use jiff::Timestamp;
use vitrine_model::content::TextDigest;
use vitrine_store::record::Moment;
use vitrine_store::{Store, TextStatus};

use crate::Rule;
use crate::products::{product, publish, publish_texts, read, second};

pub const ALL: [Rule; 5] = [
    ("a text is kept once per digest", a_text_is_kept_once),
    (
        "a replaced text is kept for a while",
        a_replaced_text_is_kept_for_a_while,
    ),
    (
        "a text lives while any product names it",
        a_text_lives_while_any_product_names_it,
    ),
    ("history stays", history_stays),
    (
        "a text can be taken down and put back",
        a_text_can_be_taken_down,
    ),
];

fn text(markdown: &str) -> (String, Option<Timestamp>) {
    (markdown.to_owned(), None)
}

fn retired(markdown: &str, at: i64) -> (String, Option<Timestamp>) {
    (markdown.to_owned(), Some(second(at)))
}

fn a_text_is_kept_once(store: &Store) {
    publish_texts(
        store,
        &[("A", "# T"), ("B", "# T"), ("C", "# U")],
        second(10),
    );
    let seen = read(store, Timestamp::MIN);
    assert_eq!(seen.texts, [text("# T"), text("# U")]);
    for code in ["A", "B", "C"] {
        let product = store.product(&code.parse().unwrap(), Moment::Live).unwrap();
        assert_eq!(product.unwrap().own_texts.len(), 1);
    }
}

fn a_replaced_text_is_kept_for_a_while(store: &Store) {
    publish_texts(store, &[("A", "# old"), ("B", "# stays")], second(10));
    publish_texts(store, &[("A", "# new"), ("B", "# stays")], second(1_000));
    let live = [text("# new"), text("# stays")];
    assert_eq!(read(store, second(1_001)).texts, live);
    let [new, stays] = live;
    assert_eq!(
        read(store, second(999)).texts,
        [new, retired("# old", 1_000), stays]
    );
    // A later revision doesn't extend its time.
    publish(store, &[product("Z", "1")], second(2_000));
    assert!(
        !read(store, second(1_500))
            .texts
            .contains(&retired("# old", 1_000))
    );
    assert_eq!(
        read(store, second(1_500)).texts,
        [retired("# new", 2_000), retired("# stays", 2_000)]
    );
    // Live again.
    publish_texts(store, &[("A", "# old")], second(3_000));
    assert_eq!(read(store, second(3_001)).texts, [text("# old")]);
}

fn a_text_lives_while_any_product_names_it(store: &Store) {
    publish_texts(store, &[("A", "# T"), ("B", "# T")], second(10));
    publish_texts(store, &[("B", "# T")], second(20));
    assert_eq!(read(store, second(1_000)).texts, [text("# T")]);
    publish(store, &[product("C", "1")], second(30));
    assert_eq!(read(store, second(29)).texts, [retired("# T", 30)]);
    assert_eq!(read(store, second(31)).texts, []);
}

fn history_stays(store: &Store) {
    for round in 1..=5 {
        publish_texts(store, &[("A", &format!("# {round}"))], second(round * 10));
    }
    let expected: Vec<_> = (1..=4)
        .map(|round| retired(&format!("# {round}"), (round + 1) * 10))
        .collect();
    let texts = read(store, Timestamp::MIN).texts;
    assert_eq!(texts, [expected, vec![text("# 5")]].concat());
}

fn a_text_can_be_taken_down(store: &Store) {
    publish_texts(store, &[("A", "# bad"), ("B", "# good")], second(10));
    let before = store.state().unwrap();
    let bad = TextDigest::of("# bad");
    assert!(
        store
            .set_text_status(&bad, TextStatus::TakenDown, &crate::audited::take_down())
            .unwrap()
    );
    let after = store.state().unwrap();
    assert_ne!(after.texts, before.texts, "servers must notice");
    assert_eq!(
        (&after.revision_id, after.keys),
        (&before.revision_id, before.keys)
    );
    let seen = read(store, Timestamp::MIN);
    assert_eq!(seen.texts, [text("# good")]);
    assert_eq!(seen.taken_down, [("A".to_owned(), bad)]);
    // A publish with the same text doesn't put it back.
    publish_texts(store, &[("A", "# bad"), ("C", "# bad")], second(20));
    let seen = read(store, second(20));
    assert_eq!((seen.texts.len(), seen.taken_down.len()), (0, 2));
    let before = store.state().unwrap();
    assert!(
        store
            .set_text_status(&bad, TextStatus::Served, &crate::audited::take_down())
            .unwrap()
    );
    assert_ne!(store.state().unwrap().texts, before.texts);
    let seen = read(store, second(20));
    assert_eq!((seen.texts, seen.taken_down), (vec![text("# bad")], vec![]));
    // A missing text can't be taken down, and nothing changes.
    let before = store.state().unwrap();
    let unknown = TextDigest::of("# unknown");
    assert!(
        !store
            .set_text_status(
                &unknown,
                TextStatus::TakenDown,
                &crate::audited::take_down()
            )
            .unwrap()
    );
    assert_eq!(store.state().unwrap(), before);
}
