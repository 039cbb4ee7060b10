//! Rules of the OpenAPI documents: what generators of clients need, and what must agree within and between documents.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use vitrine_model::product::{
    Availability, BarcodeFormat, DenominationType, ECodeUsageType, ExpiryType, LengthUnit,
    RedeemableAt, State,
};
use vitrine_wire::error::{ErrorType, FaultType};

use crate::openapi_examples::{object, operations, parameters, resolved};

fn documents() -> [Value; 2] {
    crate::openapi::documents().map(|(_, document)| document)
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

/// Collects the places at which two values differ.
fn differences(path: &str, left: Option<&Value>, right: Option<&Value>, found: &mut Vec<String>) {
    match (left, right) {
        (Some(Value::Object(left)), Some(Value::Object(right))) => {
            let names: BTreeSet<&String> = left.keys().chain(right.keys()).collect();
            for name in names {
                let path = format!("{path}/{name}");
                differences(&path, left.get(name), right.get(name), found);
            }
        }
        (left, right) if left != right => found.push(path.to_owned()),
        _ => {}
    }
}

#[test]
fn documents_differ_only_where_versions_do() {
    let [older, newest] = documents();
    let mut found = Vec::new();
    differences("", Some(&older), Some(&newest), &mut found);
    let expected = [
        "/components/headers/X-Api-Version/examples/current/value",
        "/components/parameters/X-Api-Version/examples/current/value",
        "/components/parameters/X-Api-Version/required",
        "/components/parameters/X-Api-Version/schema/default",
        "/components/parameters/X-Api-Version/schema/pattern",
        "/components/schemas/Product/properties/discount_multiplier/description",
        "/components/schemas/Product/properties/discount_multiplier/pattern",
        "/info/version",
    ];
    assert_eq!(found, expected);
}

#[test]
fn open_enums_have_the_values_that_the_server_knows() {
    macro_rules! values {
        ($kind:ty) => {
            <$kind>::ALL.iter().map(|value| value.as_str()).collect()
        };
    }
    let payout_types = vec!["gift_card", "subscription", "payment"];
    let known: [(&str, &str, Vec<&str>); 14] = [
        ("Product", "state", values!(State)),
        ("Product", "payout_type", payout_types),
        ("Product", "availability", values!(Availability)),
        ("GiftCard", "redeemable_at", values!(RedeemableAt)),
        ("GiftCard", "barcode_format", values!(BarcodeFormat)),
        ("GiftCard", "e_code_usage_type", values!(ECodeUsageType)),
        ("Denominations", "type", values!(DenominationType)),
        ("Expiry", "type", values!(ExpiryType)),
        ("Subscription", "redeemable_at", values!(RedeemableAt)),
        ("Subscription", "barcode_format", values!(BarcodeFormat)),
        ("Subscription", "e_code_usage_type", values!(ECodeUsageType)),
        ("SubscriptionPlan", "length_unit", values!(LengthUnit)),
        ("ApiError", "type", values!(ErrorType)),
        ("ParameterFault", "type", values!(FaultType)),
    ];
    for document in documents() {
        let schemas = object(&document["components"]["schemas"]);
        let open = schemas
            .values()
            .flat_map(|schema| schema["properties"].as_object());
        let open = open
            .flat_map(Map::values)
            .filter(|field| field.get("x-extensible-enum").is_some());
        assert_eq!(open.count(), known.len());
        for (schema, field, values) in &known {
            let field = &schemas[*schema]["properties"][field];
            assert_eq!(field["x-extensible-enum"], json!(values), "{schema}");
            let listed: Vec<String> = values.iter().map(|value| format!("`{value}`")).collect();
            let listed = format!("Values: {}; more may be added.", listed.join(", "));
            let words = field["description"].as_str().expect("words");
            assert!(words.contains(&listed), "{schema}: {words}");
        }
    }
}

#[test]
fn head_is_described_as_get_without_bodies() {
    for document in documents() {
        for (path, get) in operations(&document) {
            let head = &document["paths"][path]["head"];
            for member in ["parameters", "tags", "security"] {
                assert_eq!(head.get(member), get.get(member), "{path}: {member}");
            }
            let described = |operation: &Value| {
                let responses = object(&operation["responses"]).iter();
                let described = responses.map(|(status, response)| {
                    let response = resolved(&document, response);
                    (
                        status.clone(),
                        response["description"].clone(),
                        response["headers"].clone(),
                    )
                });
                described.collect::<Vec<_>>()
            };
            assert_eq!(described(head), described(get), "{path}");
        }
    }
}

#[test]
fn request_headers_are_described_where_they_have_an_effect() {
    for document in documents() {
        for (path, operation) in operations(&document) {
            let needs_key = operation["security"] != json!([]);
            let has_tag =
                resolved(&document, &operation["responses"]["200"])["headers"]["ETag"].is_object();
            assert_eq!(operation["responses"]["304"].is_object(), has_tag, "{path}");
            let expected = [
                ("X-Api-Version", needs_key),
                ("If-None-Match", has_tag),
                ("X-Request-Id", true),
                ("Accept-Encoding", true),
                ("traceparent", true),
                ("tracestate", true),
            ];
            let expected = expected.iter().filter(|(_, is_there)| *is_there);
            let expected: Vec<&str> = expected.map(|(name, _)| *name).collect();
            let headers = parameters(&document, operation).filter(|one| one["in"] == "header");
            let headers: Vec<&str> = headers.flat_map(|one| one["name"].as_str()).collect();
            assert_eq!(headers, expected, "{path}");
        }
    }
}

#[test]
fn link_of_the_changes_feed_repeats_all_filters() {
    for document in documents() {
        let operation = &document["paths"]["/product/changes"]["get"];
        let names = parameters(&document, operation).filter(|one| one["in"] == "query");
        let names = names.flat_map(|one| one["name"].as_str());
        let expected = names.filter(|name| *name != "wait").map(|name| {
            let value = match name {
                "since" => "$response.body#/next".to_owned(),
                _ => format!("$request.query.{name}"),
            };
            (format!("query.{name}"), json!(value))
        });
        let link = &operation["responses"]["200"]["links"]["next"];
        assert_eq!(link["operationId"], operation["operationId"]);
        assert_eq!(link["parameters"], Value::Object(expected.collect()));
    }
}
