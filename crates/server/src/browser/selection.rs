//! Products that a query selects, how many of them have each filter value, and a page of them in an order. All of it is found in the
//! snapshot's bit sets on each request: nothing is kept.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use vitrine_ingest::view::name;
use vitrine_model::changes::Journal;
use vitrine_model::search::Search;
use vitrine_model::snapshot::{BitSet256, Block, Facet, FacetKind, ProductView, Snapshot};

use super::assortments::Seen;
use super::group::{Group, NO, YES};
use super::query::{Direction, Query, Sort, SortKey};

/// Place of a product in the snapshot: its block, and its slot there. Places ascend by code.
type Place = (usize, usize);

/// Number of selected products for each filter value of a group, if no value of that group were picked. Values without products are
/// left out.
pub(super) type Counts = BTreeMap<String, usize>;

/// Products that a query selects.
pub(super) struct Selection<'s> {
    snapshot: &'s Snapshot,
    /// Selected products of each block.
    members: Vec<BitSet256>,
    counts: [Counts; Group::ALL.len()],
}

impl<'s> Selection<'s> {
    /// Selects the products of a query among those that an assortment shows; without one, among all.
    pub(super) fn of(snapshot: &'s Snapshot, query: &Query, seen: Option<&Seen>) -> Self {
        let picks: Vec<Pick> = Pick::all(snapshot, query);
        let search = Search::parse(&query.search);
        let visible = seen.map(Seen::members);
        let mut members = Vec::with_capacity(snapshot.blocks().len());
        let mut by_facet: HashMap<Facet, usize> = HashMap::new();
        let mut not_orderable = 0;
        for (index, block) in snapshot.blocks().iter().enumerate() {
            let all = BitSet256::below(block.count());
            let visible = visible.as_ref().map_or(all, |visible| visible[index]);
            let narrowed = picks.iter().map(|pick| (pick.group, pick.members(block)));
            let narrowed: Vec<(Group, BitSet256)> = narrowed.collect();
            // What the picks of all other groups leave.
            let mut beside = Group::ALL.map(|group| {
                let others = narrowed.iter().filter(|(other, _)| *other != group);
                others.fold(visible, |left, (_, having)| left.and(*having))
            });
            if let Some(search) = &search {
                let found = block.found(search);
                beside = beside.map(|left| left.and(found));
            }
            members.push(beside.iter().fold(visible, |left, one| left.and(*one)));
            let orderable = beside[Group::Orderable as usize];
            not_orderable += orderable.without(block.members(Facet::ORDERABLE)).len();
            for (facet, having) in block.facets() {
                let count = having.and(beside[group_of(snapshot, facet) as usize]).len();
                *by_facet.entry(facet).or_default() += count;
            }
        }
        let mut counts: [Counts; Group::ALL.len()] = Default::default();
        counts[Group::Orderable as usize].insert(NO.to_owned(), not_orderable);
        for (facet, count) in by_facet {
            let group = group_of(snapshot, facet);
            counts[group as usize].insert(value_of(snapshot, facet), count);
        }
        for counts in &mut counts {
            counts.retain(|_, count| *count > 0);
        }
        Self {
            snapshot,
            members,
            counts,
        }
    }

    /// Returns the number of selected products.
    pub(super) fn len(&self) -> usize {
        self.members.iter().map(|members| members.len()).sum()
    }

    /// Returns the counts of a group's values.
    pub(super) fn counts(&self, group: Group) -> &Counts {
        &self.counts[group as usize]
    }

    /// Returns the products of a range of the selection in an order; equal ones ascend by code. `journal` has the last changes.
    pub(super) fn page(
        &self,
        sort: Sort,
        journal: Option<&Journal>,
        range: Range<usize>,
    ) -> Vec<ProductView<'s>> {
        let of_block = |(block, members): (usize, &BitSet256)| {
            let members = members.iter();
            members.map(move |slot| (block, slot))
        };
        let places = self.members.iter().enumerate().flat_map(of_block);
        let page = match (sort.key, sort.direction) {
            (SortKey::Code, Direction::Ascending) => {
                places.skip(range.start).take(range.len()).collect()
            }
            (SortKey::Code, Direction::Descending) => {
                let end = self.len() - range.start;
                let taken = places.skip(end - range.len()).take(range.len());
                let mut page: Vec<Place> = taken.collect();
                page.reverse();
                page
            }
            (SortKey::Name, direction) => {
                let key = |place: Place| self.lower_name(place);
                page_by(places.map(|place| (key(place), place)), direction, range)
            }
            (SortKey::State, direction) => {
                let states: Vec<_> = self
                    .snapshot
                    .blocks()
                    .iter()
                    .map(|block| self.states(block))
                    .collect();
                let key = |(block, slot): Place| {
                    let mut states = states[block].iter();
                    states
                        .find(|(_, having)| having.contains(slot))
                        .map(|(state, _)| *state)
                };
                page_by(places.map(|place| (key(place), place)), direction, range)
            }
            (SortKey::Changed, direction) => {
                let mut changes = journal.map(Journal::last_changes);
                let mut key = |(block, slot): Place| {
                    let code = self.snapshot.blocks()[block].code(slot);
                    let change = changes.as_mut()?.find(code)?;
                    Some(change.revision)
                };
                page_by(places.map(|place| (key(place), place)), direction, range)
            }
        };
        let product = |place: Place| self.snapshot.product_at(place);
        page.into_iter().filter_map(product).collect()
    }

    fn lower_name(&self, place: Place) -> String {
        let product = self.snapshot.product_at(place);
        product.map_or_else(String::new, |product| name(product.bytes()).to_lowercase())
    }

    /// Returns the states of a block's products.
    fn states(&self, block: &Block) -> Vec<(&'s str, BitSet256)> {
        let state = |(facet, having): (Facet, BitSet256)| {
            let (kind, state) = self.snapshot.facet_numbers().name(facet)?;
            (kind == FacetKind::State).then_some((state, having))
        };
        block.facets().filter_map(state).collect()
    }
}

/// Returns the places of a range in the order of their keys; equal ones ascend.
fn page_by<K: Ord>(
    keyed: impl Iterator<Item = (K, Place)>,
    direction: Direction,
    range: Range<usize>,
) -> Vec<Place> {
    let mut keyed: Vec<(K, Place)> = keyed.collect();
    let compare = |left: &(K, Place), right: &(K, Place)| {
        let by_key = left.0.cmp(&right.0);
        let by_key = match direction {
            Direction::Ascending => by_key,
            Direction::Descending => by_key.reverse(),
        };
        by_key.then(left.1.cmp(&right.1))
    };
    if range.is_empty() {
        return Vec::new();
    }
    // Only the page needs to be sorted, not all of a large catalog.
    keyed.select_nth_unstable_by(range.end - 1, compare);
    keyed.truncate(range.end);
    keyed.select_nth_unstable_by(range.start, compare);
    let page = &mut keyed[range.start..];
    page.sort_unstable_by(compare);
    page.iter().map(|(_, place)| *place).collect()
}

/// The picked values of a group.
struct Pick {
    group: Group,
    /// Facets of the values that the snapshot has.
    facets: Vec<Facet>,
    /// True if products that can't be ordered are picked, for which there is no facet.
    has_not_orderable: bool,
}

impl Pick {
    fn all(snapshot: &Snapshot, query: &Query) -> Vec<Self> {
        let numbers = snapshot.facet_numbers();
        let pick = |group: Group| {
            let facet = |value: &String| match group {
                Group::Orderable => (value == YES).then_some(Facet::ORDERABLE),
                Group::Country => value.parse().ok().map(Facet::country),
                Group::State => numbers.get(FacetKind::State, value),
                Group::PayoutType => numbers.get(FacetKind::PayoutType, value),
                Group::Category => numbers.get(FacetKind::Category, value),
                Group::Currency => numbers.get(FacetKind::Currency, value),
            };
            let values = query.picked(group);
            Self {
                group,
                facets: values.iter().filter_map(facet).collect(),
                has_not_orderable: group == Group::Orderable && values.iter().any(|one| one == NO),
            }
        };
        query.picked_groups().map(pick).collect()
    }

    /// Returns the products of a block that have one of the values.
    fn members(&self, block: &Block) -> BitSet256 {
        let having = self.facets.iter().map(|facet| block.members(*facet));
        let any = having.fold(BitSet256::default(), BitSet256::or);
        match self.has_not_orderable {
            true => {
                let all = BitSet256::below(block.count());
                any.or(all.without(block.members(Facet::ORDERABLE)))
            }
            false => any,
        }
    }
}

/// Returns the group that a facet is a value of.
fn group_of(snapshot: &Snapshot, facet: Facet) -> Group {
    let named = snapshot.facet_numbers().name(facet);
    match named.map(|(kind, _)| kind) {
        Some(FacetKind::Category) => Group::Category,
        Some(FacetKind::Currency) => Group::Currency,
        Some(FacetKind::PayoutType) => Group::PayoutType,
        Some(FacetKind::State) => Group::State,
        None if facet == Facet::ORDERABLE => Group::Orderable,
        None => Group::Country,
    }
}

/// Returns the value of a facet in its group.
fn value_of(snapshot: &Snapshot, facet: Facet) -> String {
    match (snapshot.facet_numbers().name(facet), facet.as_country()) {
        (Some((_, name)), _) => name.to_owned(),
        (None, Some(country)) => country.to_string(),
        (None, None) => YES.to_owned(),
    }
}
