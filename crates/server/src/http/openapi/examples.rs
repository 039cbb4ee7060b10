//! Examples: requests, and the server's responses to them on the sample catalog.
//!
//! The bodies beside this file were written by a server: `VITRINE_BLESS=1 cargo test --test it openapi_examples` writes
//! them; without the variable, the test repeats each request and compares. Errors come from the code that refuses
//! requests.

use serde_json::{Map, Value, json};
use vitrine_wire::error::{ErrorBody, ErrorType};

use crate::http::error::ApiError;
use crate::http::error::types::{ExampleRequest, row};
use crate::http::request::parameters;
use crate::http::routes::{KeyedOperation, Operation};

/// Digest of the text in the examples.
pub(super) const TEXT_DIGEST: &str =
    "b3b3466990d9c98a3d1503566ae69a9e556c29ac96b3b295cf456a965b8d473d";

/// Weak tag of a response.
pub(super) const ENTITY_TAG: &str = "W/\"5f1d3a0c9be24d7786a1c0ffee123456\"";

/// Name, summary, target and body of a response.
type Found = (&'static str, &'static str, &'static str, &'static str);

const PRODUCTS: [Found; 6] = [
    (
        "gift_card",
        "A gift card, its texts as addresses",
        "/v2/product/HALLOWMERE-GB",
        include_str!("examples/gift_card.json"),
    ),
    (
        "gift_card_md",
        "A gift card, its texts as Markdown",
        "/v2/product/HALLOWMERE-GB?content=md",
        include_str!("examples/gift_card_md.json"),
    ),
    (
        "gift_card_html",
        "A gift card, its texts as HTML",
        "/v2/product/HALLOWMERE-GB?content=html",
        include_str!("examples/gift_card_html.json"),
    ),
    (
        "subscription",
        "A subscription with its plans",
        "/v2/product/TONVIK-SE",
        include_str!("examples/subscription.json"),
    ),
    (
        "payment",
        "A payment",
        "/v2/product/HARBOURQUILL-GB",
        include_str!("examples/payment.json"),
    ),
    (
        "later_payout_type",
        "A payout type that this version doesn't describe: skip such a product, or read the object that `payout_type` names",
        "/v2/product/OPENFARER-US",
        include_str!("examples/later_payout_type.json"),
    ),
];

/// Returns the examples of an operation's 200.
pub(super) fn found(operation: Operation) -> Value {
    let one = |name, summary, target, body| -> Vec<Found> { vec![(name, summary, target, body)] };
    let list = match operation {
        Operation::Keyed(KeyedOperation::ListProducts) => one(
            "page",
            "A page, with the cursors of its neighbours",
            "/v2/product?countries_redeemable_in=GB&is_orderable=true&limit=2&after=B",
            include_str!("examples/page.json"),
        ),
        Operation::Keyed(KeyedOperation::ListChanges) => one(
            "changes",
            "The beginning of a copy",
            "/v2/product/changes?countries_redeemable_in=GB&limit=2",
            include_str!("examples/changes.json"),
        ),
        Operation::Keyed(KeyedOperation::GetProduct) => PRODUCTS.to_vec(),
        Operation::Keyed(KeyedOperation::ListCategories) => one(
            "categories",
            "The categories of the sample catalog",
            "/v2/product/categories",
            include_str!("examples/categories.json"),
        ),
        Operation::Keyed(KeyedOperation::ListCountries) => one(
            "countries",
            "The countries of the sample catalog",
            "/v2/product/countries",
            include_str!("examples/countries.json"),
        ),
        Operation::Keyed(KeyedOperation::Ping) => one(
            "pong",
            "The key is good",
            "/v2/ping",
            include_str!("examples/pong.json"),
        ),
        Operation::GetText => {
            let target = format!("/v2/texts/{TEXT_DIGEST}.md");
            let text = include_str!("examples/text.md");
            let example = example(
                "What a product is",
                &format!("GET {target}"),
                "",
                &text.into(),
            );
            return json!({"text": example});
        }
        Operation::GetOpenapi | Operation::Docs | Operation::SearchDocs => Vec::new(),
    };
    let described = |(name, summary, target, body): Found| {
        // A test that compares the bodies with the server's holds that they are JSON.
        let value = serde_json::from_str(body).unwrap_or_default();
        let request = format!("GET {target}");
        (name.to_owned(), example(summary, &request, "", &value))
    };
    Value::Object(list.into_iter().map(described).collect())
}

/// Returns an example. Its description has the request, which a test repeats.
fn example(summary: &str, request: &str, with: &str, value: &Value) -> Value {
    json!({"summary": summary, "description": format!("Request: `{request}`{with}"), "value": value})
}

fn error(summary: &str, request: &str, with: &str, error: &ApiError) -> Value {
    // Plain texts can't fail to become JSON.
    let body = serde_json::to_value(ErrorBody::from(error.clone())).unwrap_or_default();
    example(summary, request, with, &body)
}

/// Returns requests with refused parameters: name, summary, target.
fn refused_targets(operation: Operation) -> Vec<(&'static str, &'static str, String)> {
    let several = "/v2/product?limit=501&countries=GB&before=A&after=B";
    let fixed = match operation {
        Operation::Keyed(KeyedOperation::ListProducts) => vec![
            (
                "bad_request",
                "A parameter that there isn't",
                "/v2/product?countries=GB",
            ),
            (
                "malformed",
                "A value that can't be",
                "/v2/product?is_orderable=yes",
            ),
            ("several", "All faults are told together", several),
            (
                "pagination_error",
                "A limit out of range",
                "/v2/product?limit=0",
            ),
            (
                "cursors",
                "Two cursors at once",
                "/v2/product?before=A&after=B",
            ),
        ],
        Operation::Keyed(KeyedOperation::ListChanges) => vec![
            (
                "bad_request",
                "Nothing to wait for",
                "/v2/product/changes?wait=30",
            ),
            (
                "pagination_error",
                "A token that isn't one",
                "/v2/product/changes?since=2026-11-24",
            ),
        ],
        Operation::Keyed(KeyedOperation::GetProduct) => {
            let target = "/v2/product/HALLOWMERE-GB?content=pdf";
            vec![("bad_request", "A form that there isn't", target)]
        }
        Operation::Keyed(KeyedOperation::ListCategories) => {
            vec![(
                "bad_request",
                NO_PARAMETERS,
                "/v2/product/categories?limit=1",
            )]
        }
        Operation::Keyed(KeyedOperation::ListCountries) => {
            vec![(
                "bad_request",
                NO_PARAMETERS,
                "/v2/product/countries?limit=1",
            )]
        }
        Operation::Keyed(KeyedOperation::Ping) => {
            vec![("bad_request", NO_PARAMETERS, "/v2/ping?limit=1")]
        }
        Operation::GetText => {
            let target = format!("/v2/texts/{TEXT_DIGEST}.md?content=md");
            return vec![("bad_request", NO_PARAMETERS, target)];
        }
        Operation::GetOpenapi | Operation::Docs | Operation::SearchDocs => Vec::new(),
    };
    let owned = |(name, summary, target): (_, _, &str)| (name, summary, target.to_owned());
    fixed.into_iter().map(owned).collect()
}

const NO_PARAMETERS: &str = "This operation takes no parameters";

/// Returns the examples of an operation's 400.
pub(super) fn bad_requests(operation: Operation) -> Value {
    let mut examples = Map::new();
    for (name, summary, target) in refused_targets(operation) {
        let query = target.split_once('?').map(|(_, query)| query);
        let refused = match operation {
            Operation::Keyed(KeyedOperation::ListProducts) => parameters::list(query).err(),
            Operation::Keyed(KeyedOperation::ListChanges) => parameters::changes(query).err(),
            Operation::Keyed(KeyedOperation::GetProduct) => parameters::content_form(query).err(),
            Operation::Keyed(
                KeyedOperation::ListCategories
                | KeyedOperation::ListCountries
                | KeyedOperation::Ping,
            )
            | Operation::GetText
            | Operation::GetOpenapi
            | Operation::Docs
            | Operation::SearchDocs => parameters::none(query).err(),
        };
        if let Some(refused) = refused {
            let request = format!("GET {target}");
            examples.insert(name.to_owned(), error(summary, &request, "", &refused));
        }
    }
    if matches!(operation, Operation::Keyed(_)) {
        let summary = "A version that never was";
        let with = " with `X-Api-Version: 2020-01-01`";
        let invalid = ApiError::plain(ErrorType::InvalidVersion);
        let invalid = error(summary, "GET /v2/ping", with, &invalid);
        examples.insert(ErrorType::InvalidVersion.as_str().to_owned(), invalid);
    }
    Value::Object(examples)
}

/// Returns the example of an operation's 404, if it has one.
pub(super) fn not_found(operation: Operation) -> Option<Value> {
    let (summary, request, absent) = match operation {
        Operation::Keyed(KeyedOperation::GetProduct) => (
            "A code that no product of the catalog has",
            "GET /v2/product/NONE".to_owned(),
            ApiError::no_such_product("NONE"),
        ),
        Operation::GetText => (
            "A text that no product names any more",
            format!("GET /v2/texts/{}.md", "0".repeat(64)),
            ApiError::no_such_text(),
        ),
        Operation::Keyed(
            KeyedOperation::ListProducts
            | KeyedOperation::ListChanges
            | KeyedOperation::ListCategories
            | KeyedOperation::ListCountries
            | KeyedOperation::Ping,
        )
        | Operation::GetOpenapi
        | Operation::Docs
        | Operation::SearchDocs => return None,
    };
    Some(json!({"not_found": error(summary, &request, "", &absent)}))
}

/// Returns the example of an error type, unless each operation has its own.
pub(super) fn plain_error(kind: ErrorType) -> Option<Value> {
    let simulated = format!(" with `X-Simulate: {}` and a test key", kind.as_str());
    let (summary, request, with) = match row(kind).example {
        ExampleRequest::OfOperation => return None,
        ExampleRequest::Simulated(summary) => (summary, "GET /v2/ping", &*simulated),
        ExampleRequest::Of {
            summary,
            request,
            with,
        } => (summary, request, with),
    };
    Some(error(summary, request, with, &ApiError::plain(kind)))
}
