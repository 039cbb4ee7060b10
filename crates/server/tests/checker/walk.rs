//! A client that walks a list by its cursors, over several servers and while the catalog changes.

use crate::catalog::{CODES, Cursor, Filter, Version};
use crate::judge::State;
use crate::operation::{Direction, Query};

/// A walk that isn't at its end.
#[derive(Debug)]
pub struct Walk {
    filter: Filter,
    way: Direction,
    limit: usize,
    cursor: Cursor,
    /// In the order in which they came.
    seen: Vec<&'static str>,
    /// The number of the oldest state that gave a page.
    oldest: usize,
}

impl Walk {
    pub fn new(filter: Filter, way: Direction, limit: usize) -> Self {
        Self {
            filter,
            way,
            limit,
            cursor: match way {
                Direction::Forwards => Cursor::Start,
                // Behind all codes.
                Direction::Backwards => Cursor::Before("~~"),
            },
            seen: Vec::new(),
            oldest: usize::MAX,
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

    /// Takes a page, which a state gave, by its number; whether it was the last.
    pub fn take(&mut self, page: &[String], state: usize) -> Result<bool, String> {
        self.oldest = self.oldest.min(state);
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
    /// there all the time. `states` are all that there were.
    pub fn check(&self, states: &[State]) -> Result<(), String> {
        let is_in_order = self.seen.windows(2).all(|pair| match self.way {
            Direction::Forwards => pair[0] < pair[1],
            Direction::Backwards => pair[0] > pair[1],
        });
        if !is_in_order {
            return Err(format!("{self:?}: a product comes twice, or out of order"));
        }
        let during = states.get(self.oldest..).unwrap_or_default();
        let stayed = |code: &&str| {
            let matches = |state: &State| {
                let product = state
                    .catalog
                    .as_ref()
                    .and_then(|catalog| catalog.0.get(code));
                product.is_some_and(|product| self.filter.matches(code, product))
            };
            !during.is_empty() && during.iter().all(matches)
        };
        let missing = CODES.into_iter().filter(stayed);
        let missing: Vec<_> = missing.filter(|code| !self.seen.contains(code)).collect();
        match missing.is_empty() {
            true => Ok(()),
            false => Err(format!("{self:?}: {missing:?} were there all the time")),
        }
    }
}
