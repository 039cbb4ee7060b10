//! Overrides, and the bases beside overridden products.

use jiff::Timestamp;
use vitrine_model::content::TextDigest;
use vitrine_store::Publication as _;
use vitrine_store::overrides::{NewOverride, OverriddenProduct, OverrideEnd, OverrideStatus};
use vitrine_store::prepared::PreparedProduct;
use vitrine_store::record::{Keep, Moment, RevisionNote, StoredProduct, VersionSpan};
use vitrine_store::{Publish, Store};

use crate::Rule;
use crate::history::at;
use crate::products::{product, product_with_text, publish, publish_texts, put_text, read, second};

pub const ALL: [Rule; 6] = [
    ("overrides begin and end", overrides_begin_and_end),
    (
        "a base lies beside its product",
        base_lies_beside_its_product,
    ),
    ("a live version becomes a base", live_version_becomes_a_base),
    (
        "a change of a base alone is a revision",
        base_alone_is_a_revision,
    ),
    (
        "texts of a base outlive a prune",
        texts_of_a_base_outlive_a_prune,
    ),
    (
        "a dropped publish leaves no override",
        dropped_publish_leaves_nothing,
    ),
];

fn new(from: Timestamp, until: Option<Timestamp>, status: OverrideStatus) -> NewOverride {
    NewOverride {
        definition: "{\"any\": 1}".to_owned(),
        from,
        until,
        created_at: second(5),
        created_by: "ann".to_owned(),
        note: Some("why".to_owned()),
        status,
    }
}

fn commit(publication: Box<Publish>, now: Timestamp) -> Option<u64> {
    let committed = publication.commit(now, &RevisionNote::default()).unwrap();
    committed.map(|(revision, _)| revision.number)
}

fn prepared(product: &StoredProduct) -> PreparedProduct {
    PreparedProduct::new(product.clone()).unwrap()
}

/// Returns the bases of a moment; `None` if the revision doesn't exist.
fn bases(store: &Store, moment: Moment) -> Option<Vec<StoredProduct>> {
    let mut products = Vec::new();
    let revision = store.read_base(moment, &mut |product| {
        products.push(product);
        Ok(())
    });
    revision.unwrap().map(|_| products)
}

fn overrides_begin_and_end(store: &Store) {
    assert_eq!(store.overrides().unwrap(), []);
    assert_eq!(store.next_instant().unwrap(), None);
    let mut publication = store.publish().unwrap();
    let scheduled = new(second(20), Some(second(40)), OverrideStatus::Scheduled);
    assert_eq!(publication.add_override(&scheduled).unwrap(), 1);
    let active = new(second(5), None, OverrideStatus::Active);
    assert_eq!(publication.add_override(&active).unwrap(), 2);
    let now = publication.now().unwrap();
    // No product changed: no revision.
    assert_eq!(commit(publication, second(10)), None);
    let stored = store.overrides().unwrap();
    let numbers: Vec<u64> = stored.iter().map(|one| one.number).collect();
    assert_eq!(numbers, [1, 2]);
    assert_eq!((&stored[0].made, &stored[1].made), (&scheduled, &active));
    assert_eq!(stored[0].ended, None);
    let next = store.next_instant().unwrap().unwrap();
    assert_eq!(next.at, second(20));
    assert!(next.now >= now && now.as_second() > 1_700_000_000);

    let mut publication = store.publish().unwrap();
    publication.set_override(1, None).unwrap();
    let open = publication.open_overrides().unwrap();
    assert_eq!(open[0].made.status, OverrideStatus::Active);
    commit(publication, second(20));
    assert_eq!(store.next_instant().unwrap().unwrap().at, second(40));

    let mut publication = store.publish().unwrap();
    let end = OverrideEnd {
        at: second(30),
        by: Some("bob".to_owned()),
        note: None,
    };
    publication.set_override(1, Some(&end)).unwrap();
    assert_eq!(publication.open_overrides().unwrap().len(), 1);
    commit(publication, second(30));
    assert_eq!(store.next_instant().unwrap(), None);
    let ended = store.overrides().unwrap().remove(0);
    assert_eq!(
        (ended.made.status, ended.ended),
        (OverrideStatus::Ended, Some(end))
    );
}

fn base_lies_beside_its_product(store: &Store) {
    base_lies_beside(store, |publication, base| {
        publication.put_base(prepared(base)).unwrap();
    });
}

fn live_version_becomes_a_base(store: &Store) {
    base_lies_beside(store, |publication, base| {
        publication.keep_live_as_base(base).unwrap();
    });
}

fn base_lies_beside(store: &Store, put: fn(&mut Publish, &StoredProduct)) {
    let (base, seen, other) = (product("A", "1"), product("A", "2"), product("B", "1"));
    let hidden = product_with_text("C", "# Text");
    publish_texts(store, &[("C", "# Text")], second(5));
    publish(
        store,
        &[base.clone(), other.clone(), hidden.clone()],
        second(10),
    )
    .unwrap();
    let mut publication = store.publish().unwrap();
    assert_eq!(publication.overridden().unwrap(), []);
    put(&mut publication, &base);
    publication.put(&seen).unwrap();
    put(&mut publication, &hidden);
    publication.retire(&hidden.code).unwrap();
    assert_eq!(commit(publication, second(20)), Some(3));
    assert_eq!(
        at(store, Moment::Live),
        Some(vec![seen.clone(), other.clone()])
    );
    let all = Some(vec![base.clone(), other.clone(), hidden.clone()]);
    for moment in [Moment::Live, Moment::Revision(3), Moment::Revision(2)] {
        assert_eq!(bases(store, moment), all, "{moment:?}");
    }
    assert_eq!(bases(store, Moment::Revision(9)), None);
    let read = |code: &StoredProduct, moment| store.base_product(&code.code, moment).unwrap();
    assert_eq!(read(&base, Moment::Live), Some(base.clone()));
    assert_eq!(read(&other, Moment::Live), Some(other.clone()));
    assert_eq!(read(&hidden, Moment::Revision(3)), Some(hidden.clone()));
    assert_eq!(read(&hidden, Moment::Revision(9)), None);
    assert_eq!(read(&product("D", "1"), Moment::Live), None);
    let mut found = Vec::new();
    let codes = [&product("D", "1"), &hidden, &other, &base].map(|one| one.code.clone());
    let read = store.read_live_bases_of(&codes, &mut |base| {
        found.push(base);
        Ok(())
    });
    read.unwrap();
    found.sort_by(|one, other| one.code.cmp(&other.code));
    assert_eq!(Some(found), all);

    let mut publication = store.publish().unwrap();
    let overridden =
        [(&base, false), (&hidden, true)].map(|(product, is_hidden)| OverriddenProduct {
            code: product.code.clone(),
            is_hidden,
        });
    assert_eq!(publication.overridden().unwrap(), overridden);
    let found = publication
        .bases(&[&hidden.code, &other.code, &base.code])
        .unwrap();
    assert_eq!(found.len(), 2);
    assert!(found.contains(&base) && found.contains(&hidden));
    publication.end_base(&base.code).unwrap();
    publication.put(&base).unwrap();
    publication.end_base(&hidden.code).unwrap();
    publication.put(&hidden).unwrap();
    assert_eq!(commit(publication, second(30)), Some(4));
    assert_eq!(at(store, Moment::Live), all);
    assert_eq!(bases(store, Moment::Live), all);
    // The past stays.
    assert_eq!(bases(store, Moment::Revision(3)), all);
    assert_eq!(at(store, Moment::Revision(3)), Some(vec![seen, other]));
    assert_eq!(store.check().unwrap(), []);
}

fn base_alone_is_a_revision(store: &Store) {
    publish(store, &[product("A", "1"), product("B", "1")], second(10)).unwrap();
    let later = [product("A", "2"), product_with_text("A", "# Never seen")];
    for (base, expected) in later.iter().zip([Some(2), Some(3)]) {
        let mut publication = store.publish().unwrap();
        put_text(&mut *publication, "# Never seen");
        publication.put_base(prepared(base)).unwrap();
        assert_eq!(commit(publication, second(20)), expected, "{base:?}");
    }
    let base = |number| bases(store, Moment::Revision(number)).unwrap().remove(0);
    assert_eq!([2, 3].map(base), later);
    assert_eq!(base(1), product("A", "1"));
    // Clients see nothing of it: no version, no change, no text.
    let spans = store.version_spans(&later[0].code, 9).unwrap();
    assert_eq!(
        spans,
        [VersionSpan {
            from: 1,
            until: None
        }]
    );
    for number in [0, 2, 3] {
        assert_eq!(store.revision_changes(number, None, None, 9).unwrap(), []);
    }
    assert_eq!(read(store, Timestamp::MIN).texts, []);
    assert_eq!(store.check().unwrap(), []);
}

fn texts_of_a_base_outlive_a_prune(store: &Store) {
    publish_texts(store, &[("A", "# Text")], second(10));
    let hidden = product_with_text("A", "# Text");
    let mut publication = store.publish().unwrap();
    publication.put_base(prepared(&hidden)).unwrap();
    publication.retire(&hidden.code).unwrap();
    publication.put(&product("B", "1")).unwrap();
    commit(publication, second(20));
    publish_b(store, "2", second(30));
    let newest = Keep::Newest(1.try_into().unwrap());
    let planned = store.plan_prune(newest, second(99)).unwrap();
    let pruned = store.prune(newest, second(99)).unwrap();
    assert_eq!((planned.texts, pruned.texts), (0, 0));
    // Nothing waits for texts that are still served: the version stays as a base.
    assert_eq!((planned.waiting_versions, pruned.waiting_versions), (0, 0));
    let digest = TextDigest::of("# Text");
    assert!(store.text(&digest).unwrap().is_some());
    assert_eq!(bases(store, Moment::Live).unwrap()[0], hidden);
    assert_eq!(store.check().unwrap(), []);
    // Without the base nothing names it.
    let mut publication = store.publish().unwrap();
    publication.end_base(&hidden.code).unwrap();
    commit(publication, second(40));
    publish_b(store, "3", second(50));
    let planned = store.plan_prune(newest, second(99)).unwrap();
    let pruned = store.prune(newest, second(99)).unwrap();
    assert_eq!((planned.texts, pruned.texts), (1, 1));
    assert_eq!(store.text(&digest).unwrap(), None);
    assert_eq!(store.check().unwrap(), []);
}

fn publish_b(store: &Store, document: &str, now: Timestamp) {
    let mut publication = store.publish().unwrap();
    publication.put(&product("B", document)).unwrap();
    commit(publication, now);
}

fn dropped_publish_leaves_nothing(store: &Store) {
    publish(store, &[product("A", "1")], second(10)).unwrap();
    let mut publication = store.publish().unwrap();
    let active = new(second(5), None, OverrideStatus::Active);
    publication.add_override(&active).unwrap();
    publication.put_base(prepared(&product("A", "2"))).unwrap();
    drop(publication);
    assert_eq!(store.overrides().unwrap(), []);
    assert_eq!(bases(store, Moment::Live), at(store, Moment::Live));
}
