//! Request headers, with examples.

use serde_json::{Value, json};

use super::examples::ENTITY_TAG;
use super::headers::{Example, header};
use crate::http::routes::{KeyedOperation, Operation};
use crate::http::versions::Version;

/// Returns references to the request headers that an operation reads, apart from the key's.
pub(super) fn of(operation: Operation) -> Vec<Value> {
    let mut names = vec![
        "X-Request-Id",
        "Accept-Encoding",
        "traceparent",
        "tracestate",
    ];
    // Answers of the changes feed have no entity tag.
    if operation != Operation::Keyed(KeyedOperation::ListChanges) {
        names.insert(0, "If-None-Match");
    }
    if matches!(operation, Operation::Keyed(_)) {
        names.insert(0, "X-Api-Version");
    }
    let reference = |name| json!({"$ref": format!("#/components/parameters/{name}")});
    names.into_iter().map(reference).collect()
}

/// Returns every request header of this version but `X-Simulate`, which the description of the document explains: tools fill
/// in whatever is listed, and only test keys may send it.
pub(super) fn parameters(version: &Version) -> Value {
    let text = json!({"type": "string"});
    let date = version.date;
    let schema = match version.is_default() {
        true => json!({"type": "string", "pattern": format!("^({date})?$"), "default": date}),
        false => json!({"type": "string", "pattern": format!("^{date}$")}),
    };
    let mut parameters = json!({
        "X-Api-Version": parameter(
            "X-Api-Version",
            "The dated version of the API that shall answer. Send the one that your program was written for: answers then stay as they are when a newer version becomes the default. Without it, or with an empty one, the version that your key is pinned to answers, else the default.",
            &schema,
            &[("current", "The current version", date)],
        ),
        "If-None-Match": parameter(
            "If-None-Match",
            "The `ETag` of the answer that the client has, or several, separated by commas. Where one of them still holds, the answer is a 304 without a body, which costs no quota.",
            &text,
            &[("known", "The tag of an earlier answer", ENTITY_TAG)],
        ),
        "X-Request-Id": parameter(
            "X-Request-Id",
            "An id of your own for the request, which the answer and the service's log repeat: 1 to 128 of `A-Z a-z 0-9 . _ : -`. Any other value is replaced by a new id.",
            &text,
            &[("own", "An id of the client", "checkout-4711")],
        ),
        "Accept-Encoding": parameter(
            "Accept-Encoding",
            "The content codings that the client decodes: `gzip`, `br`, `zstd`. HTTP libraries send it by themselves.",
            &text,
            &[("gzip", "Compressed with gzip", "gzip")],
        ),
        "traceparent": parameter(
            "traceparent",
            "The trace that the request belongs to (W3C Trace Context).",
            &text,
            &[("sampled", "A sampled trace", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")],
        ),
        "tracestate": parameter(
            "tracestate",
            "What tracing systems keep of the trace; read only with a `traceparent`.",
            &text,
            &[("vendor", "One system's state", "vendor=00f067aa0ba902b7")],
        ),
    });
    // Only the default version answers requests that name none.
    parameters["X-Api-Version"]["required"] = json!(!version.is_default());
    parameters
}

fn parameter(name: &str, description: &str, schema: &Value, examples: &[Example<'_>]) -> Value {
    let mut described = header(false, description, schema, examples);
    described["name"] = json!(name);
    described["in"] = json!("header");
    described
}
