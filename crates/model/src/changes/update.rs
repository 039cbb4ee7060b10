//! Additions to a journal from a store's history.

use std::collections::HashMap;

use super::facts::Facts;
use super::log::Log;
use super::segment::SegmentBuilder;
use super::{Journal, StateId, Step};
use crate::revision::Revision;

/// Revisions and states of the texts with their changes, collected from a store in any order.
#[derive(Debug, Default)]
pub struct JournalUpdate {
    /// The first one is where the changes begin; numbers have no gaps.
    revisions: Vec<KnownRevision>,
    changes: SegmentBuilder,
    /// Newest revision whose changes aren't all known.
    unknown: Option<u64>,
    texts_states: Vec<(StateId, StateId)>,
    /// Codes of products that name a text whose status changed, with the state after that.
    named: Vec<(StateId, Box<str>)>,
}

#[derive(Debug)]
struct KnownRevision {
    number: u64,
    step: Step,
    former_id: Option<StateId>,
}

impl JournalUpdate {
    /// Adds a product whose version with these attributes ended with a revision.
    pub fn ended(&mut self, revision: u64, code: &str, facts: &Facts) {
        let before = Some(facts.as_bytes());
        self.changes.change(revision, code.as_bytes(), before, None);
    }

    /// Adds a product whose version with these attributes began with a revision.
    pub fn began(&mut self, revision: u64, code: &str, facts: &Facts) {
        let after = Some(facts.as_bytes());
        self.changes.change(revision, code.as_bytes(), None, after);
    }

    /// Adds a product that names a text whose status changed with this state of the texts.
    pub fn text(&mut self, state: StateId, code: &str) {
        self.named.push((state, code.into()));
    }

    /// Marks a revision whose changes aren't all known: the journal begins after it.
    pub fn unknown(&mut self, revision: u64) {
        self.unknown = self.unknown.max(Some(revision));
    }

    /// Adds the next revision, with the id that it had before a restore. The changes of the first one don't count.
    pub fn revision(&mut self, revision: &Revision, former_id: Option<&str>) {
        self.revisions.push(KnownRevision {
            number: revision.number,
            step: Step {
                id: StateId::of_revision(&revision.id),
                at: revision.created_at.as_millisecond(),
            },
            former_id: former_id.map(StateId::of_revision),
        });
    }

    /// Adds the next state of the texts, which begins with the end of the one before.
    pub fn texts_state(&mut self, before: StateId, after: StateId) {
        self.texts_states.push((before, after));
    }

    /// Returns the journal that begins with the first revision; `None` if there is no revision. `texts` is the newest state
    /// of the texts.
    #[must_use]
    pub fn into_journal(self, texts: StateId) -> Option<Journal> {
        let first = self.revisions.first()?;
        let revisions = Log::new(first.number, first.step);
        let base = self
            .texts_states
            .first()
            .map_or(texts, |(before, _)| *before);
        let texts_log = Log::new(0, Step { id: base, at: 0 });
        let journal = Journal {
            revisions,
            texts: texts_log,
        };
        let unknown = self.unknown;
        let mut journal = self.appended_to(journal);
        if let Some(unknown) = unknown {
            journal.revisions.drop_until(unknown);
        }
        Some(journal)
    }

    /// Returns the journal with these changes appended; `None` if they don't follow its newest revision, or aren't all
    /// known. If the states of the texts don't follow, the journal's begin anew with `texts`.
    #[must_use]
    pub fn extend(self, journal: &Journal, texts: StateId) -> Option<Journal> {
        let first = self.revisions.first()?;
        let newest = journal.revisions.newest();
        let has = |id| journal.revisions.has(newest, id);
        let follows = first.number == newest
            && (has(first.step.id) || first.former_id.is_some_and(has))
            && self.unknown.is_none();
        let mut journal = follows.then(|| journal.clone())?;
        let (_, newest_texts) = journal.newest();
        let next_texts = self
            .texts_states
            .first()
            .map_or(texts, |(before, _)| *before);
        if newest_texts != next_texts {
            let base = Step {
                id: next_texts,
                at: 0,
            };
            journal.texts = Log::new(0, base);
        }
        Some(self.appended_to(journal))
    }

    fn appended_to(self, mut journal: Journal) -> Journal {
        let mut changes = self.changes;
        let newest = journal.revisions.newest();
        for KnownRevision {
            number,
            step,
            former_id,
        } in self.revisions
        {
            if number > newest {
                changes.step(step);
            }
            // After a restore, the newest known state has a new id.
            for id in [Some(step.id), former_id].into_iter().flatten() {
                let is_new = number > newest && id == step.id;
                if !is_new && !journal.revisions.has(number, id) {
                    journal.revisions.aliases.push((number, id));
                }
            }
        }
        journal.revisions.append(changes.finish(newest + 1));

        let newest = journal.texts.newest();
        let mut named = SegmentBuilder::default();
        let mut numbers = HashMap::new();
        for (number, (_, after)) in (newest + 1..).zip(&self.texts_states) {
            named.step(Step { id: *after, at: 0 });
            numbers.insert(*after, number);
        }
        for (state, code) in &self.named {
            if let Some(number) = numbers.get(state) {
                named.change(*number, code.as_bytes(), None, None);
            }
        }
        journal.texts.append(named.finish(newest + 1));
        journal
    }
}
