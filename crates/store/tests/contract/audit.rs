//! The audit log: an entry for each change of a key or of a text's status, in the transaction of the change.

use vitrine_model::content::TextDigest;
use vitrine_model::key::{KeyKind, KeyRecord, NewKey};
use vitrine_model::quota::Quota;
use vitrine_store::audit::{AuditAction, AuditContext, AuditEntry, Confirmation};
use vitrine_store::{Store, StoreError, TextStatus};

use crate::audited::by_tester;
use crate::keys::record;
use crate::products::{publish_texts, second};
use crate::rules;

rules! {
    changed_keys_have_entries,
    no_entry_without_a_change,
    no_entry_tells_a_secret,
    texts_have_entries,
    confirmation_is_done_once,
}

/// Returns an entry on a line: number, action, subject, changed fields.
pub fn line(entry: &AuditEntry) -> String {
    let or_none = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".to_owned());
    let changes = entry.changes.iter().map(|change| {
        let (before, after) = (or_none(&change.before), or_none(&change.after));
        format!("{} {before} → {after}", change.field)
    });
    let changes: Vec<String> = changes.collect();
    let AuditEntry {
        number,
        action,
        subject_kind,
        subject,
        ..
    } = entry;
    format!(
        "{number} {action} {subject_kind} {subject}: {}",
        changes.join(", ")
    )
}

/// Returns all entries, newest first.
pub fn lines(store: &Store) -> Vec<String> {
    store
        .audit(None, u32::MAX)
        .unwrap()
        .iter()
        .map(line)
        .collect()
}

fn changed_keys_have_entries(store: &Store) {
    let first = KeyRecord {
        quota: Some(Quota::new(600, 60).unwrap()),
        ..record(1, 100)
    };
    let create = by_tester(AuditAction::CreateKey);
    store
        .change_keys(&create, &mut |_| vec![first.clone()])
        .unwrap();
    let (key, other) = (&first.prefix, record(2, 200));
    let context = AuditContext {
        by: "olga\u{1b}[2J".to_owned(),
        note: Some("ticket 7".to_owned()),
        action: AuditAction::RotateKey,
        confirmation: None,
    };
    let before = jiff::Timestamp::now();
    store
        .change_keys(&context, &mut |records| {
            let mut changed = records[0].clone();
            (changed.quota, changed.rotated_at) = (None, Some(second(300)));
            vec![changed, other.clone()]
        })
        .unwrap();
    assert_eq!(
        lines(store),
        [
            format!(
                "3 rotate key {}: label - → key 2, kind - → live, created_at - → 1970-01-01T00:03:20Z",
                other.prefix
            ),
            format!("2 rotate key {key}: quota 600/60 → -, rotated_at - → 1970-01-01T00:05:00Z"),
            format!(
                "1 create key {key}: label - → key 1, kind - → live, quota - → 600/60, \
                 created_at - → 1970-01-01T00:01:40Z"
            ),
        ]
    );
    let of_key = store.audit(Some(key), 9).unwrap();
    assert_eq!(of_key.iter().map(|e| e.number).collect::<Vec<_>>(), [2, 1]);
    assert_eq!(store.audit(None, 1).unwrap()[0].number, 3);
    assert_eq!(store.audit(Some("none"), 9).unwrap(), []);
    let newest = &of_key[0];
    assert_eq!(
        (newest.by.as_str(), newest.note.as_deref()),
        ("olga\u{1b}[2J", Some("ticket 7"))
    );
    assert!(newest.at.as_millisecond() >= before.as_millisecond());
    assert_eq!(store.check().unwrap(), []);
}

fn confirmation_is_done_once(store: &Store) {
    let context = |name: &str| AuditContext {
        confirmation: Some(Confirmation::of(name)),
        ..by_tester(AuditAction::CreateKey)
    };
    let write = |name: &str, records: Vec<KeyRecord>| {
        let mut written = Some(records);
        store.change_keys(&context(name), &mut |_| written.take().unwrap())
    };
    let is_confirmed = |name: &str| store.is_confirmed(&Confirmation::of(name)).unwrap();
    // An act may have several entries, or none.
    write("a", vec![record(1, 100), record(2, 100)]).unwrap();
    write("b", Vec::new()).unwrap();
    assert_eq!(["a", "b", "c"].map(is_confirmed), [true, false, false]);
    write("b", vec![record(3, 100)]).unwrap();
    assert_eq!(["a", "b", "c"].map(is_confirmed), [true, true, false]);
    let before = lines(store);
    assert_eq!(before.len(), 3);
    for name in ["a", "b"] {
        let again = write(name, vec![record(4, 100)]);
        assert!(matches!(again, Err(StoreError::Confirmed)), "{again:?}");
    }
    assert_eq!(lines(store), before);
    assert_eq!(store.keys().unwrap().len(), 3);
    assert_eq!(store.check().unwrap(), []);
}

fn no_entry_without_a_change(store: &Store) {
    let key = record(1, 100);
    let context = by_tester(AuditAction::SetKey);
    let write = |records: Vec<KeyRecord>| {
        let mut written = Some(records);
        store
            .change_keys(&context, &mut |_| written.take().unwrap_or_default())
            .unwrap();
    };
    write(vec![key.clone()]);
    store
        .record_key_use(&[(key.prefix.clone(), second(600))])
        .unwrap();
    for records in [vec![], vec![key.clone()], store.keys().unwrap()] {
        write(records);
    }
    assert_eq!(lines(store).len(), 1);
    let unknown = TextDigest::of("# unknown");
    let context = by_tester(AuditAction::TakeDownText);
    assert!(
        !store
            .set_text_status(&unknown, TextStatus::TakenDown, &context)
            .unwrap()
    );
    assert_eq!(lines(store).len(), 1);
}

fn no_entry_tells_a_secret(store: &Store) {
    let new = NewKey::from_random(KeyKind::Live, &[9; NewKey::RANDOM_BYTES]);
    let old = record(1, 100);
    let replaced = KeyRecord {
        secret_hash: new.secret_hash(),
        ..old.clone()
    };
    for record in [&old, &replaced] {
        let context = by_tester(AuditAction::SetKey);
        store
            .change_keys(&context, &mut |_| vec![record.clone()])
            .unwrap();
    }
    let prefix = &old.prefix;
    assert_eq!(lines(store)[0], format!("2 set key {prefix}: secret - → -"));
    let told = format!("{:?}", store.audit(None, 9).unwrap());
    for hash in [old.secret_hash, replaced.secret_hash] {
        let hash = vitrine_model::hexadecimal::Hexadecimal(hash.as_bytes()).to_string();
        assert!(!told.contains(&hash), "{told}");
    }
}

fn texts_have_entries(store: &Store) {
    publish_texts(store, &[("A", "# one"), ("B", "# two")], second(10));
    let text = TextDigest::of("# one");
    let set = |status, action| {
        let context = by_tester(action);
        assert!(store.set_text_status(&text, status, &context).unwrap());
    };
    set(TextStatus::Served, AuditAction::PutBackText);
    set(TextStatus::TakenDown, AuditAction::TakeDownText);
    set(TextStatus::TakenDown, AuditAction::TakeDownText);
    set(TextStatus::Served, AuditAction::PutBackText);
    assert_eq!(
        lines(store),
        [
            format!("2 put-back text {text}: status taken_down → served"),
            format!("1 take-down text {text}: status served → taken_down"),
        ]
    );
    assert_eq!(store.check().unwrap(), []);
}
