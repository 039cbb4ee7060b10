//! Beginnings and ends of overrides when their time comes, each a revision like any other.

use jiff::Timestamp;
use vitrine_model::revision::Revision;
use vitrine_store::Store;
use vitrine_store::overrides::{OverrideEnd, StorePublication};
use vitrine_store::record::RevisionNote;

use super::Override;
use super::change::described;
use super::pass::Pass;
use crate::load::guard::Exceeded;
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

/// Applies the earliest instant whose time has come; returns `None` if there is none. Of several callers one applies it: the
/// others find nothing to do.
///
/// # Errors
///
/// If the store can't be read or written; then nothing was changed.
pub fn apply_next(store: &dyn Store) -> anyhow::Result<Option<AppliedInstant>> {
    // Cheap, and without a writer's lock.
    let next = store.next_instant()?;
    if next.is_none_or(|next| next.at > next.now) {
        return Ok(None);
    }
    let mut publication = store.publish()?;
    let now = publication.now()?;
    let open = Override::read_all(publication.open_overrides()?)?;
    let due = Override::due;
    let next = open.iter().filter_map(due).min();
    let Some(at) = next.filter(|at| *at <= now) else {
        return Ok(None);
    };
    let touched: Vec<Override> = (open.iter())
        .filter(|one| due(one) == Some(at))
        .cloned()
        .collect();
    let before: Vec<Override> = (open.iter())
        .filter(|one| one.is_active())
        .cloned()
        .collect();
    let begins = |one: &Override| !one.is_active() && due(one) == Some(at);
    let ends = |one: &Override| one.is_active() && due(one) == Some(at);
    let stays = |one: &&Override| begins(one) || (one.is_active() && !ends(one));
    let after: Vec<Override> = open.iter().filter(stays).cloned().collect();
    // Nobody reads a plan of it.
    let mut pass = Pass::new(store, &before, &after, &touched, Detail::Counts);
    pass.run(Some(&mut *publication))?;
    let end = OverrideEnd {
        at,
        by: None,
        note: None,
    };
    for one in &touched {
        publication.set_override(one.number, ends(one).then_some(&end))?;
    }
    let allowances: Vec<_> = (touched.iter())
        .flat_map(|one| one.definition.allowances.clone())
        .collect();
    let exceeded = pass.exceeded(&mut *publication, &allowances)?;
    let note = note(&touched, ends);
    let committed = publication.commit(now, &note)?;
    let numbers = |wanted: &dyn Fn(&Override) -> bool| {
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

/// Begins a publish at a moment at which no instant is overdue: applies those first, which it returns. So what an operator
/// does now comes after what was to come before.
pub(super) fn publish_in_time(
    store: &dyn Store,
) -> anyhow::Result<(Box<dyn StorePublication + '_>, Vec<AppliedInstant>)> {
    let mut applied = Vec::new();
    loop {
        while let Some(instant) = apply_next(store)? {
            applied.push(instant);
        }
        let mut publication = store.publish()?;
        let now = publication.now()?;
        let open = Override::read_all(publication.open_overrides()?)?;
        if !open
            .iter()
            .any(|one| one.due().is_some_and(|due| due <= now))
        {
            return Ok((publication, applied));
        }
    }
}

/// Returns the note of an instant's revision: the authors of the overrides, and their reasons.
fn note(touched: &[Override], ends: impl Fn(&Override) -> bool) -> RevisionNote {
    let mut authors: Vec<&str> = (touched.iter())
        .map(|one| one.stored.made.created_by.as_str())
        .collect();
    authors.dedup();
    let text = |one: &Override| {
        let does = if ends(one) { "ends" } else { "begins" };
        described(one, does, one.stored.made.note.as_deref())
    };
    RevisionNote {
        by: authors.join(", "),
        note: Some(touched.iter().map(text).collect::<Vec<_>>().join("; ")),
        source_digest: None,
    }
}
