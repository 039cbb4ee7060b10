//! Differences between two revisions, product by product, and the fields that differ in most of them.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use vitrine_ingest::load::difference::difference;
use vitrine_ingest::load::json::Node;
use vitrine_ingest::load::plan::{FieldCount, Plan};
use vitrine_ingest::product_history::product_at;
use vitrine_model::code::ProductCode;
use vitrine_store::record::{ChangeKind, Moment, StoredProduct};
use vitrine_store::{Store, StoreError};

use super::amounts::grouped;
use super::changes::{ChangeView, view};

/// Maximum number of products on a page.
const PRODUCTS: usize = 100;

/// Maximum number of products that are read for a page, two versions of each, to count the fields that differ.
const MAX_READ: usize = 500;

/// Maximum number of products among which a code is searched.
const MAX_SEARCHED: u32 = 100_000;

/// Number of changed products from which on their fields are in closed disclosures.
const MANY: usize = 25;

/// Number of shared changes of a field that are shown.
const MAX_SHARED: usize = 3;

/// Products of a comparison to show.
#[derive(Debug, Clone, Default)]
pub(super) struct Wanted {
    /// Code after which the page begins.
    pub(super) after: Option<ProductCode>,
    pub(super) kind: Option<ChangeKind>,
    /// Part of the code, in any case; empty for all.
    pub(super) search: String,
    /// JSON pointer of a field that differs.
    pub(super) field: Option<String>,
}

/// Page of the differences between two revisions.
#[derive(Debug, Default)]
pub(super) struct Differences {
    pub(super) created: Vec<ProductDifference>,
    pub(super) changed: Vec<ProductDifference>,
    pub(super) retired: Vec<ProductDifference>,
    /// Fields that differ in the products that were read, those of most first.
    pub(super) fields: Vec<FieldView>,
    /// Number of products that were read.
    read: usize,
    /// Last code of the page, if others follow.
    pub(super) last: Option<ProductCode>,
}

/// A product that differs.
#[derive(Debug)]
pub(super) struct ProductDifference {
    pub(super) code: String,
    pub(super) name: Option<String>,
    pub(super) changes: Vec<ChangeView>,
}

impl ProductDifference {
    /// Returns the names of the fields that differ, cut after the third.
    pub(super) fn field_names(&self) -> String {
        let first = self.changes.iter().take(3);
        let names: Vec<&str> = first.map(|change| change.place.as_str()).collect();
        match self.changes.len() - names.len() {
            0 => names.join(", "),
            more => format!("{} and {more} more", names.join(", ")),
        }
    }
}

/// A field that differs, in all products together.
#[derive(Debug)]
pub(super) struct FieldView {
    pub(super) place: String,
    pub(super) pointer: String,
    pub(super) products: String,
    /// The most frequent changes that products share, or the only one, each with their number.
    pub(super) shared: Vec<(ChangeView, String)>,
}

impl FieldView {
    fn of(count: &FieldCount<'_>) -> Self {
        let number = |products: usize| grouped(&products.to_string());
        // Lists that gained the same entry are one change, whatever else they have.
        let mut alike: Vec<(ChangeView, usize)> = Vec::new();
        for (change, products) in &count.changes {
            let change = view(change);
            match alike.iter_mut().find(|(known, _)| *known == change) {
                Some((_, known)) => *known += products,
                None => alike.push((change, *products)),
            }
        }
        alike.sort_by_key(|(_, products)| Reverse(*products));
        let is_only = alike.len() == 1;
        let shared = alike.into_iter();
        let shared: Vec<(ChangeView, String)> = shared
            .filter(|(_, products)| is_only || *products > 1)
            .take(MAX_SHARED)
            .map(|(change, products)| (change, number(products)))
            .collect();
        let place = count.pointer.split('/').skip(1).map(super::fields::label);
        Self {
            place: place.collect::<Vec<_>>().join(" › "),
            pointer: count.pointer.to_owned(),
            products: number(count.products),
            shared,
        }
    }
}

impl Differences {
    /// Returns true if no product is shown.
    pub(super) fn is_empty(&self) -> bool {
        self.created.is_empty() && self.changed.is_empty() && self.retired.is_empty()
    }

    /// Returns true if the fields of each product are better hidden at first.
    pub(super) fn are_many(&self) -> bool {
        self.changed.len() > MANY
    }

    /// Compares the revision `from` with the later one `to`; `None` if what was changed between them was pruned. If `from` itself
    /// was pruned, changed fields aren't known.
    pub(super) fn read(
        store: &Store,
        [from, to]: [u64; 2],
        wanted: &Wanted,
    ) -> Result<Option<Self>, StoreError> {
        let Some(mut touched) = touched(store, [from, to], wanted)? else {
            return Ok(None);
        };
        let search = wanted.search.to_lowercase();
        touched.retain(|code, _| code.as_str().to_lowercase().contains(&search));
        let total = touched.len();
        let mut differences = Self::default();
        let mut plan = Plan::default();
        // Number of products up to the last one of the page.
        let mut paged = 0;
        for (code, kind) in touched.into_iter().take(MAX_READ) {
            let at = |number| product_at(store, &code, Moment::Revision(number));
            let old = if from > 0 { at(from)? } else { None };
            let new = at(to)?;
            differences.read += 1;
            let sides = [old.as_ref(), new.as_ref()];
            let Some((kind, product)) = wanted_difference(&code, kind, sides, wanted) else {
                if !differences.is_full() {
                    (differences.last, paged) = (Some(code), differences.read);
                }
                continue;
            };
            if let [Some(_), Some(new)] = sides {
                plan.compare(old.as_ref(), new);
            }
            if !differences.is_full() {
                differences.list(kind).push(product);
                (differences.last, paged) = (Some(code), differences.read);
            }
        }
        differences.last = differences.last.filter(|_| paged < total);
        differences.fields = plan.by_field().iter().map(FieldView::of).collect();
        Ok(Some(differences))
    }

    /// Returns the number of products in which fields were counted.
    pub(super) fn counted(&self) -> String {
        grouped(&self.read.to_string())
    }

    fn is_full(&self) -> bool {
        self.created.len() + self.changed.len() + self.retired.len() >= PRODUCTS
    }

    fn list(&mut self, kind: ChangeKind) -> &mut Vec<ProductDifference> {
        match kind {
            ChangeKind::Created => &mut self.created,
            ChangeKind::Changed => &mut self.changed,
            ChangeKind::Retired => &mut self.retired,
        }
    }
}

/// Returns a product if it differs and is wanted. `kind` is what one revision did; of several it is found out.
fn wanted_difference(
    code: &ProductCode,
    kind: Option<ChangeKind>,
    [old, new]: [Option<&StoredProduct>; 2],
    wanted: &Wanted,
) -> Option<(ChangeKind, ProductDifference)> {
    let found = match (old, new) {
        (None, Some(_)) => Some(ChangeKind::Created),
        (Some(_), None) => Some(ChangeKind::Retired),
        (Some(old), Some(new)) if old != new => Some(ChangeKind::Changed),
        _ => None,
    };
    let kind = kind.or(found)?;
    let changes = match (old, new) {
        (Some(old), Some(new)) => difference(old, new),
        _ => Vec::new(),
    };
    let has_field = |field: &String| changes.iter().any(|change| change.pointer == *field);
    let is_wanted = wanted.kind.is_none_or(|wanted| wanted == kind)
        && wanted.field.as_ref().is_none_or(has_field);
    is_wanted.then(|| {
        let product = ProductDifference {
            code: code.to_string(),
            name: new.or(old).and_then(|product| name(&product.document)),
            changes: changes.iter().map(view).collect(),
        };
        (kind, product)
    })
}

/// Returns the products that the revisions after `from` changed until `to`, with what a single one did; `None` if one of these
/// revisions was pruned.
fn touched(
    store: &Store,
    [from, to]: [u64; 2],
    wanted: &Wanted,
) -> Result<Option<BTreeMap<ProductCode, Option<ChangeKind>>>, StoreError> {
    let is_single = from + 1 == to;
    // Which kind several revisions together are is known only from the products.
    let kind = wanted.kind.filter(|_| is_single);
    let limit = match wanted.search.is_empty() {
        true => u32::try_from(MAX_READ + 1).unwrap_or(u32::MAX),
        false => MAX_SEARCHED,
    };
    let mut touched = BTreeMap::new();
    for number in from + 1..=to {
        match store.revision_changes(number, kind, wanted.after.as_ref(), limit) {
            Err(StoreError::Pruned { .. }) => return Ok(None),
            changes => touched.extend(
                changes?
                    .into_iter()
                    .map(|one| (one.code, Some(one.kind).filter(|_| is_single))),
            ),
        }
    }
    Ok(Some(touched))
}

fn name(document: &str) -> Option<String> {
    let (node, _) = Node::parse(document);
    let name = node.member("name")?.text()?;
    Some(name.to_owned())
}
