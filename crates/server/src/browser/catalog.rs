//! Page of the grid: cards, search, and filters with counts.

use std::borrow::Cow;

use askama::Template;
use http::StatusCode;
use vitrine_model::hexadecimal::Hexadecimal;
use vitrine_model::query::Cursor;

use super::Browser;
use super::amounts::grouped;
use super::answer::{self, ASSETS, Problem, Shown};
use super::assortments::{self, DiscountView, Seen};
use super::card::Card;
use super::group::{Group, LIVE, YES};
use super::index::Index;
use super::placeholder::Colour;
use super::query::Query;
use super::selection::{PageRange, Selection};

/// Number of products on a page: a multiple of 2, 3, 4 and 6, the widths of rows.
const PAGE: usize = 48;

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
    /// Number of products in the catalog, or of those selected and shown.
    total: String,
    shown: Option<(String, String)>,
    cards: Vec<CardView<'a>>,
    previous: Option<String>,
    next: Option<String>,
}

impl CatalogPage<'_> {
    /// Returns true if there is any value to filter by.
    fn has_filters(&self) -> bool {
        self.groups.iter().any(|group| !group.open.is_empty())
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

/// A card, with its numbers formatted.
struct CardView<'a> {
    card: &'a Card,
    is_live: bool,
    state: Cow<'a, str>,
    payout_type: Cow<'a, str>,
    is_orderable: bool,
    /// Discount of the assortment as which the catalog is shown.
    discount: Option<DiscountView>,
}

impl CardView<'_> {
    fn colour(&self) -> Option<String> {
        self.card.colour.map(hexadecimal)
    }
}

impl ValueView<'_> {
    fn grouped(&self) -> String {
        grouped(&self.count.to_string())
    }
}

/// Formats a colour for SVG.
fn hexadecimal(colour: Colour) -> String {
    format!("#{}", Hexadecimal(&colour))
}

/// Renders the page of the grid for a query.
pub(super) fn page(browser: &Browser, query: Option<&str>) -> Shown {
    let query = Query::parse(query)?;
    let snapshot = browser.app.live.snapshot();
    let snapshot = snapshot.ok_or_else(Problem::no_catalog)?;
    let index = browser.indexes.of(&snapshot);
    let keys = browser.app.live.keys();
    let table = keys.assortments();
    let seen = query.assortment.as_deref();
    let seen = seen.map(|name| Seen::of(table, name, &snapshot));
    let seen = seen.transpose()?;
    let selection = index.select(&query, seen.as_ref());
    let stretch = selection.page(&index, &query.cursor, PAGE);
    let cards = selection.cards(&index, stretch);
    let (previous, next) = neighbours(&query, &selection, stretch, &cards);
    let number = |number: usize| grouped(&number.to_string());
    let page = CatalogPage {
        assets: ASSETS,
        here: "catalog",
        revision: snapshot.revision().number,
        query: &query,
        names: assortments::names(table),
        groups: Group::ALL
            .map(|group| group_view(group, &index, &selection, &query))
            .into(),
        picked: picked(&query),
        total: number(selection.len()),
        shown: (!cards.is_empty()).then(|| (number(stretch.start + 1), number(stretch.end))),
        cards: cards
            .into_iter()
            .map(|card| card_view(card, &index, seen.as_ref()))
            .collect(),
        previous,
        next,
    };
    answer::html(StatusCode::OK, &page)
}

/// Returns the URLs of the previous and next page.
fn neighbours(
    query: &Query,
    selection: &Selection,
    stretch: PageRange,
    cards: &[&Card],
) -> (Option<String>, Option<String>) {
    let at = |card: Option<&&Card>, cursor: fn(_) -> Cursor| {
        let code = card?.code.parse().ok()?;
        Some(query.at(cursor(code)).address())
    };
    let previous = at(cards.first(), Cursor::Before).filter(|_| stretch.start > 0);
    let next = at(cards.last(), Cursor::After).filter(|_| stretch.end < selection.len());
    // A cursor beyond the first or last product gives an empty page, from which a link leads to the first.
    let is_lost = cards.is_empty() && selection.len() > 0;
    (
        previous.or_else(|| is_lost.then(|| query.first_page().address())),
        next,
    )
}

fn group_view<'a>(
    group: Group,
    index: &'a Index,
    selection: &Selection,
    query: &'a Query,
) -> GroupView<'a> {
    let picked = query.picked(group);
    let view = |value: &'a str, count: usize| ValueView {
        value,
        label: group.shown(value),
        count,
        is_picked: picked.iter().any(|other| other == value),
    };
    let counted = index
        .values
        .names(group)
        .iter()
        .zip(&**selection.counts(group));
    let mut values: Vec<ValueView<'a>> =
        counted.map(|(value, count)| view(value, *count)).collect();
    // Picked values are shown even if the catalog doesn't have them.
    for value in picked {
        if !values.iter().any(|other| other.value == value) {
            values.push(view(value, 0));
        }
    }
    values.retain(|value| value.count > 0 || value.is_picked);
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

fn card_view<'a>(card: &'a Card, index: &'a Index, seen: Option<&Seen>) -> CardView<'a> {
    let value = |group: Group| {
        let mut values = card.values.iter().copied();
        values
            .find(|value| value.group() == group)
            .map_or("", |value| index.values.name(value))
    };
    CardView {
        card,
        is_live: value(Group::State) == LIVE,
        state: Group::State.shown(value(Group::State)),
        payout_type: Group::PayoutType.shown(value(Group::PayoutType)),
        is_orderable: value(Group::Orderable) == YES,
        discount: seen.and_then(|seen| seen.discount(&card.code)),
    }
}
