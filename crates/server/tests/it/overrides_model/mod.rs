//! Overrides beside a naive model: random loads, rollbacks, overrides, their ends and instants. At each moment the catalog is
//! what the model makes of base and overrides, product by product.

#![expect(
    clippy::unwrap_used,
    reason = "these are tests, though not every function is marked as one"
)]

mod attribution;
mod naive;
mod samples;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use vitrine_ingest::load::apply::{Intent, Mode};
use vitrine_ingest::load::guard::{Allowance, Rule};
use vitrine_ingest::load::progress::Silent;
use vitrine_ingest::load::report::Outcome;
use vitrine_ingest::load::{LoadSettings, Opened, load};
use vitrine_ingest::overrides::change::{Request, end, make};
use vitrine_ingest::overrides::instants::{AppliedInstant, apply_next};
use vitrine_ingest::overrides::{Definition, Kind, publish, restore};
use vitrine_store::overrides::OverrideStatus;
use vitrine_store::record::{Moment, RevisionNote, StoredProduct};

use crate::harness::{Store, wait_for};
use naive::{Model, evaluate, selects};
use samples::{
    CODES, Random, VALUES, VARIANTS, by_model, document, documents, selections, variant,
};

/// Base of each product, by code.
type Catalog = BTreeMap<String, Value>;

/// Number of revisions that are compared after each step; in the end all are.
const CHECKED: usize = 3;

/// A store under test, beside the model.
struct World {
    store: std::sync::Arc<vitrine_store::Store>,
    /// Documents of all variants.
    documents: BTreeMap<(String, usize), Value>,
    base: Catalog,
    overrides: Vec<Model>,
    /// Base and effective catalog of each revision.
    revisions: BTreeMap<u64, (Catalog, Catalog)>,
    hidden_changes: u64,
    instants: usize,
}

fn allowances() -> Vec<Allowance> {
    let allowed = |rule: Rule| format!("{}=100%", rule.name()).parse().unwrap();
    Rule::ALL.into_iter().map(allowed).collect()
}

fn settings(mode: Mode) -> LoadSettings {
    LoadSettings {
        mode,
        allowances: allowances(),
        ..LoadSettings::replace("model".to_owned())
    }
}

fn input(records: &[Value]) -> Vec<Opened> {
    let lines: String = records.iter().map(|record| format!("{record}\n")).collect();
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(lines.as_bytes()).unwrap();
    std::io::Seek::rewind(&mut file).unwrap();
    vec![Opened::new(
        "records".to_owned(),
        Box::new(file) as Box<File>,
    )]
}

impl World {
    fn load(&mut self, random: &mut Random) {
        let is_whole = random.is_one_of(3);
        let is_patch = !is_whole && random.is_one_of(2);
        let mut records = Vec::new();
        let mut next = match is_whole {
            true => Catalog::new(),
            false => self.base.clone(),
        };
        for code in CODES {
            if random.is_one_of(2) {
                let number = random.below(VARIANTS);
                let record = variant(code, number);
                records.push(match is_patch {
                    true if !next.contains_key(code) => continue,
                    true => self.patch(code, record),
                    false => record,
                });
                next.insert(
                    code.to_owned(),
                    self.documents[&(code.to_owned(), number)].clone(),
                );
            }
        }
        let mut retire = Vec::new();
        if !is_whole && random.is_one_of(4) {
            let code = *random.of(&CODES);
            if !records.iter().any(|record| record["code"] == code) {
                next.remove(code);
                retire.push(vitrine_ingest::load::apply::Retirement {
                    code: code.parse().unwrap(),
                    place: vitrine_ingest::load::report::Place::file("retired"),
                });
            }
        }
        if records.is_empty() {
            return;
        }
        let mode = match is_whole {
            true => Mode::Replace,
            false if is_patch => Mode::Patch { retire },
            false => Mode::Merge { retire },
        };
        let report = load(&self.store, input(&records), settings(mode), &Silent).unwrap();
        let applied = report.applied.expect("no faults");
        let is_changed = next != self.base;
        match applied.outcome {
            Outcome::Published(_) => assert!(is_changed),
            // The canonical text may differ where the values don't.
            Outcome::Unchanged => assert!(!is_changed),
            other => panic!("{other:?}"),
        }
        self.hidden_changes += applied
            .ineffective
            .iter()
            .map(|one| one.changes)
            .sum::<u64>();
        self.base = next;
    }

    /// Returns a patch that makes a record of the base of its product: the members that differ.
    fn patch(&self, code: &str, mut record: Value) -> Value {
        let is_base =
            |number: &usize| self.documents[&(code.to_owned(), *number)] == self.base[code];
        let before = variant(code, (0..VARIANTS).find(is_base).unwrap());
        let before = before.as_object().unwrap();
        let members = record.as_object_mut().unwrap();
        // What a whole record lacks is empty; a patch must say so.
        for key in before.keys() {
            members.entry(key).or_insert(Value::Null);
        }
        members.retain(|key, value| key == "code" || before.get(key) != Some(value));
        record
    }

    fn override_some(&mut self, random: &mut Random) {
        let now = Timestamp::now();
        let later = |random: &mut Random, from: Timestamp, limit: usize| {
            let millis = i64::try_from(random.below(limit)).unwrap() + 5;
            from + SignedDuration::from_millis(millis)
        };
        let from = random.is_one_of(2).then(|| later(random, now, 40));
        let until = random.is_one_of(2).then(|| {
            later(
                random,
                from.unwrap_or(now) + SignedDuration::from_millis(50),
                60,
            )
        });
        let selection = random.of(&selections()).clone();
        let values: Vec<String> = random
            .of(&VALUES)
            .iter()
            .map(|&text| text.to_owned())
            .collect();
        let is_frozen = random.is_one_of(4);
        let request = Request {
            definition: Definition {
                kind: Kind::Set,
                selection: selection.clone(),
                frozen: None,
                values: values.iter().map(|text| text.parse().unwrap()).collect(),
                allowances: allowances(),
            },
            is_frozen,
            from,
            until,
            by: "model".to_owned(),
            note: None,
            confirmation: None,
        };
        let planned = make(&self.store, request.clone(), Intent::DryRun);
        let changed = match make(&self.store, request, Intent::Apply) {
            Ok(changed) => changed,
            Err(error) => {
                let error = error.to_string();
                let is_over = until.is_some() && error.contains("would end at");
                let is_empty = is_frozen && error.contains("no live product matches now");
                assert!(is_over || is_empty, "{error}");
                return self.sync();
            }
        };
        let planned = planned.expect("a plan of what was made afterwards");
        changed
            .instants
            .iter()
            .for_each(|applied| self.note_applied(applied));
        if changed.instants.is_empty() {
            assert_eq!(planned.plan, changed.plan);
        }
        let made = changed.made.first().unwrap();
        let mut one = Model {
            number: made.number,
            selection,
            frozen: None,
            values,
            from: made.stored.made.from,
            until: made.stored.made.until,
            status: made.stored.made.status,
        };
        if is_frozen {
            let matching = self.base.iter().filter(|(_, base)| selects(&one, base));
            one.frozen = Some(matching.map(|(code, _)| code.clone()).collect());
        }
        self.overrides.push(one);
    }

    fn end_one(&mut self, random: &mut Random) {
        let open: Vec<u64> = (self.overrides.iter())
            .filter(|one| one.status != OverrideStatus::Ended)
            .map(|one| one.number)
            .collect();
        if open.is_empty() {
            return;
        }
        let number = *random.of(&open);
        let ended = end(&self.store, &[number], &by_model(), Intent::Apply);
        let Ok(ended) = ended else {
            // Its time was over just now.
            return self.sync();
        };
        ended
            .instants
            .iter()
            .for_each(|applied| self.note_applied(applied));
        self.set_status(number, OverrideStatus::Ended);
    }

    /// Takes the statuses of overrides from the store.
    fn sync(&mut self) {
        for one in self.store.overrides().unwrap() {
            self.set_status(one.number, one.made.status);
        }
    }

    fn roll_back(&mut self, random: &mut Random) {
        let numbers: Vec<u64> = self.revisions.keys().copied().collect();
        let Some(number) = numbers.get(random.below(numbers.len().max(1))) else {
            return;
        };
        let mut publication = publish(&self.store).unwrap();
        assert!(restore(&self.store, &mut *publication, *number).unwrap());
        publication
            .commit(Timestamp::now(), &RevisionNote::default())
            .unwrap();
        self.base = self.revisions[number].0.clone();
    }

    fn set_status(&mut self, number: u64, status: OverrideStatus) {
        let found = self.overrides.iter_mut().find(|one| one.number == number);
        found.unwrap().status = status;
    }

    /// Follows an instant, which must be of what is due then.
    fn note_applied(&mut self, applied: &AppliedInstant) {
        self.instants += 1;
        assert!(applied.at <= applied.applied_at);
        let due = |one: &&Model| match one.status {
            OverrideStatus::Scheduled => one.from == applied.at,
            OverrideStatus::Active => one.until == Some(applied.at),
            OverrideStatus::Ended => false,
        };
        let due: Vec<Model> = self.overrides.iter().filter(due).cloned().collect();
        let numbers = |status| -> Vec<u64> {
            let due = due.iter().filter(|one| one.status == status);
            due.map(|one| one.number).collect()
        };
        assert_eq!(applied.begun, numbers(OverrideStatus::Scheduled));
        assert_eq!(applied.ended, numbers(OverrideStatus::Active));
        for number in &applied.begun {
            self.set_status(*number, OverrideStatus::Active);
        }
        for number in &applied.ended {
            self.set_status(*number, OverrideStatus::Ended);
        }
    }

    /// Applies what is due, and checks that all of it was, in order.
    fn apply_instants(&mut self) {
        let before = Timestamp::now() - SignedDuration::from_millis(1);
        let mut last = Timestamp::UNIX_EPOCH;
        while let Some(applied) = apply_next(&self.store).unwrap() {
            assert!(last < applied.at);
            last = applied.at;
            self.note_applied(&applied);
            self.check();
        }
        for one in &self.overrides {
            assert!(one.status != OverrideStatus::Scheduled || one.from > before);
            assert!(
                one.status != OverrideStatus::Active
                    || one.until.is_none_or(|until| until > before)
            );
        }
    }

    fn effective(&self) -> Catalog {
        let seen = self
            .base
            .iter()
            .filter_map(|(code, base)| Some((code.clone(), evaluate(base, &self.overrides)?)));
        seen.collect()
    }

    /// Compares the store with the model: live, and at all revisions that were seen.
    fn check(&mut self) {
        let effective = self.effective();
        if let Some(live) = self.store.revisions(1).unwrap().pop() {
            let number = live.revision.number;
            self.revisions
                .insert(number, (self.base.clone(), effective));
        }
        self.check_last(CHECKED);
        self.check_attribution();
    }

    /// Compares the last revisions with the model.
    fn check_last(&self, revisions: usize) {
        for (number, (base, effective)) in self.revisions.iter().rev().take(revisions) {
            let at = Moment::Revision(*number);
            let is_live = Some(number) == self.revisions.keys().last();
            for moment in [at].into_iter().chain(is_live.then_some(Moment::Live)) {
                assert_eq!(self.read(moment, true), *base, "base of {moment:?}");
                assert_eq!(self.read(moment, false), *effective, "{moment:?}");
            }
        }
        for code in CODES {
            let found = self
                .store
                .base_product(&code.parse().unwrap(), Moment::Live)
                .unwrap();
            assert_eq!(found.as_ref().map(document).as_ref(), self.base.get(code));
        }
    }

    fn read(&self, moment: Moment, is_base: bool) -> Catalog {
        let mut found = Catalog::new();
        let visit = &mut |product: StoredProduct| {
            found.insert(product.code.to_string(), document(&product));
            Ok(())
        };
        match is_base {
            true => self.store.read_base(moment, visit).unwrap(),
            false => self.store.read_products(moment, visit).unwrap(),
        };
        found
    }
}

#[test]
fn catalog_is_what_base_and_overrides_make() {
    let steps: usize =
        std::env::var("VITRINE_OVERRIDES_STEPS").map_or(60, |steps| steps.parse().unwrap());
    let documents = documents();
    let (mut hidden_changes, mut instants) = (0, 0);
    for seed in 1..=3 {
        let store = Store::new();
        let opened = vitrine_store::open(&store.url(), vitrine_store::IfMissing::Create).unwrap();
        let mut world = World {
            store: opened,
            documents: documents.clone(),
            base: Catalog::new(),
            overrides: Vec::new(),
            revisions: BTreeMap::new(),
            hidden_changes: 0,
            instants: 0,
        };
        let mut random = Random(0x9E37_79B9_7F4A_7C15 >> seed);
        for step in 0..steps {
            match random.below(10) {
                0..=3 => world.load(&mut random),
                4..=6 => world.override_some(&mut random),
                7..=8 => world.end_one(&mut random),
                _ => world.roll_back(&mut random),
            }
            world.check();
            if step % 3 == 0 {
                world.apply_instants();
            }
        }
        // All that has a time comes to it.
        wait_for("the last instant", || {
            world.apply_instants();
            world.store.next_instant().unwrap().is_none().then_some(())
        });
        world.check_last(usize::MAX);
        assert_eq!(world.store.check().unwrap(), []);
        // Without overrides the catalog is the base.
        let open = world
            .overrides
            .iter()
            .filter(|one| one.status != OverrideStatus::Ended);
        let open: Vec<u64> = open.map(|one| one.number).collect();
        if !open.is_empty() {
            end(&world.store, &open, &by_model(), Intent::Apply).unwrap();
        }
        assert_eq!(world.read(Moment::Live, false), world.base);
        hidden_changes += world.hidden_changes;
        instants += world.instants;
    }
    println!("instants: {instants}; changes that overrides hid: {hidden_changes}");
    assert!(instants > 0 && hidden_changes > 0);
}
