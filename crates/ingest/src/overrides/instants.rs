//! Beginnings and ends of overrides when their time comes, each a revision like any other.

use jiff::Timestamp;
use vitrine_model::revision::Revision;
use vitrine_store::Publication as _;
use vitrine_store::overrides::{NextInstant, OverrideEnd, StoredOverride};
use vitrine_store::record::RevisionNote;
use vitrine_store::{Publish, Store, StoreError};

use super::Override;
use super::change::described;
use super::pass::{Pass, hidden};
use super::unreadable::{ReadOverrides, Rebuild, Unreadable};
use crate::load::guard::{Exceeded, Rule};
use crate::load::plan::Detail;

/// An instant that was applied.
#[derive(Debug)]
pub struct AppliedInstant {
    /// Time at which overrides began or ended.
    pub at: Timestamp,
    /// Time at which that was applied, by the clock of the store.
    pub applied_at: Timestamp,
    /// Numbers of the overrides that began.
    pub begun: Vec<u64>,
    /// Numbers of the overrides that ended.
    pub ended: Vec<u64>,
    /// Limits of the guard that were exceeded; they are no longer asked, only told.
    pub exceeded: Vec<Exceeded>,
    /// The revision, if clients see a change.
    pub revision: Option<Revision>,
}

/// Returns the time of what comes next to an override; none if it can't begin, since its definition can't be read. It stays
/// scheduled, and others don't wait for it.
pub(super) fn due(one: &StoredOverride) -> Option<Timestamp> {
    let can_begin = || Override::parse(one.clone()).is_ok();
    one.due().filter(|_| one.is_active() || can_begin())
}

/// Returns the overrides whose time to begin has come, and whose definition can't be read.
///
/// # Errors
///
/// If the store can't be read.
pub fn held_up(store: &Store) -> Result<Vec<Unreadable>, StoreError> {
    // Cheap.
    let next = store.next_instant()?;
    let Some(NextInstant { now, .. }) = next.filter(|next| next.at <= next.now) else {
        return Ok(Vec::new());
    };
    let mut overrides = store.overrides()?;
    overrides.retain(|one| one.due().is_some_and(|at| at <= now) && due(one).is_none());
    Ok(ReadOverrides::of(overrides).unreadable)
}

/// Applies the earliest instant whose time has come; returns `None` if there is none. Of several callers one applies it: the
/// others find nothing to do. Overrides that are [held up](held_up) are left out.
///
/// # Errors
///
/// If the store can't be read or written; then nothing was changed.
pub fn apply_next(store: &Store) -> anyhow::Result<Option<AppliedInstant>> {
    // Cheap, and without a writer's lock.
    let next = store.next_instant()?;
    let Some(NextInstant { now, .. }) = next.filter(|next| next.at <= next.now) else {
        return Ok(None);
    };
    // One that is held up is overdue until it is ended: nobody is to wait for it.
    if !store
        .overrides()?
        .iter()
        .any(|one| due(one).is_some_and(|at| at <= now))
    {
        return Ok(None);
    }
    let mut publication = store.publish()?;
    let now = publication.now()?;
    let open = publication.open_overrides()?;
    let next = open.iter().filter_map(due).min();
    let Some(at) = next.filter(|at| *at <= now) else {
        return Ok(None);
    };
    let touched: Vec<StoredOverride> = (open.iter())
        .filter(|one| due(one) == Some(at))
        .cloned()
        .collect();
    let begins = |one: &StoredOverride| !one.is_active();
    let ends = StoredOverride::is_active;
    let mut exceeded = apply(store, &mut publication, open, at)?;
    if touched.iter().all(ends) {
        // Products return to what loads brought: a value that an override gave them isn't lost.
        exceeded.retain(|one| one.rule != Rule::EmptiedFields);
    }
    let end = OverrideEnd {
        at,
        by: None,
        note: None,
    };
    for one in &touched {
        publication.set_override(one.number, ends(one).then_some(&end))?;
    }
    let note = note(&touched, ends);
    let committed = publication.commit(now, &note)?;
    let numbers = |wanted: &dyn Fn(&StoredOverride) -> bool| {
        let wanted = touched.iter().filter(|one| wanted(one));
        wanted.map(|one| one.number).collect()
    };
    Ok(Some(AppliedInstant {
        at,
        applied_at: now,
        begun: numbers(&begins),
        ended: numbers(&ends),
        exceeded,
        revision: committed.map(|(revision, _)| revision),
    }))
}

/// Writes the products as they are for clients after an instant, at which some of the open overrides begin or end. Returns the
/// limits of the guard that this exceeds.
fn apply(
    store: &Store,
    publication: &mut Publish,
    open: Vec<StoredOverride>,
    at: Timestamp,
) -> anyhow::Result<Vec<Exceeded>> {
    let is_due = |one: &StoredOverride| due(one) == Some(at);
    let stays = |one: &StoredOverride| one.is_active() != is_due(one);
    let read = ReadOverrides::of(open);
    let ends_unreadable =
        (read.unreadable.iter()).any(|one| one.stored.is_active() && is_due(&one.stored));
    let open = read.unless(stays)?;
    let some = |wanted: &dyn Fn(&StoredOverride) -> bool| -> Vec<Override> {
        let wanted = open.iter().filter(|one| wanted(&one.stored));
        wanted.cloned().collect()
    };
    let (touched, after) = (some(&is_due), some(&stays));
    let allowances: Vec<_> = (touched.iter())
        .flat_map(|one| one.definition.allowances.clone())
        .collect();
    // Nobody reads a plan of it.
    let detail = Detail::Counts;
    if ends_unreadable {
        let rebuilt = Rebuild::run(store, publication, &after, detail, true)?;
        return Ok(rebuilt.tally.exceeded(publication, &allowances)?);
    }
    let before = some(&StoredOverride::is_active);
    let mut pass = Pass::new(store, &before, &after, &touched, detail);
    let hidden = hidden(publication)?;
    pass.run(Some(&mut *publication))?;
    pass.exceeded(publication, &allowances, hidden)
}

/// A publish that has begun.
pub(super) struct Begun {
    pub(super) publication: Box<Publish>,
    /// Time at which it publishes, by the clock of the store.
    pub(super) now: Timestamp,
    /// Instants that were overdue and were applied before.
    pub(super) instants: Vec<AppliedInstant>,
}

/// Begins a publish at a moment at which no instant is overdue: applies those first. So what an operator does now comes after
/// what was to come before.
pub(super) fn publish_in_time(store: &Store) -> anyhow::Result<Begun> {
    let mut applied = Vec::new();
    loop {
        while let Some(instant) = apply_next(store)? {
            applied.push(instant);
        }
        let mut publication = store.publish()?;
        let now = publication.now()?;
        let mut dues = publication.open_overrides()?.into_iter();
        if !dues.any(|one| due(&one).is_some_and(|due| due <= now)) {
            return Ok(Begun {
                publication,
                now,
                instants: applied,
            });
        }
    }
}

/// Returns the note of an instant's revision: the authors of the overrides, and their reasons.
fn note(touched: &[StoredOverride], ends: impl Fn(&StoredOverride) -> bool) -> RevisionNote {
    let mut authors: Vec<&str> = (touched.iter())
        .map(|one| one.made.created_by.as_str())
        .collect();
    authors.dedup();
    let text = |one: &StoredOverride| {
        let does = if ends(one) { "ends" } else { "begins" };
        described(one, does, one.made.note.as_deref())
    };
    RevisionNote {
        by: authors.join(", "),
        note: Some(touched.iter().map(text).collect::<Vec<_>>().join("; ")),
        source_digest: None,
    }
}
