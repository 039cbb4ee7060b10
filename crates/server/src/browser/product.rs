//! Page of a product: what matters first, fields, texts as partners get them, the assortments that show it, and history. `as` shows
//! it as an assortment sees it.

use std::borrow::Cow;
use std::sync::Arc;

use askama::Template;
use http::StatusCode;
use jiff::Timestamp;
use tokio::runtime::Handle;
use vitrine_ingest::load::json::Node;
use vitrine_ingest::overrides::{self, Override};
use vitrine_ingest::view::parse_content;
use vitrine_model::code::ProductCode;
use vitrine_model::content::TextName;
use vitrine_model::money::Discount;
use vitrine_model::snapshot::{ProductView, Snapshot};
use vitrine_store::record::Moment;

use super::amounts::{self, grouped};
use super::answer::{self, ASSETS, Problem, Shown};
use super::assortments::{DiscountView, Seen, Showing, names};
use super::fields::{self, Section, Value, is_address};
use super::group::{Group, LIVE};
use super::past::{self, Event, newest, word_badge};
use super::query::{pairs, repeated, unknown};
use super::times::minute;
use super::{Browser, pictures};
use crate::error_chain::ErrorChain;
use crate::http::body::budget::Account;
use crate::http::request::query::encoded;

/// Length of all texts of a product from which on they are folded up, in characters.
const FOLDED_FROM: usize = 600;

/// Fields that the head of the page shows.
const IN_HEAD: [&str; 7] = [
    "name",
    "code",
    "state",
    "is_orderable",
    "payout_type",
    "discount_multiplier",
    "countries_redeemable_in",
];

#[derive(Template)]
#[template(path = "browser/product.html")]
struct ProductPage<'a> {
    assets: &'static str,
    here: &'static str,
    code: &'a str,
    /// Names of assortments to choose from.
    names: Vec<&'a str>,
    /// Name of the assortment as which the product is shown.
    assortment: Option<&'a str>,
    /// False if that assortment doesn't show it; all below is as everyone else sees it.
    is_shown: bool,
    /// None if the product isn't live.
    live: Option<LiveView>,
    /// True if it isn't live because an override hides it.
    is_hidden: bool,
    overrides: Vec<OverrideView>,
    /// None if the store can't be read.
    events: Option<(Vec<Event>, bool)>,
}

/// An override that sets values of the product.
struct OverrideView {
    number: u64,
    /// Names of the fields.
    fields: String,
    by: String,
    note: Option<String>,
    until: Option<String>,
}

/// A live product.
struct LiveView {
    name: String,
    is_live: bool,
    state: String,
    payout_type: String,
    is_orderable: bool,
    amounts: String,
    discount: Option<DiscountView>,
    countries: Vec<String>,
    colour: Option<String>,
    sections: Vec<Section>,
    locale: Option<String>,
    texts: Vec<TextView>,
    /// True if the texts are so short that they stand open.
    are_texts_open: bool,
    /// None if there are no assortments.
    showing: Option<Showing>,
}

/// A text of a product.
struct TextView {
    label: String,
    /// HTML as partners get it.
    html: Option<String>,
    /// Length of what is read of the HTML, in characters.
    length: usize,
    /// URL of a text that the store doesn't have.
    address: Option<String>,
}

impl TextView {
    fn grouped_length(&self) -> String {
        grouped(&self.length.to_string())
    }
}

/// Returns the name of the assortment as which a URL's query shows the product, if there is one.
fn wanted_assortment(query: Option<&str>) -> Result<Option<String>, Problem> {
    let mut assortment = None;
    for (name, value) in pairs(query)? {
        match name.as_str() {
            "as" if assortment.is_some() => return Err(repeated("as")),
            "as" => assortment = Some(value.trim().to_owned()),
            // It chose the version of a JSON that the page had once; such addresses still lead here.
            "version" => {}
            _ => return Err(unknown(&name)),
        }
    }
    Ok(assortment.filter(|name| !name.is_empty()))
}

/// Renders the page of a product.
pub(super) fn page(browser: &Browser, code: &ProductCode, query: Option<&str>) -> Shown {
    let assortment = wanted_assortment(query)?;
    let snapshot = browser.app.live.snapshot();
    let snapshot = snapshot.ok_or_else(Problem::no_catalog)?;
    let keys = browser.app.live.keys();
    let table = keys.assortments();
    let seen = assortment.as_deref();
    let seen = seen.map(|name| Seen::of(table, name, &snapshot));
    let seen = seen.transpose()?;
    let shown = seen.as_ref().and_then(|seen| seen.product(code));
    let is_shown = seen.is_none() || shown.is_some();
    let own = shown.and_then(|(_, own)| own);
    let live = snapshot
        .product(code)
        .map(|product| live(browser, &snapshot, (code, product), own));
    let events = match past::events(&browser.store, code) {
        Ok(events) => Some(events),
        Err(error) => {
            note(error.as_ref());
            None
        }
    };
    let overrides = overrides(browser, code);
    let was_ever = events.as_ref().is_none_or(|(events, _)| !events.is_empty());
    // Clients may never have seen one that is hidden.
    let is_hidden = live.is_none() && is_hidden(browser, code);
    if live.is_none() && !was_ever && !is_hidden {
        let title = format!("Product {code} not found");
        return Err(Problem::not_found(
            &title,
            "Codes are case-sensitive. Search the products for a part of the code.",
        ));
    }
    let status = match live {
        Some(_) => StatusCode::OK,
        None => StatusCode::NOT_FOUND,
    };
    let page = ProductPage {
        assets: ASSETS,
        here: "catalog",
        code: code.as_str(),
        names: names(table),
        assortment: assortment.as_deref(),
        is_shown,
        live,
        is_hidden,
        overrides,
        events,
    };
    answer::html(status, &page)
}

fn note(error: &(dyn std::error::Error + 'static)) {
    let error = ErrorChain(error);
    tracing::warn!(%error, "the catalog browser can't read a product's history");
}

/// Returns true if an override hides the product now.
fn is_hidden(browser: &Browser, code: &ProductCode) -> bool {
    let found = overrides::is_hidden(&browser.store, code, Moment::Live);
    found.unwrap_or_else(|error| {
        note(&error);
        false
    })
}

/// Returns the overrides that set values of the product now.
fn overrides(browser: &Browser, code: &ProductCode) -> Vec<OverrideView> {
    match overrides::overrides_of(&browser.store, code, Moment::Live) {
        Ok(found) => found.into_iter().map(OverrideView::of).collect(),
        Err(error) => {
            note(error.as_ref());
            Vec::new()
        }
    }
}

impl OverrideView {
    fn of((one, fields): (Override, Vec<&'static str>)) -> Self {
        let made = one.stored.made;
        Self {
            number: one.number,
            fields: fields.join(", "),
            by: made.created_by,
            note: made.note,
            until: made.until.map(|until| minute(&until)),
        }
    }
}

fn live(
    browser: &Browser,
    snapshot: &Arc<Snapshot>,
    (code, product): (&ProductCode, ProductView<'_>),
    own: Option<Discount>,
) -> LiveView {
    let text = String::from_utf8_lossy(product.bytes());
    let (node, _) = Node::parse(&text);
    let member = |name: &str| {
        node.member(name)
            .and_then(Node::text)
            .unwrap_or_default()
            .to_owned()
    };
    let payout_type = member("payout_type");
    let assets = node
        .member(&payout_type)
        .and_then(|detail| detail.member("assets"));
    let colour = assets
        .and_then(|assets| assets.member("primary_color"))
        .and_then(Node::text);
    let colour = colour.filter(|colour| fields::is_colour(colour));
    let countries = match node.member("countries_redeemable_in") {
        Some(Node::List(countries)) => countries.iter().map(fields::plain).collect(),
        _ => Vec::new(),
    };
    let listed = product.discount().map(|placed| placed.exact.shown());
    let (locale, texts) = texts(browser, snapshot, product);
    LiveView {
        name: member("name"),
        is_live: member("state") == LIVE,
        state: Group::State.shown(&member("state")).into_owned(),
        is_orderable: node.member("is_orderable") == Some(&Node::Bool(true)),
        amounts: amounts::in_words(&node),
        discount: DiscountView::of(own, listed),
        countries,
        colour: colour.map(str::to_owned),
        payout_type: Group::PayoutType.shown(&payout_type).into_owned(),
        sections: fields::sections(&node, &IN_HEAD),
        locale,
        are_texts_open: texts.iter().map(|text| text.length).sum::<usize>() < FOLDED_FROM,
        texts,
        showing: Showing::of(browser.app.live.keys().assortments(), snapshot, code),
    }
}

fn texts(
    browser: &Browser,
    snapshot: &Snapshot,
    product: ProductView<'_>,
) -> (Option<String>, Vec<TextView>) {
    let content = product
        .content()
        .and_then(|range| product.bytes().get(range));
    let Some(content) = content.and_then(|json| parse_content(json).ok()) else {
        return (None, Vec::new());
    };
    let now = Timestamp::now();
    let endpoints = &browser.app.endpoints;
    let digest = |url: &Option<Cow<'_, str>>| endpoints.addresses.digest(url.as_ref()?);
    let served = content.urls.iter().filter_map(|(_, url)| {
        let digest = digest(url)?;
        Some((digest, snapshot.text(&digest, now)?))
    });
    // In turn with the requests of clients; this thread may wait.
    let account = Account::default();
    let render = endpoints.html.render(served.collect(), &account);
    let rendered = Handle::current().block_on(render);
    let view = |(name, url): (TextName, &Option<Cow<'_, str>>)| {
        let html = digest(url).and_then(|digest| rendered.get(&digest)?.ok());
        let html = html.map(|html| pictures::replace_pictures(html.as_str()));
        TextView {
            label: fields::label(name.as_str()),
            address: url
                .as_ref()
                .filter(|_| html.is_none())
                .map(ToString::to_string),
            length: html.as_deref().map_or(0, pictures::read_length),
            html,
        }
    };
    let texts = content.urls.iter().map(view).collect();
    (content.locale.map(Cow::into_owned), texts)
}
