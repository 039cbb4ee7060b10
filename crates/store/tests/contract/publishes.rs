//! Revisions: a publish makes one, or changes nothing.

use jiff::Timestamp;
use vitrine_model::content::{TextDigest, TextName};
use vitrine_store::prepared::{PreparedProduct, ProductDigest};
use vitrine_store::record::{OwnText, PublishedCounts, PutOutcome, RevisionNote, StoreState};
use vitrine_store::{Publication, Store, StoreError};

use crate::Rule;
use crate::products::{as_read, product, product_with_text, publish, put_text, read, second};

pub const ALL: [Rule; 13] = [
    ("an empty store has nothing", an_empty_store_has_nothing),
    ("what is put comes back", what_is_put_comes_back),
    (
        "a dry run reads one state and writes nothing",
        a_dry_run_reads_one_state_and_writes_nothing,
    ),
    (
        "a publish is a revision with counts",
        a_publish_is_a_revision_with_counts,
    ),
    (
        "an unchanged publish is no revision",
        an_unchanged_publish_is_no_revision,
    ),
    (
        "a publish names each product once",
        a_publish_names_each_product_once,
    ),
    (
        "digests of live products are those of prepared ones",
        live_digests_are_those_of_prepared_products,
    ),
    (
        "live codes are those of all live products",
        live_codes_are_those_of_all_live_products,
    ),
    (
        "every part of a product counts",
        every_part_of_a_product_counts,
    ),
    (
        "a dropped publication changes nothing",
        a_dropped_publication_changes_nothing,
    ),
    (
        "without retire_others the rest stays",
        without_retire_others_the_rest_stays,
    ),
    (
        "readers see the old state until the commit",
        readers_see_the_old_state,
    ),
    (
        "a failing visitor ends the reading",
        a_failing_visitor_ends_the_reading,
    ),
];

fn counts(created: u64, changed: u64, retired: u64, unchanged: u64) -> PublishedCounts {
    PublishedCounts {
        created,
        changed,
        retired,
        unchanged,
    }
}

fn an_empty_store_has_nothing(store: &Store) {
    let store_id = store.state().unwrap().store_id;
    assert_eq!(store_id.len(), 32);
    let nothing = StoreState {
        store_id,
        ..StoreState::default()
    };
    assert_eq!(store.state().unwrap(), nothing);
    assert_eq!(publish(store, &[], second(10)), None);
    assert_eq!(store.state().unwrap(), nothing, "and none was published");
    let seen = read(store, Timestamp::MIN);
    assert_eq!(
        (seen.revision, seen.products.len(), seen.texts.len()),
        (None, 0, 0)
    );
    let mut publication = store.publish().unwrap();
    assert_eq!(publication.live(&"A".parse().unwrap()).unwrap(), None);
}

fn what_is_put_comes_back(store: &Store) {
    let mut full = product_with_text("b.~_-", "# Grüße 雪");
    let content = "{\"x\":\"\u{2028}雪\",\"y\":\"texts/\"}";
    full.document = format!("{{\"content_resources\":{content}}}");
    full.content = Some(21..21 + content.len());
    full.is_orderable = false;
    full.own_texts.push(OwnText {
        name: TextName::TermsBuyer,
        digest: TextDigest::of("# Grüße 雪"),
        source: None,
    });
    let mut bare = product("B", "");
    (bare.countries, bare.categories) = (Vec::new(), Vec::new());
    bare.discount_multiplier = "0".to_owned();
    let products = [full, bare, product("a", "{}")];
    let mut publication = store.publish().unwrap();
    put_text(&mut *publication, "# Grüße 雪");
    for product in &products {
        assert_eq!(publication.put(product).unwrap(), PutOutcome::Created);
        assert_eq!(
            publication.live(&product.code).unwrap().as_ref(),
            Some(product)
        );
    }
    publication
        .commit(second(7), &RevisionNote::default())
        .unwrap();
    let seen = read(store, Timestamp::MIN);
    // Byte-wise: capitals come first, and `b.` after `a`.
    assert_eq!(seen.codes(), ["B", "a", "b.~_-"]);
    let mut expected = products.each_ref().map(as_read);
    expected.sort_by(|a, b| a.code.cmp(&b.code));
    assert_eq!(seen.products, expected);
    assert_eq!(seen.texts, [("# Grüße 雪".to_owned(), None)]);
    let mut publication = store.publish().unwrap();
    for product in &products {
        assert_eq!(
            publication.live(&product.code).unwrap().as_ref(),
            Some(product)
        );
    }
}

fn a_publish_is_a_revision_with_counts(store: &Store) {
    let [a, b, c] = ["A", "B", "C"].map(|code| product(code, "1"));
    let (first, counted) = publish(store, &[a.clone(), b.clone()], second(10)).unwrap();
    assert_eq!((first.number, first.created_at), (1, second(10)));
    assert_eq!(counted, counts(2, 0, 0, 0));
    let changes = store.state().unwrap();
    assert_eq!(changes.revision_id.as_ref(), Some(&first.id));
    assert_eq!((changes.texts, changes.keys), (0, 0));
    assert_eq!(read(store, Timestamp::MIN).revision, Some(first.clone()));
    let (second_one, counted) = publish(store, &[product("A", "2"), c], second(20)).unwrap();
    assert_eq!(counted, counts(1, 1, 1, 0));
    assert_eq!(second_one.number, 2);
    assert_ne!(second_one.id, first.id);
    assert_eq!(read(store, Timestamp::MIN).codes(), ["A", "C"]);
    // A retired product can be created, changed and retired again.
    let (_, counted) = publish(store, &[a.clone(), b.clone()], second(30)).unwrap();
    assert_eq!(counted, counts(1, 1, 1, 0));
    let (fourth, counted) = publish(store, std::slice::from_ref(&b), second(40)).unwrap();
    assert_eq!((fourth.number, counted), (4, counts(0, 0, 1, 1)));
    assert_eq!(read(store, Timestamp::MIN).products, [as_read(&b)]);
}

fn an_unchanged_publish_is_no_revision(store: &Store) {
    let products = [product("A", "1"), product("B", "1")];
    publish(store, &products, second(10)).unwrap();
    let before = store.state().unwrap();
    assert_eq!(publish(store, &products, second(20)), None);
    assert_eq!(store.state().unwrap(), before);
    assert_eq!(
        read(store, Timestamp::MIN).revision.unwrap().created_at,
        second(10)
    );
    let (next, _) = publish(store, &products[..1], second(30)).unwrap();
    assert_eq!(next.number, 2, "no number was used up");
}

/// Otherwise a version would end in the revision in which it begins, which `vitrine check` calls damage.
fn a_publish_names_each_product_once(store: &Store) {
    let [first, next] = [product("A", "1"), product("A", "2")];
    publish(store, std::slice::from_ref(&first), second(10)).unwrap();
    for is_new in [false, true] {
        let named = match is_new {
            true => product("B", "1"),
            false => next.clone(),
        };
        let mut publication = store.publish().unwrap();
        publication.put(&named).unwrap();
        assert!(publication.retire(&named.code).is_err());
        drop(publication);
        let mut publication = store.publish().unwrap();
        publication.put(&named).unwrap();
        let mut other = named.clone();
        other.is_orderable = !other.is_orderable;
        assert!(publication.put(&other).is_err());
    }
    assert_eq!(read(store, Timestamp::MIN).products, [as_read(&first)]);
}

fn live_codes_are_those_of_all_live_products(store: &Store) {
    let live = ["Abc-1", "ABC-2", "abc-3", "other"];
    publish(store, &live.map(|code| product(code, "1")), second(1)).unwrap();
    let found = |publication: &mut dyn Publication| {
        let mut found = publication.live_codes().unwrap();
        found.sort_unstable();
        found.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let expected = ["ABC-2", "Abc-1", "abc-3", "other"];
    assert_eq!(found(&mut *store.publish().unwrap()), expected);
    assert_eq!(found(&mut *store.dry_run().unwrap()), expected);
}

fn live_digests_are_those_of_prepared_products(store: &Store) {
    let (a, b, gone) = (product("A", "1"), product("B", "1"), product("C", "1"));
    publish(store, &[a.clone(), b, gone], second(1)).unwrap();
    let codes = ["A", "B", "D"].map(|code| code.parse().unwrap());
    let codes: Vec<_> = codes.iter().collect();
    let digest = |product| PreparedProduct::new(product).unwrap().digest();
    let digests = |a: &str, b: &str, d: Option<&str>| -> Vec<Option<ProductDigest>> {
        let products = [("A", Some(a)), ("B", Some(b)), ("D", d)];
        let digest =
            |(code, document): (&str, Option<&str>)| Some(digest(product(code, document?)));
        products.map(digest).to_vec()
    };
    let mut publication = store.publish().unwrap();
    let live_digests =
        |publication: &mut dyn Publication| publication.live_digests(&codes).unwrap();
    assert_eq!(live_digests(&mut *publication), digests("1", "1", None));
    // Of the codes that were asked for, each is used in another way.
    assert!(publication.keep(&a.code).unwrap());
    for (code, expected) in [("B", PutOutcome::Changed), ("D", PutOutcome::Created)] {
        let next = PreparedProduct::new(product(code, "2")).unwrap();
        assert_eq!(publication.put_prepared(next).unwrap(), expected);
    }
    assert_eq!(
        live_digests(&mut *publication),
        digests("1", "2", Some("2"))
    );
    let again = PreparedProduct::new(product("B", "3")).unwrap();
    publication.put_prepared(again).unwrap_err();
    drop(publication);

    let mut publication = store.publish().unwrap();
    publication.live_digests(&codes).unwrap();
    publication.put(&a).unwrap();
    publication.put(&product("D", "2")).unwrap();
    assert_eq!(publication.retire_others().unwrap().len(), 2);
    let committed = publication.commit(second(2), &RevisionNote::default());
    assert_eq!(committed.unwrap().unwrap().1, counts(1, 0, 2, 1));
}

fn every_part_of_a_product_counts(store: &Store) {
    let base = product_with_text("A", "# T");
    let mut document = base.clone();
    document.document.push(' ');
    let mut discount = base.clone();
    discount.discount_multiplier = "0.05".to_owned();
    let mut source = base.clone();
    source.own_texts[0].source = None;
    let mut no_text = base.clone();
    no_text.own_texts.clear();
    for (what, changed) in [
        ("document", document),
        ("discount", discount),
        ("source", source),
        ("text", no_text),
    ] {
        for (product, expected) in [
            (&base, None),
            (&changed, Some(PutOutcome::Changed)),
            (&changed, Some(PutOutcome::Unchanged)),
        ] {
            let mut publication = store.publish().unwrap();
            put_text(&mut *publication, "# T");
            let change = publication.put(product).unwrap();
            assert!(
                expected.is_none_or(|expected| change == expected),
                "{what}: {change:?}"
            );
            assert_eq!(
                publication.live(&product.code).unwrap().as_ref(),
                Some(product),
                "{what}"
            );
            publication
                .commit(second(1), &RevisionNote::default())
                .unwrap();
        }
    }
}

fn a_dropped_publication_changes_nothing(store: &Store) {
    publish(store, &[product("A", "1"), product("B", "1")], second(10)).unwrap();
    let (changes, seen) = (store.state().unwrap(), read(store, Timestamp::MIN));
    let mut publication = store.publish().unwrap();
    put_text(&mut *publication, "# T");
    publication.put(&product_with_text("C", "# T")).unwrap();
    publication.put(&product("A", "2")).unwrap();
    assert_eq!(publication.retire_others().unwrap().len(), 1);
    drop(publication);
    assert_eq!(store.state().unwrap(), changes);
    assert_eq!(read(store, Timestamp::MIN), seen);
    // It holds no lock, either.
    let (next, counted) = publish(store, &[product("A", "2")], second(20)).unwrap();
    assert_eq!((next.number, counted), (2, counts(0, 1, 1, 0)));
}

fn a_dry_run_reads_one_state_and_writes_nothing(store: &Store) {
    let [a, b, c] = ["A", "B", "C"].map(|code| product(code, "1"));
    publish(store, &[a.clone(), b.clone(), c.clone()], second(10)).unwrap();
    // It doesn't wait for this one, nor the next for it.
    let other = store.publish().unwrap();
    let mut dry = store.dry_run().unwrap();
    drop(other);
    publish(store, &[product("A", "2"), product("D", "1")], second(20)).unwrap();
    let seen = (store.state().unwrap(), read(store, Timestamp::MIN));
    assert_eq!(dry.live_before(), 3);
    assert_eq!(dry.live(&a.code).unwrap(), Some(a.clone()));
    let live = dry.live_digests(&[&a.code, &product("D", "1").code]);
    let live: Vec<bool> = live.unwrap().iter().map(Option::is_some).collect();
    assert_eq!(live, [true, false]);
    assert_eq!(dry.put(&a).unwrap(), PutOutcome::Unchanged);
    assert_eq!(dry.put(&product("B", "2")).unwrap(), PutOutcome::Changed);
    put_text(&mut *dry, "# T");
    let created = dry.put(&product_with_text("E", "# T")).unwrap();
    assert_eq!(created, PutOutcome::Created);
    let again = dry.put(&b);
    assert!(
        matches!(again, Err(StoreError::Unsupported(_))),
        "{again:?}"
    );
    assert!(!dry.retire(&product("D", "1").code).unwrap());
    assert_eq!(dry.retire_others().unwrap(), [c.code]);
    let committed = dry.commit(second(30), &RevisionNote::default());
    assert!(committed.is_err(), "{committed:?}");
    assert_eq!((store.state().unwrap(), read(store, Timestamp::MIN)), seen);
    assert_eq!(store.check().unwrap(), []);
}

fn without_retire_others_the_rest_stays(store: &Store) {
    publish(store, &[product("A", "1"), product("B", "1")], second(10)).unwrap();
    let mut publication = store.publish().unwrap();
    publication.put(&product("A", "2")).unwrap();
    let (_, counted) = publication
        .commit(second(20), &RevisionNote::default())
        .unwrap()
        .unwrap();
    assert_eq!((counted.changed, counted.retired), (1, 0));
    assert_eq!(read(store, Timestamp::MIN).codes(), ["A", "B"]);
}

fn readers_see_the_old_state(store: &Store) {
    publish(store, &[product("A", "1")], second(10)).unwrap();
    let (changes, seen) = (store.state().unwrap(), read(store, Timestamp::MIN));
    let mut publication = store.publish().unwrap();
    publication.put(&product("A", "2")).unwrap();
    publication.put(&product("B", "1")).unwrap();
    assert_eq!(store.state().unwrap(), changes);
    assert_eq!(read(store, Timestamp::MIN), seen);
    assert!(
        store.keys().unwrap().is_empty(),
        "keys can be read meanwhile"
    );
    let (revision, _) = publication
        .commit(second(20), &RevisionNote::default())
        .unwrap()
        .unwrap();
    assert_eq!(store.state().unwrap().revision_id, Some(revision.id));
    assert_eq!(read(store, Timestamp::MIN).codes(), ["A", "B"]);
    // Conversely, a reader keeps the state that it began with.
    let mut documents = Vec::new();
    let begun = store.read_catalog(Timestamp::MIN, &mut |item| {
        if documents.is_empty() {
            publish(store, &[product("A", "3"), product("B", "3")], second(30));
        }
        if let vitrine_store::record::CatalogItem::Product(product) = item {
            documents.push(product.document.to_owned());
        }
        Ok(())
    });
    let (changes, revision) = begun.unwrap();
    let revision = revision.unwrap();
    assert_eq!(changes.revision_id, Some(revision.id));
    assert_eq!(
        (revision.number, documents),
        (2, vec!["2".to_owned(), "1".to_owned()])
    );
    assert_eq!(read(store, Timestamp::MIN).revision.unwrap().number, 3);
}

fn a_failing_visitor_ends_the_reading(store: &Store) {
    publish(store, &[product("A", "1"), product("B", "1")], second(10)).unwrap();
    let mut visits = 0;
    let read = store.read_catalog(Timestamp::MIN, &mut |_| {
        visits += 1;
        Err("no more".into())
    });
    assert!(matches!(read, Err(StoreError::Visitor(_))), "{read:?}");
    assert_eq!(visits, 1);
}
