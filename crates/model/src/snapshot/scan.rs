//! How a page is found: the filters' bitmaps are intersected, the cursor is a position among the
//! codes, and the page is the stretch of matches on one side of it.

use std::ops::Range;

use roaring::RoaringBitmap;

use super::{ContentHash, ProductView, Snapshot};
use crate::code::ProductCode;
use crate::query::{Cursor, Filter, ListQuery, Orderable};

/// One page of a list: which products, and whether more lie on either side.
#[derive(Debug)]
pub struct Page<'s> {
    snapshot: &'s Snapshot,
    positions: Vec<u32>,
    has_previous: bool,
    has_next: bool,
}

/// Which positions match a filter.
enum Matches {
    All,
    Some(RoaringBitmap),
}

impl Snapshot {
    /// The page that `query` asks for.
    #[must_use]
    pub fn page(&self, query: &ListQuery) -> Page<'_> {
        let matches = self.matches(&query.filter);
        let end = self.position_count();
        // Matches in `low..high` lie on the cursor's side; the page is cut from one end of them.
        let (low, high) = match &query.cursor {
            Cursor::Start => (0, end),
            Cursor::After(code) => (self.first_after(code), end),
            Cursor::Before(code) => (0, self.first_not_below(code)),
        };
        let limit = query.limit.get();
        let positions = match &query.cursor {
            Cursor::Before(_) => matches.last_in(low..high, limit),
            Cursor::Start | Cursor::After(_) => matches.first_in(low..high, limit),
        };
        let first = positions.first().copied();
        let last = positions.last().copied();
        Page {
            has_previous: first.is_some_and(|first| matches.any_in(0..first)),
            has_next: last.is_some_and(|last| matches.any_in(last + 1..end)),
            snapshot: self,
            positions,
        }
    }

    fn position_count(&self) -> u32 {
        // The builder counts positions in u32, so this can't cut anything off.
        u32::try_from(self.codes.len()).unwrap_or(u32::MAX)
    }

    fn first_after(&self, code: &ProductCode) -> u32 {
        u32::try_from(self.codes.partition_point(|other| other <= code)).unwrap_or(u32::MAX)
    }

    fn first_not_below(&self, code: &ProductCode) -> u32 {
        u32::try_from(self.codes.partition_point(|other| other < code)).unwrap_or(u32::MAX)
    }

    fn matches(&self, filter: &Filter) -> Matches {
        let by_country = (!filter.countries.is_empty()).then(|| {
            union(
                filter
                    .countries
                    .iter()
                    .filter_map(|country| self.countries.get(country)),
            )
        });
        let by_category = (!filter.categories.is_empty()).then(|| {
            union(
                filter
                    .categories
                    .iter()
                    .filter_map(|category| self.categories.get(category.as_str())),
            )
        });
        let by_orderable = match filter.orderable {
            Orderable::Only => Some(self.orderable.clone()),
            Orderable::Any => None,
        };
        [by_country, by_category, by_orderable]
            .into_iter()
            .flatten()
            .reduce(|left, right| left & right)
            .map_or(Matches::All, Matches::Some)
    }
}

fn union<'b>(bitmaps: impl Iterator<Item = &'b RoaringBitmap>) -> RoaringBitmap {
    bitmaps.fold(RoaringBitmap::new(), |all, bitmap| all | bitmap)
}

impl Matches {
    fn first_in(&self, range: Range<u32>, limit: usize) -> Vec<u32> {
        match self {
            Self::All => range.take(limit).collect(),
            Self::Some(bitmap) => bitmap.range(range).take(limit).collect(),
        }
    }

    fn last_in(&self, range: Range<u32>, limit: usize) -> Vec<u32> {
        let mut positions: Vec<u32> = match self {
            Self::All => range.rev().take(limit).collect(),
            Self::Some(bitmap) => bitmap.range(range).rev().take(limit).collect(),
        };
        positions.reverse();
        positions
    }

    fn any_in(&self, range: Range<u32>) -> bool {
        match self {
            Self::All => !range.is_empty(),
            Self::Some(bitmap) => bitmap.range(range).next().is_some(),
        }
    }
}

impl<'s> Page<'s> {
    /// Its products in ascending order of codes.
    pub fn products(&self) -> impl Iterator<Item = ProductView<'s>> {
        self.positions
            .iter()
            .map(|position| self.snapshot.view(*position))
    }

    /// The first code on the page.
    #[must_use]
    pub fn first(&self) -> Option<&'s ProductCode> {
        let first = *self.positions.first()?;
        Some(self.snapshot.view(first).code())
    }

    /// The last code on the page.
    #[must_use]
    pub fn last(&self) -> Option<&'s ProductCode> {
        let last = *self.positions.last()?;
        Some(self.snapshot.view(last).code())
    }

    /// Whether matches precede the page.
    #[must_use]
    pub fn has_previous(&self) -> bool {
        self.has_previous
    }

    /// Whether matches follow the page.
    #[must_use]
    pub fn has_next(&self) -> bool {
        self.has_next
    }

    /// The hashes of its products, in order.
    pub fn hashes(&self) -> impl Iterator<Item = &'s ContentHash> {
        self.products().map(|product| product.hash())
    }

    /// The page's products as slices of the arena, separated by commas within, in as few slices as
    /// neighbours allow. Between two slices a comma is still to be put.
    #[must_use]
    pub fn slices(&self) -> Vec<&'s [u8]> {
        let mut runs: Vec<Range<u32>> = Vec::new();
        for position in &self.positions {
            match runs.last_mut() {
                Some(run) if run.end == *position => run.end += 1,
                _ => runs.push(*position..position + 1),
            }
        }
        let slice = |run: Range<u32>| {
            let start = self.snapshot.rendered(run.start).bytes.start;
            let end = self.snapshot.rendered(run.end - 1).bytes.end;
            &self.snapshot.arena[start..end]
        };
        runs.into_iter().map(slice).collect()
    }
}
