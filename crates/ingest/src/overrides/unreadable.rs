//! Overrides whose definition can't be read: it is damaged, or a later release made it. They are told of, and can be ended.

use std::collections::HashSet;

use vitrine_model::code::ProductCode;
use vitrine_store::Publication as _;
use vitrine_store::check::{Problem, Severity};
use vitrine_store::overrides::StoredOverride;
use vitrine_store::prepared::PreparedProduct;
use vitrine_store::record::{Moment, StoredProduct};
use vitrine_store::{Publish, Store, StoreError};

use super::Override;
use super::effect::{effect, seen};
use crate::load::guard::Tally;
use crate::load::plan::{Detail, Plan};

/// A stored override whose definition can't be read.
#[derive(Debug, Clone)]
pub struct Unreadable {
    /// The override.
    pub stored: StoredOverride,
    /// Reason, in the parser's words.
    pub reason: String,
}

impl Unreadable {
    /// Returns the error of what can't be done without the definition.
    #[must_use]
    pub fn error(&self) -> StoreError {
        let number = self.stored.number;
        let or_end = match self.stored.ended {
            None => format!(", or end it: `vitrine overrides end {number}`"),
            Some(_) => String::new(),
        };
        StoreError::Damaged(format!(
            "the definition of override {number} can't be read ({}); use the release that made it{or_end}",
            self.reason
        ))
    }
}

/// Stored overrides, those that can be read apart from the others.
#[derive(Debug, Default)]
pub struct ReadOverrides {
    /// Those that can be read, oldest first.
    pub readable: Vec<Override>,
    /// The others, oldest first.
    pub unreadable: Vec<Unreadable>,
}

impl ReadOverrides {
    /// Reads stored overrides.
    #[must_use]
    pub fn of(stored: Vec<StoredOverride>) -> Self {
        let mut read = Self::default();
        for one in stored {
            match Override::parse(one) {
                Ok(one) => read.readable.push(one),
                Err(one) => read.unreadable.push(*one),
            }
        }
        read
    }

    /// Returns those that can be read.
    ///
    /// # Errors
    ///
    /// If one of the others `lies` on products: what these are for clients is unknown then.
    pub fn unless(
        self,
        lies: impl Fn(&StoredOverride) -> bool,
    ) -> Result<Vec<Override>, StoreError> {
        match self.unreadable.iter().find(|one| lies(&one.stored)) {
            Some(one) => Err(one.error()),
            None => Ok(self.readable),
        }
    }
}

/// Returns a problem for each override of a store that can't be read.
#[must_use]
pub fn problems(store: &Store) -> Vec<Problem> {
    match store.overrides_to_check() {
        Ok(stored) => {
            let unreadable = ReadOverrides::of(stored).unreadable.into_iter();
            unreadable.map(problem).collect()
        }
        Err(error) => vec![Problem {
            rule: "override",
            severity: Severity::Fault,
            place: "the overrides".to_owned(),
            what: error.to_string(),
            advice: "restore the last good backup: `vitrine restore FILE`",
        }],
    }
}

fn problem(Unreadable { stored, reason }: Unreadable) -> Problem {
    let (rule, severity, advice) = match stored.ended {
        None => (
            "override",
            Severity::Fault,
            "use the release that made it, or end it: `vitrine overrides end NUMBER`",
        ),
        Some(_) => (
            "override_ended",
            Severity::Warning,
            "no action needed: it has ended, and changes nothing",
        ),
    };
    Problem {
        rule,
        severity,
        place: format!("override {}", stored.number),
        what: format!("its definition can't be read: {reason}"),
        advice,
    }
}

/// A pass over all live products, which makes them anew of their bases: of an override that can't be read nobody knows which
/// products it is about.
#[derive(Debug)]
pub(super) struct Rebuild {
    pub(super) plan: Plan,
    pub(super) tally: Tally,
}

impl Rebuild {
    /// Compares what clients saw with what `after` makes of all bases, and writes what differs if `writes`.
    pub(super) fn run(
        store: &Store,
        publication: &mut Publish,
        after: &[Override],
        detail: Detail,
        writes: bool,
    ) -> anyhow::Result<Self> {
        let mut rebuild = Self {
            plan: Plan::new(detail),
            tally: Tally::default(),
        };
        let overridden = publication.overridden()?.into_iter();
        let overridden: HashSet<ProductCode> = overridden.map(|one| one.code).collect();
        store.read_base(Moment::Live, &mut |base| {
            let is_overridden = overridden.contains(&base.code);
            // Without a base beside it, a product is its base.
            let live = match is_overridden {
                true => publication.live(&base.code)?,
                false => None,
            };
            let old = if is_overridden {
                live.as_ref()
            } else {
                Some(&base)
            };
            let effect = effect(&base, after)?;
            let new = seen(&base, effect.as_ref());
            rebuild.compare(&base.code, old, new);
            if !writes {
                return Ok(());
            }
            match (is_overridden, &effect) {
                (true, None) => publication.end_base(&base.code)?,
                (false, Some(_)) => publication.put_base(PreparedProduct::new(base.clone())?)?,
                _ => {}
            }
            match new {
                Some(new) if old != Some(new) => publication.put(new).map(drop)?,
                None if old.is_some() => publication.retire(&base.code).map(drop)?,
                _ => {}
            }
            Ok(())
        })?;
        Ok(rebuild)
    }

    fn compare(
        &mut self,
        code: &ProductCode,
        old: Option<&StoredProduct>,
        new: Option<&StoredProduct>,
    ) {
        match (old, new) {
            (Some(old), Some(new)) if old != new => {
                self.plan.compare(Some(old), new);
                self.tally.compare(old, new);
            }
            (None, Some(new)) => self.plan.compare(None, new),
            (Some(_), None) => {
                self.plan.retire(code);
                self.tally.retire(code);
            }
            _ => self.plan.keep(),
        }
    }
}
