//! Rules of the OpenAPI documents, each for the generators of clients that fail without it.

use std::collections::BTreeSet;

use serde_json::{Value, json};

const DOCUMENTS: [&str; 2] = [
    include_str!("../../../../openapi/2024-02-05.json"),
    include_str!("../../../../openapi/2026-12-01.json"),
];

fn documents() -> impl Iterator<Item = Value> {
    let parsed = |text: &&str| serde_json::from_str(text).expect("JSON");
    DOCUMENTS.iter().map(parsed).collect::<Vec<_>>().into_iter()
}

/// Calls a function for a value and for all values below it, with their paths. Examples aren't visited.
fn visit(path: &str, value: &Value, see: &mut impl FnMut(&str, &Value)) {
    see(path, value);
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                if !matches!(name.as_str(), "examples" | "example") {
                    visit(&format!("{path}/{name}"), value, see);
                }
            }
        }
        Value::Array(items) => {
            for (position, value) in items.iter().enumerate() {
                visit(&format!("{path}/{position}"), value, see);
            }
        }
        _ => {}
    }
}

/// Returns every schema of a document with its path, also those within others.
fn schemas(document: &Value) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    visit("", document, &mut |path, value| {
        let (parent, name) = path.rsplit_once('/').unwrap_or_default();
        let is_named = ["/components/schemas", "/properties"]
            .iter()
            .any(|end| parent.ends_with(end));
        let is_listed = ["/anyOf", "/oneOf", "/allOf"]
            .iter()
            .any(|end| parent.ends_with(end));
        if is_named || is_listed || matches!(name, "schema" | "items" | "additionalProperties") {
            found.push((path.to_owned(), value.clone()));
        }
    });
    found
}

/// Explicit defaults mislead generators: with `additionalProperties: true` models of Java's `retrofit2` and of Kotlin's gson
/// extend `HashMap`, and read null for every field.
#[test]
fn schemas_have_no_member_that_repeats_its_default() {
    let defaults = [
        ("additionalProperties", json!(true)),
        ("additionalProperties", json!({})),
        ("items", json!({})),
        ("items", json!(true)),
        ("required", json!([])),
        ("properties", json!({})),
        ("minItems", json!(0)),
        ("minLength", json!(0)),
        ("minProperties", json!(0)),
        ("minContains", json!(1)),
        ("uniqueItems", json!(false)),
        ("deprecated", json!(false)),
        ("readOnly", json!(false)),
        ("writeOnly", json!(false)),
        ("nullable", json!(false)),
    ];
    for document in documents() {
        let schemas = schemas(&document);
        assert!(schemas.len() > 200, "{} schemas", schemas.len());
        for (path, schema) in schemas {
            for (member, default) in &defaults {
                assert_ne!(schema.get(member), Some(default), "{path}: {member}");
            }
        }
    }
}

/// `not` makes types `any` or `array<never>`, `const` a type of its own that clients can't compile.
#[test]
fn schemas_use_only_members_that_generators_understand() {
    let understood: BTreeSet<&str> = [
        "$ref",
        "additionalProperties",
        "anyOf",
        "default",
        "description",
        "enum",
        "format",
        "items",
        "maxItems",
        "maxLength",
        "maximum",
        "minItems",
        "minLength",
        "minimum",
        "pattern",
        "properties",
        "required",
        "type",
        "x-extensible-enum",
    ]
    .into();
    for document in documents() {
        for (path, schema) in schemas(&document) {
            for member in schema.as_object().expect("a schema").keys() {
                assert!(understood.contains(&**member), "{path}: {member}");
            }
            let format = schema["format"].as_str();
            let is_known = format.is_none_or(|format| matches!(format, "int32" | "int64"));
            assert!(is_known, "{path}: {format:?}");
        }
    }
}

/// Tools go by one of several members that restrict a value, and some can't join them.
#[test]
fn schemas_restrict_a_value_in_one_way() {
    for document in documents() {
        for (path, schema) in schemas(&document) {
            let ways = ["enum", "const", "pattern", "not"];
            let ways: Vec<&&str> = ways
                .iter()
                .filter(|way| schema.get(way).is_some())
                .collect();
            assert!(ways.len() < 2, "{path}: {ways:?}");
        }
    }
}

/// Generators compare the key with what a response bears without its parameters.
#[test]
fn media_types_have_no_parameters() {
    for document in documents() {
        let mut types = BTreeSet::new();
        visit("", &document, &mut |path, value| {
            if path.ends_with("/content") {
                types.extend(value.as_object().expect("media types").keys().cloned());
            }
        });
        let expected = ["application/json", "text/markdown"].map(str::to_owned);
        assert_eq!(types, expected.into());
    }
}

/// A model with the name of a language's own type doesn't compile, or hides that type.
#[test]
fn schemas_have_no_name_of_a_language() {
    let taken = [
        "Any",
        "Array",
        "Boolean",
        "Class",
        "Data",
        "Date",
        "Double",
        "Enum",
        "Error",
        "Exception",
        "Float",
        "Function",
        "Integer",
        "List",
        "Map",
        "None",
        "Number",
        "Object",
        "Option",
        "Optional",
        "Promise",
        "Protocol",
        "Record",
        "Request",
        "Response",
        "Result",
        "Self",
        "Set",
        "String",
        "Symbol",
        "Type",
        "Vec",
        "Void",
    ];
    for document in documents() {
        let schemas = document["components"]["schemas"].as_object();
        for name in schemas.expect("schemas").keys() {
            assert!(!taken.contains(&&**name), "{name}");
        }
    }
}

/// Without any, the generator of `spring` fails: it reads a member of extensions that there aren't.
#[test]
fn operations_of_webhooks_have_an_extension() {
    for document in documents() {
        let webhooks = document["webhooks"].as_object().expect("webhooks");
        for (event, item) in webhooks {
            let operation = item["post"].as_object().expect("an operation");
            let has_extension = operation.keys().any(|member| member.starts_with("x-"));
            assert!(has_extension, "{event}");
        }
    }
}

/// Tools fill in every header that they find, and keys that aren't for trying get an error for this one.
#[test]
fn simulation_is_described_in_words_only() {
    for document in documents() {
        let words = document["info"]["description"].as_str().expect("words");
        assert!(words.contains("`X-Simulate: TYPE`"), "{words}");
        assert!(words.contains("`forbidden`"), "{words}");
        let parameters = document["components"]["parameters"].as_object();
        assert!(!parameters.expect("parameters").contains_key("X-Simulate"));
        visit("", &document, &mut |path, value| {
            if path.ends_with("/parameters") && value.is_array() {
                assert!(!value.to_string().contains("imulate"), "{path}");
            }
        });
    }
}

/// Generators make a model of every schema, whether anything uses it or not.
#[test]
fn every_schema_is_used() {
    for document in documents() {
        let mut used = BTreeSet::new();
        visit("", &document, &mut |_, value| {
            let reference = value["$ref"].as_str();
            used.extend(
                reference.and_then(|it| Some(it.strip_prefix("#/components/schemas/")?.to_owned())),
            );
        });
        let schemas = document["components"]["schemas"].as_object();
        let there: BTreeSet<String> = schemas.expect("schemas").keys().cloned().collect();
        assert_eq!(used, there);
    }
}
