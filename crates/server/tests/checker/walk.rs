//! A client that walks a list by its cursors, over several servers and while the catalog changes.

use std::collections::BTreeSet;

use crate::access::Sight;
use crate::catalog::{CODES, Catalog, Cursor, Filter, Version};
use crate::judge::View;
use crate::operation::Direction;
use crate::target::Query;

/// A walk that isn't at its end.
#[derive(Debug)]
pub struct Walk {
    /// Number of its key; none for the one that is never revoked.
    pub key: Option<usize>,
    filter: Filter,
    way: Direction,
    limit: usize,
    cursor: Cursor,
    /// In the order in which they came.
    seen: Vec<&'static str>,
    /// The numbers of the oldest states of the catalog and of the keys that gave a page.
    oldest: [usize; 2],
}

impl Walk {
    pub fn new(key: Option<usize>, filter: Filter, way: Direction, limit: usize) -> Self {
        Self {
            key,
            filter,
            way,
            limit,
            cursor: match way {
                Direction::Forwards => Cursor::Start,
                // Behind all codes.
                Direction::Backwards => Cursor::Before("~~"),
            },
            seen: Vec::new(),
            oldest: [usize::MAX; 2],
        }
    }

    /// The page that is asked for next.
    pub fn query(&self) -> Query {
        Query {
            filter: self.filter.clone(),
            cursor: self.cursor,
            limit: Some(self.limit),
            version: Version::Older,
        }
    }

    /// Takes a page, which states of the catalog and the keys gave, by their numbers; whether it was the last.
    pub fn take(&mut self, page: &[String], states: [usize; 2]) -> Result<bool, String> {
        let [catalog, access] = self.oldest;
        self.oldest = [catalog.min(states[0]), access.min(states[1])];
        if page.len() > self.limit {
            return Err(format!("a page of {} has {page:?}", self.limit));
        }
        let known = |code: &String| CODES.into_iter().find(|known| known == code);
        let page: Option<Vec<_>> = page.iter().map(known).collect();
        let mut page = page.ok_or("a product that was never loaded")?;
        if self.way == Direction::Backwards {
            page.reverse();
        }
        let Some(last) = page.last() else {
            return Ok(true);
        };
        self.cursor = match self.way {
            Direction::Forwards => Cursor::After(last),
            Direction::Backwards => Cursor::Before(last),
        };
        self.seen.extend(page);
        Ok(false)
    }

    /// Checks the contract's promises of a whole walk: nothing twice, all in order, and everything that was
    /// visible all the time.
    pub fn check(&self, view: &View) -> Result<(), String> {
        let is_in_order = self.seen.windows(2).all(|pair| match self.way {
            Direction::Forwards => pair[0] < pair[1],
            Direction::Backwards => pair[0] > pair[1],
        });
        if !is_in_order {
            return Err(format!("{self:?}: a product comes twice, or out of order"));
        }
        let [catalog, access] = self.oldest;
        let catalogs = view.catalogs.states().get(catalog..).unwrap_or_default();
        let accesses = view.access.states().get(access..).unwrap_or_default();
        let sights = accesses.iter().filter_map(|access| access.sight(self.key));
        let sights: BTreeSet<Sight> = sights.collect();
        let matches = |catalog: &Catalog, code: &str| {
            let product = catalog.0.get(code);
            product.is_some_and(|product| self.filter.matches(code, product))
        };
        let during: Vec<Option<Catalog>> = (catalogs.iter())
            .flat_map(|state| {
                let seen = |sight: &Sight| {
                    let catalog = state.catalog.as_ref()?;
                    Some(catalog.seen_by(view.rules(*sight)))
                };
                sights.iter().map(seen)
            })
            .collect();
        let stayed = |code: &&str| {
            let mut during = during.iter();
            during.all(|seen| seen.as_ref().is_some_and(|seen| matches(seen, code)))
        };
        if during.is_empty() {
            return Ok(());
        }
        let missing = CODES.into_iter().filter(stayed);
        let missing: Vec<_> = missing.filter(|code| !self.seen.contains(code)).collect();
        match missing.is_empty() {
            true => Ok(()),
            false => Err(format!("{self:?}: {missing:?} were there all the time")),
        }
    }
}
