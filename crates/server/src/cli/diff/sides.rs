//! The products of two moments side by side, without a catalog in memory: those that the revisions between changed are looked
//! up, or both catalogs are read in step.

use std::collections::BTreeSet;
use std::sync::mpsc::sync_channel;

use anyhow::{Context as _, anyhow};
use vitrine_ingest::selection::selects;
use vitrine_model::code::ProductCode;
use vitrine_model::selector::Selector;
use vitrine_store::record::{Moment, StoredProduct};
use vitrine_store::{Store, StoreError};

use crate::cli::history::NOTHING_LOADED;
use crate::cli::layer_args::LayerArgs;

/// Maximum number of revisions between the moments for products to be looked up.
const MAX_REVISIONS: u64 = 200;

/// Number of changed products that are looked up, whatever the size of the catalog.
const FEW_PRODUCTS: u64 = 1_000;

/// Products that are read in the time of one that is looked up, at least.
const READ_PER_LOOK_UP: u64 = 50;

/// Number of products by which one side may be read ahead of the other.
const READ_AHEAD: usize = 256;

/// A product before and after.
pub(super) type Pair = [Option<StoredProduct>; 2];

/// Selected products of two moments.
#[derive(Clone, Copy)]
pub(super) struct Sides<'s> {
    pub(super) store: &'s Store,
    pub(super) layer: LayerArgs,
    pub(super) selection: &'s Selector,
    /// Before and after.
    pub(super) moments: [Moment; 2],
}

impl Sides<'_> {
    /// Calls `take` for all products that differ, and perhaps for others, in ascending order of codes. Returns the number of
    /// products that both sides have alike, and that weren't taken.
    pub(super) fn each(
        &self,
        take: &mut dyn FnMut(Pair) -> anyhow::Result<()>,
    ) -> anyhow::Result<u64> {
        match self.changed()? {
            Some(changed) => changed.look_up(self, take),
            None => self.read_both(take).map(|()| 0),
        }
    }

    /// Returns the products that the revisions between the moments changed; `None` if that isn't known, or reading both
    /// catalogs is quicker.
    fn changed(&self) -> Result<Option<Changed>, StoreError> {
        if self.layer.is_base() || self.selection.codes.is_some() {
            return Ok(None);
        }
        let revisions = self.store.revisions(u32::MAX)?;
        let newest = revisions.first().map(|one| one.revision.number);
        let number = |moment| match moment {
            Moment::Live => newest,
            Moment::Revision(number) => Some(number),
        };
        let [Some(from), Some(to)] = self.moments.map(number) else {
            return Ok(None);
        };
        let (first, last) = (from.min(to), from.max(to));
        if last - first > MAX_REVISIONS {
            return Ok(None);
        }
        // Records of revisions are kept for good.
        let until = revisions.iter().filter(|one| one.revision.number <= to);
        let (created, retired) = until.fold((0, 0), |(created, retired), one| {
            (created + one.counts.created, retired + one.counts.retired)
        });
        let live = u64::saturating_sub(created, retired);
        let most = FEW_PRODUCTS.max(live / READ_PER_LOOK_UP);
        let limit = u32::try_from(most).unwrap_or(u32::MAX).saturating_add(1);
        let mut codes = BTreeSet::new();
        for number in first + 1..=last {
            let changes = match self.store.revision_changes(number, None, None, limit) {
                Err(StoreError::Pruned { .. }) => return Ok(None),
                changes => changes?,
            };
            codes.extend(changes.into_iter().map(|one| one.code));
            if codes.len() as u64 > most {
                return Ok(None);
            }
        }
        Ok(Some(Changed {
            codes,
            moments: [from, to].map(Moment::Revision),
            live,
        }))
    }

    /// Reads both catalogs in step.
    fn read_both(&self, take: &mut dyn FnMut(Pair) -> anyhow::Result<()>) -> anyhow::Result<()> {
        let [from, to] = self.moments;
        std::thread::scope(|scope| {
            let (sender, products) = sync_channel(READ_AHEAD);
            let reading = scope.spawn(move || {
                self.read(from, &mut |product| {
                    sender.send(product).map_err(|_| anyhow!("stopped"))
                })
            });
            let mut before = products.into_iter().peekable();
            let mut both = || -> anyhow::Result<()> {
                self.read(to, &mut |new| {
                    while let Some(old) = before.next_if(|old| old.code < new.code) {
                        take([Some(old), None])?;
                    }
                    let old = before.next_if(|old| old.code == new.code);
                    take([old, Some(new)])
                })?;
                before.by_ref().try_for_each(|old| take([Some(old), None]))
            };
            let outcome = both();
            // Ends the other reader, if it still reads.
            drop(before);
            let read = reading
                .join()
                .map_err(|_| anyhow!("reading a revision failed"));
            outcome.and(read?)
        })
    }

    /// Reads the selected products of a moment, in ascending order of codes.
    fn read(
        &self,
        moment: Moment,
        take: &mut dyn FnMut(StoredProduct) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let read = self
            .layer
            .read(
                self.store,
                moment,
                &mut |product| match selects(self.selection, &product)? {
                    true => take(product),
                    false => Ok(()),
                },
            );
        read?.context(NOTHING_LOADED).map(drop)
    }

    /// Returns whether a product of either side is wanted, reading until one is found; `None` if there is no product.
    pub(super) fn any(
        &self,
        wanted: &dyn Fn(&StoredProduct) -> bool,
    ) -> anyhow::Result<Option<bool>> {
        let mut found = None;
        for moment in self.moments {
            let read = self.read(moment, &mut |product| {
                found = Some(wanted(&product));
                match found {
                    Some(true) => Err(anyhow!("found")),
                    _ => Ok(()),
                }
            });
            match found {
                Some(true) => return Ok(found),
                _ => read?,
            }
        }
        Ok(found)
    }
}

/// Products that the revisions between two moments changed.
struct Changed {
    codes: BTreeSet<ProductCode>,
    moments: [Moment; 2],
    /// Number of products of the later moment.
    live: u64,
}

impl Changed {
    fn look_up(
        self,
        sides: &Sides<'_>,
        take: &mut dyn FnMut(Pair) -> anyhow::Result<()>,
    ) -> anyhow::Result<u64> {
        let mut others = self.live;
        for code in &self.codes {
            let [from, to] = self.moments;
            let at = |moment| sides.layer.product(sides.store, code, moment);
            let pair = [at(from)?, at(to)?];
            others = others.saturating_sub(u64::from(pair[1].is_some()));
            if pair != [None, None] {
                take(pair)?;
            }
        }
        Ok(others)
    }
}
