//! The `webhooks` section: what is sent to endpoints, and how receivers answer.

use serde_json::{Map, Value, json};

/// An event.
struct Event {
    kind: &'static str,
    id: &'static str,
    summary: &'static str,
    description: &'static str,
    schema: &'static str,
    /// True if its headers also have the names that receivers in the field know.
    has_older_names: bool,
}

const EVENTS: [Event; 3] = [
    Event {
        kind: "catalog.changed",
        id: "receiveCatalogChanged",
        summary: "Something that the endpoint sees has changed",
        description: "Sent to endpoints of the default format. What is published during an attempt joins the next event. Wake the program that keeps the copy, or ask \
            `changes_url` and answer once its changes are applied.",
        schema: "CatalogChanged",
        has_older_names: false,
    },
    Event {
        kind: "webhook.test",
        id: "receiveWebhookTest",
        summary: "The operator tries the endpoint",
        description: "Sent once, whatever the answer.",
        schema: "WebhookTest",
        has_older_names: false,
    },
    Event {
        kind: "product.update",
        id: "receiveProductUpdate",
        summary: "A product changed in a revision",
        description: "Sent instead of `catalog.changed` to endpoints of the format `product.update`: one request for each product and revision, in order.",
        schema: "ProductUpdate",
        has_older_names: true,
    },
];

/// Headers of an attempt (Standard Webhooks 1.0).
const HEADERS: [(&str, &str); 3] = [
    ("id", "Id of the event, the same for each attempt."),
    (
        "timestamp",
        "Time of the attempt, in seconds since 1970. Refuse one that is more than five minutes off.",
    ),
    (
        "signature",
        "`v1,` and the base64 of HMAC-SHA256 with the endpoint's secret over `id.timestamp.body`; several, separated by blanks, while secrets overlap.",
    ),
];

/// Returns the section.
pub(super) fn webhooks() -> Value {
    let events = EVENTS.iter();
    let section: Map<String, Value> = events
        .map(|event| (event.kind.to_owned(), json!({"post": operation(event)})))
        .collect();
    section.into()
}

fn operation(event: &Event) -> Value {
    let starts: &[&str] = match event.has_older_names {
        true => &["webhook", "svix"],
        false => &["webhook"],
    };
    let headers = starts.iter().flat_map(|start| {
        HEADERS.iter().map(move |(name, description)| {
            json!({
                "name": format!("{start}-{name}"),
                "in": "header",
                "required": true,
                "description": description,
                "schema": {"type": "string"},
            })
        })
    });
    let parameters: Vec<Value> = headers.collect();
    json!({
        "operationId": event.id,
        "tags": ["Webhooks"],
        "summary": event.summary,
        "description": event.description,
        "security": [],
        // Receivers find a library by it. Without any extension, openapi-generator's `spring` fails.
        "x-standard-webhooks": "1.0",
        "parameters": parameters,
        "requestBody": {
            "required": true,
            "content": {"application/json": {"schema": {"$ref": format!("#/components/schemas/{}", event.schema)}}},
        },
        "responses": {
            "2XX": {"description": "Taken, if it comes within 15 seconds."},
            "410": {"description": "The receiver is gone: the endpoint is disabled."},
            "default": {"description": "Not taken: it is sent again later. `Retry-After` is obeyed, up to a day."},
        },
    })
}
