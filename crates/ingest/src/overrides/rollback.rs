//! Making an old revision live again, and what that would do.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};

use jiff::Timestamp;
use vitrine_model::code::ProductCode;
use vitrine_model::revision::Revision;
use vitrine_store::Store;
use vitrine_store::audit::{AuditContext, PublishedChange};
use vitrine_store::record::{Moment, PublishedCounts, RevisionNote, StoredProduct};

use super::effect::{effect, seen};
use super::{Override, publish, restore};

/// Number of codes of each kind that a plan names.
const NAMED: usize = 20;

/// Products of one kind in a plan: their number, and the first codes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Group {
    /// Number.
    pub count: u64,
    /// The first codes.
    pub first: Vec<ProductCode>,
}

impl Group {
    fn add(&mut self, code: ProductCode) {
        self.count += 1;
        if self.first.len() < NAMED {
            self.first.push(code);
        }
    }
}

/// Changes that clients would see after a rollback: it restores what loads had brought, under the overrides of now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RollbackPlan {
    /// Products that clients would see again.
    pub created: Group,
    /// Products that differ.
    pub changed: Group,
    /// Products that clients wouldn't see any more.
    pub retired: Group,
}

/// Returns what a rollback would do; `None` if the revision doesn't exist.
///
/// # Errors
///
/// If the store can't be read, an active override can't be read, or the revision was pruned
/// ([`StoreError::Pruned`](vitrine_store::StoreError::Pruned)).
pub fn plan(store: &Store, number: u64) -> anyhow::Result<Option<RollbackPlan>> {
    let active = Override::read_active(store.overrides()?)?;
    // Products only by their hash: a catalog may be large. The document may lack digits of the discount.
    let hashes = RandomState::new();
    let hash = |product: &StoredProduct| {
        hashes.hash_one((&product.document, &product.discount_multiplier))
    };
    let mut live: HashMap<ProductCode, u64> = HashMap::new();
    store.read_products(Moment::Live, &mut |product| {
        live.insert(product.code.clone(), hash(&product));
        Ok(())
    })?;
    let mut plan = RollbackPlan::default();
    let found = store.read_base(Moment::Revision(number), &mut |base| {
        let effect = effect(&base, &active)?;
        // One that is hidden is retired if it is live.
        let Some(seen) = seen(&base, effect.as_ref()) else {
            return Ok(());
        };
        match live.remove(&seen.code) {
            None => plan.created.add(base.code),
            Some(before) if before != hash(seen) => plan.changed.add(base.code),
            Some(_) => {}
        }
        Ok(())
    })?;
    let mut left: Vec<ProductCode> = live.into_keys().collect();
    left.sort_unstable();
    left.into_iter().for_each(|code| plan.retired.add(code));
    Ok(found.map(|_| plan))
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
