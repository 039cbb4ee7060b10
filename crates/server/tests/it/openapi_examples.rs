//! Examples of the OpenAPI document: everything has words and examples, and each example is what the server
//! answers on the sample catalog.
//!
//! `VITRINE_BLESS=1 cargo test --test it openapi_examples` writes the answers of the server into the documents.

use std::collections::BTreeSet;

use jsonschema::Validator;
use serde_json::{Map, Value, json};

use crate::harness::{Reply, Server, Store, text};
use crate::openapi::documents;
use crate::openapi_headers::headers_are_described;

/// Returns the document of the default version.
pub fn document(store: &Store) -> Value {
    store.json(&["openapi"])
}

/// Follows a reference within the document.
pub fn resolved<'d>(document: &'d Value, value: &'d Value) -> &'d Value {
    match value["$ref"].as_str() {
        Some(reference) => {
            let pointer = reference.strip_prefix('#').expect("a reference within");
            document.pointer(pointer).expect("what is referred to")
        }
        None => value,
    }
}

pub fn object(value: &Value) -> &Map<String, Value> {
    value.as_object().expect("an object")
}

/// Every GET with its path.
pub fn operations(document: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let paths = object(&document["paths"]).iter();
    paths.map(|(path, item)| (path.as_str(), &item["get"]))
}

/// Every operation with its method, in capitals, and its path.
fn all_operations(document: &Value) -> impl Iterator<Item = (String, &str, &Value)> {
    let paths = object(&document["paths"]).iter();
    paths.flat_map(|(path, item)| {
        object(item)
            .iter()
            .map(|(method, operation)| (method.to_uppercase(), path.as_str(), operation))
    })
}

/// The parameters of an operation.
pub fn parameters<'d>(
    document: &'d Value,
    operation: &'d Value,
) -> impl Iterator<Item = &'d Value> {
    let parameters = operation["parameters"].as_array().expect("parameters");
    parameters.iter().map(|one| resolved(document, one))
}

/// A schema of the document, against which values can be held.
pub fn validator(document: &Value, schema: &Value) -> Validator {
    let whole = json!({"components": document["components"], "allOf": [schema]});
    jsonschema::draft202012::new(&whole).expect("a schema")
}

fn has_words(what: &Value) -> bool {
    what["description"]
        .as_str()
        .is_some_and(|words| words.len() > 10)
}

/// Parameters without examples: tools send the examples of all parameters together, and these would end in an error.
const WITHOUT_EXAMPLES: [&str; 3] = ["before", "since", "wait"];

/// Holds that something has words, and examples that its schema allows.
fn is_shown(document: &Value, name: &str, what: &Value) {
    assert!(has_words(what), "{name} has no description");
    if WITHOUT_EXAMPLES
        .iter()
        .any(|without| what["name"] == **without)
    {
        return;
    }
    let validator = validator(document, &what["schema"]);
    let examples = what["examples"].as_object();
    let examples = examples.unwrap_or_else(|| panic!("{name} has no examples"));
    assert!(!examples.is_empty(), "{name} has no examples");
    for (example, shown) in examples {
        assert!(shown["summary"].is_string(), "{name}: {example}");
        let fault = validator
            .validate(&shown["value"])
            .err()
            .map(|fault| fault.to_string());
        assert_eq!(fault, None, "{name}: {example}");
    }
}

#[test]
fn everything_has_words_and_examples() {
    let store = Store::new();
    let document = document(&store);
    let tags = document["tags"].as_array().expect("tags");
    assert!(tags.iter().all(has_words));
    let mut ids = BTreeSet::new();
    for (method, path, operation) in all_operations(&document) {
        assert!(ids.insert(operation["operationId"].as_str()), "{path}");
        for words in ["operationId", "summary", "description"] {
            assert!(operation[words].is_string(), "{path}: {words}");
        }
        let tag = &operation["tags"][0];
        assert!(
            tags.iter().any(|known| known["name"] == *tag),
            "{path}: {tag}"
        );
        for parameter in parameters(&document, operation) {
            is_shown(
                &document,
                &format!("{path}: {}", parameter["name"]),
                parameter,
            );
        }
        for (status, response) in object(&operation["responses"]) {
            let response = resolved(&document, response);
            assert!(has_words(response), "{path}: {status}");
            for header in object(&response["headers"]).values() {
                is_shown(&document, "a header", resolved(&document, header));
            }
            let media = response["content"].as_object();
            let has_no_body = status == "304" || method == "HEAD";
            assert_eq!(media.is_none(), has_no_body, "{path}: {status}");
            for media in media.into_iter().flat_map(Map::values) {
                let mut media = media.clone();
                media["description"] = response["description"].clone();
                is_shown(&document, &format!("{path}: {status}"), &media);
            }
        }
    }
    for (name, schema) in object(&document["components"]["schemas"]) {
        assert!(has_words(schema), "{name}");
        let properties = schema["properties"].as_object();
        for (field, schema) in properties.into_iter().flatten() {
            assert!(has_words(schema), "{name}.{field}");
        }
    }
}

/// A server of the sample catalog, and keys to it.
pub struct ExampleRequests {
    pub server: Server,
    pub key: String,
    test_key: String,
}

impl ExampleRequests {
    /// Sends the request that an example's description names in backticks: the method and the target, then headers.
    pub fn ask(&self, description: &str) -> Reply {
        let mut quoted = description.split('`').skip(1).step_by(2);
        let request = quoted.next().expect("a request");
        let (method, target) = request.split_once(' ').expect("a method and a target");
        let mut headers: Vec<(&str, &str)> = quoted
            .map(|header| header.split_once(": ").expect("a header"))
            .collect();
        let has_key = headers.iter().any(|(name, _)| *name == "X-Api-Key");
        if description.contains("and a test key") {
            headers.push(("X-Api-Key", &self.test_key));
        } else if !has_key && !description.contains("without a key") {
            headers.push(("X-Api-Key", &self.key));
        }
        self.server.send(method, target, &headers)
    }
}

pub fn asked(store: &Store) -> ExampleRequests {
    // A server knows from its start the keys that were made before.
    let key = store.key("reader", &["--quota", "600/60"]);
    let test_key = store.key("trying", &["--test"]);
    ExampleRequests {
        server: store.serve_as("https://catalog.example"),
        key,
        test_key,
    }
}

/// Writes bodies into the documents, each at the JSON pointer of its example.
fn bless(bodies: &[(String, Value)]) {
    for (date, mut document) in documents() {
        for (pointer, body) in bodies {
            *document.pointer_mut(pointer).expect("an example") = body.clone();
        }
        let file = format!("{}/../../openapi/{date}.json", env!("CARGO_MANIFEST_DIR"));
        std::fs::write(file, format!("{document:#}\n")).expect("a file");
    }
}

#[test]
fn every_example_is_what_the_server_answers() {
    let store = Store::sample();
    let document = document(&store);
    let asked = asked(&store);
    let mut bodies = Vec::new();
    for (path, operation) in operations(&document) {
        for (status, response) in object(&operation["responses"]) {
            let place = match response["$ref"].as_str() {
                Some(shared) => shared.trim_start_matches('#').to_owned(),
                None => format!("/paths/{}/get/responses/{status}", path.replace('/', "~1")),
            };
            let response = resolved(&document, response);
            let media = response["content"].as_object();
            for (content_type, media) in media.into_iter().flatten() {
                for (name, example) in object(&media["examples"]) {
                    let description = example["description"].as_str().expect("a request");
                    let answer = asked.ask(description);
                    assert_eq!(answer.status.to_string(), *status, "{path}: {description}");
                    let answered = answer.header("content-type").unwrap_or_default();
                    let answered = answered.split(';').next().unwrap_or_default();
                    assert_eq!(answered, content_type, "{path}: {description}");
                    let mut got = match content_type.as_str() {
                        "application/json" => answer.json(),
                        _ => text(&answer.body).into(),
                    };
                    // Each token is another one; the schema holds its form.
                    if let Some(token) = got.get_mut("next") {
                        *token = example["value"]["next"].clone();
                    }
                    if std::env::var_os("VITRINE_BLESS").is_none() {
                        assert_eq!(got, example["value"], "{path}: {name}: {description}");
                    }
                    headers_are_described(&document, response, &answer, description);
                    let content_type = content_type.replace('/', "~1");
                    let pointer = format!("{place}/content/{content_type}/examples/{name}/value");
                    bodies.push((pointer, got));
                }
            }
        }
    }
    assert!(bodies.len() > 50, "{} examples", bodies.len());
    if std::env::var_os("VITRINE_BLESS").is_some() {
        bless(&bodies);
    }
}

#[test]
fn every_possible_error_type_has_an_example() {
    let store = Store::new();
    let document = document(&store);
    let error = &document["components"]["schemas"]["ApiError"];
    let known = &error["properties"]["type"]["x-extensible-enum"];
    let known: BTreeSet<&str> = known
        .as_array()
        .expect("types")
        .iter()
        .flat_map(Value::as_str)
        .collect();
    for (path, operation) in operations(&document) {
        let responses = object(&operation["responses"]).values();
        let media =
            responses.map(|response| &resolved(&document, response)["content"]["application/json"]);
        let examples = media
            .flat_map(|media| media["examples"].as_object())
            .flat_map(Map::values);
        let mut shown: BTreeSet<&str> = examples
            .flat_map(|example| example["value"]["type"].as_str())
            .collect();
        // Paging errors are those of the operations that page.
        if path != "/product" {
            shown.insert("pagination_error");
        }
        if operation["security"] == json!([]) {
            let needs_key = [
                "unauthorized",
                "invalid_api_key",
                "invalid_version",
                "version_removed",
                "changes_gone",
                "forbidden",
                "rate_limited",
            ];
            assert!(needs_key.iter().all(|kind| !shown.contains(kind)), "{path}");
            shown.extend(needs_key);
        }
        assert_eq!(shown, known, "{path}");
    }
}

#[test]
fn every_example_of_a_parameter_is_taken() {
    let store = Store::sample();
    let document = document(&store);
    let asked = asked(&store);
    for (path, operation) in operations(&document) {
        for parameter in parameters(&document, operation) {
            let name = parameter["name"].as_str().expect("a name");
            let examples = parameter["examples"].as_object();
            for example in examples.into_iter().flat_map(Map::values) {
                let values = match &example["value"] {
                    Value::Array(values) => values.clone(),
                    value => vec![value.clone()],
                };
                let values = values.iter().map(|value| match value {
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                });
                let values: Vec<String> = values.collect();
                let mut target = format!("/v2{path}");
                let mut headers = vec![("X-Api-Key", asked.key.as_str())];
                match parameter["in"].as_str() {
                    Some("path") => target = target.replace(&format!("{{{name}}}"), &values[0]),
                    Some("query") => {
                        let pairs: Vec<String> = values
                            .iter()
                            .map(|value| format!("{name}={value}"))
                            .collect();
                        target = format!("{target}?{}", pairs.join("&"));
                    }
                    _ => headers.push((name, &values[0])),
                }
                let target = target.replace("{product_code}", "HALLOWMERE-GB");
                let digest = "b3b3466990d9c98a3d1503566ae69a9e556c29ac96b3b295cf456a965b8d473d";
                let target = target.replace("{digest}", digest);
                let answer = asked.server.send("GET", &target, &headers);
                assert_eq!(answer.status, 200, "{target}: {}", text(&answer.body));
            }
        }
    }
}

#[test]
fn examples_sent_together_are_no_error() {
    let store = Store::sample();
    let document = document(&store);
    let asked = asked(&store);
    let operation = &document["paths"]["/product"]["get"];
    let (mut query, mut headers) = (Vec::new(), vec![("X-Api-Key", asked.key.as_str())]);
    for parameter in parameters(&document, operation) {
        let name = parameter["name"].as_str().expect("a name");
        let examples = parameter["examples"].as_object();
        let Some(example) = examples.and_then(|examples| examples.values().next()) else {
            assert!(WITHOUT_EXAMPLES.contains(&name), "{name}");
            continue;
        };
        match &example["value"] {
            Value::String(value) if parameter["in"] == "header" => headers.push((name, value)),
            Value::Array(values) => {
                query.push(format!("{name}={}", values[0].as_str().expect("text")));
            }
            Value::String(value) => query.push(format!("{name}={value}")),
            value => query.push(format!("{name}={value}")),
        }
    }
    let target = format!("/v2/product?{}", query.join("&"));
    let answer = asked.server.send("GET", &target, &headers);
    assert_eq!(answer.status, 200, "{target}: {}", text(&answer.body));
}
