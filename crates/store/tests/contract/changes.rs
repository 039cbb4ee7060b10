//! Differences since a revision: applied to the catalog of then, they give the live one.

use std::collections::BTreeMap;

use jiff::Timestamp;
use vitrine_model::content::TextDigest;
use vitrine_model::revision::Revision;
use vitrine_store::Publication as _;
use vitrine_store::record::{CatalogItem, Keep, LiveProduct, RevisionNote};
use vitrine_store::{Store, StoreError};

use crate::Rule;
use crate::products::{
    product, product_with_text, publish, publish_texts, put_text, read, restore, second,
};

pub const ALL: [Rule; 5] = [
    (
        "differences lead from any revision to the live one",
        changes_lead_from_any_revision_to_the_live_one,
    ),
    ("differences include texts", changes_tell_of_texts),
    (
        "differences hide no text that is no longer served",
        changes_hide_no_text_whose_time_has_passed,
    ),
    (
        "unknown differences are refused",
        what_is_not_known_is_read_anew,
    ),
    (
        "pruned differences are refused",
        after_a_prune_only_what_is_known_is_told,
    ),
];

/// Documents of a catalog by code.
type Documents = BTreeMap<String, String>;

/// More products than these tests have.
const ALL_OF_THEM: u32 = 1_000;

fn documents(store: &Store) -> (Revision, Documents) {
    let seen = read(store, Timestamp::MIN);
    let pair = |product: vitrine_store::record::StoredProduct| {
        (product.code.to_string(), product.document)
    };
    (
        seen.revision.unwrap(),
        seen.products.into_iter().map(pair).collect(),
    )
}

/// Result of [`Store::read_changes`]: codes with their documents, `None` for a retired one, and texts.
#[derive(Debug, Default, PartialEq)]
struct Changed {
    products: Vec<(String, Option<String>)>,
    texts: Vec<(TextDigest, Option<Timestamp>)>,
}

fn changes(store: &Store, since: &Revision, limit: u32) -> Option<(Revision, Changed)> {
    let mut changed = Changed::default();
    let revision = store.read_changes(since, limit, Timestamp::MIN, &mut |item| {
        match item {
            CatalogItem::Product(LiveProduct { code, document, .. }) => {
                changed
                    .products
                    .push((code.to_owned(), Some(document.to_owned())));
            }
            CatalogItem::Damaged { code } => panic!("{code} is damaged"),
            CatalogItem::Retired { code } => changed.products.push((code.to_owned(), None)),
            CatalogItem::Text {
                digest, retired_at, ..
            } => changed.texts.push((digest, retired_at)),
        }
        Ok(())
    });
    changed.products.sort();
    // Each once.
    assert!(
        changed
            .products
            .is_sorted_by(|left, right| left.0 < right.0)
    );
    assert!(
        changed
            .texts
            .is_sorted_by(|left, right| left.0.as_bytes() < right.0.as_bytes())
    );
    let (now, revision) = revision.unwrap();
    assert_eq!(now, store.state().unwrap());
    if revision.is_none() {
        assert_eq!(changed, Changed::default(), "nothing was visited");
    }
    revision.map(|revision| (revision, changed))
}

fn changes_lead_from_any_revision_to_the_live_one(store: &Store) {
    let catalogs: [&[(&str, &str)]; 6] = [
        &[("A", "1"), ("B", "1"), ("C", "1")],
        &[("A", "1"), ("B", "2"), ("D", "1")],
        &[("A", "1")],
        &[("A", "2"), ("B", "1"), ("C", "1"), ("E", "1")],
        &[("B", "1"), ("C", "3"), ("E", "1"), ("F", "1")],
        &[("A", "1"), ("B", "1"), ("C", "1")],
    ];
    let mut known: Vec<(Revision, Documents)> = Vec::new();
    for (now, catalog) in (10..).zip(catalogs) {
        let products: Vec<_> = catalog
            .iter()
            .map(|(code, text)| product(code, text))
            .collect();
        publish(store, &products, second(now)).unwrap();
        known.push(documents(store));
        let (live, expected) = known.last().unwrap().clone();
        for (since, before) in &known {
            let (revision, changed) = changes(store, since, ALL_OF_THEM).unwrap();
            assert_eq!(revision, live);
            let mut after = before.clone();
            for (code, document) in changed.products {
                match document {
                    Some(document) => after.insert(code, document),
                    None => after.remove(&code),
                };
            }
            assert_eq!(after, expected, "since revision {}", since.number);
        }
    }
    let mut publication = store.publish().unwrap();
    assert!(restore(store, &mut *publication, 2).unwrap());
    publication
        .commit(second(99), &RevisionNote::default())
        .unwrap();
    let (_, changed) = changes(store, &known[1].0, ALL_OF_THEM).unwrap();
    let back: Documents = changed
        .products
        .into_iter()
        .filter_map(|(code, document)| Some((code, document?)))
        .collect();
    assert!(
        back.iter()
            .all(|(code, document)| known[1].1.get(code) == Some(document))
    );
    let live = documents(store).0;
    assert_eq!(
        changes(store, &live, 0),
        Some((live, Changed::default())),
        "nothing changed since"
    );
}

fn changes_tell_of_texts(store: &Store) {
    publish_texts(
        store,
        &[("A", "one"), ("B", "two"), ("C", "three")],
        second(10),
    );
    let since = documents(store).0;
    publish_texts(
        store,
        &[("A", "one"), ("B", "zwei"), ("D", "three")],
        second(20),
    );
    let (_, changed) = changes(store, &since, ALL_OF_THEM).unwrap();
    let mut expected = vec![
        (TextDigest::of("two"), Some(second(20))),
        (TextDigest::of("zwei"), None),
        (TextDigest::of("three"), None),
    ];
    expected.sort_by(|left, right| left.0.as_bytes().cmp(right.0.as_bytes()));
    assert_eq!(changed.texts, expected);
}

fn changes_hide_no_text_whose_time_has_passed(store: &Store) {
    publish_texts(store, &[("A", "one"), ("B", "two")], second(10));
    let since = documents(store).0;
    publish_texts(store, &[("A", "eins"), ("B", "two")], second(20));
    publish_texts(store, &[("A", "eins"), ("B", "zwei")], second(30));
    let told = |kept_since: Timestamp| {
        let mut texts = Vec::new();
        let revision = store.read_changes(&since, ALL_OF_THEM, kept_since, &mut |item| {
            if let CatalogItem::Text { digest, .. } = item {
                texts.push(digest);
            }
            Ok(())
        });
        revision.unwrap().1.map(|_| texts)
    };
    // A reader with `one` as a live text must see it retired, or get no differences.
    assert!(told(second(19)).unwrap().contains(&TextDigest::of("one")));
    for kept_since in [second(20), second(25), second(30), second(99)] {
        assert_eq!(told(kept_since), None, "texts kept since {kept_since}");
    }
}

fn what_is_not_known_is_read_anew(store: &Store) {
    let nothing = Revision::default();
    assert_eq!(
        changes(store, &nothing, ALL_OF_THEM),
        None,
        "an empty store"
    );
    publish(store, &[product("A", "1")], second(10)).unwrap();
    let first = documents(store).0;
    publish(
        store,
        &[product("A", "2"), product("B", "1"), product("C", "1")],
        second(20),
    )
    .unwrap();
    assert_eq!(changes(store, &nothing, ALL_OF_THEM), None);
    let stranger = Revision {
        id: "0".repeat(32),
        ..first.clone()
    };
    assert_eq!(
        changes(store, &stranger, ALL_OF_THEM),
        None,
        "the number alone is nothing"
    );
    assert_eq!(changes(store, &first, 2), None, "more than asked for");
    assert!(changes(store, &first, 3).is_some());
    let failing = store.read_changes(&first, 3, Timestamp::MIN, &mut |_| Err("no more".into()));
    assert!(
        matches!(failing, Err(StoreError::Visitor(_))),
        "{failing:?}"
    );
}

fn after_a_prune_only_what_is_known_is_told(store: &Store) {
    let mut revisions = Vec::new();
    for number in 1..=4 {
        let mut publication = store.publish().unwrap();
        put_text(&mut *publication, "text");
        publication.put(&product_with_text("A", "text")).unwrap();
        publication.put(&product("B", &number.to_string())).unwrap();
        if number == 1 {
            publication.put(&product("gone", "1")).unwrap();
        }
        publication.retire_others().unwrap();
        publication
            .commit(second(10 + number), &RevisionNote::default())
            .unwrap();
        revisions.push(documents(store).0);
    }
    store
        .prune(Keep::Newest(2.try_into().unwrap()), Timestamp::MAX)
        .unwrap();
    assert_eq!(
        changes(store, &revisions[0], ALL_OF_THEM),
        None,
        "`gone` is no longer known"
    );
    let (_, changed) = changes(store, &revisions[2], ALL_OF_THEM).unwrap();
    assert_eq!(changed.products, [("B".to_owned(), Some("4".to_owned()))]);
}
