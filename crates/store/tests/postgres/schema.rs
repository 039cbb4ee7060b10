//! The schema in the database: creating, recognising and refusing it; roles, checks, restores and hints.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use vitrine_model::key::{KeyKind, KeyRecord, KeyRequests, NewKey};
use vitrine_store::Publication as _;
use vitrine_store::assortment::NewAssortment;
use vitrine_store::audit::{AuditContext, Confirmation};
use vitrine_store::record::KeyDay;
use vitrine_store::{IfMissing, Store, StoreError};

use crate::cluster::Bouncer;
use crate::new_database;
use crate::{codes, history, open, product, publish, told, wait_for};

#[test]
fn store_is_created_once_by_many_processes() {
    for _ in 0..5 {
        let database = new_database!();
        let ids: Vec<String> = std::thread::scope(|scope| {
            let make = || open(&database.url, IfMissing::Create).map(|store| store.state());
            let made = [(); 8].map(|()| scope.spawn(make));
            let id = |made: std::thread::ScopedJoinHandle<'_, _>| -> String {
                let changes: Result<Result<vitrine_store::record::StoreState, _>, _> =
                    made.join().unwrap();
                changes.unwrap().unwrap().store_id
            };
            made.into_iter().map(id).collect()
        });
        assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    }
}

#[test]
fn foreign_schema_is_refused_and_empty_one_used() {
    let database = new_database!();
    let missing = open(&database.url, IfMissing::Refuse).err().unwrap();
    assert!(matches!(missing, StoreError::Missing { .. }), "{missing}");
    database.run("create schema vitrine; create table vitrine.theirs (x int)");
    let theirs = open(&database.url, IfMissing::Create).err().unwrap();
    assert!(told(&theirs).contains("another program"), "{theirs}");
    // An empty schema may have been created for Vitrine, and other schemas don't matter.
    database.run("drop table vitrine.theirs; create table public.state (theirs int)");
    let store = open(&database.url, IfMissing::Create).unwrap();
    publish(&store, &[product("A", "1")]);
    database.run("drop schema vitrine cascade");
    // A server doesn't create a dropped store again.
    for _ in 0..2 {
        let gone = store.state().unwrap_err();
        assert!(matches!(gone, StoreError::Missing { .. }), "{gone}");
    }
    assert!(open(&database.url, IfMissing::Refuse).is_err());
}

#[test]
fn database_without_utf8_is_refused_and_stays_empty() {
    let database = new_database!();
    for encoding in ["LATIN1", "SQL_ASCII"] {
        let name = format!("{}_{}", database.name, encoding.to_lowercase());
        database.run(&format!(
            "create database {name} template template0 encoding '{encoding}' locale 'C'"
        ));
        let url = database.url.replace(&database.name, &name);
        let opened = open(&url, IfMissing::Create).map(drop);
        let schemas = crate::database::run(
            &url,
            "select nspname from pg_namespace where nspname = 'vitrine'",
        );
        database.run(&format!("drop database {name} with (force)"));
        let refused = told(&opened.unwrap_err());
        for part in [encoding, "createdb --encoding=UTF8 --template=template0"] {
            assert!(refused.contains(part), "{part}: {refused}");
        }
        assert!(schemas.is_empty(), "{encoding}");
    }
}

fn assortment() -> NewAssortment {
    NewAssortment {
        name: "a".to_owned(),
        rules: Some("{}".to_owned()),
        codes: 0,
        by: None,
        note: None,
        confirmation: None,
    }
}

#[test]
fn documented_roles_suffice() {
    let database = new_database!();
    let name = &database.name;
    let (load, serve) = (format!("load_{name}"), format!("serve_{name}"));
    // Settings of a role are overridden in each transaction.
    database.run(&format!(
        "revoke create on database {name} from public; \
         create role {load} login; create role {serve} login; \
         alter role {load} set default_transaction_read_only = on; \
         alter role {load} set default_transaction_isolation = 'serializable'; \
         create schema vitrine authorization {load}; \
         grant usage on schema vitrine to {serve}; \
         alter default privileges for role {load} in schema vitrine grant select on tables to {serve}"
    ));
    let of = |role: &str| database.url.replace("vitrine@", &format!("{role}@"));
    let loading = open(&of(&load), IfMissing::Create).unwrap();
    let assortment = assortment();
    loading.set_assortment(&assortment, None).unwrap();
    let assigned = KeyRecord {
        assortment: Some("a".to_owned()),
        ..key(2)
    };
    loading
        .change_keys(&crate::audited::set_key(), None, &mut |_| {
            vec![key(1), assigned.clone()]
        })
        .unwrap();
    publish(&loading, &[product("A", "1")]);
    database.run(&format!(
        "grant insert, update on vitrine.api_key_use to {serve}; \
         grant insert, update, delete on vitrine.api_key_day to {serve}"
    ));
    let serving = crate::address(&of(&serve));
    let serving = serving.open_to_follow(IfMissing::Create, Duration::ZERO);
    let serving = serving.unwrap();
    assert_eq!(codes(&serving), ["A"]);
    assert_eq!(history(&serving), (1, 0));
    let live = serving.read_assortments(&[], None).unwrap();
    assert_eq!((live.keys.records.len(), live.changed.len()), (2, 1));
    let edited = serving.set_assortment(&assortment, Some(&live.names[0].1));
    let edited = edited.unwrap_err();
    assert!(matches!(edited, StoreError::Refused { .. }), "{edited}");
    let used = jiff::Timestamp::from_second(7).unwrap();
    serving.record_key_use(&[(key(1).prefix, used)]).unwrap();
    assert_eq!(serving.keys().unwrap()[0].last_used_at, Some(used));
    let day = KeyDay {
        day: jiff::civil::date(2026, 1, 31),
        prefix: key(1).prefix,
        counts: KeyRequests::default(),
    };
    for _ in 0..2 {
        serving
            .add_key_days(std::slice::from_ref(&day), day.day)
            .unwrap();
    }
    serving.add_key_days(&[], jiff::civil::Date::MAX).unwrap();
    assert_eq!(serving.key_days(day.day).unwrap(), []);
    let refused = serving.publish().and_then(|mut publication| {
        publication.put(&product("B", "1"))?;
        publication.commit(used, &Default::default())
    });
    let refused = refused.unwrap_err();
    assert!(matches!(refused, StoreError::Refused { .. }), "{refused}");
    drop((loading, serving));
    database.run(&format!(
        "drop schema vitrine cascade; drop owned by {serve}; drop owned by {load}; drop role {load}, {serve}"
    ));
}

/// Changes by SQL, each after the rule of a check that reports it.
const HAND_MADE: &str = r#"document: update vitrine.product_document set document = '\x00' where product_version_id = 1
version_digest: update vitrine.product_version set is_orderable = false where code = 'A'
product_facts: update vitrine.product_version set countries = '["X"]' where code = 'A'
content_range: update vitrine.product_version set content_end = 3 where code = 'A'
version_life: update vitrine.product_version set until_revision = 1 where code = 'A'
version_life: update vitrine.product_version set until_revision = 8 where code = 'A'
live_revision: update vitrine.state set revision_id = 'x'
live_revision: update vitrine.state set revision_id = null
api_key: insert into vitrine.api_key values ('p', 'l', '\x00', false, null, null, null, null, 0, null, null, null, '\x00')
key_use_orphan: insert into vitrine.api_key_use values ('p', 1)
text_digest: insert into vitrine.markdown_text values ('\x00', '\x00')"#;

#[test]
fn check_finds_changes_by_hand() {
    for damage in HAND_MADE.lines() {
        let (rule, sql) = damage.split_once(": ").unwrap();
        let database = new_database!();
        let store = open(&database.url, IfMissing::Create).unwrap();
        publish(&store, &[product("A", "{}"), product("B", "{}")]);
        assert_eq!(store.check().unwrap(), []);
        database.run(sql);
        let problems = store.check().unwrap();
        let is_told = problems.iter().any(|problem| problem.rule == rule);
        assert!(is_told, "{sql}: {problems:?}");
    }
}

fn key(number: u8) -> KeyRecord {
    let key = NewKey::from_random(KeyKind::Test, &[number; NewKey::RANDOM_BYTES]);
    let second = |second| jiff::Timestamp::from_second(second).unwrap();
    KeyRecord {
        api_version: Some("2024-02-05".to_owned()),
        quota: Some(vitrine_model::quota::Quota::new(5, 60).unwrap()),
        expires_at: Some(second(1_000)),
        ..KeyRecord::new(
            &key,
            KeyKind::Test,
            &format!("key {number}"),
            second(number.into()),
        )
    }
}

/// Returns all products and keys of a store, as text.
fn state(store: &Store) -> String {
    let mut state = format!("{:?}", store.keys().unwrap());
    for revision in store.revisions(99).unwrap() {
        let moment = vitrine_store::record::Moment::Revision(revision.revision.number);
        let counts = revision.counts;
        state.push_str(&format!("\n{moment:?} {counts:?} {:?}", revision.note));
        let read = store.read_products(moment, &mut |product| {
            state.push_str(&format!("\n  {product:?}"));
            Ok(())
        });
        read.unwrap();
    }
    state
}

#[test]
fn sqlite_backup_is_restored_into_postgres() {
    let database = new_database!();
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let sqlite = open(
        &format!("sqlite:{}", path("old.db").display()),
        IfMissing::Create,
    )
    .unwrap();
    let many: Vec<_> = (0..4_000)
        .map(|n| product(&format!("P{n}"), &format!("[{}1]", "1,".repeat(200))))
        .collect();
    publish(&sqlite, &many);
    let mut other = product("P7", "{\"other\":1}");
    other.is_orderable = false;
    publish(&sqlite, &[other]);
    sqlite
        .change_keys(&crate::audited::set_key(), None, &mut |_| {
            vec![key(1), key(2)]
        })
        .unwrap();
    sqlite.backup(&path("backup.db")).unwrap();
    let created = crate::address(&database.url)
        .create_from(&path("backup.db"), &crate::audited::restore())
        .unwrap();
    let store = open(&database.url, IfMissing::Refuse).unwrap();
    assert_eq!(state(&store), state(&sqlite));
    assert_eq!(store.check().unwrap(), []);
    assert_eq!(created.as_ref().map(|revision| revision.number), Some(2));
    assert_ne!(
        store.state().unwrap().store_id,
        sqlite.state().unwrap().store_id
    );
    // Into an existing store, with keys that were revoked and rotated since.
    let earlier = jiff::Timestamp::from_second(500).unwrap();
    store
        .change_keys(&crate::audited::set_key(), None, &mut |keys| {
            let (mut revoked, mut rotated) = (keys[0].clone(), keys[1].clone());
            (revoked.revoked_at, revoked.expires_at) = (Some(earlier), None);
            (rotated.rotated_at, rotated.expires_at) = (Some(earlier), Some(earlier));
            vec![revoked, rotated]
        })
        .unwrap();
    publish(&store, &[product("Z", "{}")]);
    let before = store.state().unwrap();
    store
        .restore(&path("backup.db"), &crate::audited::restore())
        .unwrap();
    let after = store.state().unwrap();
    assert_eq!(before.store_id, after.store_id);
    assert!(after.keys > before.keys && after.texts > before.texts);
    assert_ne!(after.revision_id, created.map(|revision| revision.id));
    assert_eq!(codes(&store), ["P7"]);
    assert_ended(&store, earlier);
    assert_eq!(store.check().unwrap(), []);
    // It isn't created twice, nor from a file that is no backup.
    let exists = crate::address(&database.url)
        .create_from(&path("backup.db"), &crate::audited::restore())
        .unwrap_err();
    assert!(matches!(exists, StoreError::Exists { .. }), "{exists}");
    std::fs::write(path("text"), "no backup").unwrap();
    assert!(
        store
            .restore(&path("text"), &crate::audited::restore())
            .is_err()
    );
    let refused = store.backup(&path("new.db")).unwrap_err();
    assert!(refused.to_string().contains("pg_dump"), "{refused}");
}

#[test]
fn confirmation_in_a_backup_is_not_done_again() {
    let database = new_database!();
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let address = format!("sqlite:{}", path("old.db").display());
    let sqlite = open(&address, IfMissing::Create).unwrap();
    let confirmed = || AuditContext {
        confirmation: Some(Confirmation::of("once")),
        ..crate::audited::set_key()
    };
    let create = |store: &Store, number| {
        let mut new = vec![key(number)];
        store.change_keys(&confirmed(), None, &mut |_| std::mem::take(&mut new))
    };
    create(&sqlite, 1).unwrap();
    sqlite.backup(&path("backup.db")).unwrap();
    crate::address(&database.url)
        .create_from(&path("backup.db"), &crate::audited::restore())
        .unwrap();
    let store = open(&database.url, IfMissing::Refuse).unwrap();
    let is_confirmed = |name: &str| store.is_confirmed(&Confirmation::of(name)).unwrap();
    assert_eq!(["once", "other"].map(is_confirmed), [true, false]);
    let again = create(&store, 2);
    assert!(matches!(again, Err(StoreError::Confirmed)), "{again:?}");
    assert_eq!(store.keys().unwrap().len(), 1);
    assert_eq!(store.check().unwrap(), []);
}

/// Asserts that the first key is still revoked, and the second still rotated.
fn assert_ended(store: &Store, at: jiff::Timestamp) {
    let keys = store.keys().unwrap();
    let [revoked, rotated] = keys.as_slice() else {
        panic!("{keys:?}");
    };
    let ends = [revoked, rotated].map(|key| (key.revoked_at, key.rotated_at, key.expires_at));
    let expected = [
        (Some(at), None, key(1).expires_at),
        (None, Some(at), Some(at)),
    ];
    assert_eq!(ends, expected);
}

#[test]
fn hints_follow_changes_and_a_pooler_is_polled() {
    let database = new_database!();
    let store = open(&database.url, IfMissing::Create).unwrap();
    let count = Arc::new(AtomicU64::new(0));
    let counted = || {
        let count = Arc::clone(&count);
        Arc::new(move || {
            count.fetch_add(1, Ordering::SeqCst);
        })
    };
    let seen = || count.load(Ordering::SeqCst);
    let guard = store.subscribe(counted()).expect("a way of hints");
    // The first hint comes when it begins to listen.
    wait_for("it to listen", || (seen() > 0).then_some(()));
    let mut before = seen();
    let mut next = |what: &str| {
        wait_for(what, || (seen() > before).then_some(()));
        before = seen();
    };
    publish(&store, &[product("A", "1")]);
    next("a hint of a revision");
    store
        .change_keys(&crate::audited::set_key(), None, &mut |_| vec![key(1)])
        .unwrap();
    next("a hint of a key");
    store
        .accept_assortments(&crate::audited::set_key())
        .unwrap();
    next("a hint of an acceptance");
    database.run(
        "select pg_terminate_backend(pid) from pg_stat_activity where query = 'listen vitrine'",
    );
    next("it to listen again");
    drop(guard);
    let listening = "select pid from pg_stat_activity where query = 'listen vitrine' and datname = current_database()";
    wait_for("its end", || {
        database.run(listening).is_empty().then_some(())
    });
    let bouncer = Bouncer::start(database.port(), 5);
    let through = open(&bouncer.url(&database.url), IfMissing::Refuse).unwrap();
    let _guard = through.subscribe(counted());
    // No notification has to arrive there: what is published is seen by polling.
    let before = through.state().unwrap();
    publish(&store, &[product("B", "1")]);
    assert_ne!(through.state().unwrap(), before);
}
