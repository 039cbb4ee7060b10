//! Commits that change some products, by other names each time.

use std::fs::File;
use std::io::{BufRead as _, BufReader, BufWriter, Write as _};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::contender::VitrineStore;
use crate::revision;
use crate::world::World;

/// Number of commits so far, whatever they change: no name comes twice.
static COMMITS: AtomicU64 = AtomicU64::new(0);

/// Products, spread over the catalog, that commits change.
pub struct Commits<'a> {
    world: &'a World,
    products: Vec<Value>,
    file: PathBuf,
}

impl<'a> Commits<'a> {
    /// Commits of so many products.
    ///
    /// # Errors
    /// If the products can't be read.
    pub fn new(world: &'a World, changed: usize) -> Result<Self> {
        let step = (usize::try_from(world.products)? / changed).max(1);
        let lines = BufReader::new(File::open(&world.file)?).lines();
        let spread = lines.step_by(step).take(changed);
        let products = spread.map(|line| Ok(serde_json::from_str(&line?)?));
        Ok(Self {
            world,
            products: products.collect::<Result<_>>()?,
            file: world.folder.join(format!("commit-of-{changed}.ndjson")),
        })
    }

    /// Loads the products with other names. Returns the time of the revision, in seconds of its day; it is taken when the
    /// load begins to commit.
    ///
    /// # Errors
    /// If the load fails.
    pub fn commit(&mut self, store: &VitrineStore) -> Result<f64> {
        let number = COMMITS.fetch_add(1, Ordering::Relaxed);
        let mut out = BufWriter::new(File::create(&self.file)?);
        for product in &mut self.products {
            product["name"] = format!("Commit {number}").into();
            writeln!(out, "{product}")?;
        }
        out.flush()?;
        drop(out);
        let report = revision::load(self.world, store, &self.file)?;
        let created_at = report["revision"]["created_at"].as_str();
        second_of_day(created_at.context("nothing was committed")?)
    }
}

/// Returns the seconds since midnight of a time such as `2026-11-24T04:39:15.232056865Z`.
fn second_of_day(time: &str) -> Result<f64> {
    let time = time.split_once('T').context("no time")?.1;
    let mut seconds = 0.0;
    for part in time.trim_end_matches('Z').split(':') {
        seconds = seconds * 60.0 + part.parse::<f64>()?;
    }
    Ok(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_seconds_of_their_day() {
        let second = second_of_day("2026-11-24T04:39:15.25Z").expect("a time");
        assert!((second - (4.0 * 3600.0 + 39.0 * 60.0 + 15.25)).abs() < 1e-6);
    }
}
