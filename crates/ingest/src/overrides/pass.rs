//! A pass over the products that a change of overrides is about: compares what clients saw with what they see, and writes it.

use std::collections::{BTreeMap, BTreeSet};

use vitrine_model::code::ProductCode;
use vitrine_store::Store;
use vitrine_store::overrides::{BaseHint, StorePublication};
use vitrine_store::record::{Moment, StoredProduct};

use super::change::Changed;
use super::effect::{Effect, effect};
use super::{Definition, Override};
use crate::load::guard::{Allowance, Exceeded, Tally};
use crate::load::plan::{Detail, Plan};

/// Calls `look` with the base of each live product that one of these may be about. Removes the codes of `missing` that
/// are found.
pub(super) fn each_base(
    store: &dyn Store,
    definitions: &[&Definition],
    missing: &mut BTreeSet<String>,
    look: &mut dyn FnMut(StoredProduct) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let named: Option<Vec<Vec<&str>>> = definitions.iter().map(|one| one.codes()).collect();
    let Some(named) = named else {
        let hint = match definitions {
            [one] if missing.is_empty() => one.hint(),
            _ => BaseHint::default(),
        };
        store.read_live_base(&hint, &mut |base| {
            missing.remove(base.code.as_str());
            Ok(look(base)?)
        })?;
        return Ok(());
    };
    for code in named.into_iter().flatten().collect::<BTreeSet<&str>>() {
        // Codes of frozen selections may be gone.
        let Ok(code) = code.parse::<ProductCode>() else {
            continue;
        };
        if let Some(base) = store.base_product(&code, Moment::Live)? {
            missing.remove(base.code.as_str());
            look(base)?;
        }
    }
    Ok(())
}

/// A pass over the products that a change of overrides is about.
pub(super) struct Pass<'p> {
    store: &'p dyn Store,
    before: &'p [Override],
    after: &'p [Override],
    /// Overrides that begin or end.
    touched: &'p [Override],
    /// Active ones that set the same fields.
    others: Vec<&'p Override>,
    plan: Plan,
    tally: Tally,
    selected: u64,
    missing: BTreeSet<String>,
    overlapping: BTreeMap<u64, u64>,
}

impl<'p> Pass<'p> {
    pub(super) fn new(
        store: &'p dyn Store,
        before: &'p [Override],
        after: &'p [Override],
        touched: &'p [Override],
        detail: Detail,
    ) -> Self {
        let fields = |one: &Override| -> BTreeSet<&'static str> {
            let values = one.definition.values.iter();
            values.map(super::Assignment::field).collect()
        };
        let set: BTreeSet<&str> = touched.iter().flat_map(fields).collect();
        let is_touched = |one: &&Override| touched.iter().any(|other| other.number == one.number);
        let others = before.iter().filter(|one| !is_touched(one));
        let named = touched.iter().flat_map(|one| {
            let selection = &one.definition.selection;
            selection.named_codes().map(str::to_owned)
        });
        Self {
            store,
            before,
            after,
            touched,
            others: others
                .filter(|one| !fields(one).is_disjoint(&set))
                .collect(),
            plan: Plan::new(detail),
            tally: Tally::default(),
            selected: 0,
            missing: named.collect(),
            overlapping: BTreeMap::new(),
        }
    }

    /// Compares all products, and writes what differs if there is something to write to.
    pub(super) fn run(
        &mut self,
        mut publication: Option<&mut (dyn StorePublication + '_)>,
    ) -> anyhow::Result<()> {
        let definitions: Vec<&Definition> =
            self.touched.iter().map(|one| &one.definition).collect();
        let mut missing = std::mem::take(&mut self.missing);
        each_base(self.store, &definitions, &mut missing, &mut |base| {
            let mut is_touched = false;
            for one in self.touched {
                is_touched |= one.definition.selects(&base)?;
            }
            match is_touched {
                true => self.compare(&base, publication.as_deref_mut()),
                false => Ok(()),
            }
        })?;
        self.missing = missing;
        Ok(())
    }

    fn compare(
        &mut self,
        base: &StoredProduct,
        publication: Option<&mut (dyn StorePublication + '_)>,
    ) -> anyhow::Result<()> {
        self.selected += 1;
        for one in &self.others {
            if one.definition.selects(base)? {
                *self.overlapping.entry(one.number).or_default() += 1;
            }
        }
        let before = effect(base, self.before)?;
        let after = effect(base, self.after)?;
        let (seen, next) = (
            effective(base, before.as_ref()),
            effective(base, after.as_ref()),
        );
        match (seen, next) {
            (Some(seen), Some(next)) if seen != next => {
                self.plan.compare(Some(seen), next);
                self.tally.compare(seen, next);
            }
            (Some(_), None) => {
                self.plan.retire(&base.code);
                self.tally.retire(&base.code);
            }
            (None, Some(next)) => self.plan.compare(None, next),
            _ => self.plan.keep(),
        }
        let Some(publication) = publication else {
            return Ok(());
        };
        match (&before, &after) {
            (Some(_), None) => publication.end_base(&base.code)?,
            (None, Some(_)) => publication.put_base(base)?,
            _ => {}
        }
        match (seen, next) {
            (_, Some(next)) if seen != Some(next) => publication.put(next).map(drop)?,
            (Some(_), None) => publication.retire(&base.code).map(drop)?,
            _ => {}
        }
        Ok(())
    }

    /// Returns the limits of the guard that this exceeds.
    pub(super) fn exceeded(
        &mut self,
        publication: &mut dyn StorePublication,
        allowances: &[Allowance],
    ) -> anyhow::Result<Vec<Exceeded>> {
        Ok(std::mem::take(&mut self.tally).exceeded(publication, allowances)?)
    }

    /// Returns what was found.
    pub(super) fn finish(self) -> Changed {
        Changed {
            selected: self.selected,
            missing: self.missing.into_iter().collect(),
            overlapping: self.overlapping,
            plan: self.plan,
            ..Changed::default()
        }
    }
}

/// Returns the product that clients see.
fn effective<'e>(base: &'e StoredProduct, effect: Option<&'e Effect>) -> Option<&'e StoredProduct> {
    match effect {
        None => Some(base),
        Some(effect) => effect.product.as_ref(),
    }
}
