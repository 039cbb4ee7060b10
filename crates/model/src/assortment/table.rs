//! Assortments that a server knows, with former versions, from which the changes feed tells what an edit changed.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use jiff::Timestamp;

use super::version_index::VersionIndex;
use super::{Assortment, RulesSince};
use crate::changes::StateId;
use crate::snapshot::Snapshot;

/// Maximum number of codes in all former versions: older versions are forgotten, and tokens of theirs end.
const MAX_FORMER_CODES: usize = 2_000_000;

/// Maximum number of former versions of an assortment.
const MAX_FORMER_VERSIONS: usize = 64;
const _: () = assert!(MAX_FORMER_VERSIONS < VersionIndex::MAX_VERSIONS);

/// A version of an assortment that goes live.
#[derive(Debug)]
pub struct NewVersion {
    /// The version.
    pub assortment: Assortment,
    /// Number of the version in the store; the next version of the name has the next one.
    pub number: u32,
    /// Id of the version in the store.
    pub version_id: String,
    /// Time since which it is live.
    pub since: Timestamp,
}

impl NewVersion {
    /// Returns true if its number is the next after this one, which is 0 if there was no version. If not, versions in between are
    /// unknown, or the database was put back.
    #[must_use]
    pub fn follows(&self, number: u32) -> bool {
        number.checked_add(1) == Some(self.number)
    }
}

/// A version of an assortment that was replaced.
#[derive(Debug, Clone)]
pub struct FormerVersion {
    /// The version.
    pub assortment: Arc<Assortment>,
    /// Time of its replacement.
    pub replaced_at: Timestamp,
}

/// An assortment, with its former versions.
#[derive(Debug)]
pub struct KnownAssortment {
    live: Arc<Assortment>,
    number: u32,
    version_id: String,
    since: Timestamp,
    /// Oldest first.
    former: Vec<FormerVersion>,
    /// Index of the former versions and the live one, made when it is first needed.
    index: OnceLock<VersionIndex>,
}

/// Versions of an assortment from one on.
#[derive(Debug, Clone, Copy)]
pub struct VersionsSince<'k> {
    known: &'k KnownAssortment,
    /// Number of the first one; the live one is behind the former ones.
    first: usize,
}

impl<'k> VersionsSince<'k> {
    /// Returns the first one.
    #[must_use]
    pub fn first(self) -> &'k Arc<Assortment> {
        let former = self.known.former.get(self.first);
        former.map_or(&self.known.live, |former| &former.assortment)
    }

    /// Returns all of them for a search of a snapshot's changes.
    #[must_use]
    pub fn rules(self, snapshot: &Arc<Snapshot>) -> RulesSince<'k> {
        let Self { known, first } = self;
        let index = known.index.get_or_init(|| {
            let former = known.former.iter().map(|former| &former.assortment);
            let all = former.chain([&known.live]);
            VersionIndex::new(all.map(|version| Arc::clone(&version.rules)))
        });
        let former = known.former.get(first..).unwrap_or_default();
        let earlier: Vec<&Arc<Assortment>> =
            former.iter().map(|former| &former.assortment).collect();
        RulesSince::new(index, first, (&earlier, &known.live), snapshot)
    }
}

impl KnownAssortment {
    /// Returns the live version.
    #[must_use]
    pub fn live(&self) -> &Arc<Assortment> {
        &self.live
    }

    /// Returns the number of the live version in the store.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Returns the id of the live version in the store.
    #[must_use]
    pub fn version_id(&self) -> &str {
        &self.version_id
    }

    /// Returns the time since which the live version is live.
    #[must_use]
    pub fn since(&self) -> Timestamp {
        self.since
    }

    /// Returns the versions from one on; `None` if it is unknown, or was replaced before `kept_since`.
    #[must_use]
    pub fn versions_since(&self, id: StateId, kept_since: Timestamp) -> Option<VersionsSince<'_>> {
        let is_it = |former: &FormerVersion| former.assortment.id() == id;
        let first = match id == self.live.id() {
            true => self.former.len(),
            false => self.former.iter().rposition(is_it)?,
        };
        let former = self.former.get(first);
        let is_kept = former.is_none_or(|former| former.replaced_at > kept_since);
        is_kept.then_some(VersionsSince { known: self, first })
    }

    /// Returns the assortment with a new version. If that doesn't follow the one of `before`, the former versions are unknown until
    /// they are read from the store's history: nothing is told over a gap, and what a restore threw away is gone.
    fn new(version: NewVersion, before: Option<&Self>) -> Self {
        let before = before.filter(|before| version.follows(before.number));
        let mut former = before.map_or_else(Vec::new, |before| before.former.clone());
        former.extend(before.map(|before| FormerVersion {
            assortment: Arc::clone(&before.live),
            replaced_at: version.since,
        }));
        let excess = former.len().saturating_sub(MAX_FORMER_VERSIONS);
        former.drain(..excess);
        Self {
            live: Arc::new(version.assortment),
            number: version.number,
            version_id: version.version_id,
            since: version.since,
            former,
            index: OnceLock::new(),
        }
    }

    /// Returns its former versions together with those of the store's history, oldest first.
    fn merged(&self, mut history: Vec<FormerVersion>) -> Vec<FormerVersion> {
        history.retain(|former| former.assortment.id() != self.live.id());
        let known: HashSet<StateId> = (history.iter())
            .map(|former| former.assortment.id())
            .collect();
        let own = self.former.iter();
        let own = own.filter(|former| !known.contains(&former.assortment.id()));
        history.extend(own.cloned());
        history.sort_by_key(|former| former.replaced_at);
        let excess = history.len().saturating_sub(MAX_FORMER_VERSIONS);
        history.drain(..excess);
        history
    }

    fn with_former(&self, former: Vec<FormerVersion>) -> Self {
        Self {
            live: Arc::clone(&self.live),
            number: self.number,
            version_id: self.version_id.clone(),
            since: self.since,
            former,
            index: OnceLock::new(),
        }
    }
}

/// State of the assortments of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AssortmentState {
    /// Counter of changes, which only grows unless the database is put back.
    pub counter: u64,
    /// Time at which an operator last accepted what the store has.
    pub accepted_at: Option<Timestamp>,
}

/// All assortments that a server knows: immutable, swapped with the keys.
#[derive(Debug, Clone, Default)]
pub struct AssortmentTable {
    by_name: HashMap<String, Arc<KnownAssortment>>,
    /// State of the store that this was read from.
    pub state: AssortmentState,
    /// Prefixes of the keys whose assortments vanished from the store: they see nothing until an operator accepts that.
    pub held: BTreeSet<String>,
}

impl AssortmentTable {
    /// Returns the assortment of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<KnownAssortment>> {
        self.by_name.get(name)
    }

    /// Iterates over the assortments, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<KnownAssortment>> {
        self.by_name.values()
    }

    /// Returns the number of assortments.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Returns true if there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// Returns the table with the names `kept` only, and with new versions.
    #[must_use]
    pub fn updated(
        &self,
        kept: &HashSet<&str>,
        changed: Vec<NewVersion>,
        state: AssortmentState,
    ) -> Self {
        let is_kept = |(name, _): &(&String, &Arc<KnownAssortment>)| kept.contains(name.as_str());
        let kept = self.by_name.iter().filter(is_kept);
        let mut by_name: HashMap<String, Arc<KnownAssortment>> = kept
            .map(|(name, known)| (name.clone(), Arc::clone(known)))
            .collect();
        for version in changed {
            let name = version.assortment.name().to_owned();
            let known = KnownAssortment::new(version, by_name.get(&name).map(|known| &**known));
            by_name.insert(name, Arc::new(known));
        }
        let held = self.held.clone();
        let mut table = Self {
            by_name,
            state,
            held,
        };
        table.forget_oldest(MAX_FORMER_CODES);
        table
    }

    /// Returns the table with the former versions of the store's history, oldest first, too.
    #[must_use]
    pub fn with_former(&self, former: Vec<FormerVersion>) -> Self {
        let mut table = self.clone();
        let mut by_name: HashMap<String, Vec<FormerVersion>> = HashMap::new();
        for version in former {
            let name = version.assortment.name().to_owned();
            by_name.entry(name).or_default().push(version);
        }
        for (name, former) in by_name {
            if let Some(known) = table.by_name.get_mut(&name) {
                *known = Arc::new(known.with_former(known.merged(former)));
            }
        }
        table.forget_oldest(MAX_FORMER_CODES);
        table
    }

    /// Forgets the oldest former versions until the others have at most so many codes.
    fn forget_oldest(&mut self, max_codes: usize) {
        let former = self.by_name.values().flat_map(|known| &known.former);
        let mut sizes: Vec<(Timestamp, usize)> = former
            .map(|former| (former.replaced_at, former.assortment.rules().code_count()))
            .collect();
        let mut codes: usize = sizes.iter().map(|(_, codes)| codes).sum();
        if codes <= max_codes {
            return;
        }
        sizes.sort_unstable();
        let mut forgotten_until = Timestamp::MIN;
        for (replaced_at, size) in sizes {
            if codes <= max_codes {
                break;
            }
            codes -= size;
            forgotten_until = replaced_at;
        }
        for known in self.by_name.values_mut() {
            let is_forgotten = |former: &FormerVersion| former.replaced_at <= forgotten_until;
            if known.former.iter().any(is_forgotten) {
                let former = known.former.iter().filter(|former| !is_forgotten(former));
                *known = Arc::new(known.with_former(former.cloned().collect()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assortment::Rules;

    fn version(number: u32) -> NewVersion {
        let id = StateId::from_bytes([u8::try_from(number).unwrap(); 16]);
        NewVersion {
            assortment: Assortment::new("north".to_owned(), id, Rules::default()),
            number,
            version_id: number.to_string(),
            since: Timestamp::from_second(number.into()).unwrap(),
        }
    }

    fn updated(table: &AssortmentTable, number: u32) -> AssortmentTable {
        let kept = HashSet::from(["north"]);
        table.updated(&kept, vec![version(number)], AssortmentState::default())
    }

    /// Returns the first bytes of the ids of the versions since one.
    fn since(table: &AssortmentTable, number: u8) -> Option<Vec<u8>> {
        let id = StateId::from_bytes([number; 16]);
        let known = table.get("north").unwrap();
        let VersionsSince { known, first } = known.versions_since(id, Timestamp::MIN)?;
        let former = known.former[first..]
            .iter()
            .map(|former| &former.assortment);
        let versions = former.chain([&known.live]);
        Some(versions.map(|version| version.id().as_bytes()[0]).collect())
    }

    #[test]
    fn versions_are_told_without_gap() {
        let table = updated(&updated(&AssortmentTable::default(), 1), 2);
        assert_eq!(since(&table, 1), Some(vec![1, 2]));
        let skipped = updated(&table, 4);
        assert_eq!(since(&skipped, 4), Some(vec![4]));
        for former in [1, 2] {
            assert_eq!(since(&skipped, former), None);
        }
        let history = [1, 2, 3].map(|number| FormerVersion {
            assortment: Arc::new(version(number).assortment),
            replaced_at: version(number + 1).since,
        });
        let read = skipped.with_former(history.into());
        assert_eq!(since(&read, 1), Some(vec![1, 2, 3, 4]));
        // A database that was put back: what it lost is gone, also once there are newer versions.
        let restored = updated(&table, 1);
        assert_eq!(since(&restored, 1), Some(vec![1]));
        assert_eq!(since(&restored, 2), None);
    }
}
