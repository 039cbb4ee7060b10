//! What operations share: headers, and the answers to requests that fail.

use serde_json::{Value, json};
use vitrine_wire::error::ErrorType;

use crate::http::error::ApiError;

/// One response a status, with an example of each error type that has it.
pub(super) fn error_responses() -> Value {
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

/// Every header of an answer.
pub(super) fn headers() -> Value {
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
