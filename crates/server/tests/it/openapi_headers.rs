//! Headers and HEAD in the OpenAPI document: answers have those that it describes, and no others.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::harness::{Reply, Store, text};
use crate::openapi_examples::{asked, document, object, operations, resolved, validator};

/// Holds that an answer has the headers that the document says, with such values, and no others.
pub fn headers_are_described(document: &Value, response: &Value, answer: &Reply, request: &str) {
    /// OpenAPI has another place for the content type; the others are the connection's.
    const UNDESCRIBED: [&str; 5] = [
        "content-type",
        "content-length",
        "transfer-encoding",
        "connection",
        "date",
    ];
    let described = object(&response["headers"]).keys();
    let described: BTreeSet<String> = described.map(|name| name.to_lowercase()).collect();
    for (name, _) in &answer.headers {
        let name = name.to_lowercase();
        let is_known = described.contains(&name) || UNDESCRIBED.contains(&&*name);
        assert!(is_known, "{name} isn't described: {request}");
    }
    /// Headers with few values: each is among the examples.
    const FIXED: [&str; 5] = [
        "X-Api-Version",
        "Cache-Control",
        "Vary",
        "WWW-Authenticate",
        "Allow",
    ];
    for (name, header) in object(&response["headers"]) {
        let header = resolved(document, header);
        let Some(value) = answer.header(&name.to_ascii_lowercase()) else {
            assert_eq!(header["required"], false, "{name}: {request}");
            continue;
        };
        let value = match header["schema"]["type"].as_str() {
            Some("integer") => json!(value.parse::<u32>().expect("a number")),
            _ => json!(value),
        };
        let fits = validator(document, &header["schema"]).is_valid(&value);
        assert!(fits, "{name}: {value}: {request}");
        let mut examples = object(&header["examples"]).values();
        let is_shown = examples.any(|example| example["value"] == value);
        assert!(
            is_shown || !FIXED.contains(&&**name),
            "{name}: {value}: {request}"
        );
    }
}

#[test]
fn head_answers_have_the_described_headers_and_no_body() {
    let store = Store::sample();
    let document = document(&store);
    let asked = asked(&store);
    let mut compared = 0;
    for (path, operation) in operations(&document) {
        let head = &document["paths"][path]["head"];
        let statuses: Vec<&String> = object(&head["responses"]).keys().collect();
        let of_get: Vec<&String> = object(&operation["responses"]).keys().collect();
        assert_eq!(statuses, of_get, "{path}");
        for (status, response) in object(&operation["responses"]) {
            let media = &resolved(&document, response)["content"];
            let media = media.as_object().into_iter().flat_map(Map::values);
            for example in media.flat_map(|media| object(&media["examples"]).values()) {
                let description = example["description"].as_str().expect("a request");
                if description.contains("`POST ") {
                    continue;
                }
                let description = description.replace("`GET ", "`HEAD ");
                let answer = asked.ask(&description);
                assert_eq!(answer.status.to_string(), *status, "{description}");
                assert_eq!(text(&answer.body), "", "{description}");
                let response = resolved(&document, &head["responses"][status]);
                headers_are_described(&document, response, &answer, &description);
                compared += 1;
            }
        }
    }
    assert!(compared > 50, "{compared} answers");
}

#[test]
fn compressed_and_unchanged_answers_have_the_described_headers() {
    let store = Store::sample();
    let document = document(&store);
    let asked = asked(&store);
    let responses = &document["paths"]["/product"]["get"]["responses"];
    let check = |status: &str, target: &str, header: (&str, &str)| {
        let headers = [("X-Api-Key", asked.key.as_str()), header];
        let answer = asked.server.send("GET", target, &headers);
        assert_eq!(answer.status.to_string(), status, "{target}");
        let response = resolved(&document, &responses[status]);
        headers_are_described(&document, response, &answer, target);
        answer
    };
    for coding in ["gzip", "br", "zstd"] {
        let answer = check("200", "/v2/product", ("Accept-Encoding", coding));
        assert_eq!(answer.header("content-encoding"), Some(coding));
    }
    let refused = ("Accept-Encoding", "gzip, identity;q=0");
    let answer = check("400", "/v2/product?limit=0", refused);
    assert_eq!(answer.header("content-encoding"), Some("gzip"));
    check("304", "/v2/product", ("If-None-Match", "*"));
}

#[test]
fn answers_to_named_origins_have_the_described_headers() {
    let store = Store::sample();
    let document = document(&store);
    let key = store.key("page", &[]);
    let server = store.serve_with(&["--cors-origins", "https://shop.example"]);
    let responses = &document["paths"]["/product"]["get"]["responses"];
    for (status, target) in [("200", "/v2/product"), ("400", "/v2/product?limit=0")] {
        let headers = [("X-Api-Key", &*key), ("Origin", "https://shop.example")];
        let answer = server.send("GET", target, &headers);
        assert!(answer.header("access-control-expose-headers").is_some());
        let response = resolved(&document, &responses[status]);
        headers_are_described(&document, response, &answer, target);
    }
}
