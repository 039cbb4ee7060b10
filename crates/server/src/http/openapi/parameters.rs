//! The parameters of operations, with examples.

use serde_json::{Value, json};
use vitrine_model::code::ProductCode;
use vitrine_model::query::Limit;

use super::examples::TEXT_DIGEST;
use super::request_headers;
use crate::http::request::parameters::{self, Multiplicity, Parameter};
use crate::http::routes::{PathParameter, Route};
use crate::view::ContentForm;

/// Of [`ProductCode::RESERVED`], what can't be a code in a path. The other words aren't refused there: they are paths of
/// their own.
const NO_SEGMENTS: [&str; 2] = [".", ".."];

/// A product code, and so a cursor; `except` match the pattern and are refused.
fn code_schema(except: &[&str]) -> Value {
    json!({
        "type": "string",
        "pattern": "^[A-Za-z0-9._~-]{1,64}$",
        "not": {"enum": except},
    })
}

/// The parameters of a route's operation.
pub(super) fn of(route: &Route) -> Vec<Value> {
    let mut described = Vec::new();
    match route.parameter {
        Some(PathParameter::ProductCode) => described.push(json!({
                "name": "product_code", "in": "path", "required": true,
                "description": "The product's code, letter by letter as lists and orders have it. Characters outside `A-Z a-z 0-9 . _ ~ -` don't occur in codes.",
                "schema": code_schema(&NO_SEGMENTS),
                "examples": {
                    "gift_card": {"summary": "A gift card", "value": "HALLOWMERE-GB"},
                    "subscription": {"summary": "A subscription", "value": "TONVIK-SE"},
                    "payment": {"summary": "A payment", "value": "HARBOURQUILL-GB"},
                },
            })),
        Some(PathParameter::Digest) => described.push(json!({
                "name": "digest", "in": "path", "required": true,
                "description": "The SHA-256 of the Markdown, in lower-case hexadecimal digits. Take whole addresses from a product's `content_resources` rather than making them.",
                "schema": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
                "examples": {"description": {"summary": "What a gift card is", "value": TEXT_DIGEST}},
            })),
        // The document leaves out the documentation.
        Some(PathParameter::Page | PathParameter::Asset) | None => {}
    }
    described.extend(parameters::of(route.operation).iter().map(query_parameter));
    described.extend(request_headers::of(route.operation));
    described
}

fn query_parameter(parameter: &Parameter) -> Value {
    let example = |name: &str, summary: &str, value: Value| json!({name: {"summary": summary, "value": value}});
    let (item, examples) = match parameter.name {
        "is_orderable" => (
            json!({"type": "boolean"}),
            example("orderable", "What can be ordered now", json!(true)),
        ),
        "countries_redeemable_in" => (
            json!({"type": "string", "pattern": "^[A-Z]{2}$"}),
            json!({
                "one": {"summary": "The United Kingdom", "value": ["GB"]},
                "several": {"summary": "Sweden or Denmark", "value": ["SE", "DK"]},
            }),
        ),
        // Without an example: tools send those of all parameters, and it excludes `after`.
        "before" => (code_schema(&ProductCode::RESERVED), Value::Null),
        "after" => (
            code_schema(&ProductCode::RESERVED),
            example(
                "cursor",
                "A cursor of an earlier page",
                json!("HALLOWMERE-GB"),
            ),
        ),
        "limit" => (
            json!({"type": "integer", "format": "int32", "minimum": 1, "maximum": Limit::MAX, "default": Limit::MAX}),
            example("page", "A page for a picker", json!(50)),
        ),
        "content" => (
            json!({"type": "string", "enum": ContentForm::ALL.map(ContentForm::as_str), "default": ContentForm::default().as_str()}),
            json!({
                "url": {"summary": "Addresses of Markdown", "value": "url"},
                "md": {"summary": "Markdown in the answer", "value": "md"},
                "html": {"summary": "Sanitised HTML in the answer", "value": "html"},
            }),
        ),
        _ => (
            json!({"type": "string", "minLength": 1}),
            json!({
                "one": {"summary": "One category", "value": ["food-and-drink"]},
                "several": {"summary": "Either category", "value": ["food-and-drink", "sports-and-outdoors"]},
            }),
        ),
    };
    let mut described = json!({
        "name": parameter.name,
        "in": "query",
        "required": false,
        "description": parameter.description,
    });
    if parameter.multiplicity == Multiplicity::Many {
        described["style"] = json!("form");
        described["explode"] = json!(true);
        described["schema"] = json!({"type": "array", "items": item});
    } else {
        described["schema"] = item;
    }
    if !examples.is_null() {
        described["examples"] = examples;
    }
    described
}
