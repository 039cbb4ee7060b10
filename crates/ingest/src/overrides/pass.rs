//! A pass over the products that a change of overrides is about: compares what clients saw with what they see, and writes it.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::panic::resume_unwind;
use std::sync::mpsc;
use std::thread;

use vitrine_model::code::ProductCode;
use vitrine_store::overrides::{BaseHint, StorePublication};
use vitrine_store::prepared::{DocumentForm, PreparedProduct};
use vitrine_store::record::{Moment, StoredProduct};
use vitrine_store::{Store, StoreError};

use super::assignment::{Assignment, DENOMINATIONS};
use super::change::Changed;
use super::effect::{effect, seen, unhidden};
use super::{Definition, Override};
use crate::load::difference::Pair;
use crate::load::guard::{Allowance, Exceeded, Tally};
use crate::load::plan::{Detail, Plan};

/// Number of products that are handed over together.
const BATCH: usize = 64;

/// Maximum number of batches that wait for each worker, and of those that wait behind it.
const READ_AHEAD: usize = 8;

/// Maximum number of threads that compare.
const MAX_WORKERS: usize = 8;

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

/// Reads the bases that one of these overrides may be about, and deals them to the workers in turn. Returns the codes of `missing`
/// that no live product has.
fn deal(
    store: &dyn Store,
    touched: &[Override],
    mut missing: BTreeSet<String>,
    workers: &[mpsc::SyncSender<Vec<StoredProduct>>],
) -> anyhow::Result<BTreeSet<String>> {
    let definitions: Vec<&Definition> = touched.iter().map(|one| &one.definition).collect();
    let (mut few, mut turns) = (Vec::new(), workers.iter().cycle());
    let mut send = |few| turns.next().map_or(Ok(()), |worker| worker.send(few));
    each_base(store, &definitions, &mut missing, &mut |base| {
        few.push(base);
        match few.len() < BATCH {
            true => Ok(()),
            false => Ok(send(std::mem::take(&mut few))?),
        }
    })?;
    send(few)?;
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
    missing: BTreeSet<String>,
    detail: Detail,
    found: Compared,
}

/// Findings of a comparison of products.
#[derive(Default)]
struct Compared {
    plan: Plan,
    tally: Tally,
    selected: u64,
    overlapping: BTreeMap<u64, u64>,
    without_amounts: BTreeMap<u64, u64>,
    /// Changes to be written, in order.
    writes: Vec<Write>,
}

/// A change of a product to be written.
enum Write {
    PutBase(PreparedProduct),
    EndBase(ProductCode),
    Put(PreparedProduct),
    Retire(ProductCode),
}

impl Write {
    fn apply(self, publication: &mut dyn StorePublication) -> Result<(), StoreError> {
        match self {
            Self::PutBase(base) => publication.put_base(base),
            Self::EndBase(code) => publication.end_base(&code),
            Self::Put(product) => publication.put_prepared(product).map(drop),
            Self::Retire(code) => publication.retire(&code).map(drop),
        }
    }
}

impl Compared {
    fn new(detail: Detail) -> Self {
        Self {
            plan: Plan::new(detail),
            ..Self::default()
        }
    }

    /// Appends what was found of the products that follow, but for what is to be written.
    fn append(&mut self, other: Self) {
        let Self {
            plan,
            tally,
            selected,
            overlapping,
            without_amounts,
            writes: _,
        } = other;
        self.plan.append(plan);
        self.tally.append(tally);
        self.selected += selected;
        for (own, other) in [
            (&mut self.overlapping, overlapping),
            (&mut self.without_amounts, without_amounts),
        ] {
            for (number, products) in other {
                *own.entry(number).or_default() += products;
            }
        }
    }
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
            missing: named.collect(),
            detail,
            found: Compared::new(detail),
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

    /// Compares all products, and writes what differs if there is something to write to. One thread reads them, others compare
    /// them, and this one puts together what these found, in the order of reading.
    pub(super) fn run(
        &mut self,
        mut publication: Option<&mut (dyn StorePublication + '_)>,
    ) -> anyhow::Result<()> {
        let (store, touched) = (self.store, self.touched);
        let missing = std::mem::take(&mut self.missing);
        let mut found = std::mem::take(&mut self.found);
        let form = publication.is_some().then(|| store.document_form());
        let pass = &*self;
        let missing = thread::scope(|scope| {
            let (mut workers, mut results) = (Vec::new(), Vec::new());
            for _ in 0..thread::available_parallelism()
                .map_or(1, NonZeroUsize::get)
                .min(MAX_WORKERS)
            {
                let (worker, few) = mpsc::sync_channel::<Vec<StoredProduct>>(READ_AHEAD);
                let (sender, result) = mpsc::sync_channel(READ_AHEAD);
                scope.spawn(move || {
                    for few in few {
                        if sender.send(pass.compare_few(&few, form)).is_err() {
                            // After a failure nobody waits for the rest.
                            return;
                        }
                    }
                });
                workers.push(worker);
                results.push(result);
            }
            let reading = scope.spawn(move || deal(store, touched, missing, &workers));
            let mut put_together = || -> anyhow::Result<()> {
                // The workers have their turns in the order in which they got products; the first one without has none.
                for compared in results
                    .iter()
                    .cycle()
                    .map_while(|worker| worker.recv().ok())
                {
                    let mut compared = compared?;
                    if let Some(publication) = publication.as_deref_mut() {
                        let mut writes = std::mem::take(&mut compared.writes).into_iter();
                        writes.try_for_each(|write| write.apply(publication))?;
                    }
                    found.append(compared);
                }
                Ok(())
            };
            let done = put_together();
            drop(results);
            let missing = reading.join().unwrap_or_else(|panic| resume_unwind(panic));
            done.and(missing)
        });
        self.found = found;
        self.missing = missing?;
        Ok(())
    }

    /// Compares a few products; those that differ are prepared to be written in this form.
    fn compare_few(
        &self,
        few: &[StoredProduct],
        form: Option<DocumentForm>,
    ) -> anyhow::Result<Compared> {
        let mut found = Compared::new(self.detail);
        for base in few {
            for one in self.touched {
                if one.definition.selects(base)? {
                    self.compare(base, form, &mut found)?;
                    break;
                }
            }
        }
        Ok(found)
    }

    fn compare(
        &self,
        base: &StoredProduct,
        form: Option<DocumentForm>,
        found: &mut Compared,
    ) -> anyhow::Result<()> {
        found.selected += 1;
        let (before, after) = (effect(base, self.before)?, effect(base, self.after)?);
        let (old, new) = (seen(base, before.as_ref()), seen(base, after.as_ref()));
        match (old, new) {
            (Some(old), Some(new)) if old != new => {
                let pair = Pair::of(old, new);
                found.plan.change(&pair);
                found.tally.change(&pair);
            }
            (Some(_), None) => {
                found.plan.retire(&base.code);
                found.tally.retire(&base.code);
            }
            (Some(_), Some(_)) => found.plan.keep(),
            // The guard judges a hidden product as clients will see it.
            (None, _) => {
                match new {
                    Some(new) => found.plan.compare(None, new),
                    None => found.plan.keep(),
                }
                let (old, new) = (unhidden(base, self.before)?, unhidden(base, self.after)?);
                if old != new {
                    found.tally.compare(&old, &new);
                }
            }
        }
        self.count_overlapping(base, new, found)?;
        let Some(form) = form else {
            return Ok(());
        };
        let prepared = |product: &StoredProduct| -> Result<PreparedProduct, StoreError> {
            let mut prepared = PreparedProduct::new(product.clone())?;
            prepared.pack(form)?;
            Ok(prepared)
        };
        match (&before, &after) {
            (Some(_), None) => found.writes.push(Write::EndBase(base.code.clone())),
            (None, Some(_)) => found.writes.push(Write::PutBase(prepared(base)?)),
            _ => {}
        }
        match (old, new) {
            (_, Some(new)) if old != Some(new) => found.writes.push(Write::Put(prepared(new)?)),
            (Some(_), None) => found.writes.push(Write::Retire(base.code.clone())),
            _ => {}
        }
        Ok(())
    }

    /// Counts the other overrides of a product that decide what clients see of it, now or later.
    fn count_overlapping(
        &self,
        base: &StoredProduct,
        seen: Option<&StoredProduct>,
        found: &mut Compared,
    ) -> anyhow::Result<()> {
        for one in &self.replaced {
            if one.definition.selects(base)? {
                *found.overlapping.entry(one.number).or_default() += 1;
            }
        }
        if seen.is_some_and(|seen| seen.is_orderable) {
            return Ok(());
        }
        for one in &self.narrowing {
            if one.definition.selects(base)? {
                *found.without_amounts.entry(one.number).or_default() += 1;
            }
        }
        Ok(())
    }

    /// Returns the limits of the guard that this exceeds, if so many products were [hidden](hidden) before.
    pub(super) fn exceeded(
        &mut self,
        publication: &mut dyn StorePublication,
        allowances: &[Allowance],
        hidden: u64,
    ) -> anyhow::Result<Vec<Exceeded>> {
        let mut tally = std::mem::take(&mut self.found.tally);
        tally.leave_out(hidden);
        Ok(tally.exceeded(publication, allowances)?)
    }

    /// Returns what was found.
    pub(super) fn finish(self) -> Changed {
        let Compared {
            plan,
            tally: _,
            selected,
            overlapping,
            without_amounts,
            writes: _,
        } = self.found;
        Changed {
            selected,
            missing: self.missing.into_iter().collect(),
            overlapping,
            without_amounts,
            plan,
            ..Changed::default()
        }
    }
}

/// Returns the number of live products that clients don't see. Call it before the first change.
pub(super) fn hidden(publication: &mut dyn StorePublication) -> Result<u64, StoreError> {
    let overridden = publication.overridden()?;
    Ok(overridden.iter().filter(|one| one.is_hidden).count() as u64)
}
