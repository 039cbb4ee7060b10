//! Overrides beside a release that doesn't know them.

use vitrine_store::IfMissing;
use vitrine_store::overrides::{NewOverride, OverrideStatus};
use vitrine_store::record::RevisionNote;

use crate::database::Database;
use crate::{codes, open, product, publish};

/// Releases before overrides would publish what these should alter.
#[test]
fn releases_before_overrides_publish_until_there_is_one() {
    let Some(database) = Database::create() else {
        return;
    };
    let store = open(&database.url, IfMissing::Create).unwrap();
    publish(&*store, &[product("A", "1")]);
    // As an older release writes a revision.
    let insert = |number: u64| {
        let revision = format!(
            "insert into vitrine.revision (number, id, created_at, created, changed, retired, unchanged, \
             published_by) values ({number}, 'id{number}', 0, 0, 0, 0, 0, 'older')"
        );
        let attempt = format!(
            "do $$ begin {revision}; raise notice 'written'; \
             exception when raise_exception then create table refused_{number} (n int); end $$"
        );
        database.run(&attempt);
        let found = database.run(&format!("select to_regclass('refused_{number}') is null"));
        found == ["t"]
    };
    assert!(insert(2));
    let mut publication = store.publish().unwrap();
    let one = NewOverride {
        definition: "{}".to_owned(),
        from: jiff::Timestamp::UNIX_EPOCH,
        until: None,
        created_at: jiff::Timestamp::UNIX_EPOCH,
        created_by: "ann".to_owned(),
        note: None,
        status: OverrideStatus::Ended,
    };
    publication.add_override(&one).unwrap();
    let now = jiff::Timestamp::now();
    publication.commit(now, &RevisionNote::default()).unwrap();
    assert!(!insert(3));
    publish(&*store, &[product("B", "1")]);
    assert_eq!(codes(&*store), ["B"]);
}
