//! Versions that are known by the records that they were loaded from.

use vitrine_store::prepared::{PreparedProduct, RecordDigest, VersionId};
use vitrine_store::record::{PutOutcome, RevisionNote};
use vitrine_store::{Publication, Store};

use crate::Rule;
use crate::products::{product, second};

pub const ALL: [Rule; 2] = [
    (
        "digests of records belong to live versions",
        digests_of_records_belong_to_live_versions,
    ),
    (
        "versions are kept while their revision is live",
        versions_are_kept_while_their_revision_is_live,
    ),
];

fn digests_of_records_belong_to_live_versions(store: &Store) {
    let record = |byte| RecordDigest([byte; 16]);
    let put = |publication: &mut dyn Publication, document: &str, digest| {
        let mut next = PreparedProduct::new(product("A", document)).unwrap();
        next.set_record(digest);
        publication.put_prepared(next).unwrap()
    };
    let known = |max_products| {
        let known = store.loaded_versions(max_products).unwrap()?;
        let known =
            (known.by_record.into_iter()).map(|(digest, (code, _))| (digest, code.to_string()));
        Some(known.collect::<Vec<_>>())
    };
    assert_eq!(known(0), Some(Vec::new()));
    let mut publication = store.publish().unwrap();
    put(&mut *publication, "1", Some(record(1)));
    publication.put(&product("B", "1")).unwrap();
    publication
        .commit(second(1), &RevisionNote::default())
        .unwrap();
    let first = vec![(record(1), "A".to_owned())];
    assert_eq!(known(2), Some(first.clone()));
    assert_eq!(known(1), None, "more are live");

    // Nothing is noted unless it is committed; and that makes no revision.
    let a = product("A", "1").code;
    let mut publication = store.publish().unwrap();
    assert!(publication.keep_loaded(&a, record(2)).unwrap());
    drop(publication);
    assert_eq!(known(2), Some(first));
    let mut publication = store.publish().unwrap();
    assert!(publication.keep_loaded(&a, record(3)).unwrap());
    let committed = publication.commit(second(1), &RevisionNote::default());
    assert_eq!(committed.unwrap(), None);
    assert_eq!(known(2), Some(vec![(record(3), "A".to_owned())]));
    let mut publication = store.publish().unwrap();
    let live = publication.live_digests(&[&a]).unwrap();
    assert_eq!(live[0].unwrap().record, Some(record(3)));
    assert!(publication.keep_loaded(&a, record(3)).unwrap());
    let unknown = product("C", "1").code;
    assert!(!publication.keep_loaded(&unknown, record(9)).unwrap());
    assert_eq!(publication.retire_others().unwrap().len(), 1);
    assert!(
        publication
            .commit(second(2), &RevisionNote::default())
            .unwrap()
            .is_some()
    );

    // A version that came another way has none.
    let mut publication = store.publish().unwrap();
    assert_eq!(put(&mut *publication, "2", None), PutOutcome::Changed);
    publication
        .commit(second(3), &RevisionNote::default())
        .unwrap();
    assert_eq!(known(9), Some(Vec::new()));
}

fn versions_are_kept_while_their_revision_is_live(store: &Store) {
    let mut publication = store.publish().unwrap();
    for (number, code) in ["A", "B", "C", "D"].into_iter().enumerate() {
        let mut next = PreparedProduct::new(product(code, "1")).unwrap();
        next.set_record(Some(RecordDigest([number as u8; 16])));
        publication.put_prepared(next).unwrap();
    }
    publication
        .commit(second(1), &RevisionNote::default())
        .unwrap();
    let known = store.loaded_versions(9).unwrap().unwrap();
    let revision = known.revision.as_deref();
    let version = |number: u8| known.by_record[&RecordDigest([number; 16])].1;

    let mut publication = store.publish().unwrap();
    assert!(publication.keep_versions(revision, &[version(0), version(1)]));
    for other in [None, Some("another")] {
        assert!(!publication.keep_versions(other, &[VersionId(1)]));
    }
    // One that was kept is retired after all; each of the others is there, changed or retired.
    assert!(publication.retire(&product("B", "1").code).unwrap());
    let changed = publication.put(&product("C", "2")).unwrap();
    assert_eq!(changed, PutOutcome::Changed);
    let others = publication.retire_others().unwrap();
    assert_eq!(others, [product("D", "1").code]);
    let committed = publication.commit(second(2), &RevisionNote::default());
    let (_, counts) = committed.unwrap().unwrap();
    assert_eq!((counts.changed, counts.retired), (1, 2));

    let mut publication = store.publish().unwrap();
    assert!(!publication.keep_versions(revision, &[version(0)]));
    assert_eq!(publication.retire_others().unwrap().len(), 2);
    drop(publication);

    // All of them: no other is looked for.
    let known = store.loaded_versions(9).unwrap().unwrap();
    let mut publication = store.publish().unwrap();
    assert!(publication.keep_versions(known.revision.as_deref(), &[version(0)]));
    assert!(publication.keep(&product("C", "2").code).unwrap());
    assert_eq!(publication.retire_others().unwrap(), []);
    let committed = publication.commit(second(3), &RevisionNote::default());
    assert!(committed.unwrap().is_none());
}
