//! History: every revision stays readable, and can be live again.

use vitrine_model::content::TextDigest;
use vitrine_model::revision::Revision;
use vitrine_store::Publication as _;
use vitrine_store::Store;
use vitrine_store::record::{ChangeKind, Moment, RevisionNote, StoredProduct};

use crate::Rule;
use crate::products::{product, product_with_text, publish, publish_texts, restore, second};

pub const ALL: [Rule; 6] = [
    ("every moment stays readable", every_moment_stays_readable),
    (
        "spans and changes of revisions are listed",
        lives_and_changes_are_known,
    ),
    ("revisions have author and note", revisions_tell_who_and_why),
    (
        "a restored revision is a new one",
        a_restored_revision_is_a_new_one,
    ),
    ("one product can be retired", one_product_can_be_retired),
    (
        "no revision has a number beyond the database's",
        no_revision_has_a_number_beyond_the_databases,
    ),
];

/// Returns the products of a moment; `None` if the revision doesn't exist.
pub fn at(store: &Store, moment: Moment) -> Option<Vec<StoredProduct>> {
    let mut products = Vec::new();
    let revision = store
        .read_products(moment, &mut |product| {
            products.push(product);
            Ok(())
        })
        .unwrap();
    revision.map(|_| products)
}

fn every_moment_stays_readable(store: &Store) {
    assert_eq!(at(store, Moment::Live), None);
    let (first, second_version) = (product("A", "1"), product("A", "2"));
    publish(store, &[product("B", "1"), first.clone()], second(10)).unwrap();
    publish(store, std::slice::from_ref(&second_version), second(20)).unwrap();
    let then = vec![first.clone(), product("B", "1")];
    assert_eq!(at(store, Moment::Revision(1)), Some(then));
    let now = Some(vec![second_version.clone()]);
    assert_eq!(at(store, Moment::Revision(2)), now);
    assert_eq!(at(store, Moment::Live), now);
    assert_eq!(at(store, Moment::Revision(3)), None);
    let numbers = [9, 10, 19, 20, 99].map(|time| {
        let live = store.revision_at(second(time)).unwrap();
        live.map(|published| published.revision.number)
    });
    assert_eq!(numbers, [None, Some(1), Some(1), Some(2), Some(2)]);
    let read = |moment| store.product(&first.code, moment).unwrap();
    assert_eq!(read(Moment::Revision(1)), Some(first.clone()));
    assert_eq!(read(Moment::Revision(3)), None, "no such revision");
    assert_eq!(read(Moment::Live), Some(second_version));
    assert_eq!(
        store
            .product(&product("C", "1").code, Moment::Live)
            .unwrap(),
        None
    );
}

fn lives_and_changes_are_known(store: &Store) {
    let (a, b, c) = (product("A", "1"), product("B", "1"), product("C", "1"));
    publish(store, &[a.clone(), b.clone()], second(10)).unwrap();
    publish(store, &[product("A", "2"), c], second(20)).unwrap();
    publish(store, &[a.clone(), b.clone()], second(30)).unwrap();
    let lives = |product: &StoredProduct, most| {
        let lives = store.version_spans(&product.code, most).unwrap();
        let pairs = lives.iter().map(|life| (life.from, life.until));
        pairs.collect::<Vec<_>>()
    };
    assert_eq!(lives(&a, 9), [(3, None), (2, Some(3)), (1, Some(2))]);
    assert_eq!(lives(&a, 1), [(3, None)]);
    assert_eq!(lives(&b, 9), [(3, None), (1, Some(2))]);
    assert_eq!(lives(&product("D", "1"), 9), []);
    let changes = |number, after: Option<&StoredProduct>, most| {
        let after = after.map(|product| &product.code);
        let changes = store.revision_changes(number, None, after, most).unwrap();
        let pairs = changes.iter().map(|one| (one.code.to_string(), one.kind));
        pairs.collect::<Vec<_>>()
    };
    let of = |code: &str, how| (code.to_owned(), how);
    assert_eq!(
        changes(1, None, 9),
        [of("A", ChangeKind::Created), of("B", ChangeKind::Created)]
    );
    let second_touched = [
        of("A", ChangeKind::Changed),
        of("B", ChangeKind::Retired),
        of("C", ChangeKind::Created),
    ];
    assert_eq!(changes(2, None, 9), second_touched);
    assert_eq!(changes(2, None, 2), second_touched[..2]);
    assert_eq!(changes(2, Some(&a), 9), second_touched[1..]);
    assert_eq!(changes(9, None, 9), []);
    for one in second_touched {
        let found = store.revision_changes(2, Some(one.1), None, 9).unwrap();
        let found: Vec<_> = found
            .iter()
            .map(|it| (it.code.to_string(), it.kind))
            .collect();
        assert_eq!(found, [one]);
    }
}

fn revisions_tell_who_and_why(store: &Store) {
    let note = RevisionNote {
        by: "olga".to_owned(),
        note: Some("because".to_owned()),
        source_digest: Some("00ff".to_owned()),
    };
    for number in 1..=3 {
        let mut publication = store.publish().unwrap();
        publication.put(&product("A", &number.to_string())).unwrap();
        publication.commit(second(number), &note).unwrap();
    }
    let newest = store.revisions(2).unwrap();
    let numbers: Vec<u64> = newest.iter().map(|one| one.revision.number).collect();
    assert_eq!(numbers, [3, 2]);
    assert_eq!(newest[0].note, note);
    assert_eq!(newest[0].counts.changed, 1);
    assert_eq!(newest[0].revision.created_at, second(3));
    for one in store.revisions(9).unwrap() {
        let number = one.revision.number;
        assert_eq!(store.revision(number).unwrap(), Some(one), "{number}");
    }
    for number in [0, 4, u64::MAX] {
        assert_eq!(store.revision(number).unwrap(), None, "{number}");
    }
}

fn a_restored_revision_is_a_new_one(store: &Store) {
    let (with_text, digest) = (product_with_text("T", "# Text"), TextDigest::of("# Text"));
    publish_texts(store, &[("T", "# Text")], second(10));
    publish(store, &[product("A", "2")], second(20)).unwrap();
    let mut publication = store.publish().unwrap();
    assert!(!restore(store, &mut *publication, 9).unwrap());
    assert!(restore(store, &mut *publication, 1).unwrap());
    let note = RevisionNote::default();
    let (revision, counts) = publication.commit(second(30), &note).unwrap().unwrap();
    assert_eq!((revision.number, counts.created, counts.retired), (3, 1, 1));
    assert_eq!(at(store, Moment::Live), at(store, Moment::Revision(1)));
    assert_eq!(at(store, Moment::Live), Some(vec![with_text]));
    assert!(store.text(&digest).unwrap().is_some());
    let mut publication = store.publish().unwrap();
    assert!(restore(store, &mut *publication, 1).unwrap());
    assert_eq!(publication.commit(second(40), &note).unwrap(), None);
}

fn one_product_can_be_retired(store: &Store) {
    publish(store, &[product("A", "1"), product("B", "1")], second(10)).unwrap();
    let mut publication = store.publish().unwrap();
    assert!(publication.retire(&product("A", "1").code).unwrap());
    assert!(!publication.retire(&product("A", "1").code).unwrap());
    publication
        .commit(second(20), &RevisionNote::default())
        .unwrap();
    assert_eq!(at(store, Moment::Live), Some(vec![product("B", "1")]));
}

fn no_revision_has_a_number_beyond_the_databases(store: &Store) {
    let code = &product("A", "1").code;
    publish(store, &[product("A", "1")], second(10)).unwrap();
    for number in [i64::MAX.cast_unsigned(), 1 << 63, u64::MAX] {
        let moment = Moment::Revision(number);
        assert_eq!(store.revision(number).unwrap(), None, "{number}");
        assert_eq!(at(store, moment), None, "{number}");
        assert_eq!(store.product(code, moment).unwrap(), None, "{number}");
        let base = store.read_base(moment, &mut |_| Ok(())).unwrap();
        assert_eq!(base, None, "{number}");
        assert_eq!(store.base_product(code, moment).unwrap(), None, "{number}");
        let changes = store.revision_changes(number, None, None, 9).unwrap();
        assert_eq!(changes, [], "{number}");
        let unknown = Revision {
            number,
            id: "unknown".to_owned(),
            created_at: second(10),
        };
        let read = store.read_changes(&unknown, 9, second(0), &mut |_| Ok(()));
        assert_eq!(read.unwrap().1, None, "{number}");
    }
}
