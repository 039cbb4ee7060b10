//! A naive history of a store: every state that its catalog ever had.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use proptest::prelude::*;
use vitrine_model::changes::{Journal, JournalUpdate, Position, StateId};
use vitrine_model::code::ProductCode;
use vitrine_model::revision::Revision;
use vitrine_model::selector::Selector;
use vitrine_model::snapshot::{Snapshot, TextTable};

use crate::naive::{Made, marked, matches, product, snapshot_from};

/// An operation on the store.
#[derive(Debug, Clone)]
pub enum Operation {
    /// A revision with these versions of products; `None` retires one.
    Publish(Vec<(ProductCode, Option<Version>)>),
    /// A text is taken down, or put back.
    Text(u8),
    /// A restore of the newest revision, which gets a new id.
    Restore,
}

/// A version of a product.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    pub made: Made,
    /// Number of a text that it names.
    pub text: u8,
    pub edition: u8,
}

/// A state of the store.
#[derive(Debug, Clone)]
pub struct Moment {
    pub number: u64,
    pub texts: u64,
    pub catalog: BTreeMap<ProductCode, Version>,
    /// Texts that were taken down.
    pub down: BTreeSet<u8>,
    /// Codes of the products whose bytes the last operation may have changed.
    pub touched: BTreeSet<ProductCode>,
    /// Id of each revision, and the one that it had before a restore.
    pub ids: BTreeMap<u64, (String, Option<String>)>,
}

/// All states of a store, ascending.
#[derive(Debug)]
pub struct History {
    pub moments: Vec<Moment>,
    /// Versions before and after, by revision and code.
    #[expect(clippy::type_complexity, reason = "a table")]
    versions: BTreeMap<u64, Vec<(ProductCode, [Option<Version>; 2])>>,
    /// States of the texts before and after, with the number of the revision at that time, and the text.
    texts: Vec<([u64; 2], u64, u8)>,
}

pub fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let code = prop::sample::select(vec!["A", "B", "B-1", "C", "D", "Z~"]);
    let code = code.prop_map(|code| code.parse().expect("a code"));
    let version = (product(), 0..3_u8, 0..2_u8).prop_map(|(made, text, edition)| Version {
        made,
        text,
        edition,
    });
    let publish = prop::collection::vec((code, prop::option::weighted(0.7, version)), 0..4);
    let operation = prop_oneof![
        8 => publish.prop_map(Operation::Publish),
        2 => (0..3_u8).prop_map(Operation::Text),
        1 => Just(Operation::Restore),
    ];
    prop::collection::vec(operation, 1..30)
}

impl History {
    /// Returns the history of a store after these operations. The first revision has the number `first`.
    pub fn of(first: u64, operations: &[Operation]) -> Self {
        let mut moment = Moment {
            number: first,
            texts: 0,
            catalog: BTreeMap::new(),
            down: BTreeSet::new(),
            touched: BTreeSet::new(),
            ids: BTreeMap::from([(first, ("first".to_owned(), None))]),
        };
        let mut history = Self {
            moments: vec![moment.clone()],
            versions: BTreeMap::new(),
            texts: Vec::new(),
        };
        for (step, operation) in (1..).zip(operations) {
            history.apply(&mut moment, step, operation);
            history.moments.push(moment.clone());
        }
        history
    }

    fn apply(&mut self, moment: &mut Moment, step: u64, operation: &Operation) {
        moment.touched.clear();
        match operation {
            Operation::Publish(products) => {
                moment.number += 1;
                let id = format!("id {step}");
                moment.ids.insert(moment.number, (id, None));
                let products: BTreeMap<_, _> = products.iter().cloned().collect();
                for (code, after) in products {
                    let before = match after.clone() {
                        Some(version) => moment.catalog.insert(code.clone(), version),
                        None => moment.catalog.remove(&code),
                    };
                    // The store keeps no version that equals the one before.
                    if before != after {
                        moment.touched.insert(code.clone());
                        let changes = self.versions.entry(moment.number).or_default();
                        changes.push((code, [before, after]));
                    }
                }
            }
            Operation::Text(text) => {
                // It grows by random steps.
                let after = moment.texts + 1 + step * 0x9e37 % 300;
                self.texts
                    .push(([moment.texts, after], moment.number, *text));
                moment.texts = after;
                if !moment.down.remove(text) {
                    moment.down.insert(*text);
                }
                let naming = moment.catalog.iter().filter(|(_, one)| one.text == *text);
                moment.touched = naming.map(|(code, _)| code.clone()).collect();
            }
            Operation::Restore => {
                let newest = moment.ids.get_mut(&moment.number).expect("a revision");
                let former = std::mem::replace(&mut newest.0, format!("restored {step}"));
                newest.1 = Some(former);
            }
        }
    }

    pub fn last(&self) -> usize {
        self.moments.len() - 1
    }

    pub fn position(&self, at: usize) -> Position {
        let moment = &self.moments[at];
        Position {
            number: moment.number,
            revision: StateId::of_revision(&moment.ids[&moment.number].0),
            texts: StateId::of_texts(moment.texts),
            assortment: StateId::default(),
        }
    }

    /// Reads the store at a moment, as far as it changed since another one.
    pub fn read(&self, since: usize, at: usize) -> JournalUpdate {
        let (since, moment) = (&self.moments[since], &self.moments[at]);
        let mut update = JournalUpdate::default();
        // Also those of the first revision, which don't count.
        let changes = self.versions.range(since.number..=moment.number).rev();
        for (number, versions) in changes {
            for (code, [before, after]) in versions {
                if let Some(after) = after {
                    update.began(*number, code.as_str(), &after.made.facts());
                }
                if let Some(before) = before {
                    update.ended(*number, code.as_str(), &before.made.facts());
                }
            }
        }
        for (number, (id, former)) in moment.ids.range(since.number..) {
            update.revision(&revision(*number, id), former.as_deref());
        }
        for ([before, after], number, text) in &self.texts {
            if *before < since.texts || *after > moment.texts {
                continue;
            }
            let [before, after] = [*before, *after].map(StateId::of_texts);
            update.texts_state(before, after, second(*number));
            for (code, _) in moment.catalog.iter().filter(|(_, one)| one.text == *text) {
                update.text(after, code.as_str());
            }
        }
        update
    }

    /// Returns the journal that is read at a moment, with the changes since another one.
    pub fn journal(&self, since: usize, at: usize) -> Journal {
        let texts = StateId::of_texts(self.moments[at].texts);
        let journal = self.read(since, at).into_journal(texts);
        journal.expect("a revision")
    }

    /// Returns the journal of moment `since`, extended by what is read at another one, or the whole one if it doesn't follow.
    pub fn extended(&self, journal: &Journal, since: usize, at: usize) -> Journal {
        let texts = StateId::of_texts(self.moments[at].texts);
        let extended = self.read(since, at).extend(journal, texts);
        extended.unwrap_or_else(|| self.journal(0, at))
    }

    /// Returns the bytes of a product at a moment, if it matches the filter.
    pub fn visible(&self, at: usize, code: &ProductCode, filter: &Selector) -> Option<String> {
        let moment = &self.moments[at];
        let version = moment.catalog.get(code)?;
        matches(code, &version.made, filter).then(|| moment.rendered(code, version))
    }

    /// Returns what a list shows at a moment.
    pub fn list(&self, at: usize, filter: &Selector) -> BTreeMap<String, String> {
        let codes = self.moments[at].catalog.keys();
        codes
            .filter_map(|code| Some((code.to_string(), self.visible(at, code, filter)?)))
            .collect()
    }

    /// Returns what differs at a moment since an earlier one: bytes, or `None` for a removal.
    pub fn changes(
        &self,
        [since, until]: [usize; 2],
        filter: &Selector,
    ) -> BTreeMap<String, Option<String>> {
        let moments = &self.moments[since + 1..=until];
        let touched: BTreeSet<_> = moments.iter().flat_map(|one| &one.touched).collect();
        let was_visible = |code| (since..=until).any(|at| self.visible(at, code, filter).is_some());
        touched
            .into_iter()
            .filter(|code| was_visible(code))
            .map(|code| (code.to_string(), self.visible(until, code, filter)))
            .collect()
    }

    pub fn snapshot(&self, at: usize) -> Snapshot {
        let moment = &self.moments[at];
        let products = moment.catalog.iter();
        let products = products.map(|(code, one)| (code, &one.made, moment.rendered(code, one)));
        let (id, _) = &moment.ids[&moment.number];
        let revision = revision(moment.number, id);
        snapshot_from(products, &[2, 1, 3], revision, TextTable::default())
    }
}

impl Moment {
    fn rendered(&self, code: &ProductCode, version: &Version) -> String {
        let Version {
            made,
            text,
            edition,
        } = version;
        let text = match self.down.contains(text) {
            true => "taken down",
            false => ["one", "two", "three"][usize::from(*text)],
        };
        format!("<{code} {made:?} {text} {edition}{}>", marked(made))
    }
}

/// Returns a revision that was published a second after the one before.
pub fn revision(number: u64, id: &str) -> Revision {
    Revision {
        number,
        id: id.to_owned(),
        created_at: second(number),
    }
}

/// Returns the time so many seconds after 1970.
pub fn second(second: u64) -> Timestamp {
    Timestamp::from_second(second.cast_signed()).expect("a time")
}
