//! Keys and assortments as they are at some time: servers swap both together.

use std::collections::{BTreeMap, BTreeSet};

use crate::assortment::Rules;
use crate::catalog::Product;
use crate::judge::View;

/// Good keys and live assortments.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Access {
    /// Good keys, with their assortments.
    pub keys: BTreeMap<usize, Option<&'static str>>,
    /// Assortments, with the numbers of their live versions.
    pub live: BTreeMap<&'static str, u64>,
}

/// Version of an assortment that a key sees by; or everything, which is the default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sight {
    pub assortment: Option<&'static str>,
    pub version: u64,
}

/// State that a client is shown: the number of a state of the catalog, and what the key sees by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct At {
    pub catalog: usize,
    pub sight: Sight,
}

impl Access {
    /// The version that a key sees by, or the key that is never revoked; `None` if the key isn't good.
    pub fn sight(&self, key: Option<usize>) -> Option<Sight> {
        let Some(key) = key else {
            return Some(Sight::default());
        };
        let assortment = *self.keys.get(&key)?;
        let version = assortment.and_then(|name| self.live.get(name).copied());
        Some(Sight {
            assortment,
            version: version.unwrap_or_default(),
        })
    }

    /// True if a good key has this assortment.
    pub fn uses(&self, name: &str) -> bool {
        self.keys.values().flatten().any(|used| *used == name)
    }
}

impl At {
    /// True if a server that shows `later` may have shown this before.
    pub fn is_before(&self, later: &Self) -> bool {
        self.sight.assortment == later.sight.assortment
            && self.catalog <= later.catalog
            && self.sight.version <= later.sight.version
    }
}

impl View {
    /// The rules of a version; `None` for everything.
    pub fn rules(&self, sight: Sight) -> Option<&Rules> {
        let name = sight.assortment?;
        self.versions.get(&(name, sight.version))
    }

    /// All that a server may see by with a key.
    pub fn sights(&self, server: usize, key: Option<usize>) -> BTreeSet<Sight> {
        let states = &self.access.states()[self.access.oldest(server)..];
        states.iter().filter_map(|state| state.sight(key)).collect()
    }

    /// A product as it is seen in a state.
    pub fn product(&self, at: At, code: &str) -> Option<Product> {
        let catalog = self.catalogs.states()[at.catalog].catalog.as_ref()?;
        let product = catalog.0.get(code)?;
        match self.rules(at.sight) {
            None => Some(product.clone()),
            Some(rules) => rules.seen(code, product),
        }
    }

    /// All states from one to another, in any combination of catalog and version.
    pub fn between(&self, from: At, to: At) -> Vec<At> {
        let sights: Vec<Sight> = match to.sight.assortment {
            None => vec![to.sight],
            Some(name) => {
                let versions = (name, from.sight.version)..=(name, to.sight.version);
                let versions = self.versions.range(versions);
                let sight = |(name, version): &(&'static str, u64)| Sight {
                    assortment: Some(*name),
                    version: *version,
                };
                versions.map(|(id, _)| sight(id)).collect()
            }
        };
        let catalogs = from.catalog..=to.catalog;
        catalogs
            .flat_map(|catalog| sights.iter().map(move |&sight| At { catalog, sight }))
            .collect()
    }

    /// True if an assortment was removed between two of its versions: servers forget those before.
    pub fn is_removed_between(&self, from: Sight, to: Sight) -> bool {
        let Some(name) = to.assortment else {
            return false;
        };
        let versions = (name, from.version)..(name, to.version);
        from.assortment == to.assortment
            && from.version < to.version
            && self.removals.range(versions).next().is_some()
    }
}
