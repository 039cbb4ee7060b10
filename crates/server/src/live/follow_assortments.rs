//! The assortments that keys see, as the store has them: only changed rules are read, and a key whose assortment isn't known
//! sees nothing (docs/contract/assortments.md#what-clients-see).

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use jiff::Timestamp;
use vitrine_ingest::assortments;
use vitrine_model::assortment::{
    Assortment, AssortmentState, AssortmentTable, FormerVersion, KnownAssortment, NewVersion,
};
use vitrine_model::changes::StateId;
use vitrine_model::key::KeyTable;
use vitrine_model::snapshot::Snapshot;
use vitrine_store::assortment::{AssortmentVersion, LiveAssortments};

/// Returns name and id of the live versions that a server knows.
pub(super) fn known_versions(table: &AssortmentTable) -> Vec<(String, String)> {
    let version = table.iter().map(|known| {
        let (name, id) = (
            known.live().name().to_owned(),
            known.version_id().to_owned(),
        );
        (name, id)
    });
    version.collect()
}

/// Returns the assortments after a read of the store, and true if former versions of theirs are missing, of which a client may have
/// a token from another server: they have to be read. `before` are the keys, with the assortments, as known until then;
/// `now` are the keys that were read.
pub(super) fn updated(
    before: &KeyTable,
    now: &KeyTable,
    read: &LiveAssortments,
) -> (AssortmentTable, bool) {
    let table = before.assortments();
    let mut kept: HashSet<&str> = read.names.iter().map(|(name, _)| name.as_str()).collect();
    let state = AssortmentState {
        counter: read.keys.state.assortments,
        accepted_at: read.keys.state.assortments_accepted,
    };
    let was_accepted = state.accepted_at > table.state.accepted_at;
    let goes_back = state.counter < table.state.counter || goes_back(table, read);
    let mut changed = Vec::new();
    for version in &read.changed {
        if was_accepted || goes_back {
            // The database was put back: whatever their numbers say, new versions don't follow those that it lost.
            kept.remove(version.name.as_str());
        }
        match new_version(version) {
            Some(new) => changed.push(new),
            // Its keys see nothing, rather than what they saw before.
            None => drop(kept.remove(version.name.as_str())),
        }
    }
    let follows = |new: &NewVersion| {
        let name = new.assortment.name();
        let known = table.get(name).filter(|_| kept.contains(name));
        new.follows(known.map_or(0, |known| known.number()))
    };
    let has_gap = !changed.iter().all(follows);
    let mut updated = table.updated(&kept, changed, state);
    if was_accepted {
        updated.held.clear();
    } else if goes_back {
        hold(before, now, &mut updated);
    }
    (updated, has_gap)
}

/// Returns true if an assortment has an older version than before, or another one of the same number: the database was put
/// back, and changed since, so that its counter may be ahead.
fn goes_back(before: &AssortmentTable, read: &LiveAssortments) -> bool {
    read.changed.iter().any(|version| {
        let known = before.get(&version.name);
        known.is_some_and(|known| version.number <= known.number())
    })
}

/// Returns true if a store's history, newest first, is that of the live versions: they may have been read a moment before it.
pub(super) fn is_history_of(table: &AssortmentTable, history: &[AssortmentVersion]) -> bool {
    let mut seen: HashSet<&str> = HashSet::new();
    let mut newest = history.iter().filter(|version| seen.insert(&version.name));
    newest.all(|version| {
        let known = table.get(&version.name);
        known.is_none_or(|known| known.version_id() == version.id)
    })
}

/// Holds the keys that had an assortment and now have none, another one or another version of it: the database was put back,
/// and nobody could be asked whether they may see more (docs/contract/assortments.md#databases-put-back).
fn hold(before: &KeyTable, now: &KeyTable, updated: &mut AssortmentTable) {
    for record in now.records() {
        let former = before.get(&record.prefix);
        let Some(name) = former.and_then(|former| former.record.assortment.as_deref()) else {
            continue;
        };
        let version = |table: &AssortmentTable| table.get(name).map(|known| known.live().id());
        let is_same = record.assortment.as_deref() == Some(name)
            && version(before.assortments()) == version(updated);
        if !is_same {
            updated.held.insert(record.prefix.clone());
        }
    }
    let keys = updated.held.len();
    if keys > 0 {
        tracing::error!(
            keys,
            "the store has older assortments than before: keys with another one get 503 until `vitrine assortments accept`"
        );
    }
}

/// Maximum number of assortments that are looked through for shares above 1.
const MAX_LOOKED_THROUGH: usize = 100;

/// Warns of products whose share of the discount would be above 1 since a load: their own discounts are shown
/// (docs/contract/assortments.md#discounts).
pub(super) fn warn_of_excesses(table: &AssortmentTable, snapshot: &Arc<Snapshot>) {
    let may_exceed = |known: &&Arc<KnownAssortment>| {
        let mut discounts = known.live().rules().discounts.iter();
        discounts.any(|discount| discount.change.may_exceed())
    };
    let not_looked_at =
        (table.iter().filter(may_exceed).count()).saturating_sub(MAX_LOOKED_THROUGH);
    if not_looked_at > 0 {
        tracing::warn!(
            assortments = not_looked_at,
            "shares of discounts may be above 1 in more assortments, which weren't looked at; `vitrine assortments set --dry-run` tells of one"
        );
    }
    for known in table.iter().filter(may_exceed).take(MAX_LOOKED_THROUGH) {
        let excessive = known.live().view(snapshot).excessive_discounts(snapshot);
        if let Some(first) = excessive.first() {
            tracing::warn!(
                assortment = known.live().name(),
                products = excessive.len(),
                code = first.code,
                "shares of discounts would be above 1: list discounts are shown instead; `vitrine assortments set` another share"
            );
        }
    }
}

/// Returns a stored version; `None` if its rules can't be read.
fn new_version(version: &AssortmentVersion) -> Option<NewVersion> {
    Some(NewVersion {
        assortment: assortment(&version.name, &version.id, version.rules.as_deref()?)?,
        number: version.number,
        version_id: version.id.clone(),
        since: version.created_at,
    })
}

/// Returns the assortment of stored rules; `None` if they can't be read, which is logged.
pub(super) fn assortment(name: &str, id: &str, rules: &str) -> Option<Assortment> {
    match assortments::parse(rules) {
        Ok(rules) => Some(Assortment::new(
            name.to_owned(),
            StateId::of_assortment(id),
            rules,
        )),
        Err(faults) => {
            let fault = faults.first().map(ToString::to_string).unwrap_or_default();
            tracing::error!(
                assortment = name,
                fault,
                "the rules of an assortment can't be read: its keys get 503; were they set by a newer release?"
            );
            None
        }
    }
}

/// Returns the former versions in a store's history, oldest first, back to the first one of a name that can't be read: nothing is told
/// over a gap. `history` is newest first.
pub(super) fn former_versions(history: &[AssortmentVersion]) -> Vec<FormerVersion> {
    let mut next: HashMap<&str, Timestamp> = HashMap::new();
    let mut unreadable: HashSet<&str> = HashSet::new();
    let mut former = Vec::new();
    for version in history {
        let replaced_at = next.insert(&version.name, version.created_at);
        let Some(replaced_at) = replaced_at.filter(|_| !unreadable.contains(&*version.name)) else {
            continue;
        };
        let rules = version.rules.as_deref();
        match rules.and_then(|rules| assortment(&version.name, &version.id, rules)) {
            Some(assortment) => former.push(FormerVersion {
                assortment: Arc::new(assortment),
                replaced_at,
            }),
            None => drop(unreadable.insert(&version.name)),
        }
    }
    former.reverse();
    former
}
