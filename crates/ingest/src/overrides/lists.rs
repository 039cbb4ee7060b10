//! Lists that overrides change, one after the other.

use std::collections::BTreeSet;

use super::assignment::ListChange;

/// Changes of a list, each with its override, in the order of these.
pub(super) struct ListChanges<T>(Vec<(u64, ListChange, T)>);

impl<T> Default for ListChanges<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Clone + PartialEq> ListChanges<T> {
    pub(super) fn add(&mut self, number: u64, change: ListChange, value: T) {
        self.0.push((number, change, value));
    }

    /// Returns a list after the changes, with the overrides that changed it; `None` if it stays as it is.
    pub(super) fn apply(&self, list: &[T]) -> Option<(Vec<T>, BTreeSet<u64>)> {
        let (mut changed, mut by) = (list.to_vec(), BTreeSet::new());
        for (number, change, value) in &self.0 {
            match (change, changed.contains(value)) {
                (ListChange::Remove, true) => changed.retain(|own| own != value),
                (ListChange::Add, false) => changed.push(value.clone()),
                (ListChange::Remove, false) | (ListChange::Add, true) => continue,
            }
            by.insert(*number);
        }
        (changed != list).then_some((changed, by))
    }
}
