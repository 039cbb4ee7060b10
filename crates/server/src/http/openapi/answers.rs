//! Responses of operations: successes, errors, and the headers of both.

use serde_json::{Map, Value, json};
use vitrine_wire::error::ErrorType;

use super::{examples, headers};
use crate::http::error::ApiError;
use crate::http::error::types::{ExampleRequest, Retry, Scope, row};
use crate::http::request::parameters::{self, Values};
use crate::http::routes::{KeyedOperation, Operation};

/// Headers of a 200 and a 304 to the holder of a key.
const KEYED_HEADERS: [&str; 9] = [
    "X-Request-Id",
    "X-Api-Version",
    "ETag",
    "Cache-Control",
    "Vary",
    "RateLimit-Policy",
    "RateLimit",
    "Access-Control-Allow-Origin",
    "Access-Control-Expose-Headers",
];

/// Headers of a 200 and a 304 of an operation without a key.
const PUBLIC_HEADERS: [&str; 5] = [
    "X-Request-Id",
    "ETag",
    "Cache-Control",
    "Vary",
    "Access-Control-Allow-Origin",
];

/// Headers that describe a body.
const BODY_HEADERS: [&str; 2] = ["X-Content-Type-Options", "Content-Encoding"];

/// Headers of every error. Those of version and quota are sent only after the version was negotiated.
const ERROR_HEADERS: [&str; 10] = [
    "X-Request-Id",
    "Cache-Control",
    "X-Content-Type-Options",
    "Content-Encoding",
    "Vary",
    "X-Api-Version",
    "RateLimit-Policy",
    "RateLimit",
    "Access-Control-Allow-Origin",
    "Access-Control-Expose-Headers",
];

/// Method of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    Get,
    /// Same responses, without bodies.
    Head,
}

/// Returns every response of an operation. `found` describes a 200.
pub(super) fn of(operation: Operation, method: Method, found: &str) -> Value {
    let reference = |name: &str| json!({"$ref": format!("#/components/schemas/{name}")});
    let schema = match operation {
        Operation::Keyed(KeyedOperation::ListProducts) => reference("ProductList"),
        Operation::Keyed(KeyedOperation::ListChanges) => reference("Changes"),
        Operation::Keyed(KeyedOperation::GetProduct) => reference("Product"),
        Operation::Keyed(KeyedOperation::ListCategories) => reference("CategoryList"),
        Operation::Keyed(KeyedOperation::ListCountries) => reference("CountryList"),
        Operation::Keyed(KeyedOperation::Ping) => reference("Pong"),
        Operation::GetText => json!({"type": "string"}),
        Operation::GetOpenapi | Operation::Docs | Operation::SearchDocs => {
            json!({"type": "object"})
        }
    };
    let is_keyed = matches!(operation, Operation::Keyed(_));
    let (content_type, mut names) = match is_keyed {
        true => ("application/json", KEYED_HEADERS.to_vec()),
        false => ("text/markdown", PUBLIC_HEADERS.to_vec()),
    };
    if operation == Operation::Keyed(KeyedOperation::ListProducts) {
        names.push("Link");
    }
    let is_feed = operation == Operation::Keyed(KeyedOperation::ListChanges);
    let mut responses = json!({"200": {"description": found}});
    if is_feed {
        names.retain(|name| *name != "ETag");
    } else {
        responses["304"] = json!({
            "description": "What `If-None-Match` named still holds: use what you have. There is no body, and it costs no quota.",
            "headers": references(&names),
        });
    }
    names.extend(BODY_HEADERS);
    responses["200"]["headers"] = references(&names);
    if is_feed {
        responses["200"]["headers"]["Retry-After"] = headers::pause();
    }
    if method == Method::Get {
        let content = json!({"schema": schema, "examples": examples::found(operation)});
        responses["200"]["content"] = json!({content_type: content});
        if is_feed {
            responses["200"]["links"] = json!({"next": next_changes()});
        }
    }
    let may_fail = |kind: &&ErrorType| is_keyed || row(**kind).scope == Scope::All;
    for kind in ErrorType::ALL.iter().filter(may_fail) {
        let status = ApiError::status(*kind);
        let shared = match method {
            Method::Get => format!("#/components/responses/Error{}", status.as_str()),
            Method::Head => format!("#/components/responses/HeadError{}", status.as_str()),
        };
        let is_of_operation = row(*kind).example == ExampleRequest::OfOperation;
        responses[status.as_str()] = match (method, *kind) {
            (Method::Get, _) if is_of_operation => {
                with_body(failure(*kind), &examples::bad_requests(operation))
            }
            (Method::Get, ErrorType::NotFound) => match examples::not_found(operation) {
                Some(examples) => with_body(failure(*kind), &examples),
                None => json!({"$ref": shared}),
            },
            _ => json!({"$ref": shared}),
        };
    }
    responses
}

/// Returns the link from an answer of the changes feed to the next request.
fn next_changes() -> Value {
    let mut parameters = json!({"query.since": "$response.body#/next"});
    for parameter in parameters::of(Operation::Keyed(KeyedOperation::ListChanges)) {
        if !matches!(parameter.values, Values::Token | Values::Wait) {
            let name = parameter.name;
            parameters[format!("query.{name}")] = json!(format!("$request.query.{name}"));
        }
    }
    json!({
        "operationId": "listChanges",
        "description": "Goes on with the token and the same filters.",
        "parameters": parameters,
    })
}

fn references(headers: &[&str]) -> Value {
    let reference = |name: &&str| {
        (
            (*name).to_owned(),
            json!({"$ref": format!("#/components/headers/{name}")}),
        )
    };
    Value::Object(headers.iter().map(reference).collect::<Map<_, _>>())
}

/// Returns the errors that operations share, one per status and method.
pub(super) fn shared_errors() -> Value {
    let mut responses = json!({});
    for kind in ErrorType::ALL {
        let status = ApiError::status(*kind);
        let without_body = &mut responses[format!("HeadError{}", status.as_str())];
        if without_body.is_null() {
            *without_body = failure(*kind);
        }
        let Some(example) = examples::plain_error(*kind) else {
            continue;
        };
        let response = &mut responses[format!("Error{}", status.as_str())];
        if response.is_null() {
            *response = with_body(failure(*kind), &json!({}));
        }
        response["content"]["application/json"]["examples"][kind.as_str()] = example;
    }
    responses
}

/// Adds the body of an error to a response.
fn with_body(mut response: Value, examples: &Value) -> Value {
    response["content"] = json!({"application/json": {
        "schema": {"$ref": "#/components/schemas/ApiError"},
        "examples": examples,
    }});
    response
}

/// Returns an error's response without its body.
fn failure(kind: ErrorType) -> Value {
    let row = row(kind);
    let retry_after = (row.retry == Retry::AsTold).then_some("Retry-After");
    let own_header = row.header.map(|(name, _)| name).or(retry_after);
    let mut headers = ERROR_HEADERS.to_vec();
    headers.extend(own_header);
    json!({"description": row.response, "headers": references(&headers)})
}
