//! What operations answer: what they found, what went wrong, and the headers of both.

use serde_json::{Map, Value, json};
use vitrine_wire::error::ErrorType;

use super::examples;
use crate::http::error::ApiError;
use crate::http::routes::{KeyedOperation, Operation};

/// The headers of what a key reads.
const KEYED_HEADERS: [&str; 7] = [
    "X-Request-Id",
    "X-Api-Version",
    "ETag",
    "Cache-Control",
    "Vary",
    "RateLimit-Policy",
    "RateLimit",
];

/// The headers of what anybody reads.
const PUBLIC_HEADERS: [&str; 4] = ["X-Request-Id", "ETag", "Cache-Control", "Vary"];

/// What can go wrong with what needs no key.
const PUBLIC_ERRORS: [ErrorType; 9] = [
    ErrorType::BadRequest,
    ErrorType::NotFound,
    ErrorType::MethodNotAllowed,
    ErrorType::PayloadTooLarge,
    ErrorType::UriTooLong,
    ErrorType::HeadersTooLarge,
    ErrorType::InternalServerError,
    ErrorType::Unavailable,
    ErrorType::Timeout,
];

/// Every answer of an operation. `found` says in words what a 200 gives.
pub(super) fn of(operation: Operation, found: &str) -> Value {
    let reference = |name: &str| json!({"$ref": format!("#/components/schemas/{name}")});
    let schema = match operation {
        Operation::Keyed(KeyedOperation::ListProducts) => reference("ProductList"),
        Operation::Keyed(KeyedOperation::GetProduct) => reference("Product"),
        Operation::Keyed(KeyedOperation::ListCategories) => reference("CategoryList"),
        Operation::Keyed(KeyedOperation::ListCountries) => reference("CountryList"),
        Operation::Keyed(KeyedOperation::Ping) => reference("Pong"),
        Operation::GetText => json!({"type": "string"}),
        Operation::GetOpenapi | Operation::Docs => json!({"type": "object"}),
    };
    let (content_type, mut names, errors): (_, _, &[ErrorType]) = match operation {
        Operation::Keyed(_) => ("application/json", KEYED_HEADERS.to_vec(), ErrorType::ALL),
        Operation::GetText | Operation::GetOpenapi | Operation::Docs => (
            "text/markdown; charset=utf-8",
            PUBLIC_HEADERS.to_vec(),
            &PUBLIC_ERRORS,
        ),
    };
    if operation == Operation::Keyed(KeyedOperation::ListProducts) {
        names.push("Link");
    }
    let headers = references(&names);
    let content = json!({"schema": schema, "examples": examples::found(operation)});
    let mut responses = json!({
        "200": {"description": found, "headers": headers, "content": {content_type: content}},
        "304": {
            "description": "What `If-None-Match` named still holds: use what you have. There is no body, and it costs no quota.",
            "headers": headers,
        },
    });
    for kind in errors {
        let status = ApiError::status(*kind);
        responses[status.as_str()] = match *kind {
            ErrorType::BadRequest | ErrorType::PaginationError | ErrorType::InvalidVersion => {
                failure(*kind, &examples::bad_requests(operation))
            }
            ErrorType::NotFound => match examples::not_found(operation) {
                Some(examples) => failure(*kind, &examples),
                None => json!({"$ref": "#/components/responses/Error404"}),
            },
            _ => json!({"$ref": format!("#/components/responses/Error{}", status.as_str())}),
        };
    }
    responses
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

/// The answers with an error that all operations share, one a status.
pub(super) fn shared_errors() -> Value {
    let mut responses = json!({});
    for kind in ErrorType::ALL {
        let status = ApiError::status(*kind);
        // These differ by operation.
        if status == ApiError::status(ErrorType::BadRequest) {
            continue;
        }
        let response = &mut responses[format!("Error{}", status.as_str())];
        if response.is_null() {
            *response = failure(*kind, &json!({}));
        }
        response["content"]["application/json"]["examples"][kind.as_str()] =
            examples::plain_error(*kind);
    }
    responses
}

fn failure(kind: ErrorType, examples: &Value) -> Value {
    let (description, own_header) = match kind {
        ErrorType::BadRequest | ErrorType::PaginationError | ErrorType::InvalidVersion => (
            "The request can't be understood as it is: mend it, don't repeat it. `details` names each refused parameter.",
            None,
        ),
        ErrorType::Unauthorized | ErrorType::InvalidApiKey => (
            "The key is missing, wrong, expired or revoked.",
            Some("WWW-Authenticate"),
        ),
        ErrorType::Forbidden => ("The key is good, and may not do that.", None),
        ErrorType::NotFound => ("There is nothing at this path, now.", None),
        ErrorType::MethodNotAllowed => ("The path takes other methods.", Some("Allow")),
        ErrorType::VersionRemoved => ("The version asked for was served once, and is gone.", None),
        ErrorType::PayloadTooLarge => ("The request has a body larger than 8 kB.", None),
        ErrorType::UriTooLong => ("Path and query are longer than 8 kB.", None),
        ErrorType::HeadersTooLarge => ("The request's headers are too many or too large.", None),
        ErrorType::RateLimited => (
            "The key's quota is used up, or too many wrong keys came from this address. Wait as long as `Retry-After` says.",
            Some("Retry-After"),
        ),
        ErrorType::InternalServerError => (
            "The service failed. The operator finds why under the `X-Request-Id`.",
            None,
        ),
        ErrorType::Unavailable => (
            "No catalog is loaded yet, or there is more to do than can be done soon. Try again as `Retry-After` says.",
            Some("Retry-After"),
        ),
        ErrorType::Timeout => ("The request took too long to arrive. Try again.", None),
    };
    let mut headers = vec!["X-Request-Id"];
    headers.extend(own_header);
    json!({
        "description": description,
        "headers": references(&headers),
        "content": {"application/json": {
            "schema": {"$ref": "#/components/schemas/Error"},
            "examples": examples,
        }},
    })
}
