//! Operators of the console, and their sessions.

use std::thread;

use jiff::{SignedDuration, Timestamp};
use vitrine_store::audit::AuditAction;
use vitrine_store::operators::{
    MAX_SESSIONS, NewSession, Operator, OperatorChange, PasswordHash, Role,
};
use vitrine_store::{Store, StoreError};

use crate::audited::by_tester as context;
use crate::rules;

rules! {
    changes_are_logged,
    last_owner_stays,
    sessions_end,
    sessions_are_bounded,
}

const BEGAN: Timestamp = Timestamp::UNIX_EPOCH;

fn operator(name: &str, stamp: &str) -> Operator {
    Operator {
        name: name.parse().unwrap(),
        role: Role::Viewer,
        password: Some(PasswordHash::new(format!("hash of {name}"))),
        stamp: stamp.to_owned(),
        created_at: BEGAN,
    }
}

fn change(stamp: &str) -> OperatorChange {
    OperatorChange {
        role: None,
        password: None,
        stamp: stamp.to_owned(),
    }
}

fn session(of: &Operator, number: u8) -> NewSession {
    NewSession {
        token_hash: [number; 32],
        operator: of.name.clone(),
        stamp: of.stamp.clone(),
        created_at: BEGAN + SignedDuration::from_secs(i64::from(number)),
    }
}

fn changes_are_logged(store: &Store) {
    assert!(!store.has_operators().unwrap());
    let add = context(AuditAction::AddOperator);
    let (ines, olga) = (operator("ines", "1"), operator("Olga", "1"));
    assert!(store.add_operator(&ines, &add).unwrap());
    assert!(store.add_operator(&olga, &add).unwrap());
    assert!(!store.add_operator(&operator("ines", "2"), &add).unwrap());
    assert!(store.has_operators().unwrap());
    assert_eq!(store.operators().unwrap(), [olga.clone(), ines.clone()]);
    let set = context(AuditAction::SetOperator);
    let promoted = OperatorChange {
        role: Some(Role::Owner),
        password: Some(Some(PasswordHash::new("another".to_owned()))),
        ..change("3")
    };
    let changed = store.set_operator(&ines.name, &promoted, &set).unwrap();
    let changed = changed.unwrap();
    assert_eq!((changed.role, changed.stamp.as_str()), (Role::Owner, "3"));
    assert_eq!(store.operator(&ines.name).unwrap(), Some(changed));
    let nobody = "nobody".parse().unwrap();
    assert_eq!(store.set_operator(&nobody, &promoted, &set).unwrap(), None);
    let remove = context(AuditAction::RemoveOperator);
    assert!(store.remove_operator(&olga.name, &remove).unwrap());
    assert!(!store.remove_operator(&olga.name, &remove).unwrap());
    let log = store.audit(None, 10).unwrap();
    let told: Vec<String> = log
        .iter()
        .rev()
        .map(|entry| {
            let fields = entry.changes.iter().map(|change| change.field.as_str());
            let fields: Vec<&str> = fields.collect();
            format!("{} {} {}", entry.action, entry.subject, fields.join(" "))
        })
        .collect();
    assert_eq!(
        told,
        [
            "add ines role sign_in",
            "add Olga role sign_in",
            "set ines role password",
            "remove Olga role sign_in"
        ]
    );
    assert!(!format!("{log:?}").contains("another"));
    assert_eq!(store.check().unwrap(), []);
}

fn last_owner_stays(store: &Store) {
    let add = context(AuditAction::AddOperator);
    let (set, remove) = (AuditAction::SetOperator, AuditAction::RemoveOperator);
    let names = ["ines", "olga"];
    let owner = |name: &str| Operator {
        role: Role::Owner,
        ..operator(name, "1")
    };
    let none = store.had_operators(None).unwrap();
    assert!(!none.found);
    assert_eq!(store.had_operators(Some(&none.position)).unwrap(), none);
    let owners = || {
        let all = store.operators().unwrap().into_iter();
        all.filter(|one| one.role == Role::Owner).count()
    };
    for round in 0..10 {
        for name in names {
            store
                .change_operator(&name.parse().unwrap(), &add, &mut |_| Some(owner(name)))
                .unwrap();
        }
        let demote = |name: &str| {
            let viewer = OperatorChange {
                role: Some(Role::Viewer),
                ..change("2")
            };
            let name = name.parse().unwrap();
            match round % 2 {
                0 => store.remove_operator(&name, &context(remove)).map(drop),
                _ => store.set_operator(&name, &viewer, &context(set)).map(drop),
            }
        };
        let outcomes = thread::scope(|scope| {
            let running = names.map(|name| scope.spawn(move || demote(name)));
            running.map(|thread| thread.join().unwrap())
        });
        let refused = outcomes.iter().filter(|outcome| outcome.is_err());
        assert_eq!((refused.count(), owners()), (1, 1), "{outcomes:?}");
        let refused = outcomes.into_iter().find_map(Result::err);
        assert!(matches!(refused, Some(StoreError::LastOwner { .. })));
    }
    let viewer = operator("vera", "1");
    store.add_operator(&viewer, &add).unwrap();
    assert!(
        store
            .remove_operator(&viewer.name, &context(remove))
            .unwrap()
    );
    let are_found = |store: &Store| store.had_operators(Some(&none.position)).unwrap().found;
    assert!(are_found(store));
    assert_eq!(store.check().unwrap(), []);
}

fn sessions_end(store: &Store) {
    let add = context(AuditAction::AddOperator);
    let set = context(AuditAction::SetOperator);
    let ines = operator("ines", "1");
    store.add_operator(&ines, &add).unwrap();
    let one = session(&ines, 1);
    let is_there = |token: u8| store.session(&[token; 32]).unwrap().is_some();
    store.add_session(&one, BEGAN).unwrap();
    let found = store.session(&one.token_hash).unwrap().unwrap();
    assert_eq!(found.operator, ines);
    assert_eq!(
        (found.created_at, found.used_at),
        (one.created_at, one.created_at)
    );
    store.set_operator(&ines.name, &change("2"), &set).unwrap();
    assert!(!is_there(1));
    // A sign-in that was checked before the change.
    store.add_session(&session(&ines, 2), BEGAN).unwrap();
    assert!(!is_there(2));
    let changed = operator("ines", "2");
    for number in [3, 4, 5] {
        store
            .add_session(&session(&changed, number), BEGAN)
            .unwrap();
    }
    store.end_session(&[3; 32]).unwrap();
    assert!(!is_there(3) && is_there(4) && is_there(5));
    store.end_sessions(&ines.name).unwrap();
    assert!(!is_there(4) && !is_there(5));
    store.add_session(&session(&changed, 6), BEGAN).unwrap();
    let remove = context(AuditAction::RemoveOperator);
    store.remove_operator(&ines.name, &remove).unwrap();
    store.add_operator(&ines, &add).unwrap();
    assert!(!is_there(6));
}

fn sessions_are_bounded(store: &Store) {
    let add = context(AuditAction::AddOperator);
    let (ines, olga) = (operator("ines", "1"), operator("olga", "1"));
    store.add_operator(&ines, &add).unwrap();
    store.add_operator(&olga, &add).unwrap();
    store.add_session(&session(&olga, 200), BEGAN).unwrap();
    let most = u8::try_from(MAX_SESSIONS).unwrap();
    for number in 0..=most {
        store.add_session(&session(&ines, number), BEGAN).unwrap();
    }
    let is_there = |token: u8| store.session(&[token; 32]).unwrap().is_some();
    let ahead = NewSession {
        created_at: BEGAN + SignedDuration::from_hours(1_000),
        ..session(&olga, 201)
    };
    store.add_session(&ahead, BEGAN).unwrap();
    for number in 100..100 + most {
        store.add_session(&session(&olga, number), BEGAN).unwrap();
    }
    assert!(!is_there(201), "one from a clock that is ahead ends first");
    store.add_session(&session(&olga, 200), BEGAN).unwrap();
    assert!(!is_there(0), "the oldest ended");
    assert!((1..=most).all(is_there));
    assert!(is_there(200), "others stay");
    let later = BEGAN + SignedDuration::from_hours(1);
    store.use_session(&[1; 32], later).unwrap();
    store.use_session(&[1; 32], BEGAN).unwrap();
    let used = store.session(&[1; 32]).unwrap().unwrap().used_at;
    assert_eq!(used, later, "a late report changes nothing");
    store.add_session(&session(&ines, 250), later).unwrap();
    assert!(
        !is_there(2) && !is_there(200),
        "those that began before are deleted"
    );
}
