//! Parameters of operations, with examples.

use serde_json::{Value, json};
use vitrine_ingest::view::ContentForm;
use vitrine_model::query::Limit;
use vitrine_model::version::ApiVersion;

use super::examples::TEXT_DIGEST;
use super::request_headers;
use crate::http::request::parameters::{self, Example, Multiplicity, Parameter, Values};
use crate::http::routes::{PathParameter, Route};

/// Returns the schema of a product code or cursor. Reserved words (`ProductCode::RESERVED`) match it and are refused: with a
/// `not` beside the pattern, generated types become `any`.
fn code_schema() -> Value {
    json!({"type": "string", "pattern": "^[A-Za-z0-9._~-]{1,64}$"})
}

/// Returns the parameters of a route's operation.
pub(super) fn of(route: &Route) -> Vec<Value> {
    let mut described = Vec::new();
    match route.parameter {
        Some(PathParameter::ProductCode) => described.push(json!({
                "name": "product_code", "in": "path", "required": true,
                "description": "The product's code, letter by letter as lists and orders have it. Characters outside `A-Z a-z 0-9 . _ ~ -` don't occur in codes.",
                "schema": code_schema(),
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
        // The documentation isn't part of the document.
        Some(PathParameter::Page | PathParameter::Asset) | None => {}
    }
    described.extend(
        parameters::of(route.operation)
            .into_iter()
            .map(query_parameter),
    );
    described.extend(request_headers::of(route.operation));
    described
}

/// Returns the schema of one value.
fn schema(values: Values) -> Value {
    match values {
        Values::Boolean => json!({"type": "boolean"}),
        Values::Country => json!({"type": "string", "pattern": "^[A-Z]{2}$"}),
        Values::Category => json!({"type": "string", "minLength": 1}),
        Values::Currency => json!({"type": "string", "pattern": "^[A-Z]{3}$"}),
        Values::PayoutType => json!({"type": "string", "pattern": "^[a-z][a-z0-9_]{0,63}$"}),
        Values::Code | Values::Cursor => code_schema(),
        Values::Limit => {
            json!({"type": "integer", "format": "int32", "minimum": 1, "maximum": Limit::MAX, "default": Limit::MAX})
        }
        Values::Token => json!({"type": "string", "pattern": "^[A-Za-z0-9_-]{1,400}$"}),
        Values::Wait => {
            json!({"type": "integer", "format": "int32", "minimum": 0, "maximum": parameters::MAX_WAIT_SECONDS, "default": 0})
        }
        Values::Search => json!({"type": "string", "maxLength": parameters::MAX_SEARCH_CHARACTERS}),
        Values::Version => {
            json!({"type": "string", "enum": ApiVersion::SERVED.map(ApiVersion::as_str)})
        }
        Values::ContentForm => {
            json!({"type": "string", "enum": ContentForm::ALL.map(ContentForm::as_str), "default": ContentForm::default().as_str()})
        }
    }
}

fn query_parameter(parameter: &Parameter) -> Value {
    let item = schema(parameter.values);
    let mut described = json!({
        "name": parameter.name,
        "in": "query",
        "required": false,
        "description": parameter.description,
    });
    described["schema"] = match parameter.multiplicity {
        Multiplicity::One => item,
        Multiplicity::Many => json!({"type": "array", "items": item}),
        Multiplicity::UpTo(max) => json!({"type": "array", "items": item, "maxItems": max}),
    };
    if parameter.multiplicity != Multiplicity::One {
        described["style"] = json!("form");
        described["explode"] = json!(true);
    }
    for (name, summary, value) in parameter.examples {
        let value = match value {
            Example::Boolean(value) => json!(value),
            Example::Number(value) => json!(value),
            Example::Text(value) => json!(value),
            Example::List(values) => json!(values),
        };
        described["examples"][*name] = json!({"summary": summary, "value": value});
    }
    described
}
