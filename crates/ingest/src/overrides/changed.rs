//! Outcome of a change of overrides.

use vitrine_model::revision::Revision;
use vitrine_store::record::PublishedCounts;

use super::Override;
use super::compared::Notices;
use super::instants::AppliedInstant;
use super::unreadable::Unreadable;
use crate::load::guard::Exceeded;
use crate::load::plan::Plan;

/// Outcome of a change of overrides, or its plan.
#[derive(Debug, Default)]
pub struct Changed {
    /// The overrides that were made, with their numbers; in a plan these are 0.
    pub made: Vec<Override>,
    /// The overrides that were ended.
    pub ended: Vec<Override>,
    /// Those of them whose definition can't be read.
    pub ended_unreadable: Vec<Unreadable>,
    /// Instants that were overdue and were applied before.
    pub instants: Vec<AppliedInstant>,
    /// Number of live products that they select.
    pub selected: u64,
    /// Codes that are named and that no live product has.
    pub missing: Vec<String>,
    /// Products of which an operator may expect something else.
    pub notices: Notices,
    /// Difference between what clients saw and what they see; for an override that begins later, as it would be now.
    pub plan: Plan,
    /// Limits of the guard that are exceeded; then nothing was changed.
    pub exceeded: Vec<Exceeded>,
    /// The revision, if clients see a change.
    pub revision: Option<Revision>,
}

impl Changed {
    /// Returns the numbers of products by what clients see of them, in words. Products that an override takes away aren't retired,
    /// and come back with its end.
    #[must_use]
    pub fn seen_counts(&self) -> String {
        let PublishedCounts {
            created,
            changed,
            retired,
            unchanged,
        } = self.plan.counts();
        format!("{created} shown again, {changed} changed, {retired} hidden, {unchanged} unchanged")
    }
}
