//! Cursors, pages and walks, compared with a list that is filtered product by product: a page is next to its cursor,
//! and a walk returns each product once.

use std::sync::LazyLock;

use percent_encoding::{NON_ALPHANUMERIC, percent_encode};
use vitrine::http::request::parameters;
use vitrine_model::geo::Country;
use vitrine_model::product::Product;
use vitrine_model::query::{Cursor, ListQuery};
use vitrine_model::selector::{Selector, any_of};

use crate::catalog::{Catalog, catalog};
use crate::query::is_code;

static CATALOG: LazyLock<Catalog> = LazyLock::new(|| catalog(usize::MAX));

/// Checks an input: the first byte selects limit and direction, the second filters; the rest is the cursor.
pub fn check(bytes: &[u8]) {
    let [first, second, cursor @ ..] = bytes else {
        return;
    };
    let limit = match first >> 1 {
        0 => 500,
        few => u16::from(few),
    };
    let name = ["after", "before"][usize::from(first & 1)];
    let encoded = percent_encode(cursor, NON_ALPHANUMERIC);
    let filters = filters(*second);
    let query = format!("{name}={encoded}&limit={limit}{filters}");
    let asked = parameters::list(Some(&query));
    // A cursor's validity doesn't depend on its encoding.
    if let Ok(raw) = std::str::from_utf8(cursor)
        && !raw.contains(['&', '%', '+', '#'])
    {
        let raw = parameters::list(Some(&format!("{name}={raw}&limit={limit}{filters}")));
        assert_eq!(raw, asked, "{query}");
    }
    match (
        std::str::from_utf8(cursor)
            .ok()
            .filter(|text| is_code(text)),
        asked,
    ) {
        (Some(code), Ok(list)) => {
            let read = match &list.cursor {
                Cursor::After(code) | Cursor::Before(code) => code.as_str(),
                Cursor::Start => "",
            };
            assert_eq!(read, code);
            check_page(&list);
            walk(list);
        }
        (None, Err(_)) => {}
        (_, asked) => panic!("{query}: {asked:?}"),
    }
}

fn filters(choice: u8) -> String {
    let of_catalog = |at: u8| &CATALOG.products[usize::from(at) % CATALOG.products.len()];
    let mut filters = String::new();
    if choice & 1 == 1 {
        filters.push_str("&is_orderable=true");
    }
    if choice & 2 == 2
        && let Some(country) = of_catalog(choice >> 3).countries_redeemable_in.first()
    {
        filters.push_str(&format!("&countries_redeemable_in={country}"));
    }
    if choice & 4 == 4
        && let Some(category) = of_catalog(choice >> 2).categories.first()
    {
        let category = percent_encode(category.as_str().as_bytes(), NON_ALPHANUMERIC);
        filters.push_str(&format!("&categories={category}&categories=none"));
    }
    if choice & 8 == 8 {
        let currency = of_catalog(choice >> 2).currency;
        filters.push_str(&format!("&currencies={}&currencies=ZZZ", currency.as_str()));
    }
    if choice & 16 == 16 {
        let payout_type = of_catalog(choice >> 1).detail.payout_type();
        filters.push_str(&format!("&payout_types={payout_type}"));
    }
    if choice & 32 == 32 {
        for at in 0..40 {
            let code = of_catalog((choice >> 6) + at * 3).code.as_str();
            filters.push_str(&format!("&codes={code}&codes=none-{at}"));
        }
    }
    filters
}

fn is_meant(product: &Product, filter: &Selector) -> bool {
    let payout_type = product.detail.payout_type();
    let has_category = |name: &String| product.categories.iter().any(|own| own.as_str() == name);
    let has_country = |country: &Country| product.countries_redeemable_in.contains(country);
    (filter.is_orderable).is_none_or(|wanted| wanted == product.is_orderable)
        && any_of(filter.countries.as_ref(), has_country)
        && any_of(filter.categories.as_ref(), has_category)
        && any_of(filter.currencies.as_ref(), |one| *one == product.currency)
        && any_of(filter.payout_types.as_ref(), |one| {
            one.as_str() == payout_type
        })
        && (filter.codes.as_ref())
            .is_none_or(|codes| codes.texts().any(|one| one == product.code.as_str()))
}

fn codes(page: &vitrine_model::snapshot::Page<'_>) -> Vec<String> {
    page.products()
        .map(|product| product.code().to_owned())
        .collect()
}

fn check_page(list: &ListQuery) {
    let meant = CATALOG.products.iter();
    let meant = meant.filter(|product| is_meant(product, &list.filter));
    let meant: Vec<&str> = meant.map(|product| product.code.as_str()).collect();
    let limit = list.limit.get();
    let (from, to) = match &list.cursor {
        Cursor::Start => (0, limit.min(meant.len())),
        Cursor::After(code) => {
            let from = meant.partition_point(|own| *own <= code.as_str());
            (from, (from + limit).min(meant.len()))
        }
        Cursor::Before(code) => {
            let to = meant.partition_point(|own| *own < code.as_str());
            (to.saturating_sub(limit), to)
        }
    };
    let page = CATALOG.snapshot.page(list);
    assert_eq!(codes(&page), meant[from..to], "{list:?}");
    let is_empty = from == to;
    assert_eq!(page.is_empty(), is_empty, "{list:?}");
    assert_eq!(page.len(), to - from, "{list:?}");
    assert_eq!(page.first(), meant[from..to].first().copied(), "{list:?}");
    assert_eq!(page.last(), meant[from..to].last().copied(), "{list:?}");
    assert_eq!(page.has_previous(), !is_empty && from > 0, "{list:?}");
    assert_eq!(page.has_next(), !is_empty && to < meant.len(), "{list:?}");
    // As sent: in slices of neighbouring products.
    let sent: Vec<&[u8]> = page
        .runs()
        .map(|run| CATALOG.snapshot.slice(CATALOG.snapshot.run(run)))
        .collect();
    let apart: Vec<&[u8]> = page.products().map(|product| product.bytes()).collect();
    assert_eq!(sent.join(&b','), apart.join(&b','), "{list:?}");
}

/// Walks from page to page in the cursor's direction: the pages together equal one page of all.
fn walk(mut list: ListQuery) {
    let whole = ListQuery {
        limit: vitrine_model::query::Limit::default(),
        ..list.clone()
    };
    let whole = codes(&CATALOG.snapshot.page(&whole));
    let mut met: Vec<String> = Vec::new();
    loop {
        let page = CATALOG.snapshot.page(&list);
        let (Some(first), Some(last)) = (page.first(), page.last()) else {
            break;
        };
        list.cursor = match list.cursor {
            Cursor::Before(_) => {
                met.splice(0..0, codes(&page));
                Cursor::Before(first.parse().expect("a code"))
            }
            Cursor::Start | Cursor::After(_) => {
                met.extend(codes(&page));
                Cursor::After(last.parse().expect("a code"))
            }
        };
        assert!(
            met.len() <= whole.len(),
            "a walk that meets a product twice: {list:?}"
        );
    }
    assert_eq!(met, whole);
}
