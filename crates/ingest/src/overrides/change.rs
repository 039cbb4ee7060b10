//! Making and ending overrides: a publish that changes the effective products, and no base.

use std::collections::BTreeSet;

use anyhow::{anyhow, bail, ensure};
use jiff::Timestamp;
use vitrine_model::revision::Revision;
use vitrine_store::Publication as _;
use vitrine_store::audit::{AuditAction, AuditContext, Confirmation, PublishedChange};
use vitrine_store::overrides::{NewOverride, OverrideEnd, OverrideStatus, StoredOverride};
use vitrine_store::record::RevisionNote;
use vitrine_store::{Publish, Store, StoreError};

pub use super::changed::Changed;
pub use super::compared::Notices;
use super::instants::{Begun, due, publish_in_time};
use super::pass::{Pass, each_base, hidden};
use super::unreadable::{ReadOverrides, Rebuild};
use super::{Definition, Override};
use crate::load::apply::Intent;
use crate::load::guard::Allowance;
use crate::load::plan::Detail;

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
    /// Confirmation by an operator in the console.
    pub confirmation: Option<Confirmation>,
}

/// Makes an override, or plans that. It begins at once, unless its time is later.
///
/// # Errors
///
/// As of [`make_all`].
pub fn make(store: &Store, request: Request, intent: Intent) -> anyhow::Result<Changed> {
    make_all(store, vec![request], intent)
}

/// Makes overrides in one publish, in their order, or plans that. Each begins at once, unless its time is later.
///
/// # Errors
///
/// If one would end before it begins, or is about the products of now and there are none, or the store can't be read or
/// written; then nothing was changed.
pub fn make_all(store: &Store, requests: Vec<Request>, intent: Intent) -> anyhow::Result<Changed> {
    let Begun {
        mut publication,
        now,
        instants,
    } = begin(store, intent)?;
    let now = to_millisecond(now);
    let open = ReadOverrides::of(at(publication.open_overrides()?, now));
    let open = open.unless(StoredOverride::is_active)?;
    let confirmation = requests.iter().find_map(|one| one.confirmation.clone());
    let made = requests.into_iter();
    let made: anyhow::Result<Vec<Override>> =
        made.map(|request| requested(store, request, now)).collect();
    let made = made?;
    let begun: Vec<Override> = made.iter().filter(|one| one.is_active()).cloned().collect();
    let before: Vec<Override> = open.iter().filter(|one| one.is_active()).cloned().collect();
    let with = |more: &[Override]| [before.as_slice(), more].concat();
    let after = with(&made);
    let mut pass = Pass::new(store, &before, &after, &made, Detail::Fields).with_others(&open);
    let writes = intent == Intent::Apply && !begun.is_empty();
    let writes_all = writes && begun.len() == made.len();
    let hidden = hidden(&mut publication)?;
    pass.run(writes_all.then_some(&mut *publication))?;
    let allowances: Vec<Allowance> = (made.iter())
        .flat_map(|one| one.definition.allowances.clone())
        .collect();
    let exceeded = pass.exceeded(&mut publication, &allowances, hidden)?;
    let mut found = pass.finish();
    if writes && !writes_all && exceeded.is_empty() {
        // The others begin later.
        let after = with(&begun);
        let mut pass = Pass::new(store, &before, &after, &begun, Detail::Fields);
        pass.run(Some(&mut *publication))?;
        found = pass.finish();
    }
    let mut changed = Changed {
        exceeded,
        instants,
        made,
        ..found
    };
    if intent == Intent::Apply && changed.exceeded.is_empty() {
        changed.revision = commit_made(publication, &mut changed.made, confirmation, now)?;
    }
    Ok(changed)
}

/// Stores new overrides, gives them their numbers, and commits.
fn commit_made(
    mut publication: Box<Publish>,
    made: &mut [Override],
    mut confirmation: Option<Confirmation>,
    now: Timestamp,
) -> anyhow::Result<Option<Revision>> {
    let mut texts = Vec::new();
    for one in &mut *made {
        let new = one.stored.made.clone();
        one.number = publication.add_override(&new)?;
        one.stored.number = one.number;
        texts.push(described(&one.stored, "begins", new.note.as_deref()));
        let context = AuditContext {
            by: new.created_by,
            note: new.note,
            action: AuditAction::MakeOverride,
            confirmation: confirmation.take(),
        };
        let logged = PublishedChange::Override {
            number: one.number,
            before: None,
            after: new.status,
        };
        publication.log(&context, logged)?;
    }
    let by = made.first().map(|one| one.stored.made.created_by.clone());
    let note = RevisionNote {
        by: by.unwrap_or_default(),
        note: Some(texts.join("; ")),
        source_digest: None,
    };
    let committed = publication.commit(now, &note)?;
    Ok(committed.map(|(revision, _)| revision))
}

/// Returns the override of a request, without a number.
fn requested(store: &Store, request: Request, now: Timestamp) -> anyhow::Result<Override> {
    let Request {
        mut definition,
        is_frozen,
        from,
        until,
        by,
        note,
        confirmation: _,
    } = request;
    let (from, until) = (from.map(to_millisecond), until.map(to_millisecond));
    let begins = from.unwrap_or(now).max(now);
    if let Some(until) = until
        && until <= begins
    {
        bail!("it would end at {until}, which is not after its beginning at {begins}");
    }
    if is_frozen {
        let codes = matching(store, &definition)?;
        ensure!(
            !codes.is_empty(),
            "no live product matches now, and a frozen override is about no other"
        );
        definition.frozen = Some(codes);
    }
    let status = match begins > now {
        true => OverrideStatus::Scheduled,
        false => OverrideStatus::Active,
    };
    let made = NewOverride {
        definition: serde_json::to_string(&definition)?,
        from: begins,
        until,
        created_at: now,
        created_by: by,
        note,
        status,
    };
    Ok(Override {
        number: 0,
        definition,
        stored: StoredOverride {
            number: 0,
            made,
            ended: None,
        },
    })
}

/// Begins a publish; one that is to be applied comes after all instants that are due.
fn begin(store: &Store, intent: Intent) -> anyhow::Result<Begun> {
    match intent {
        Intent::Apply => publish_in_time(store),
        Intent::DryRun => publish_now(store),
    }
}

/// Begins a publish, whatever is overdue.
fn publish_now(store: &Store) -> anyhow::Result<Begun> {
    let mut publication = store.publish()?;
    Ok(Begun {
        now: publication.now()?,
        publication,
        instants: Vec::new(),
    })
}

/// Truncates a time to what stores keep.
fn to_millisecond(time: Timestamp) -> Timestamp {
    Timestamp::from_millisecond(time.as_millisecond()).unwrap_or(time)
}

/// Ends overrides, with entries in the audit log, or plans that. The guard isn't asked: it was when the base was loaded.
///
/// Instants that are due come first, unless the definition of one of these overrides can't be read: that might keep them from
/// being applied. All products are then made anew.
///
/// # Errors
///
/// If one doesn't exist or has ended, another one that lies on products can't be read, or the store can't be read or written;
/// then nothing was changed.
pub fn end(
    store: &Store,
    numbers: &[u64],
    context: &AuditContext,
    intent: Intent,
) -> anyhow::Result<Changed> {
    let is_named = |one: &StoredOverride| numbers.contains(&one.number);
    let known = ReadOverrides::of(store.overrides()?).unreadable;
    let is_open = |one: &StoredOverride| one.ended.is_none();
    let rebuilds = (known.iter()).any(|one| is_named(&one.stored) && is_open(&one.stored));
    let Begun {
        mut publication,
        now,
        instants,
    } = match rebuilds {
        true => publish_now(store)?,
        false => begin(store, intent)?,
    };
    let now = to_millisecond(now);
    let mut open = publication.open_overrides()?;
    if !rebuilds {
        open = at(open, now);
    }
    for number in numbers {
        if !open.iter().any(|one| one.number == *number) {
            return Err(no_end_of(store, *number)?);
        }
    }
    let mut read = ReadOverrides::of(open);
    let (ended_unreadable, others) =
        (read.unreadable.into_iter()).partition(|one| is_named(&one.stored));
    read.unreadable = others;
    let open = read.unless(StoredOverride::is_active)?;
    let before: Vec<Override> = open.iter().filter(|one| one.is_active()).cloned().collect();
    let (touched, after): (Vec<Override>, Vec<Override>) = before
        .iter()
        .cloned()
        .partition(|one| is_named(&one.stored));
    let writes = intent == Intent::Apply;
    let mut changed = if !ended_unreadable.is_empty() {
        let rebuilt = Rebuild::run(store, &mut publication, &after, Detail::Fields, writes)?;
        Changed {
            plan: rebuilt.plan,
            ..Changed::default()
        }
    } else {
        let mut pass = Pass::new(store, &before, &after, &touched, Detail::Fields);
        pass.run(writes.then_some(&mut *publication))?;
        pass.finish()
    };
    changed.instants = instants;
    changed.ended = open
        .into_iter()
        .filter(|one| is_named(&one.stored))
        .collect();
    changed.ended_unreadable = ended_unreadable;
    if writes {
        changed.revision = commit_ends(publication, &mut changed, now, context.clone())?;
    }
    Ok(changed)
}

/// Returns the error of an override that can't be ended.
fn no_end_of(store: &Store, number: u64) -> Result<anyhow::Error, StoreError> {
    let all = store.overrides()?;
    let found = all.into_iter().find(|one| one.number == number);
    Ok(match found.and_then(|one| one.ended) {
        Some(end) => anyhow!(
            "override {number} has ended already, at {:.0}; see `vitrine overrides list --all`",
            end.at
        ),
        None => anyhow!(
            "there is no override {number} that could be ended; see `vitrine overrides list`"
        ),
    })
}

/// Stores the ends of overrides, and commits.
fn commit_ends(
    mut publication: Box<Publish>,
    changed: &mut Changed,
    now: Timestamp,
    mut context: AuditContext,
) -> anyhow::Result<Option<Revision>> {
    let end = OverrideEnd {
        at: now,
        by: Some(context.by.clone()),
        note: context.note.clone(),
    };
    let readable = changed.ended.iter_mut().map(|one| &mut one.stored);
    let unreadable = (changed.ended_unreadable.iter_mut()).map(|one| &mut one.stored);
    let mut texts = Vec::new();
    for one in readable.chain(unreadable) {
        publication.set_override(one.number, Some(&end))?;
        let logged = PublishedChange::Override {
            number: one.number,
            before: Some(one.made.status),
            after: OverrideStatus::Ended,
        };
        publication.log(&context, logged)?;
        // Only the first entry has it.
        context.confirmation = None;
        one.made.status = OverrideStatus::Ended;
        one.ended = Some(end.clone());
        texts.push(described(one, "ends", end.note.as_deref()));
    }
    let note = RevisionNote {
        by: context.by,
        note: Some(texts.join("; ")),
        source_digest: None,
    };
    let committed = publication.commit(now, &note)?;
    Ok(committed.map(|(revision, _)| revision))
}

/// Returns what a revision's note says of an override.
pub(super) fn described(one: &StoredOverride, does: &str, note: Option<&str>) -> String {
    let definition = serde_json::from_str::<Definition>(&one.made.definition);
    let what = definition.map_or_else(
        |_| "its definition can't be read".to_owned(),
        |definition| definition.values_text(),
    );
    let note = note.map_or_else(String::new, |note| format!(": {note}"));
    format!("override {} {does} ({what}){note}", one.number)
}

/// Returns the overrides that haven't ended at a time, as they are then: a plan doesn't apply instants that are overdue, but comes
/// after them.
fn at(open: Vec<StoredOverride>, time: Timestamp) -> Vec<StoredOverride> {
    let lasts = |one: &StoredOverride| one.made.until.is_none_or(|until| until > time);
    let mut open: Vec<StoredOverride> = open.into_iter().filter(lasts).collect();
    for one in &mut open {
        // One that can't be read doesn't begin.
        if due(one).is_some_and(|_| one.made.from <= time) {
            one.made.status = OverrideStatus::Active;
        }
    }
    open
}

/// Returns the codes of the live products that match now.
fn matching(store: &Store, definition: &Definition) -> anyhow::Result<BTreeSet<String>> {
    let mut codes = BTreeSet::new();
    each_base(store, &[definition], &mut BTreeSet::new(), &mut |base| {
        if definition.selects(&base)? {
            codes.insert(base.code.to_string());
        }
        Ok(())
    })?;
    Ok(codes)
}
