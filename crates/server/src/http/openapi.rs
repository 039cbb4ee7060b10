//! The OpenAPI 3.1 document, made of the same tables and types that the service runs on: routes,
//! parameters, errors, wire types and the model's values. A frozen copy stands in `openapi/`; a test
//! fails when the two part.

use std::sync::OnceLock;

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};
use vitrine_model::product::{
    Availability, BarcodeFormat, DenominationType, ECodeUsageType, ExpiryType, LengthUnit,
    RedeemableAt, State,
};
use vitrine_model::query::Limit;
use vitrine_model::version::ApiVersion;
use vitrine_wire::answer::{CategoryList, CountryList, Pong, ProductList};
use vitrine_wire::error::{ErrorBody, ErrorType, FaultType};
use vitrine_wire::product::Product;

use super::error::ApiError;
use super::parameters::{self, Multiplicity, Parameter};
use super::routes::{KeyedOperation, Operation, ROUTES, Route};
use crate::view::ContentForm;

/// Words that match the pattern of codes and can't be codes: as cursors they are refused.
const NO_CURSORS: [&str; 5] = [".", "..", "categories", "countries", "changes"];

/// The same for codes in paths. There the other words aren't refused: they are paths of their own.
const NO_SEGMENTS: [&str; 2] = [".", ".."];

/// A product code, and so a cursor.
fn code_schema(except: &[&str]) -> Value {
    json!({
        "type": "string",
        "pattern": "^[A-Za-z0-9._~-]{1,64}$",
        "not": {"enum": except},
    })
}

/// The document as text, two blanks to the level and a line break at its end.
#[must_use]
pub fn document() -> &'static str {
    static DOCUMENT: OnceLock<String> = OnceLock::new();
    DOCUMENT.get_or_init(|| format!("{:#}\n", build()))
}

fn build() -> Value {
    let paths: Map<String, Value> = ROUTES
        .iter()
        .filter_map(|route| Some((route.template.strip_prefix("/v2")?, route)))
        .map(|(path, route)| (path.to_owned(), json!({"get": operation(route)})))
        .collect();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Vitrine product catalog",
            "version": ApiVersion::default().as_str(),
            "summary": "The products that can be ordered as payouts: where, in which amounts, on what terms.",
            "description": DESCRIPTION,
            "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"},
        },
        "servers": [{"url": "/v2", "description": "This server"}],
        "security": [{"ApiKey": []}],
        "tags": [
            {"name": "Products", "description": "The catalog."},
            {"name": "Texts", "description": "The Markdown behind the addresses of the catalog."},
            {"name": "Service", "description": "What helps to integrate."},
        ],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "ApiKey": {
                    "type": "apiKey",
                    "in": "header",
                    "name": "X-Api-Key",
                    "description": "The client's key, `PREFIX.SECRET`. In the header only: a key in the query isn't looked at.",
                },
            },
            "headers": headers(),
            "schemas": schemas(),
            "responses": error_responses(),
        },
    })
}

const DESCRIPTION: &str = "\
Clients read the catalog with an API key.

**Versions.** `X-Api-Version` selects a dated version; without it the key's own version, else the default, answers.

**Paging.** Products are ordered by code, byte-wise ascending. Follow `pagination.cursors.after` until a page is empty, or the `Link` header until it has no `next`: no product comes twice or goes missing, whatever is loaded meanwhile.

**Errors.** Every error is `{\"type\", \"message\", \"help\"}`; `type` is for programs and never changes. A parameter that an operation doesn't know is refused, never ignored.

**Caching.** Answers bear a weak `ETag`; repeat a read with `If-None-Match` and a 304 tells you for free that nothing changed.

**Trying errors.** A test key may send `X-Simulate: TYPE` with any error type and gets that error.

**Growth.** Payout types, enum values and fields may be added within a version: skip what you don't know.";

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
        // Neither is among the paths.
        Operation::GetOpenapi | Operation::Docs(_) => (
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

fn operation(route: &Route) -> Value {
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

fn query_parameter(parameter: &Parameter) -> Value {
    let item = match parameter.name {
        "is_orderable" => json!({"type": "boolean"}),
        "countries_redeemable_in" => json!({"type": "string", "pattern": "^[A-Z]{2}$"}),
        "before" | "after" => code_schema(&NO_CURSORS),
        "limit" => {
            json!({"type": "integer", "minimum": 1, "maximum": Limit::MAX, "default": Limit::MAX})
        }
        "content" => {
            json!({"type": "string", "enum": ContentForm::ALL.map(ContentForm::as_str), "default": ContentForm::default().as_str()})
        }
        _ => json!({"type": "string", "minLength": 1}),
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
    described
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
        Operation::GetOpenapi | Operation::Docs(_) => json!({"type": "object"}),
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
        Operation::GetText | Operation::GetOpenapi | Operation::Docs(_) => (
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

/// One response a status, with an example of each error type that has it.
fn error_responses() -> Value {
    let mut responses = json!({});
    for kind in ErrorType::ALL {
        let status = ApiError::status(*kind);
        let example = ApiError::plain(*kind);
        let response = &mut responses[format!("Error{}", status.as_str())];
        if response.is_null() {
            *response = json!({
                "description": status.canonical_reason().unwrap_or("Error"),
                "headers": {"X-Request-Id": {"$ref": "#/components/headers/X-Request-Id"}},
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}, "examples": {}}},
            });
            if example.retry_after.is_some() {
                response["headers"]["Retry-After"] =
                    json!({"$ref": "#/components/headers/Retry-After"});
            }
        }
        response["content"]["application/json"]["examples"][kind.as_str()] = json!({
            "value": {"type": kind.as_str(), "message": example.message, "help": example.help},
        });
    }
    responses
}

fn headers() -> Value {
    let header = |required: bool, description: &str, schema: Value| json!({"description": description, "required": required, "schema": schema});
    let text = || json!({"type": "string"});
    json!({
        "X-Request-Id": header(true, "The request's id: the client's own, where it sent a fit one.", json!({"type": "string", "pattern": "^[A-Za-z0-9._:-]{1,128}$"})),
        "X-Api-Version": header(true, "The version that answered.", text()),
        "ETag": header(true, "The weak entity tag of the answer, one for all encodings.", json!({"type": "string", "pattern": "^W/\"[0-9a-f]{32}\"$"})),
        "Cache-Control": header(true, "How long the answer may be kept, and by whom.", text()),
        "Vary": header(true, "The request's headers that the answer depends on.", text()),
        "Link": header(false, "The page's neighbours, `prev` and `next` (RFC 8288), as references relative to the request.", text()),
        "RateLimit-Policy": header(false, "The key's quota, where it has one.", text()),
        "RateLimit": header(false, "What is left of the key's quota, where it has one.", text()),
        "Retry-After": header(false, "Seconds after which trying again makes sense.", json!({"type": "integer", "minimum": 1})),
    })
}

fn schemas() -> Value {
    let mut settings = SchemaSettings::draft2020_12().for_serialize();
    settings.definitions_path = "/components/schemas".into();
    let mut generator = settings.into_generator();
    generator.subschema_for::<ProductList<'_>>();
    generator.subschema_for::<Product<'_>>();
    generator.subschema_for::<CategoryList<'_>>();
    generator.subschema_for::<CountryList<'_>>();
    generator.subschema_for::<Pong>();
    generator.subschema_for::<ErrorBody>();
    let mut schemas = Value::Object(generator.take_definitions(true));
    for (schema, field, values) in enumerations() {
        let field = &mut schemas[schema]["properties"][field];
        let mut values: Vec<Value> = values.into_iter().map(Value::from).collect();
        if field["type"].is_array() {
            values.push(Value::Null);
        }
        field["enum"] = Value::Array(values);
    }
    schemas
}

/// Which fields have which values: the wire types leave that to the model.
fn enumerations() -> Vec<(&'static str, &'static str, Vec<&'static str>)> {
    macro_rules! values {
        ($kind:ty) => {
            <$kind>::ALL.iter().map(|value| value.as_str()).collect()
        };
    }
    let mut fields = vec![
        ("Product", "state", values!(State)),
        ("Product", "availability", values!(Availability)),
        ("Expiry", "type", values!(ExpiryType)),
        ("Denominations", "type", values!(DenominationType)),
        ("SubscriptionPlan", "length_unit", values!(LengthUnit)),
        ("Error", "type", values!(ErrorType)),
        ("ParameterFault", "type", values!(FaultType)),
        ("Pong", "message", vec!["pong"]),
    ];
    for voucher in ["GiftCard", "Subscription"] {
        fields.push((voucher, "redeemable_at", values!(RedeemableAt)));
        fields.push((voucher, "barcode_format", values!(BarcodeFormat)));
        fields.push((voucher, "e_code_usage_type", values!(ECodeUsageType)));
    }
    fields
}
