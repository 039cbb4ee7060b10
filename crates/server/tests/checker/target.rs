//! Requests of clients: their targets, and the versions that they ask for.

use crate::catalog::{CODES, Catalog, Content, Cursor, Filter, Version};

/// The texts that products have.
pub const TEXTS: u8 = 3;

/// A page that is asked for.
#[derive(Debug, Clone)]
pub struct Query {
    pub filter: Filter,
    pub cursor: Cursor,
    pub limit: Option<usize>,
    pub version: Version,
}

/// Target of a read.
#[derive(Debug, Clone)]
pub enum Target {
    List(Query),
    Product(&'static str, Content, Version),
    Categories,
    Countries,
    /// A text of the service's own, which needs no key.
    Text(u8),
}

impl Target {
    /// The request's target.
    pub fn path(&self) -> String {
        match self {
            Self::List(query) => query.path(),
            Self::Product(code, Content::Url, _) => format!("/v2/product/{code}"),
            Self::Product(code, Content::Markdown, _) => format!("/v2/product/{code}?content=md"),
            Self::Product(code, Content::Html, _) => format!("/v2/product/{code}?content=html"),
            Self::Categories => "/v2/product/categories".to_owned(),
            Self::Countries => "/v2/product/countries".to_owned(),
            Self::Text(number) => crate::catalog::text_path(*number),
        }
    }

    /// The version that is asked for.
    pub fn version(&self) -> Version {
        match self {
            Self::List(query) => query.version,
            Self::Product(_, _, version) => *version,
            Self::Categories | Self::Countries | Self::Text(_) => Version::default(),
        }
    }
}

/// Returns the parameters of a filter.
pub fn filter_pairs(filter: &Filter) -> Vec<String> {
    let encoded =
        |text: &str| -> String { text.bytes().map(|byte| format!("%{byte:02X}")).collect() };
    let Filter {
        countries,
        categories,
        payout_types,
        codes,
        is_orderable,
    } = filter;
    let countries = countries.iter();
    let mut pairs: Vec<String> = countries
        .map(|country| format!("countries_redeemable_in={country}"))
        .collect();
    let categories = categories.iter();
    pairs.extend(categories.map(|category| format!("categories={}", encoded(category))));
    pairs.extend(
        payout_types
            .iter()
            .map(|name| format!("payout_types={name}")),
    );
    pairs.extend(codes.iter().map(|code| format!("codes={code}")));
    pairs.extend(is_orderable.map(|only| format!("is_orderable={only}")));
    pairs
}

impl Query {
    fn path(&self) -> String {
        let mut pairs = filter_pairs(&self.filter);
        pairs.extend(self.limit.map(|limit| format!("limit={limit}")));
        match self.cursor {
            Cursor::Start => {}
            Cursor::After(code) => pairs.push(format!("after={code}")),
            Cursor::Before(code) => pairs.push(format!("before={code}")),
        }
        match pairs.is_empty() {
            true => "/v2/product".to_owned(),
            false => format!("/v2/product?{}", pairs.join("&")),
        }
    }
}

/// The first page of all products.
fn first_page(limit: Option<usize>, version: Version) -> Target {
    Target::List(Query {
        filter: Filter::default(),
        cursor: Cursor::Start,
        limit,
        version,
    })
}

/// One target of each kind but texts.
pub fn outline() -> Vec<Target> {
    let mut targets = vec![
        first_page(None, Version::Older),
        first_page(None, Version::Newest),
        first_page(Some(2), Version::Older),
        Target::Categories,
        Target::Countries,
    ];
    targets.extend(CODES.map(|code| Target::Product(code, Content::Url, Version::Newest)));
    targets
}

/// One target of each kind for all there is.
pub fn everything(catalog: &Catalog) -> Vec<Target> {
    let mut targets = outline();
    targets.extend((0..TEXTS).map(Target::Text));
    let live = catalog.0.keys();
    targets.extend(live.flat_map(|code| {
        [Content::Url, Content::Markdown, Content::Html]
            .map(|content| Target::Product(code, content, Version::Older))
    }));
    targets
}
