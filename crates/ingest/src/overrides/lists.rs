//! Lists that overrides change, one after the other.

use std::collections::BTreeSet;
use std::convert::Infallible;

use super::assignment::ListChange;
use super::narrowing::needed;

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

    /// Returns a list after the changes, with the overrides that made it; `None` if it stays as it is.
    pub(super) fn apply(&self, list: &[T]) -> Option<(Vec<T>, BTreeSet<u64>)> {
        let by = |numbers: &[u64]| {
            let mut list = list.to_vec();
            for (_, change, value) in self.0.iter().filter(|(one, ..)| numbers.contains(one)) {
                let has_it = list.contains(value);
                match change {
                    ListChange::Remove => list.retain(|own| own != value),
                    ListChange::Add if has_it => {}
                    ListChange::Add => list.push(value.clone()),
                }
            }
            Ok::<_, Infallible>(list)
        };
        let mut numbers: Vec<u64> = self.0.iter().map(|(number, ..)| *number).collect();
        numbers.dedup();
        let Ok(changed) = by(&numbers);
        if changed == list {
            return None;
        }
        let Ok(numbers) = needed(&numbers, &changed, by);
        Some((changed, numbers))
    }
}
