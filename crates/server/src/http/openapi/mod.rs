//! The OpenAPI 3.1 document, made of the same tables and types that the service runs on: routes,
//! parameters, errors, wire types and the model's values. A frozen copy stands in `openapi/`; a test
//! fails when the two part.

mod answers;
mod examples;
mod headers;
mod operations;
mod parameters;
mod schemas;

use std::sync::OnceLock;

use serde_json::{Map, Value, json};
use vitrine_model::version::ApiVersion;

use super::routes::ROUTES;

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
        .map(|(path, route)| {
            (
                path.to_owned(),
                json!({"get": operations::operation(route)}),
            )
        })
        .collect();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Vitrine product catalog",
            "version": ApiVersion::default().as_str(),
            "summary": "The products that can be ordered as payouts: where, in which amounts, on what terms.",
            "description": DESCRIPTION,
            "contact": {"name": "The operator of this catalog", "url": "https://catalog.example", "email": "catalog@catalog.example"},
            "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"},
        },
        "servers": [{"url": "/v2", "description": "This server"}],
        "security": [{"ApiKey": []}],
        "tags": [
            {"name": "Products", "description": "The catalog: what can be ordered as a payout, where, in which amounts, on what terms; and the values that its filters take."},
            {"name": "Texts", "description": "The Markdown behind the addresses in `content_resources`."},
            {"name": "Service", "description": "What helps to integrate: trying a key."},
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
            "headers": headers::headers(),
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

**Trying errors.** A test key may send `X-Simulate: TYPE` with any error type and gets that error.

**Growth.** Payout types, enum values and fields may be added within a version: skip what you don't know. Enums of answers are open for that reason: the schema `X` takes any text, `KnownX` lists the values known today, and each says what to do with others.

**Examples** are answers to the sample catalog: `vitrine demo` serves it, and each example says which request gives it.";
