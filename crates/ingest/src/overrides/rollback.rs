//! Making an old revision live again, and what that would do.

use jiff::Timestamp;
use vitrine_model::code::ProductCode;
use vitrine_model::revision::Revision;
use vitrine_store::Publication as _;
use vitrine_store::audit::{AuditContext, PublishedChange};
use vitrine_store::record::{PublishedCounts, RevisionNote};
use vitrine_store::{Store, StoreError};

use super::effect::{effect, seen};
use super::publication::{damaged, in_batches};
use super::{Override, publish, restore};
use crate::load::plan::{Detail, Plan};

/// Returns what clients would see change by a rollback, which restores what loads had brought, under the current overrides;
/// `None` if the revision doesn't exist.
///
/// # Errors
///
/// If the store can't be read, an active override can't be read, or the revision was pruned
/// ([`StoreError::Pruned`]).
pub fn plan(store: &Store, number: u64) -> Result<Option<Plan>, StoreError> {
    let active = Override::read_active(store.overrides()?)?;
    let mut live = store.dry_run()?;
    let mut plan = Plan::new(Detail::Fields);
    let found = in_batches(store, number, |bases| {
        let codes: Vec<&ProductCode> = bases.iter().map(|base| &base.code).collect();
        live.prefetch(&codes)?;
        for base in bases {
            let effect = effect(base, &active).map_err(|error| damaged(&error))?;
            // One that is hidden is retired if it is live.
            if let Some(seen) = seen(base, effect.as_ref()) {
                plan.compare(live.live(&base.code)?.as_ref(), seen);
                live.keep(&base.code)?;
            }
        }
        Ok(())
    })?;
    if !found {
        return Ok(None);
    }
    for code in live.retire_others()? {
        plan.retire(&code);
    }
    Ok(Some(plan))
}

/// Outcome of a rollback.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RolledBack {
    /// The revision doesn't exist.
    Missing,
    /// The same catalog is live already; nothing was changed.
    Unchanged,
    /// The new revision.
    Published(Revision, PublishedCounts, RevisionNote),
}

/// Makes an old revision live again, as a new one, with an entry in the audit log.
///
/// # Errors
///
/// If the store can't be read or written, or the revision was pruned; then nothing was changed.
pub fn roll_back(store: &Store, number: u64, context: &AuditContext) -> anyhow::Result<RolledBack> {
    let mut publication = publish(store)?;
    if !restore(store, &mut *publication, number)? {
        return Ok(RolledBack::Missing);
    }
    let live = store.revisions(1)?.pop();
    let change = PublishedChange::Revision {
        before: live.map(|live| live.revision.number),
        after: number,
    };
    publication.log(context, change)?;
    let described = || format!("rollback to revision {number}");
    let note = RevisionNote {
        by: context.by.clone(),
        note: Some(context.note.clone().unwrap_or_else(described)),
        source_digest: None,
    };
    Ok(match publication.commit(Timestamp::now(), &note)? {
        Some((revision, counts)) => RolledBack::Published(revision, counts, note),
        None => RolledBack::Unchanged,
    })
}
