//! Loads of changes in stores that other commands change too.

use std::fs::File;
use std::io::Write as _;
use std::sync::Arc;

use serde_json::json;
use vitrine_store::IfMissing;

use super::source::Insecure;
use super::*;
use crate::load::apply::Mode;
use crate::load::guard::Allowance;

/// A store, and the mirror's state file, in a directory.
struct Case {
    directory: tempfile::TempDir,
    store: Arc<Store>,
}

fn settings(mode: Mode) -> LoadSettings {
    let allow: Allowance = "retire=100%".parse().unwrap();
    LoadSettings {
        mode,
        allowances: vec![allow],
        ..LoadSettings::replace("a test".to_owned())
    }
}

fn records(codes: &[&str]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    for code in codes {
        let product = json!({
            "name": code, "code": code, "currency": "EUR", "state": "LIVE", "is_orderable": true,
            "payout_type": "later", "categories": [], "countries_redeemable_in": [],
            "customer_service": {"phone_number": null, "website_url": null},
            "discount_multiplier": "0.05", "availability": "realtime", "later": {},
        });
        writeln!(file, "{product}").unwrap();
    }
    file
}

fn changes(codes: &[&str], gone: &[&str], next: &str) -> Changes {
    Changes {
        records: records(codes),
        gone: Some(gone.iter().map(ToString::to_string).collect()),
        is_without_records: codes.is_empty(),
        origin: Origin::Feed {
            next: next.to_owned(),
            version: NEWEST,
        },
        arrived: Instant::now(),
    }
}

impl Case {
    /// A store whose live revision, of these products, is the copy.
    fn of(codes: &[&str]) -> (Self, Mirror) {
        let directory = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", directory.path().join("store.db").display());
        let case = Self {
            store: vitrine_store::open(&url, IfMissing::Create).unwrap(),
            directory,
        };
        case.load(codes, Mode::Replace);
        let source = Source::new("http://[::1]", "a.b", Insecure::Refuse, 0);
        let mut mirror = Mirror::new(
            source.unwrap(),
            TextForm::Addresses,
            Wait::Yes,
            Some(case.state()),
            &case.store,
        )
        .unwrap();
        mirror.held = Some(Held {
            token: "first".to_owned(),
            version: NEWEST,
            revision_id: case.live().unwrap(),
            products: None,
        });
        (case, mirror)
    }

    fn state(&self) -> StateFile {
        StateFile::open(&self.directory.path().join("state.json")).unwrap()
    }

    fn live(&self) -> Option<String> {
        self.store.state().unwrap().revision_id
    }

    /// Loads as another command does.
    fn load(&self, codes: &[&str], mode: Mode) {
        let mut file = records(codes);
        std::io::Seek::rewind(&mut file).unwrap();
        let inputs = match codes.is_empty() {
            true => Vec::new(),
            false => vec![Opened::new("input".to_owned(), Box::new(file))],
        };
        let report = load::load(&self.store, inputs, settings(mode), &Silent).unwrap();
        assert!(outcome(&report).is_success(), "{report:?}");
    }

    /// Returns the token that a restart goes on from.
    fn resumed(&self, mirror: &Mirror) -> Option<String> {
        let (base, texts) = (mirror.source.base(), mirror.texts);
        let held = self.state().held(&self.store, base, texts).unwrap();
        held.map(|held| held.token)
    }
}

#[test]
fn changes_of_another_revision_are_not_published() {
    let (case, mut mirror) = Case::of(&["A", "B"]);
    case.load(&["FOREIGN"], Mode::Replace);
    let foreign = case.live();
    let changes = changes(&["C"], &[], "second");
    let loaded = mirror.load(&case.store, changes, settings(Mode::Replace));
    assert!(loaded.unwrap().is_none() && mirror.held.is_none());
    assert_eq!(case.live(), foreign);
    assert_eq!(case.resumed(&mirror), None);
}

#[test]
fn removals_of_others_are_not_taken_for_a_publish() {
    let removal = || changes(&[], &["B"], "second");
    let (case, mut mirror) = Case::of(&["A", "B", "C"]);
    // As if it was killed before the transaction, and an operator did the same.
    let before = case.live();
    mirror.save(removal().publishing(before.clone()).unwrap());
    case.load(&[], removal().mode("input"));
    assert_eq!(case.resumed(&mirror), None);
    // As if it was killed after the transaction.
    let (case, mut mirror) = Case::of(&["A", "B", "C"]);
    let before = case.live();
    let loaded = mirror.load(&case.store, removal(), settings(Mode::Replace));
    assert!(outcome(&loaded.unwrap().unwrap()).is_success());
    mirror.held = None;
    mirror.save(removal().publishing(before).unwrap());
    assert_eq!(case.resumed(&mirror).as_deref(), Some("second"));
}
