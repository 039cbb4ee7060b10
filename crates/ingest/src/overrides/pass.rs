//! A pass over the products that a change of overrides is about: compares what clients saw with what they see, and writes it.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::panic::resume_unwind;
use std::sync::mpsc;
use std::thread;

use vitrine_model::code::ProductCode;
use vitrine_store::overrides::BaseHint;
use vitrine_store::record::StoredProduct;
use vitrine_store::{Publish, Store, StoreError};

use super::change::Changed;
use super::compared::{Compared, Notices, Write};
use super::effect::{Effect, effect, seen, unhidden};
use super::{Definition, Override};
use crate::load::difference::Pair;
use crate::load::guard::{Allowance, Exceeded};
use crate::load::plan::Detail;

/// Number of products that are handed over together.
const BATCH: usize = 64;

/// Maximum number of batches that wait for each worker, and of those that wait behind it.
const READ_AHEAD: usize = 8;

/// Maximum number of threads that compare.
const MAX_WORKERS: usize = 8;

/// Calls `look` with the base of each live product that one of these may be about. Removes the codes of `missing` that
/// are found.
pub(super) fn each_base(
    store: &Store,
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
    let named: BTreeSet<&str> = named.into_iter().flatten().collect();
    // What isn't a code can't be found, and is missing.
    let codes = named.into_iter().filter_map(|code| code.parse().ok());
    let codes: Vec<ProductCode> = codes.collect();
    store.read_live_bases_of(&codes, &mut |base| {
        missing.remove(base.code.as_str());
        Ok(look(base)?)
    })?;
    Ok(())
}

/// Reads the bases that one of these overrides may be about, and deals them to the workers in turn. Returns the codes of `missing`
/// that no live product has.
fn deal(
    store: &Store,
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
    store: &'p Store,
    before: &'p [Override],
    after: &'p [Override],
    /// Overrides that begin or end.
    touched: &'p [Override],
    /// Other ones that set the same fields, if these are new.
    replaced: Option<Vec<&'p Override>>,
    missing: BTreeSet<String>,
    detail: Detail,
    found: Compared,
}

impl<'p> Pass<'p> {
    pub(super) fn new(
        store: &'p Store,
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
            replaced: None,
            missing: named.collect(),
            detail,
            found: Compared::new(detail),
        }
    }

    /// Takes notice of what these overrides, which are new, have in common with others.
    pub(super) fn with_others(mut self, others: &'p [Override]) -> Self {
        let touched = self.touched;
        let is_replaced = |other: &&Override| touched.iter().any(|one| one.replaces(other));
        self.replaced = Some(others.iter().filter(is_replaced).collect());
        self
    }

    /// Compares all products, and writes what differs if there is something to write to. One thread reads them, others compare
    /// them, and this one puts together what these found, in the order of reading.
    pub(super) fn run(&mut self, mut publication: Option<&mut Publish>) -> anyhow::Result<()> {
        let (store, touched) = (self.store, self.touched);
        let missing = std::mem::take(&mut self.missing);
        let mut found = std::mem::take(&mut self.found);
        let writes = publication.is_some();
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
                        if sender.send(pass.compare_few(few, writes)).is_err() {
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
                        let writes = std::mem::take(&mut compared.writes);
                        let codes: Vec<&ProductCode> =
                            writes.iter().filter_map(Write::live_code).collect();
                        publication.announce(&codes)?;
                        (writes.into_iter()).try_for_each(|write| write.apply(publication))?;
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

    /// Compares a few products; with `writes`, those that differ are prepared to be written.
    fn compare_few(&self, few: Vec<StoredProduct>, writes: bool) -> anyhow::Result<Compared> {
        let mut found = Compared::new(self.detail);
        for base in few {
            for one in self.touched {
                if one.definition.selects(&base)? {
                    self.compare(base, writes, &mut found)?;
                    break;
                }
            }
        }
        Ok(found)
    }

    fn compare(
        &self,
        base: StoredProduct,
        writes: bool,
        found: &mut Compared,
    ) -> anyhow::Result<()> {
        found.selected += 1;
        let (mut before, mut after) = (effect(&base, self.before)?, effect(&base, self.after)?);
        let differing = match (&mut before, &mut after) {
            (None, Some(after)) => after.differing.take(),
            (Some(before), None) => (before.differing.take()).map(|[base, seen]| [seen, base]),
            _ => None,
        };
        let (old, new) = (seen(&base, before.as_ref()), seen(&base, after.as_ref()));
        match (old, new) {
            (Some(old), Some(new)) if old != new => {
                let pair = Pair::of(old, new).with_differing(differing);
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
                let (old, new) = (unhidden(&base, self.before)?, unhidden(&base, self.after)?);
                if old != new {
                    found.tally.compare(&old, &new);
                }
            }
        }
        self.notice(&base, after.as_ref(), &mut found.notices)?;
        if writes {
            let before = before.as_ref().map(|effect| effect.product.as_ref());
            found.write(base, before, after.map(|effect| effect.product))?;
        }
        Ok(())
    }

    /// Counts a product of which an operator may expect something else of new overrides.
    fn notice(
        &self,
        base: &StoredProduct,
        after: Option<&Effect>,
        notices: &mut Notices,
    ) -> anyhow::Result<()> {
        let Some(replaced) = &self.replaced else {
            return Ok(());
        };
        for one in replaced {
            if one.definition.selects(base)? {
                *notices.overlapping.entry(one.number).or_default() += 1;
            }
        }
        let is_new = |number: &u64| self.touched.iter().any(|one| one.number == *number);
        let hiding = after.and_then(|after| after.fields.get("visible")?.last());
        if let Some(hiding) = hiding.filter(|number| !is_new(number)) {
            *notices.hidden.entry(*hiding).or_default() += 1;
        }
        Ok(())
    }

    /// Returns the limits of the guard that this exceeds, if so many products were [hidden](hidden) before.
    pub(super) fn exceeded(
        &mut self,
        publication: &mut Publish,
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
            notices,
            writes: _,
        } = self.found;
        Changed {
            selected,
            missing: self.missing.into_iter().collect(),
            notices,
            plan,
            ..Changed::default()
        }
    }
}

/// Returns the number of live products that clients don't see. Call it before the first change.
pub(super) fn hidden(publication: &mut Publish) -> Result<u64, StoreError> {
    let overridden = publication.overridden()?;
    Ok(overridden.iter().filter(|one| one.is_hidden).count() as u64)
}
