//! The OpenAPI 3.1 document, generated from what the service itself uses: routes, parameters, errors, wire types and
//! the model's values. `openapi/` has a frozen copy; a test compares the two.

mod answers;
mod examples;
mod headers;
mod operations;
mod parameters;
mod request_headers;
mod schemas;
mod webhooks;

use serde_json::{Map, Value, json};

use super::routes::ROUTES;
pub(super) use schemas::replace_fields;

use super::versions::Version;

/// Public URL in documents without a server, such as the frozen ones.
pub const PLACEHOLDER_URL: &str = "https://catalog.example";

/// Returns the document of a version for a service at a public URL, indented by two spaces, with a line feed at the
/// end.
#[must_use]
pub fn document(public_url: &str, version: &Version) -> String {
    let mut document = build(public_url, version);
    (version.convert_openapi)(&mut document);
    format!("{document:#}\n")
}

/// Returns the identifier and the title of each operation, in the order of the document.
pub fn operations() -> impl Iterator<Item = (&'static str, &'static str)> {
    let described = ROUTES
        .iter()
        .filter(|route| route.template.starts_with("/v2"));
    described.map(|route| operations::names(route.operation))
}

fn build(public_url: &str, version: &Version) -> Value {
    let paths: Map<String, Value> = ROUTES
        .iter()
        .filter_map(|route| Some((route.template.strip_prefix("/v2")?, route)))
        .map(|(path, route)| (path.to_owned(), operations::path_item(route)))
        .collect();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Vitrine product catalog",
            "version": version.date,
            "summary": "The products that can be ordered as payouts: where, in which amounts, on what terms.",
            "description": DESCRIPTION,
            "contact": {"name": "The operator of this catalog", "url": "https://catalog.example", "email": "catalog@catalog.example"},
            "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"},
        },
        "servers": [{"url": format!("{public_url}/v2"), "description": "This service"}],
        "security": [{"ApiKey": []}],
        "tags": [
            {"name": "Products", "description": "The catalog: what can be ordered as a payout, where, in which amounts, on what terms; and the values that its filters take."},
            {"name": "Texts", "description": "The Markdown behind the addresses in `content_resources`."},
            {"name": "Webhooks", "description": "What is sent to a client's own server, where the operator created an endpoint for it."},
            {"name": "Service", "description": "What helps to integrate: trying a key."},
        ],
        "paths": paths,
        "webhooks": webhooks::webhooks(),
        "components": {
            "securitySchemes": {
                "ApiKey": {
                    "type": "apiKey",
                    "in": "header",
                    "name": "X-Api-Key",
                    "description": "The client's key, `PREFIX.SECRET`. In the header only: a key in the query isn't looked at.",
                },
            },
            "parameters": request_headers::parameters(version),
            "headers": headers::headers(version.date),
            "schemas": schemas::schemas(),
            "responses": answers::shared_errors(),
        },
    })
}

const DESCRIPTION: &str = "\
Clients read the catalog with an API key.

**Keys.** Send your key in the header `X-Api-Key`. `GET /ping` tries it.

**Versions.** `X-Api-Version` selects a dated version; without it the key's own version, else the default, answers.

**Paging.** Products are ordered by code, byte-wise ascending. Follow `pagination.cursors.after` until a page is empty, or the `Link` header until it has no `next`: no product comes twice or goes missing, whatever is loaded meanwhile.

**Errors.** Every error is `{\"type\", \"message\", \"help\"}`; `type` is for programs and never changes. A parameter that an operation doesn't know is refused, never ignored.

**Caching.** Answers bear a weak `ETag`; repeat a read with `If-None-Match` and a 304 tells you for free that nothing changed.

**Trying errors.** A test key may send the header `X-Simulate: TYPE` with any error type, and gets that error. Other keys get the error `forbidden`. No operation lists the header, because tools send what is listed.

**Methods.** `HEAD` works wherever `GET` does.

**Growth.** Payout types, enum values, error types, optional parameters and endpoints may be added within a version; fields only with a new version. Enums of answers are plain strings: their descriptions list the values known today (as `x-extensible-enum` does), and say what to do with others. Every object takes further fields, so that a client survives a change of version. Some generators of openapi-generator, such as `go` and `java` with its default library, need `disallowAdditionalPropertiesIfNotPresent=false` for that.

**Examples** are answers to the sample catalog: `vitrine demo` serves it, and each example says which request gives it.";
