//! Page of a product: fields, texts as partners get them, the assortments that show it, JSON, history.

use std::borrow::Cow;
use std::sync::Arc;

use askama::Template;
use http::StatusCode;
use jiff::Timestamp;
use vitrine_ingest::load::json::Node;
use vitrine_ingest::overrides::{self, Override};
use vitrine_ingest::view::parse_content;
use vitrine_model::code::ProductCode;
use vitrine_model::content::TextName;
use vitrine_model::snapshot::{ProductView, Snapshot};
use vitrine_store::record::Moment;

use super::answer::{self, ASSETS, Problem, Shown};
use super::assortments::Showing;
use super::fields::{self, Section, Value, is_address};
use super::group::{Group, LIVE};
use super::past::{self, Event};
use super::pretty::pretty;
use super::revisions::{minute, word_badge};
use super::{Browser, pictures};
use crate::error_chain::ErrorChain;
use crate::http::discounts::{Discounts, spliced};

#[derive(Template)]
#[template(path = "browser/product.html")]
struct ProductPage<'a> {
    assets: &'static str,
    here: &'static str,
    code: &'a str,
    /// None if the product isn't live.
    live: Option<LiveView>,
    overrides: Vec<OverrideView>,
    /// None if the store can't be read.
    events: Option<Vec<Event>>,
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
    colour: Option<String>,
    sections: Vec<Section>,
    locale: Option<String>,
    texts: Vec<TextView>,
    /// None if there are no assortments.
    assortments: Option<Showing>,
    json: String,
}

/// A text of a product.
struct TextView {
    label: String,
    /// HTML as partners get it.
    html: Option<String>,
    /// URL of a text that the store doesn't have.
    address: Option<String>,
}

/// Renders the page of a product.
pub(super) fn page(browser: &Browser, code: &ProductCode) -> Shown {
    let snapshot = browser.app.live.snapshot();
    let snapshot = snapshot.ok_or_else(Problem::no_catalog)?;
    let live = snapshot
        .product(code)
        .map(|product| live(browser, &snapshot, code, product));
    let events = match past::events(&*browser.store, code) {
        Ok(events) => Some(events),
        Err(error) => {
            note(&error);
            None
        }
    };
    let overrides = overrides(browser, code);
    let was_ever = events.as_ref().is_none_or(|events| !events.is_empty());
    // One that is hidden has overrides, even if clients never saw it.
    if live.is_none() && !was_ever && overrides.is_empty() {
        let title = format!("Product {code} not found");
        return Err(Problem::not_found(
            &title,
            "Codes are case-sensitive. Search the catalog for a part of the code.",
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
        live,
        overrides,
        events,
    };
    answer::html(status, &page)
}

fn note(error: &(dyn std::error::Error + 'static)) {
    let error = ErrorChain(error);
    tracing::warn!(%error, "the catalog browser can't read a product's history");
}

/// Returns the overrides that set values of the product now.
fn overrides(browser: &Browser, code: &ProductCode) -> Vec<OverrideView> {
    match overrides::overrides_of(&*browser.store, code, Moment::Live) {
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
    code: &ProductCode,
    product: ProductView<'_>,
) -> LiveView {
    let exact = Discounts::Exact.replacement(product, None);
    let bytes = match exact {
        Some(discount) => spliced(product.bytes(), &discount).into(),
        None => Cow::Borrowed(product.bytes()),
    };
    let text = String::from_utf8_lossy(&bytes);
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
    let colour = colour.filter(|colour| super::placeholder::colour(colour).is_some());
    let (locale, texts) = texts(browser, snapshot, product);
    LiveView {
        name: member("name"),
        is_live: member("state") == LIVE,
        state: Group::State.shown(&member("state")).into_owned(),
        is_orderable: node.member("is_orderable") == Some(&Node::Bool(true)),
        colour: colour.map(str::to_owned),
        payout_type: Group::PayoutType.shown(&payout_type).into_owned(),
        sections: fields::sections(&node),
        locale,
        texts,
        assortments: Showing::of(browser.app.live.keys().assortments(), snapshot, code),
        json: pretty(&node),
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
    let view = |(name, url): (TextName, &Option<Cow<'_, str>>)| {
        let digest = url
            .as_ref()
            .and_then(|url| browser.app.endpoints.addresses.digest(url));
        let markdown = digest.and_then(|digest| Some((digest, snapshot.text(&digest, now)?)));
        let html = markdown.and_then(|(digest, markdown)| {
            let html = browser
                .app
                .endpoints
                .html
                .render(digest, || markdown.unpack_as(&digest))
                .ok()?;
            Some(pictures::replace_pictures(html.as_str()))
        });
        TextView {
            label: fields::label(name.as_str()),
            address: url
                .as_ref()
                .filter(|_| html.is_none())
                .map(ToString::to_string),
            html,
        }
    };
    let texts = content.urls.iter().map(view).collect();
    (content.locale.map(Cow::into_owned), texts)
}
