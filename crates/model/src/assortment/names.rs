//! Categories and countries of the visible products, and names in rules that no product has.

use std::collections::BTreeSet;

use super::{Rules, View};
use crate::geo::Country;
use crate::snapshot::{Facet, Snapshot};

impl View {
    /// Iterates over the categories with visible products, in ascending byte order. They are found at the first use.
    pub fn categories<'v>(&'v self, snapshot: &'v Snapshot) -> impl Iterator<Item = &'v str> {
        let name = |facet: &Facet| snapshot.facet_numbers().category(*facet);
        let found = || {
            let facets = self.facets(snapshot).into_iter();
            let mut found: Vec<Facet> = facets.filter(|facet| name(facet).is_some()).collect();
            found.sort_unstable_by_key(name);
            found.into()
        };
        let is_own = self.is_of(snapshot);
        let categories = is_own.then(|| self.categories.get_or_init(found));
        categories.into_iter().flatten().filter_map(name)
    }

    /// Iterates over the countries with visible products, ascending. They are found at the first use.
    pub fn countries(&self, snapshot: &Snapshot) -> impl Iterator<Item = Country> {
        let found = || {
            let facets = self.facets(snapshot).into_iter();
            facets.filter_map(Facet::as_country).collect()
        };
        let is_own = self.is_of(snapshot);
        let countries = is_own.then(|| self.countries.get_or_init(found));
        countries.into_iter().flatten().copied()
    }

    /// Returns the facets of the visible products.
    fn facets(&self, snapshot: &Snapshot) -> BTreeSet<Facet> {
        let mut facets = BTreeSet::new();
        for (_, block, shown) in self.blocks(snapshot) {
            let all = block.facets();
            let own = all.filter(|(_, members)| !members.and(shown).is_empty());
            facets.extend(own.map(|(facet, _)| facet));
        }
        facets
    }
}

/// List of rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RuleList {
    /// Selectors of visible products.
    Allow,
    /// Selectors of products that aren't visible.
    Deny,
    /// Own discounts.
    Discounts,
}

/// Kind of a name in a selector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NameKind {
    /// A product code.
    Code,
    /// A category.
    Category,
    /// A country.
    Country,
}

/// A name in rules that no product has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownName<'r> {
    /// List of the selector.
    pub list: RuleList,
    /// Index of the selector in the list.
    pub index: usize,
    /// Kind of the name.
    pub kind: NameKind,
    /// The name.
    pub name: &'r str,
}

/// Returns the codes, categories and countries in rules that no product of the snapshot has.
#[must_use]
pub fn unknown_names<'r>(rules: &'r Rules, snapshot: &Snapshot) -> Vec<UnknownName<'r>> {
    let countries: BTreeSet<Country> = snapshot.countries().collect();
    let categories: BTreeSet<&str> = snapshot.categories().collect();
    let Rules {
        allow,
        deny,
        discounts,
    } = rules;
    let allow = allow.iter().flatten().enumerate();
    let allow = allow.map(|(index, selector)| (RuleList::Allow, index, selector));
    let deny = deny.iter().enumerate();
    let deny = deny.map(|(index, selector)| (RuleList::Deny, index, selector));
    let discounts = discounts.iter().enumerate();
    let discounts = discounts.map(|(index, one)| (RuleList::Discounts, index, &one.selector));
    let mut unknown = Vec::new();
    for (list, index, selector) in allow.chain(deny).chain(discounts) {
        let mut add = |kind, name| {
            unknown.push(UnknownName {
                list,
                index,
                kind,
                name,
            });
        };
        selector
            .named_codes()
            .filter(|code| snapshot.find(code).is_none())
            .for_each(|code| add(NameKind::Code, code));
        let names = selector.categories.iter().flatten().map(String::as_str);
        names
            .filter(|name| !categories.contains(name))
            .for_each(|name| add(NameKind::Category, name));
        let some = selector.countries.iter().flatten();
        some.filter(|country| !countries.contains(country))
            .for_each(|country| add(NameKind::Country, country.as_str()));
    }
    unknown
}
