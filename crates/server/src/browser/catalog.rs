//! Page of the products: the table, search, and filters with counts.

use std::borrow::Cow;

use askama::Template;
use http::StatusCode;
use jiff::Timestamp;

use super::Browser;
use super::amounts::grouped;
use super::answer::{self, ASSETS, Problem, Shown};
use super::assortments::{self, Seen};
use super::group::Group;
use super::paging::{PAGE, Pager};
use super::query::Query;
use super::selection::Selection;
use super::table::{HeadView, OrderLink, RowView, Rows, heads, orders};
use crate::http::request::query::encoded;

/// Number of values of a group that are always visible; the others are in a disclosure.
const MAX_OPEN: usize = 8;

#[derive(Template)]
#[template(path = "browser/catalog.html")]
struct CatalogPage<'a> {
    assets: &'static str,
    here: &'static str,
    revision: u64,
    query: &'a Query,
    /// Names of assortments to choose from.
    names: Vec<&'a str>,
    groups: Vec<GroupView<'a>>,
    picked: Vec<PickedView>,
    /// Number of products in the catalog, or of those selected, and those shown.
    total: String,
    shown: Option<(String, String)>,
    heads: Vec<HeadView>,
    orders: Vec<OrderLink>,
    rows: Vec<RowView<'a>>,
    pager: Pager,
}

impl CatalogPage<'_> {
    /// Returns true if there is any value to filter by.
    fn has_filters(&self) -> bool {
        self.groups.iter().any(|group| !group.open.is_empty())
    }

    /// Returns the picked filters as the query of an act; none if an act can't select by all of them. States are left out: overrides
    /// make them, and select by what loads brought.
    fn act_filters(&self) -> Option<String> {
        let query = self.query;
        let is_other = |group: Group| matches!(group, Group::State | Group::Orderable);
        let is_by_filters = query.search.is_empty() && query.assortment.is_none();
        if !is_by_filters || query.is_all() || query.picked_groups().any(is_other) {
            return None;
        }
        let pairs = query.picked_groups().flat_map(|group| {
            let pair = move |value: &String| format!("{}={}", group.parameter(), encoded(value));
            query.picked(group).iter().map(pair)
        });
        Some(pairs.collect::<Vec<_>>().join("&"))
    }

    /// Returns the name of the present order.
    fn order(&self) -> &str {
        let mut orders = self.orders.iter();
        let current = orders.find(|order| order.is_current);
        current.map_or("", |order| order.label.as_str())
    }
}

/// A group of filter values.
struct GroupView<'a> {
    group: Group,
    /// Values that are always visible, and those in a disclosure.
    open: Vec<ValueView<'a>>,
    more: Vec<ValueView<'a>>,
}

/// A filter value.
struct ValueView<'a> {
    /// Value in the URL.
    value: &'a str,
    label: Cow<'a, str>,
    count: usize,
    is_picked: bool,
}

/// A picked value, and the URL without it.
struct PickedView {
    label: String,
    without: String,
}

impl ValueView<'_> {
    fn grouped(&self) -> String {
        grouped(&self.count.to_string())
    }
}

/// Renders the page of the products for a query.
pub(super) fn page(browser: &Browser, query: Option<&str>) -> Shown {
    let query = Query::parse(query)?;
    let snapshot = browser.app.live.snapshot();
    let snapshot = snapshot.ok_or_else(Problem::no_catalog)?;
    let keys = browser.app.live.keys();
    let table = keys.assortments();
    let seen = query.assortment.as_deref();
    let seen = seen.map(|name| Seen::of(table, name, &snapshot));
    let seen = seen.transpose()?;
    let feed = browser.app.live.feed();
    let journal = feed.as_ref().and_then(|feed| feed.journal.as_deref());
    let selection = Selection::of(&snapshot, &query, seen.as_ref());
    let total = selection.len();
    let start = (query.page - 1).saturating_mul(PAGE).min(total);
    let range = start..(start + PAGE).min(total);
    let maker = Rows {
        seen: seen.as_ref(),
        journal,
        now: Timestamp::now(),
    };
    let products = selection.page(query.sort, journal, range.clone());
    let rows = products
        .into_iter()
        .map(|product| maker.row(product, &query));
    let rows: Vec<RowView<'_>> = rows.collect();
    let count = |number: usize| grouped(&number.to_string());
    let page = CatalogPage {
        assets: ASSETS,
        here: "catalog",
        revision: snapshot.revision().number,
        query: &query,
        names: assortments::names(table),
        groups: Group::ALL
            .map(|group| group_view(group, &selection, &query))
            .into(),
        picked: picked(&query),
        total: count(total),
        shown: (!rows.is_empty()).then(|| (count(range.start + 1), count(range.end))),
        heads: heads(&query),
        orders: orders(&query),
        rows,
        pager: Pager::of(&query, query.page, total),
    };
    answer::html(StatusCode::OK, &page)
}

fn group_view<'a>(group: Group, selection: &'a Selection<'_>, query: &'a Query) -> GroupView<'a> {
    let picked = query.picked(group);
    let view = |value: &'a str, count: usize| ValueView {
        value,
        label: group.shown(value),
        count,
        is_picked: picked.iter().any(|other| other == value),
    };
    let counted = selection.counts(group).iter();
    let mut values: Vec<ValueView<'a>> =
        counted.map(|(value, count)| view(value, *count)).collect();
    // Picked values are shown even if the catalog doesn't have them.
    for value in picked {
        if !values.iter().any(|other| other.value == value) {
            values.push(view(value, 0));
        }
    }
    values.sort_by(|left, right| {
        let first = |value: &ValueView<'_>| (!value.is_picked, std::cmp::Reverse(value.count));
        first(left)
            .cmp(&first(right))
            .then_with(|| left.value.cmp(right.value))
    });
    let open = values.len().min(if values.len() <= MAX_OPEN + 2 {
        MAX_OPEN + 2
    } else {
        MAX_OPEN
    });
    let mut more = values.split_off(open);
    more.sort_by(|left, right| left.value.cmp(right.value));
    GroupView {
        group,
        open: values,
        more,
    }
}

fn picked(query: &Query) -> Vec<PickedView> {
    let mut all = Vec::new();
    if let Some(name) = &query.assortment {
        all.push(PickedView {
            label: format!("As {name} sees it"),
            without: query.without_assortment().address(),
        });
    }
    if !query.search.is_empty() {
        all.push(PickedView {
            label: format!("“{}”", query.search),
            without: query.without_search().address(),
        });
    }
    for group in Group::ALL {
        for value in query.picked(group) {
            let shown = group.shown(value);
            all.push(PickedView {
                label: format!("{}: {shown}", group.heading()),
                without: query.without(group, value).address(),
            });
        }
    }
    all
}
