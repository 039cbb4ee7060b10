//! Additions to a journal from a store's history.

use std::collections::HashMap;

use jiff::Timestamp;

use super::log::{Alias, Log};
use super::segment::SegmentBuilder;
use super::{Journal, StateId, Step};
use crate::code::ProductCode;
use crate::facts::Facts;
use crate::revision::Revision;

/// Revisions and states of the texts with their changes, collected from a store in any order.
#[derive(Debug, Default)]
pub struct JournalUpdate {
    /// Revisions without a gap; the first one is where the changes begin.
    revisions: Vec<KnownRevision>,
    changes: SegmentBuilder,
    /// Newest revision whose changes aren't all known.
    unknown: Option<u64>,
    /// States of the texts, each after the id of the one before, ascending without a gap.
    texts_states: Vec<(StateId, Step)>,
    /// Time at which the state before them began, in milliseconds since 1970; zero if it is unknown.
    texts_since: i64,
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
    pub fn ended(&mut self, revision: u64, code: &str, facts: &Facts<'_>) {
        self.change(revision, code, [Some(&facts.packed()), None]);
    }

    /// Adds a product whose version with these attributes began with a revision.
    pub fn began(&mut self, revision: u64, code: &str, facts: &Facts<'_>) {
        self.change(revision, code, [None, Some(&facts.packed())]);
    }

    /// Adds a product that names a text whose status changed with this state of the texts.
    pub fn text(&mut self, state: StateId, code: &str) {
        if ProductCode::check(code).is_ok() {
            self.named.push((state, code.into()));
        }
    }

    fn change(&mut self, revision: u64, code: &str, around: [Option<&[u8]>; 2]) {
        // No client can have seen a product with another code.
        if ProductCode::check(code).is_ok() {
            let added = self.changes.change(revision, code.as_bytes(), around);
            if added.is_none() {
                self.unknown(u64::MAX);
            }
        }
    }

    /// Marks a revision whose changes aren't all known: the journal begins after it.
    pub fn unknown(&mut self, revision: u64) {
        self.unknown = self.unknown.max(Some(revision));
    }

    /// Adds the next revision, with the id that it had before a restore. The changes of the first one don't count; after a
    /// gap, the next one is the first.
    pub fn revision(&mut self, revision: &Revision, former_id: Option<&str>) {
        let follows = |last: &KnownRevision| last.number.checked_add(1) == Some(revision.number);
        if !self.revisions.last().is_none_or(follows) {
            self.revisions.clear();
        }
        // The clocks of publishers differ.
        let latest = self.revisions.last().map_or(i64::MIN, |last| last.step.at);
        self.revisions.push(KnownRevision {
            number: revision.number,
            step: Step {
                id: StateId::of_revision(&revision.id),
                at: revision.created_at.as_millisecond().max(latest),
            },
            former_id: former_id.map(StateId::of_revision),
        });
    }

    /// Sets the time at which the state of the texts before the first one to add began.
    pub fn texts_since(&mut self, at: Timestamp) {
        self.texts_since = at.as_millisecond();
    }

    /// Adds the next state of the texts, with its time, which begins with the end of the one before; after a gap, it is the
    /// first.
    pub fn texts_state(&mut self, before: StateId, after: StateId, at: Timestamp) {
        let at = at.as_millisecond();
        match self.texts_states.last() {
            Some((_, last)) if last.id == before => {
                let at = at.max(last.at);
                self.texts_states.push((before, Step { id: after, at }));
            }
            _ => self.texts_states = vec![(before, Step { id: after, at })],
        }
        if before >= after {
            self.texts_states.clear();
        }
    }

    /// Returns the journal that begins with the first revision, or after the newest one whose changes aren't all known;
    /// `None` if there is no revision. `texts` is the newest state of the texts.
    #[must_use]
    pub fn into_journal(self, texts: StateId) -> Option<Journal> {
        let first = self.revisions.first()?;
        let newest = self.revisions.last()?.number;
        let unknown = self.unknown.map(|unknown| unknown.min(newest));
        let mut journal = Journal {
            revisions: Log::new(first.number, first.step),
            texts: Log::new(0, Step::default()),
        };
        self.append_to(&mut journal, texts);
        if let Some(unknown) = unknown {
            journal.revisions.drop_until(unknown);
        }
        Some(journal)
    }

    /// Returns the journal with these changes appended; `None` if they don't follow its newest revision, or aren't all
    /// known. If the states of the texts don't follow, the journal's begin anew.
    #[must_use]
    pub fn extend(self, journal: &Journal, texts: StateId) -> Option<Journal> {
        let first = self.revisions.first()?;
        let newest = journal.revisions.newest();
        let has = |id| journal.revisions.has(newest, id);
        let follows = first.number == newest
            && (has(first.step.id) || first.former_id.is_some_and(has))
            && self.unknown.is_none_or(|unknown| unknown <= newest);
        let mut journal = follows.then(|| journal.clone())?;
        self.append_to(&mut journal, texts);
        Some(journal)
    }

    fn append_to(self, journal: &mut Journal, texts: StateId) {
        let mut steps = Vec::new();
        let newest = journal.revisions.newest();
        let latest = journal.revisions.newest_step().at;
        for revision in self.revisions {
            let KnownRevision {
                number,
                mut step,
                former_id,
            } = revision;
            if number > newest {
                step.at = step.at.max(latest);
                steps.push(step);
            }
            // After a restore, the newest known state has a new id.
            for id in [Some(step.id), former_id].into_iter().flatten() {
                let is_new = number > newest && id == step.id;
                if !is_new && !journal.revisions.has(number, id) {
                    journal.revisions.aliases.push(Alias { number, id });
                }
            }
        }
        journal.revisions.append(steps, self.changes);

        let states = (self.texts_states, self.texts_since);
        append_texts(&mut journal.texts, states, &self.named, texts);
    }
}

/// Appends the states that lead from the log's newest to `texts`. If they don't, the log begins anew, with the time of the
/// state before them.
fn append_texts(
    log: &mut Log,
    (mut states, mut since): (Vec<(StateId, Step)>, i64),
    named: &[(StateId, Box<str>)],
    texts: StateId,
) {
    let newest = log.newest_step().id;
    // After a restore, they may lead past the newest one.
    let known = states.iter().position(|(_, after)| after.id == newest);
    states.drain(..known.map_or(0, |index| index + 1));
    if let Some((_, last)) = states.last()
        && last.id != texts
    {
        since = last.at;
        states.clear();
    }
    let start = states.first().map_or(texts, |(before, _)| *before);
    if start != newest {
        let (id, at) = (start, since);
        *log = Log::new(0, Step { id, at });
    }
    let latest = log.newest_step().at;
    let at_least = |(_, after): (StateId, Step)| Step {
        at: after.at.max(latest),
        ..after
    };
    let steps: Vec<Step> = states.into_iter().map(at_least).collect();
    let next = log.newest() + 1;
    let numbers: HashMap<StateId, u64> = steps.iter().map(|step| step.id).zip(next..).collect();
    let mut changes = SegmentBuilder::default();
    let fits = named.iter().all(|(state, code)| {
        let number = numbers.get(state);
        number.is_none_or(|number| {
            changes
                .change(*number, code.as_bytes(), [None; 2])
                .is_some()
        })
    });
    if fits {
        log.append(steps, changes);
    } else {
        let at = steps.last().map_or(since, |last| last.at);
        *log = Log::new(0, Step { id: texts, at });
    }
}
