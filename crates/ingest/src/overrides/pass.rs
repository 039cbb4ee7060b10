//! A pass over the products that a change of overrides is about: compares what clients saw with what they see, and writes it.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::resume_unwind;
use std::sync::mpsc;
use std::thread;

use vitrine_model::code::ProductCode;
use vitrine_store::Store;
use vitrine_store::overrides::{BaseHint, StorePublication};
use vitrine_store::prepared::PreparedProduct;
use vitrine_store::record::{Moment, StoredProduct};

use super::assignment::{Assignment, DENOMINATIONS};
use super::change::Changed;
use super::effect::{effect, seen, unhidden};
use super::{Definition, Override};
use crate::load::guard::{Allowance, Exceeded, Tally};
use crate::load::plan::{Detail, Plan};

/// Number of products that are handed over together.
const BATCH: usize = 64;

/// Maximum number of batches read ahead.
const READ_AHEAD: usize = 16;

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

/// Reads the bases that one of these overrides selects, a few at a time. Returns the codes of `missing` that no live product has.
fn read_touched(
    store: &dyn Store,
    touched: &[Override],
    mut missing: BTreeSet<String>,
    sender: &mpsc::SyncSender<Vec<StoredProduct>>,
) -> anyhow::Result<BTreeSet<String>> {
    let definitions: Vec<&Definition> = touched.iter().map(|one| &one.definition).collect();
    let mut few = Vec::new();
    each_base(store, &definitions, &mut missing, &mut |base| {
        for definition in &definitions {
            if definition.selects(&base)? {
                few.push(base);
                break;
            }
        }
        if few.len() == BATCH {
            sender.send(std::mem::take(&mut few))?;
        }
        Ok(())
    })?;
    sender.send(few)?;
    Ok(missing)
}

/// A pass over the products that a change of overrides is about.
pub(super) struct Pass<'p> {
    store: &'p dyn Store,
    before: &'p [Override],
    after: &'p [Override],
    /// Overrides that begin or end.
    touched: &'p [Override],
    /// Other ones that set the same fields.
    replaced: Vec<&'p Override>,
    /// Other ones that narrow amounts, if these set that products are orderable: without any amount they aren't.
    narrowing: Vec<&'p Override>,
    plan: Plan,
    tally: Tally,
    selected: u64,
    missing: BTreeSet<String>,
    overlapping: BTreeMap<u64, u64>,
    without_amounts: BTreeMap<u64, u64>,
}

impl<'p> Pass<'p> {
    pub(super) fn new(
        store: &'p dyn Store,
        before: &'p [Override],
        after: &'p [Override],
        touched: &'p [Override],
        detail: Detail,
    ) -> Self {
        let named = touched.iter().flat_map(|one| {
            let selection = &one.definition.selection;
            selection.named_codes().map(str::to_owned)
        });
        Self {
            store,
            before,
            after,
            touched,
            replaced: Vec::new(),
            narrowing: Vec::new(),
            plan: Plan::new(detail),
            tally: Tally::default(),
            selected: 0,
            missing: named.collect(),
            overlapping: BTreeMap::new(),
            without_amounts: BTreeMap::new(),
        }
    }

    /// Counts the products of which these overrides set the same values, too.
    pub(super) fn with_others(mut self, others: &'p [Override]) -> Self {
        let touched = self.touched;
        let is_replaced = |other: &&Override| touched.iter().any(|one| one.replaces(other));
        self.replaced = others.iter().filter(is_replaced).collect();
        let sets_orderable =
            |one: &Override| (one.definition.values).contains(&Assignment::IsOrderable(true));
        if touched.iter().any(sets_orderable) {
            let narrows = |other: &&Override| {
                (other.definition.values.iter()).any(|value| value.field() == DENOMINATIONS)
            };
            self.narrowing = others.iter().filter(narrows).collect();
        }
        self
    }

    /// Compares all products, and writes what differs if there is something to write to. Another thread reads them.
    pub(super) fn run(
        &mut self,
        mut publication: Option<&mut (dyn StorePublication + '_)>,
    ) -> anyhow::Result<()> {
        let (store, touched) = (self.store, self.touched);
        let missing = std::mem::take(&mut self.missing);
        thread::scope(|scope| {
            let (sender, read) = mpsc::sync_channel(READ_AHEAD);
            let reading = scope.spawn(move || read_touched(store, touched, missing, &sender));
            let compared = read.iter().flatten().try_for_each(|base: StoredProduct| {
                self.compare(&base, publication.as_deref_mut())
            });
            // After a failure nobody waits for the rest.
            drop(read);
            let missing = reading.join().unwrap_or_else(|panic| resume_unwind(panic));
            compared?;
            self.missing = missing?;
            Ok(())
        })
    }

    fn compare(
        &mut self,
        base: &StoredProduct,
        publication: Option<&mut (dyn StorePublication + '_)>,
    ) -> anyhow::Result<()> {
        self.selected += 1;
        let (before, after) = (effect(base, self.before)?, effect(base, self.after)?);
        let (old, new) = (seen(base, before.as_ref()), seen(base, after.as_ref()));
        match (old, new) {
            (Some(old), Some(new)) if old != new => {
                self.plan.compare(Some(old), new);
                self.tally.compare(old, new);
            }
            (Some(_), None) => {
                self.plan.retire(&base.code);
                self.tally.retire(&base.code);
            }
            (Some(_), Some(_)) => self.plan.keep(),
            // The guard judges a hidden product as clients will see it.
            (None, _) => {
                match new {
                    Some(new) => self.plan.compare(None, new),
                    None => self.plan.keep(),
                }
                let (old, new) = (unhidden(base, self.before)?, unhidden(base, self.after)?);
                if old != new {
                    self.tally.compare(&old, &new);
                }
            }
        }
        self.count_overlapping(base, new)?;
        let Some(publication) = publication else {
            return Ok(());
        };
        match (&before, &after) {
            (Some(_), None) => publication.end_base(&base.code)?,
            (None, Some(_)) => publication.put_base(PreparedProduct::new(base.clone())?)?,
            _ => {}
        }
        match (old, new) {
            (_, Some(new)) if old != Some(new) => publication.put(new).map(drop)?,
            (Some(_), None) => publication.retire(&base.code).map(drop)?,
            _ => {}
        }
        Ok(())
    }

    /// Counts the other overrides of a product that decide what clients see of it, now or later.
    fn count_overlapping(
        &mut self,
        base: &StoredProduct,
        seen: Option<&StoredProduct>,
    ) -> anyhow::Result<()> {
        for one in &self.replaced {
            if one.definition.selects(base)? {
                *self.overlapping.entry(one.number).or_default() += 1;
            }
        }
        if seen.is_some_and(|seen| seen.is_orderable) {
            return Ok(());
        }
        for one in &self.narrowing {
            if one.definition.selects(base)? {
                *self.without_amounts.entry(one.number).or_default() += 1;
            }
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
            without_amounts: self.without_amounts,
            plan: self.plan,
            ..Changed::default()
        }
    }
}
