//! The operations: their words, their parameters, their answers.

use serde_json::{Map, Value, json};
use vitrine_model::version::ApiVersion;
use vitrine_wire::error::ErrorType;

use super::parameters::{NO_SEGMENTS, code_schema, query_parameter};
use crate::http::error::ApiError;
use crate::http::parameters;
use crate::http::routes::{KeyedOperation, Operation, Route};

/// What the document says of an operation beside its parameters.
struct Words {
    id: &'static str,
    tag: &'static str,
    summary: &'static str,
    description: &'static str,
}

const fn words(operation: Operation) -> Words {
    let (id, tag, summary, description) = match operation {
        Operation::Keyed(KeyedOperation::ListProducts) => (
            "listProducts",
            "Products",
            "List products",
            "The products of the catalog, a page at a time, filtered by country, category and whether they can be ordered. Values of one parameter are alternatives; different parameters narrow each other.",
        ),
        Operation::Keyed(KeyedOperation::GetProduct) => (
            "getProduct",
            "Products",
            "Get a product",
            "One product by its code, with its texts as addresses, Markdown or HTML.",
        ),
        Operation::Keyed(KeyedOperation::ListCategories) => (
            "listCategories",
            "Products",
            "List categories",
            "The categories that some product of the catalog belongs to.",
        ),
        Operation::Keyed(KeyedOperation::ListCountries) => (
            "listCountries",
            "Products",
            "List countries",
            "The countries in which some product of the catalog can be redeemed.",
        ),
        Operation::Keyed(KeyedOperation::Ping) => (
            "ping",
            "Service",
            "Try a key",
            "Answers `pong` to a good key.",
        ),
        Operation::GetText => (
            "getText",
            "Texts",
            "Get a text",
            "A text's Markdown by its SHA-256 digest, as the catalog's addresses name it. It never changes. It is served while the catalog names it, and a day longer.",
        ),
        Operation::GetOpenapi => (
            "getOpenapi",
            "Service",
            "Get this document",
            "The OpenAPI document.",
        ),
    };
    Words {
        id,
        tag,
        summary,
        description,
    }
}

/// An operation as the document has it.
pub(super) fn operation(route: &Route) -> Value {
    let Words {
        id,
        tag,
        summary,
        description,
    } = words(route.operation);
    let mut parameters = Vec::new();
    if let Some((_, name)) = route.template.split_once('{') {
        parameters.push(match name.strip_suffix('}') {
            Some(name) => json!({"name": name, "in": "path", "required": true, "description": "The product's code.", "schema": code_schema(&NO_SEGMENTS)}),
            None => json!({"name": "digest", "in": "path", "required": true, "description": "The SHA-256 of the Markdown, in lower-case hexadecimal digits.", "schema": {"type": "string", "pattern": "^[0-9a-f]{64}$"}}),
        });
    }
    parameters.extend(parameters::of(route.operation).iter().map(query_parameter));
    let is_keyed = matches!(route.operation, Operation::Keyed(_));
    if is_keyed {
        parameters.push(json!({
            "name": "X-Api-Version", "in": "header", "required": false,
            "description": "The dated version of the API; an empty header counts as none.",
            "schema": {"type": "string", "pattern": format!("^({})?$", ApiVersion::SERVED.map(ApiVersion::as_str).join("|")), "default": ApiVersion::default().as_str()},
        }));
    }
    parameters.push(json!({
        "name": "If-None-Match", "in": "header", "required": false,
        "description": "Entity tags of answers that the client has.",
        "schema": {"type": "string"},
    }));
    let mut operation = json!({
        "operationId": id,
        "tags": [tag],
        "summary": summary,
        "description": description,
        "parameters": parameters,
        "responses": responses(route.operation),
    });
    if !is_keyed {
        operation["security"] = json!([]);
    }
    operation
}

fn responses(operation: Operation) -> Value {
    let reference = |name: &str| json!({"$ref": format!("#/components/schemas/{name}")});
    let schema = match operation {
        Operation::Keyed(KeyedOperation::ListProducts) => reference("ProductList"),
        Operation::Keyed(KeyedOperation::GetProduct) => reference("Product"),
        Operation::Keyed(KeyedOperation::ListCategories) => reference("CategoryList"),
        Operation::Keyed(KeyedOperation::ListCountries) => reference("CountryList"),
        Operation::Keyed(KeyedOperation::Ping) => reference("Pong"),
        Operation::GetText => json!({"type": "string"}),
        Operation::GetOpenapi => json!({"type": "object"}),
    };
    let (content_type, mut names, errors): (_, Vec<&str>, &[ErrorType]) = match operation {
        Operation::Keyed(_) => (
            "application/json",
            vec![
                "X-Request-Id",
                "X-Api-Version",
                "ETag",
                "Cache-Control",
                "Vary",
                "RateLimit-Policy",
                "RateLimit",
            ],
            ErrorType::ALL,
        ),
        Operation::GetText | Operation::GetOpenapi => (
            "text/markdown; charset=utf-8",
            vec!["X-Request-Id", "ETag", "Cache-Control", "Vary"],
            &PUBLIC_ERRORS,
        ),
    };
    if operation == Operation::Keyed(KeyedOperation::ListProducts) {
        names.push("Link");
    }
    let header = |name: &str| {
        (
            name.to_owned(),
            json!({"$ref": format!("#/components/headers/{name}")}),
        )
    };
    let headers: Map<String, Value> = names.into_iter().map(header).collect();
    let mut responses = json!({
        "200": {
            "description": words(operation).summary,
            "headers": headers,
            "content": {content_type: {"schema": schema}},
        },
        "304": {"description": "The client has this answer already.", "headers": headers},
    });
    for kind in errors {
        let status = ApiError::status(*kind).as_str().to_owned();
        responses[status.as_str()] =
            json!({"$ref": format!("#/components/responses/Error{status}")});
    }
    responses
}

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
