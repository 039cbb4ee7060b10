//! Headers of responses, with examples.

use serde_json::{Value, json};

use super::examples::ENTITY_TAG;

/// Returns every header of responses of this version. Those of the connection (`Content-Length`, `Date`, `Connection`)
/// are left out.
pub(super) fn headers(version: &str) -> Value {
    let text = || json!({"type": "string"});
    let mut headers = json!({
        "X-Request-Id": always(
            "The request's id: the client's own, where it sent a fit one, else a new one. Tell it the operator when you ask about a request.",
            &json!({"type": "string", "pattern": "^[A-Za-z0-9._:-]{1,128}$"}),
            &[("made", "Made by the service", "01JX2V9K7QW3F8YB5T6N4M0ZRD")],
        ),
        "X-Api-Version": sometimes(
            "The version that answered. Absent on errors that come before it is known, such as `unauthorized`.",
            &text(),
            &[("current", "The current version", version)],
        ),
        "ETag": always(
            "The weak entity tag of the answer, one for all encodings. It stays as long as the answer does, also across loads and restarts.",
            &json!({"type": "string", "pattern": "^W/\"[0-9a-f]{32}\"$"}),
            &[("tag", "Send it back in `If-None-Match`", ENTITY_TAG)],
        ),
        "Cache-Control": always(
            "How long the answer may be kept, and by whom.",
            &text(),
            &[
                ("key", "What a key reads", "private, max-age=60, stale-while-revalidate=300, stale-if-error=86400"),
                ("text", "A text, which never changes", "public, max-age=31536000, immutable"),
                ("error", "An error, or changes since a token", "no-store"),
            ],
        ),
        "Vary": sometimes(
            "The request's headers that the answer depends on. Absent on errors that are sent plain.",
            &text(),
            &[
                ("key", "What a key reads", "Accept-Encoding, X-Api-Version, X-Api-Key"),
                ("text", "A text", "Accept-Encoding"),
                ("error", "An error, with origins that the operator named", "Origin"),
                ("origins", "What a key reads, with origins that the operator named", "Accept-Encoding, X-Api-Version, X-Api-Key, Origin"),
            ],
        ),
        "X-Content-Type-Options": always(
            "Browsers take the body for nothing but its content type.",
            &text(),
            &[("nosniff", "The only value", "nosniff")],
        ),
        // Mock servers send the first example of each header, with a plain body.
        "Content-Encoding": sometimes(
            "The coding of the body, one that `Accept-Encoding` allows. Absent if the body is plain.",
            &json!({"type": "string"}),
            &[("plain", "Plain; the server then omits the header", "identity"),
                ("gzip", "Compressed with gzip", "gzip"), ("zstd", "Compressed with Zstandard", "zstd"), ("br", "Compressed with Brotli", "br")],
        ),
        "Link": sometimes(
            "The page's neighbours, `prev` and `next` (RFC 8288), as references relative to the request. Absent on an empty page.",
            &text(),
            &[
                ("middle", "A page between others", "<?limit=2&before=ALMAZURIN-ES>; rel=\"prev\", <?limit=2&after=ALMAZURIN-MX>; rel=\"next\""),
                ("last", "The last page", "<?limit=50&before=plain~1>; rel=\"prev\""),
            ],
        ),
        "RateLimit-Policy": sometimes(
            "The key's quota, where it has one: `q` requests in `w` seconds.",
            &text(),
            &[("quota", "600 requests a minute", "\"default\";q=600;w=60")],
        ),
        "RateLimit": sometimes(
            "What is left of the key's quota, where it has one: `r` requests, until it is whole again in `t` seconds.",
            &text(),
            &[("left", "599 requests left", "\"default\";r=599;t=1")],
        ),
    });
    for (name, header) in of_errors().into_iter().chain(of_origins()) {
        headers[name] = header;
    }
    headers
}

/// Returns the headers that some errors have.
fn of_errors() -> [(&'static str, Value); 3] {
    let text = json!({"type": "string"});
    let wait = json!({"type": "integer", "format": "int32", "minimum": 1});
    let mut retry_after = header(
        true,
        "Seconds after which trying again makes sense.",
        &wait,
        &[],
    );
    retry_after["examples"] = json!({"soon": {"summary": "Five seconds", "value": 5}});
    [
        ("Retry-After", retry_after),
        (
            "WWW-Authenticate",
            always(
                "How to authenticate.",
                &text,
                &[("key", "With a key", "ApiKey")],
            ),
        ),
        (
            "Allow",
            always(
                "The methods that the path takes.",
                &text,
                &[("read", "Every path is read only", "GET, HEAD")],
            ),
        ),
    ]
}

/// Returns the header of an answer without changes that couldn't be waited for.
pub(super) fn pause() -> Value {
    let mut pause = header(
        false,
        "Seconds to wait before the next request. Only there if too many requests wait already.",
        &json!({"type": "integer", "format": "int32", "minimum": 1}),
        &[],
    );
    pause["examples"] = json!({"soon": {"summary": "Five seconds", "value": 5}});
    pause
}

/// Returns the headers by which browsers let pages of other origins read a response (CORS).
fn of_origins() -> [(&'static str, Value); 2] {
    let text = json!({"type": "string"});
    [
        (
            "Access-Control-Allow-Origin",
            sometimes(
                "The origins whose pages may read the response: any, if it needs no key; otherwise the request's origin, if the operator named it.",
                &text,
                &[
                    ("any", "Any origin", "*"),
                    (
                        "named",
                        "An origin that the operator named",
                        "https://shop.example",
                    ),
                ],
            ),
        ),
        (
            "Access-Control-Expose-Headers",
            sometimes(
                "The headers that pages of a named origin may read.",
                &text,
                &[(
                    "all",
                    "The only value",
                    "ETag, Link, RateLimit, RateLimit-Policy, Retry-After, X-Api-Version, X-Request-Id",
                )],
            ),
        ),
    ]
}

/// Name, summary and value of an example.
pub(super) type Example<'a> = (&'a str, &'a str, &'a str);

fn always(description: &str, schema: &Value, examples: &[Example<'_>]) -> Value {
    header(true, description, schema, examples)
}

fn sometimes(description: &str, schema: &Value, examples: &[Example<'_>]) -> Value {
    header(false, description, schema, examples)
}

pub(super) fn header(
    required: bool,
    description: &str,
    schema: &Value,
    examples: &[Example<'_>],
) -> Value {
    let mut described = json!({"description": description, "required": required, "schema": schema});
    for (name, summary, value) in examples {
        described["examples"][*name] = json!({"summary": summary, "value": value});
    }
    described
}
