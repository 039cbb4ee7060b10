//! Webhook endpoints: what operators change, leases, fences, and backups.

use std::collections::BTreeSet;
use std::thread;

use jiff::{Timestamp, ToSpan};
use vitrine_store::audit::AuditAction;
use vitrine_store::webhooks::{
    Attempt, DeliveryUpdate, Endpoint, EndpointChange, EndpointStatus, KEPT_ATTEMPTS, Lease,
    MAX_SECRETS, PendingEvent, Progress,
};
use vitrine_store::{IfMissing, Store, StoreError, open};

use crate::audited::{by_tester, restore};
use crate::kept::{Kept, on_both};
use crate::rules;

rules! {
    endpoint_is_created,
    endpoint_is_leased_by_one,
    late_writer_is_fenced,
    deliveries_are_written,
    operators_change_an_endpoint,
    secrets_overlap,
    endpoints_move,
    last_attempts_are_kept,
}

fn new(id: &str) -> Endpoint {
    let [id, key, url, position] = [id, "vitrine_1", "https://partner.example/hook", "p1"];
    let (key, url) = (key.to_owned(), url.to_owned());
    Endpoint {
        filters: "countries_redeemable_in=SE".to_owned(),
        ..Endpoint::new(id.to_owned(), key, url, [7; 16], position.to_owned())
    }
}

pub fn create(store: &Store, id: &str) {
    let context = by_tester(AuditAction::CreateWebhook);
    store.create_endpoint(&new(id), "f1", &context).unwrap();
}

fn change(store: &Store, id: &str, change: &EndpointChange) -> Endpoint {
    let context = by_tester(AuditAction::PauseWebhook);
    store
        .change_endpoint(id, change, &context)
        .unwrap()
        .unwrap()
}

fn take(store: &Store, ids: &[&str]) -> Vec<(Lease, Endpoint)> {
    let ids: Vec<String> = ids.iter().map(|id| (*id).to_owned()).collect();
    store.take_endpoints(&ids).unwrap()
}

fn update(lease: Lease, progress: Progress) -> DeliveryUpdate {
    DeliveryUpdate {
        lease,
        progress,
        attempt: None,
        disable: None,
        tested: None,
        release: true,
    }
}

fn attempt(number: i64) -> Attempt {
    Attempt {
        at: Timestamp::from_second(number).unwrap(),
        event: format!("e{number}"),
        event_type: "catalog.changed".to_owned(),
        outcome: "204".to_owned(),
        is_taken: true,
        milliseconds: 12,
    }
}

fn endpoint_is_created(store: &Store) {
    assert_eq!(store.endpoints().unwrap(), []);
    assert_eq!(take(store, &["a"]), []);
    let before = store.webhook_state().unwrap();
    assert_eq!(before.key_fingerprint, None);
    create(store, "b");
    create(store, "a");
    let state = store.webhook_state().unwrap();
    assert_ne!(state.changes, before.changes);
    assert_eq!(state.key_fingerprint.as_deref(), Some("f1"));
    let other = store.create_endpoint(&new("c"), "f2", &by_tester(AuditAction::CreateWebhook));
    assert!(
        matches!(other, Err(StoreError::WebhookKeyDiffers)),
        "{other:?}"
    );
    let all = store.endpoints().unwrap();
    assert_eq!(
        all.iter().map(|one| &*one.id).collect::<Vec<_>>(),
        ["b", "a"]
    );
    let found = store.endpoint("a").unwrap().unwrap();
    assert_eq!(found, all[1]);
    assert_eq!(found.url, new("a").url);
    assert_eq!(found.status, EndpointStatus::Active);
    assert_eq!(found.progress.position, "p1");
    assert_eq!(store.endpoint("c").unwrap(), None);
    let entry = store.audit(Some("a"), 9).unwrap().pop().unwrap();
    assert_eq!(
        [&*entry.action, &*entry.subject_kind],
        ["create", "webhook"]
    );
    let context = by_tester(AuditAction::DeleteWebhook);
    assert!(store.delete_endpoint("a", &context).unwrap());
    assert!(!store.delete_endpoint("a", &context).unwrap());
    let fingerprint = || store.webhook_state().unwrap().key_fingerprint;
    assert_eq!(fingerprint().as_deref(), Some("f1"));
    assert!(store.delete_endpoint("b", &context).unwrap());
    assert_eq!(fingerprint(), None, "another key file may follow");
    assert_eq!(store.check().unwrap(), []);
}

fn endpoint_is_leased_by_one(store: &Store) {
    let ids: Vec<String> = (0..40).map(|number| format!("e{number:02}")).collect();
    ids.iter().for_each(|id| create(store, id));
    let taken = thread::scope(|scope| {
        let deliverer = || {
            let mut taken = Vec::new();
            for chunk in ids.chunks(7).chain(ids.chunks(3)) {
                taken.extend(store.take_endpoints(chunk).unwrap());
            }
            taken
        };
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(deliverer)).collect();
        let taken = threads.into_iter().map(|thread| thread.join().unwrap());
        taken.collect::<Vec<_>>().concat()
    });
    let distinct: BTreeSet<&str> = taken.iter().map(|(lease, _)| &*lease.endpoint).collect();
    assert_eq!((taken.len(), distinct.len()), (ids.len(), ids.len()));
    let (lease, endpoint) = taken[0].clone();
    let released = store
        .update_deliveries(&[update(lease.clone(), endpoint.progress)])
        .unwrap();
    assert_eq!(released, [true]);
    let again = take(store, &[&lease.endpoint, &taken[1].0.endpoint]);
    assert_eq!(again.len(), 1);
    assert!(again[0].0.fence > lease.fence);
}

fn late_writer_is_fenced(store: &Store) {
    create(store, "a");
    let (lease, endpoint) = take(store, &["a"]).pop().unwrap();
    change(store, "a", &EndpointChange::Replay("p0".to_owned()));
    assert_eq!(take(store, &["a"]), [], "an attempt may be in flight");
    let late = Progress {
        position: "p9".to_owned(),
        ..endpoint.progress
    };
    let mut written = update(lease, late);
    written.attempt = Some(attempt(1));
    assert_eq!(
        store.update_deliveries(&[written.clone()]).unwrap(),
        [false]
    );
    let found = store.endpoint("a").unwrap().unwrap();
    assert_eq!(found.progress.position, "p0");
    assert_eq!(store.attempts("a").unwrap(), []);
    // The lease was ended all the same.
    assert_eq!(take(store, &["a"]).len(), 1);
    assert_eq!(
        store.update_deliveries(&[written.clone()]).unwrap(),
        [false]
    );
    assert_eq!(take(store, &["a"]), [], "that of the next holder stays");
    let context = by_tester(AuditAction::DeleteWebhook);
    assert!(store.delete_endpoint("a", &context).unwrap());
    assert_eq!(store.update_deliveries(&[written]).unwrap(), [false]);
}

fn deliveries_are_written(store: &Store) {
    create(store, "a");
    create(store, "b");
    let before = store.webhook_state().unwrap();
    let taken = take(store, &["a", "b"]);
    assert_eq!(taken.len(), 2);
    let pending = Progress {
        pending: Some(PendingEvent {
            id: "msg_1".to_owned(),
            body: "{\"type\": \"catalog.changed\"}".to_owned(),
            end: "p2".to_owned(),
            failures: 1,
        }),
        failing_since: Some(Timestamp::from_second(50).unwrap()),
        next_attempt_at: Some(Timestamp::from_second(55).unwrap()),
        position: "p1".to_owned(),
    };
    let updates: Vec<DeliveryUpdate> = (taken.iter())
        .map(|(lease, _)| DeliveryUpdate {
            attempt: Some(attempt(1)),
            disable: (lease.endpoint == "b").then(|| "410".to_owned()),
            release: false,
            ..update(lease.clone(), pending.clone())
        })
        .collect();
    assert_eq!(store.update_deliveries(&updates).unwrap(), [true, true]);
    assert_eq!(store.endpoint("a").unwrap().unwrap().progress, pending);
    assert_eq!(store.attempts("a").unwrap(), [attempt(1)]);
    let disabled = store.endpoint("b").unwrap().unwrap();
    assert_eq!(disabled.status, EndpointStatus::Disabled);
    assert_eq!(disabled.status_reason.as_deref(), Some("410"));
    assert_eq!(
        store.webhook_state().unwrap(),
        before,
        "only operators count"
    );
    assert_eq!(take(store, &["a", "b"]), []);
}

fn operators_change_an_endpoint(store: &Store) {
    create(store, "a");
    let paused = change(store, "a", &EndpointChange::Pause("maintenance".to_owned()));
    assert_eq!(paused.status, EndpointStatus::Paused);
    assert_eq!(paused.status_reason.as_deref(), Some("maintenance"));
    assert_eq!(store.endpoint("a").unwrap().unwrap(), paused);
    let tested = change(store, "a", &EndpointChange::Test("msg_t".to_owned()));
    assert_eq!(tested.test.as_deref(), Some("msg_t"));
    let (lease, endpoint) = take(store, &["a"]).pop().unwrap();
    let mut done = update(lease, endpoint.progress);
    done.tested = Some("msg_t".to_owned());
    assert_eq!(store.update_deliveries(&[done]).unwrap(), [true]);
    assert_eq!(store.endpoint("a").unwrap().unwrap().test, None);
    let enabled = change(store, "a", &EndpointChange::Enable);
    assert_eq!(
        (enabled.status, enabled.status_reason),
        (EndpointStatus::Active, None)
    );
    let context = by_tester(AuditAction::RetryWebhook);
    let retry = || store.change_endpoint("a", &EndpointChange::Retry, &context);
    assert!(matches!(retry(), Err(StoreError::NothingToRetry { .. })));
    let (lease, endpoint) = take(store, &["a"]).pop().unwrap();
    let waiting = Progress {
        pending: Some(PendingEvent {
            id: "msg_1".to_owned(),
            body: "{}".to_owned(),
            end: "p1".to_owned(),
            failures: 3,
        }),
        next_attempt_at: Some(endpoint.created_at),
        failing_since: Some(endpoint.created_at),
        ..endpoint.progress
    };
    let failed = update(lease, waiting.clone());
    assert_eq!(store.update_deliveries(&[failed]).unwrap(), [true]);
    let due = Progress {
        next_attempt_at: None,
        ..waiting
    };
    assert_eq!(retry().unwrap().unwrap().progress, due);
    assert!(matches!(retry(), Err(StoreError::NothingToRetry { .. })));
    let context = by_tester(AuditAction::PauseWebhook);
    let missing = store.change_endpoint("b", &EndpointChange::Enable, &context);
    assert_eq!(missing.unwrap(), None);
}

fn secrets_overlap(store: &Store) {
    create(store, "a");
    let now = Timestamp::now();
    let hour = now.checked_add(1.hour()).unwrap();
    let rotate = |number, overlap_ends_at| {
        let salt = [number; 16];
        let rotated = EndpointChange::Rotate {
            salt,
            overlap_ends_at,
        };
        change(store, "a", &rotated)
    };
    for number in 0..6 {
        let changed = rotate(number, hour);
        assert!(changed.secrets.len() <= MAX_SECRETS);
        assert_eq!(changed.secrets[0].salt, [number; 16]);
        assert_eq!(changed.secrets[0].ends_at, None);
        assert!(
            changed.secrets[1..]
                .iter()
                .all(|secret| secret.ends_at.is_some())
        );
    }
    let ended = rotate(9, now);
    assert_eq!(ended.secrets.len(), 1, "without overlap");
}

fn endpoints_move(store: &Store) {
    create(store, "a");
    create(store, "b");
    let context = by_tester(AuditAction::RotateKey);
    assert_eq!(
        store
            .move_endpoints("vitrine_0", "vitrine_2", &context)
            .unwrap(),
        0
    );
    assert_eq!(
        store
            .move_endpoints("vitrine_1", "vitrine_2", &context)
            .unwrap(),
        2
    );
    let all = store.endpoints().unwrap();
    assert!(all.iter().all(|endpoint| endpoint.key == "vitrine_2"));
}

fn last_attempts_are_kept(store: &Store) {
    create(store, "a");
    let (lease, endpoint) = take(store, &["a"]).pop().unwrap();
    let kept = i64::from(KEPT_ATTEMPTS);
    for number in 0..kept + 3 {
        let update = DeliveryUpdate {
            attempt: Some(attempt(number)),
            release: false,
            ..update(lease.clone(), endpoint.progress.clone())
        };
        assert_eq!(store.update_deliveries(&[update]).unwrap(), [true]);
    }
    let expected: Vec<Attempt> = (3..kept + 3).rev().map(attempt).collect();
    assert_eq!(store.attempts("a").unwrap(), expected);
}

/// Runs SQL where the rows of webhooks are.
fn run_on_webhooks(kept: &Kept<'_>, sql: &str) {
    match kept.url.strip_prefix("sqlite:") {
        Some(path) => {
            let file = rusqlite::Connection::open(format!("{path}-webhooks")).unwrap();
            file.execute_batch(sql).unwrap();
        }
        None => (kept.run)(sql),
    }
}

/// A lease that its holder doesn't renew ends by the store's clock.
#[test]
fn lease_ends_by_the_clock_of_the_store() {
    on_both(|kept: &Kept<'_>| {
        let store = kept.open();
        create(&store, "a");
        let (first, _) = take(&store, &["a"]).pop().unwrap();
        assert_eq!(take(&store, &["a"]), []);
        run_on_webhooks(
            kept,
            "update webhook_endpoint set leased_until = leased_until - 30000",
        );
        let (second, _) = take(&store, &["a"]).pop().unwrap();
        assert!(second.fence > first.fence);
        run_on_webhooks(
            kept,
            "update webhook_endpoint set clock = 'an earlier start'",
        );
        assert_eq!(take(&store, &["a"]).len(), 1);
    });
}

/// A copy for trying things out tells nobody.
#[test]
fn endpoints_of_a_backup_are_restored_paused() {
    on_both(|kept: &Kept<'_>| {
        let directory = kept.directory;
        let url = format!("sqlite:{}", directory.join("source.db").display());
        let source = open(&url, IfMissing::Create).unwrap();
        create(&source, "a");
        let (lease, endpoint) = take(&source, &["a"]).pop().unwrap();
        let mut done = update(lease, endpoint.progress);
        (done.attempt, done.release) = (Some(attempt(1)), false);
        assert_eq!(source.update_deliveries(&[done]).unwrap(), [true]);
        let backup = directory.join("backup.db");
        source.backup(&backup).unwrap();
        let store = kept.open();
        create(&store, "other");
        store.restore(&backup, &restore()).unwrap();
        let found = store.endpoints().unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(
            (&*found[0].id, found[0].status),
            ("a", EndpointStatus::Paused)
        );
        assert!(
            found[0]
                .status_reason
                .as_deref()
                .unwrap()
                .contains("enable")
        );
        assert_eq!(store.attempts("a").unwrap(), [attempt(1)]);
        assert_eq!(take(&store, &["a"]).len(), 1, "leases aren't restored");
        assert_eq!(store.check().unwrap(), []);
        let enabled = change(&store, "a", &EndpointChange::Enable);
        assert_eq!(enabled.status, EndpointStatus::Active);
    });
}

#[test]
fn damaged_endpoint_is_found_by_the_check() {
    on_both(|kept| {
        let store = kept.open();
        create(&store, "wh_1");
        let damage = "update webhook_endpoint set document = '{}'";
        run_on_webhooks(kept, damage);
        assert_eq!(store.check().unwrap()[0].rule, "webhook");
    });
}
