//! Overrides of the model: what operators say of products, over every load.

use crate::case::Case;
use crate::catalog::{Catalog, Product};

/// Products that an override is about, by their base.
#[derive(Debug, Clone)]
pub enum Products {
    Codes(Vec<&'static str>),
    Category(&'static str),
    Orderable,
}

/// A value that an override sets.
#[derive(Debug, Clone, Copy)]
pub enum Value {
    NotOrderable,
    /// In millionths.
    Discount(u32),
    AddCategory(&'static str),
    RemoveCategory(&'static str),
    RemoveCountry(&'static str),
    Hidden,
}

/// An override that hasn't ended.
#[derive(Debug, Clone)]
pub struct Override {
    pub products: Products,
    pub values: Vec<Value>,
}

impl Products {
    /// The arguments of a command.
    pub fn arguments(&self) -> Vec<&'static str> {
        match self {
            Self::Codes(codes) => codes.clone(),
            Self::Category(name) => vec!["--category", name],
            Self::Orderable => vec!["--orderable"],
        }
    }

    fn has(&self, code: &str, base: &Product) -> bool {
        match self {
            Self::Codes(codes) => codes.contains(&code),
            Self::Category(name) => base.facts.categories.contains(name),
            Self::Orderable => base.facts.is_orderable,
        }
    }
}

impl Value {
    /// The argument of a command.
    pub fn argument(self) -> String {
        match self {
            Self::NotOrderable => "is_orderable=false".to_owned(),
            Self::Discount(millionths) => format!("discount_multiplier=0.{millionths:06}"),
            Self::AddCategory(name) => format!("categories+={name}"),
            Self::RemoveCategory(name) => format!("categories-={name}"),
            Self::RemoveCountry(country) => format!("countries_redeemable_in-={country}"),
            Self::Hidden => "visible=false".to_owned(),
        }
    }

    /// Changes a product; false if it is hidden.
    fn set(self, product: &mut Product) -> bool {
        let facts = &mut product.facts;
        match self {
            Self::NotOrderable => facts.is_orderable = false,
            Self::Discount(millionths) => facts.discount_millionths = millionths,
            Self::AddCategory(name) if facts.categories.contains(&name) => {}
            Self::AddCategory(name) => facts.categories.push(name),
            Self::RemoveCategory(name) => facts.categories.retain(|own| *own != name),
            Self::RemoveCountry(country) => facts.countries.retain(|own| *own != country),
            Self::Hidden => return false,
        }
        true
    }
}

/// Returns the catalog that clients see.
pub fn effective(base: &Catalog, overrides: &[(u64, Override)]) -> Catalog {
    let seen = base.0.iter().filter_map(|(code, base)| {
        let mut product = base.clone();
        let of_product = overrides
            .iter()
            .filter(|(_, one)| one.products.has(code, base));
        let mut values = of_product.flat_map(|(_, one)| &one.values);
        values
            .all(|value| value.set(&mut product))
            .then_some((*code, product))
    });
    Catalog(seen.collect())
}

impl Case<'_> {
    /// Checks that a change of the base makes a revision, and nothing else does.
    pub(super) fn publish(&mut self, next: Catalog, revision: Option<u64>) -> Result<(), String> {
        let is_new = self.base != next;
        self.push(next, is_new, revision)
    }

    /// Takes a new revision, which there must be if `is_new`, and only then.
    fn push(&mut self, base: Catalog, is_new: bool, revision: Option<u64>) -> Result<(), String> {
        let newest = self.view.catalogs.newest();
        match revision {
            Some(number) if is_new && number > newest.revision => {
                let state = newest.next(number, effective(&base, &self.overrides));
                self.view.catalogs.push(state);
                self.bases.insert(number, base.clone());
                self.base = base;
                Ok(())
            }
            None if !is_new => Ok(()),
            other => Err(format!("revision {other:?} after {}", newest.revision)),
        }
    }

    pub(super) fn make_override(&mut self, one: &Override) -> Result<(), String> {
        let values: Vec<String> = one.values.iter().map(|value| value.argument()).collect();
        let (number, revision) = self
            .world
            .make_override(&one.products.arguments(), &values)?;
        self.overrides.push((number, one.clone()));
        self.publish_effective(revision)
    }

    pub(super) fn end_override(&mut self, which: usize) -> Result<(), String> {
        let Some(which) = which.checked_rem(self.overrides.len()) else {
            return Ok(());
        };
        let (number, _) = self.overrides.remove(which);
        let revision = self.world.end_override(number)?;
        self.publish_effective(revision)
    }

    /// Checks that overrides make a revision if clients see a change, and only then.
    fn publish_effective(&mut self, revision: Option<u64>) -> Result<(), String> {
        let is_new = effective(&self.base, &self.overrides) != self.live();
        self.push(self.base.clone(), is_new, revision)
    }
}
