//! The reference: the OpenAPI document as pages, an overview and one for each operation. All of its content, examples
//! included, comes from the document.
//!
//! - `document`: the parts of the document that pages show
//! - `operation`: the page of an operation

mod document;
mod operation;

use askama::Template;
use serde_json::Value;

use self::document::{Document, Field, Operation, Schema, text};
use super::{Context, Heading, markdown};

pub(super) use self::operation::render as render_operation;

#[derive(Template)]
#[template(path = "docs/reference.html")]
struct ReferenceTemplate<'p> {
    up: &'p str,
    introduction: String,
    operations: Vec<Operation>,
    schemas: Vec<Schema>,
    headers: Vec<Field>,
}

/// Returns the OpenAPI document of this server.
fn parsed_document(context: &Context<'_>) -> Value {
    let document = (context.sources.openapi)(&context.sources.public_url);
    // Tests read the document as JSON.
    serde_json::from_str(&document).unwrap_or_default()
}

/// Renders the overview: all operations, headers and schemas.
pub(super) fn render(context: &Context<'_>) -> Result<String, askama::Error> {
    let document = parsed_document(context);
    let document = Document(&document);
    let contents = [
        ("operations", "Operations"),
        ("headers", "Headers of answers"),
        ("schemas", "Schemas"),
    ];
    let contents = contents.map(|(id, title)| Heading {
        id: id.to_owned(),
        title: title.to_owned(),
    });
    let body = ReferenceTemplate {
        up: &context.up,
        introduction: markdown::text(text(&document.0["info"]["description"])),
        operations: document.operations(),
        schemas: document.schemas(),
        headers: document.headers(),
    }
    .render()?;
    let lead =
        "All operations, headers and schemas, as [openapi.json]({up}openapi.json) describes them.";
    context.page("API reference", lead, contents.into(), body)
}
