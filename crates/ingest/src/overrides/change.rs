//! Making and ending overrides: a publish that changes the effective products, and no base.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context as _;
use jiff::Timestamp;
use vitrine_model::revision::Revision;
use vitrine_store::Store;
use vitrine_store::overrides::{
    NewOverride, OverrideEnd, OverrideStatus, StorePublication, StoredOverride,
};
use vitrine_store::record::RevisionNote;

use super::instants::{AppliedInstant, publish_in_time};
use super::pass::{Pass, each_base};
use super::{Definition, Override};
use crate::load::apply::Intent;
use crate::load::guard::Exceeded;
use crate::load::plan::{Detail, Plan};

/// An override to be made.
#[derive(Debug, Clone)]
pub struct Request {
    /// Products and values.
    pub definition: Definition,
    /// True if it is about the products that match now, whatever matches later.
    pub is_frozen: bool,
    /// Time at which it begins; by default now.
    pub from: Option<Timestamp>,
    /// Time at which it ends; none until an operator ends it.
    pub until: Option<Timestamp>,
    /// Name of the author.
    pub by: String,
    /// Reason, in the author's words.
    pub note: Option<String>,
}

/// Outcome of a change of overrides, or its plan.
#[derive(Debug, Default)]
pub struct Changed {
    /// The override that was made, with its number; the number is 0 in a plan.
    pub made: Option<Override>,
    /// The overrides that were ended.
    pub ended: Vec<Override>,
    /// Instants that were overdue and were applied before.
    pub instants: Vec<AppliedInstant>,
    /// Number of live products that they select.
    pub selected: u64,
    /// Codes that are named and that no live product has.
    pub missing: Vec<String>,
    /// Overrides that set the same fields of the same products, with the number of these products.
    pub overlapping: BTreeMap<u64, u64>,
    /// Difference between what clients saw and what they see; for an override that begins later, as it would be now.
    pub plan: Plan,
    /// Limits of the guard that are exceeded; then nothing was changed.
    pub exceeded: Vec<Exceeded>,
    /// The revision, if clients see a change.
    pub revision: Option<Revision>,
}

/// Makes an override, or plans that. It begins at once, unless its time is later.
///
/// # Errors
///
/// If the store can't be read or written; then nothing was changed.
pub fn make(store: &dyn Store, request: Request, intent: Intent) -> anyhow::Result<Changed> {
    let (mut publication, instants) = begin(store, intent)?;
    let now = to_millisecond(publication.now()?);
    let Request {
        mut definition,
        is_frozen,
        from,
        until,
        by,
        note,
    } = request;
    if is_frozen {
        definition.frozen = Some(matching(store, &definition)?);
    }
    let (from, until) = (from.map(to_millisecond), until.map(to_millisecond));
    let begins_later = from.is_some_and(|from| from > now);
    let status = match begins_later {
        true => OverrideStatus::Scheduled,
        false => OverrideStatus::Active,
    };
    let made = NewOverride {
        definition: serde_json::to_string(&definition)?,
        from: from.unwrap_or(now),
        until,
        created_at: now,
        created_by: by.clone(),
        note: note.clone(),
        status,
    };
    let before = active(&mut *publication)?;
    let number = match intent {
        Intent::Apply => publication.add_override(&made)?,
        Intent::DryRun => 0,
    };
    let one = Override {
        number,
        definition,
        stored: StoredOverride {
            number,
            made,
            ended: None,
        },
    };
    let after: Vec<Override> = before.iter().chain([&one]).cloned().collect();
    let touched = std::slice::from_ref(&one);
    let mut pass = Pass::new(store, &before, &after, touched, Detail::Fields);
    let writes = intent == Intent::Apply && !begins_later;
    pass.run(writes.then_some(&mut *publication))?;
    let revision_note = RevisionNote {
        by,
        note: Some(described(&one, "begins", note.as_deref())),
        source_digest: None,
    };
    let exceeded = pass.exceeded(&mut *publication, &one.definition.allowances)?;
    let mut changed = Changed {
        exceeded,
        instants,
        ..pass.finish()
    };
    if intent == Intent::Apply && changed.exceeded.is_empty() {
        let committed = publication.commit(now, &revision_note)?;
        changed.revision = committed.map(|(revision, _)| revision);
    }
    changed.made = Some(one);
    Ok(changed)
}

/// Begins a publish; one that is to be applied comes after all instants that are due.
fn begin(
    store: &dyn Store,
    intent: Intent,
) -> anyhow::Result<(Box<dyn StorePublication + '_>, Vec<AppliedInstant>)> {
    match intent {
        Intent::Apply => publish_in_time(store),
        Intent::DryRun => Ok((store.publish()?, Vec::new())),
    }
}

/// Truncates a time to what stores keep.
fn to_millisecond(time: Timestamp) -> Timestamp {
    Timestamp::from_millisecond(time.as_millisecond()).unwrap_or(time)
}

/// Ends overrides, or plans that. The guard isn't asked: it was when the base was loaded.
///
/// # Errors
///
/// If one doesn't exist or has ended, or the store can't be read or written; then nothing was changed.
pub fn end(
    store: &dyn Store,
    numbers: &[u64],
    (by, note): (&str, Option<&str>),
    intent: Intent,
) -> anyhow::Result<Changed> {
    let (mut publication, instants) = begin(store, intent)?;
    let open = Override::read_all(publication.open_overrides()?)?;
    let mut ended = Vec::new();
    for number in numbers {
        let found = open.iter().find(|one| one.number == *number);
        let missing = || {
            format!(
                "there is no override {number} that could be ended; see `vitrine overrides list`"
            )
        };
        ended.push(found.with_context(missing)?.clone());
    }
    let before: Vec<Override> = open.into_iter().filter(Override::is_active).collect();
    let is_ended = |one: &&Override| numbers.contains(&one.number);
    let after: Vec<Override> = (before.iter())
        .filter(|one| !is_ended(one))
        .cloned()
        .collect();
    let touched: Vec<Override> = before.iter().filter(is_ended).cloned().collect();
    let mut pass = Pass::new(store, &before, &after, &touched, Detail::Fields);
    let writes = intent == Intent::Apply;
    pass.run(writes.then_some(&mut *publication))?;
    let mut changed = Changed {
        instants,
        ..pass.finish()
    };
    if writes {
        let now = to_millisecond(publication.now()?);
        let end = OverrideEnd {
            at: now,
            by: Some(by.to_owned()),
            note: note.map(str::to_owned),
        };
        for number in numbers {
            publication.set_override(*number, Some(&end))?;
        }
        let texts = ended.iter().map(|one| described(one, "ends", note));
        let note = RevisionNote {
            by: by.to_owned(),
            note: Some(texts.collect::<Vec<_>>().join("; ")),
            source_digest: None,
        };
        let committed = publication.commit(now, &note)?;
        changed.revision = committed.map(|(revision, _)| revision);
    }
    changed.ended = ended;
    Ok(changed)
}

/// Returns what a revision's note says of an override.
pub(super) fn described(one: &Override, does: &str, note: Option<&str>) -> String {
    let what = one.definition.values_text();
    let note = note.map_or_else(String::new, |note| format!(": {note}"));
    format!("override {} {does} ({what}){note}", one.number)
}

fn active(publication: &mut dyn StorePublication) -> anyhow::Result<Vec<Override>> {
    let mut active = Override::read_all(publication.open_overrides()?)?;
    active.retain(Override::is_active);
    Ok(active)
}

/// Returns the codes of the live products that match now.
fn matching(store: &dyn Store, definition: &Definition) -> anyhow::Result<BTreeSet<String>> {
    let mut codes = BTreeSet::new();
    each_base(store, &[definition], &mut BTreeSet::new(), &mut |base| {
        if definition.selects(&base)? {
            codes.insert(base.code.to_string());
        }
        Ok(())
    })?;
    Ok(codes)
}
