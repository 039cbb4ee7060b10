//! The OpenAPI document: frozen, served as it is printed, and true of every answer.

use jsonschema::Validator;
use serde_json::{Map, Value, json};

use crate::harness::receiver::Delivery;
use crate::harness::{Server, Store, gift_card, text};

const FROZEN: &str = include_str!("../../../../openapi/2024-02-05.json");
const FROZEN_NEWEST: &str = include_str!("../../../../openapi/2026-12-01.json");
const ROUTES: &str = include_str!("../../../../openapi/routes.txt");

#[test]
fn frozen_documents_are_generated_and_served() {
    let store = Store::sample();
    assert_eq!(store.ok(&["openapi"]), FROZEN, "see openapi/README.md");
    let server = store.serve_as("https://catalog.example");
    for (version, frozen) in [("2024-02-05", FROZEN), ("2026-12-01", FROZEN_NEWEST)] {
        let printed = store.ok(&["openapi", "--api-version", version]);
        assert_eq!(printed, frozen, "see openapi/README.md");
        let target = format!("/openapi.json?version={version}");
        let served = server.send("GET", &target, &[("Origin", "https://any.example")]);
        assert_eq!(served.status, 200);
        assert_eq!(served.header("content-type"), Some("application/json"));
        assert_eq!(served.header("access-control-allow-origin"), Some("*"));
        assert_eq!(text(&served.body), frozen);
    }
    let default = server.send("GET", "/openapi.json", &[]);
    assert_eq!(text(&default.body), FROZEN);
}

#[test]
fn unknown_version_of_the_document_is_refused() {
    let store = Store::sample();
    let server = store.serve();
    for query in [
        "version=2023-07-27",
        "version=2099-01-01",
        "version=",
        "version=%ZZ",
        "version=2024-02-05&version=2026-12-01",
        "versions=2024-02-05",
        "api-version=2024-02-05",
    ] {
        let refused = server.send("GET", &format!("/openapi.json?{query}"), &[]);
        assert_eq!(refused.status, 400, "{query}");
        assert_eq!(refused.error(), "bad_request", "{query}");
        let body = text(&refused.body);
        let names_all = ["2024-02-05", "2026-12-01"].map(|version| body.contains(version));
        let is_version = query.starts_with("version=") && !query.contains('&');
        assert!(!is_version || names_all == [true, true], "{query}: {body}");
    }
    let refused = store.run(&["openapi", "--api-version", "2023-07-27"]);
    assert_eq!(refused.status.code(), Some(2));
}

#[test]
fn document_has_exactly_the_routes_of_the_plain_list() {
    let document: Value = serde_json::from_str(FROZEN).expect("JSON");
    let paths = document["paths"].as_object().expect("paths");
    let mut routes: Vec<String> = paths.keys().map(|path| format!("GET /v2{path}")).collect();
    let others = [
        "/openapi.json",
        "/docs",
        "/docs/search",
        "/docs/{page}",
        "/docs/errors/{type}",
        "/docs/reference/{operation}",
        "/docs/assets/{name}",
    ];
    routes.extend(others.map(|path| format!("GET {path}")));
    let listed: Vec<&str> = ROUTES.lines().collect();
    assert_eq!(routes, listed);
}

/// Returns the document with nothing but what it names: no further fields or values, and one form of texts at a time.
fn closed_document() -> Value {
    let mut document: Value = serde_json::from_str(FROZEN).expect("JSON");
    let schemas = document["components"]["schemas"]
        .as_object_mut()
        .expect("schemas");
    for schema in schemas.values_mut() {
        if schema["type"] == "object" {
            schema["additionalProperties"] = false.into();
        }
        let properties = schema.get_mut("properties");
        let properties = properties.and_then(Value::as_object_mut);
        for field in properties.into_iter().flat_map(Map::values_mut) {
            let Some(mut values) = field["x-extensible-enum"].as_array().cloned() else {
                continue;
            };
            if field["type"].is_array() {
                values.push(Value::Null);
            }
            field["enum"] = values.into();
        }
    }
    // The sample catalog has a payout type that the document doesn't know.
    let product = &mut schemas["Product"]["properties"];
    product["payout_type"]["enum"] =
        json!(["gift_card", "subscription", "payment", "prepaid_card"]);
    product["prepaid_card"] = json!({"type": "object"});
    let texts = &mut schemas["ContentResources"];
    let forms = ["_markdown_url", "_md", "_html"].map(|form| {
        let mut form_of_texts = texts.clone();
        let properties = form_of_texts["properties"].as_object_mut().expect("texts");
        properties.retain(|name, _| name == "locale" || name.ends_with(form));
        let names: Vec<&String> = properties.keys().collect();
        assert_eq!(names.len(), 8, "{form}");
        form_of_texts["required"] = json!(names);
        form_of_texts
    });
    *texts = json!({"oneOf": forms});
    document
}

/// Returns how an answer departs from a schema of a document.
fn faults(mut document: Value, schema: &str, answer: &Value) -> Vec<String> {
    document["$ref"] = format!("#/components/schemas/{schema}").into();
    let validator: Validator = jsonschema::draft202012::new(&document).expect("a schema");
    let faults = validator.iter_errors(answer);
    faults
        .map(|fault| format!("{} at {}", fault, fault.instance_path()))
        .collect()
}

/// Checks an answer against a schema, in which every key and value must be known.
fn conforms(schema: &str, answer: &Value) {
    let faults = faults(closed_document(), schema, answer);
    assert!(faults.is_empty(), "{schema}: {faults:#?}");
}

fn get(server: &Server, key: &str, target: &str) -> Value {
    server.get(key, target).json()
}

#[test]
fn every_answer_is_as_the_document_says() {
    let store = Store::sample();
    let key = store.key("reader", &[]);
    let server = store.serve();
    let list = get(&server, &key, "/v2/product");
    conforms("ProductList", &list);
    conforms(
        "ProductList",
        &get(&server, &key, "/v2/product?categories=none"),
    );
    for product in list["catalog"].as_array().expect("a list") {
        let code = product["code"].as_str().expect("a code");
        for form in ["url", "md", "html"] {
            let target = format!("/v2/product/{code}?content={form}");
            conforms("Product", &get(&server, &key, &target));
        }
    }
    conforms(
        "CategoryList",
        &get(&server, &key, "/v2/product/categories"),
    );
    conforms("CountryList", &get(&server, &key, "/v2/product/countries"));
    conforms("Changes", &get(&server, &key, "/v2/product/changes"));
    conforms("Pong", &get(&server, &key, "/v2/ping"));
    for target in ["/v2/product?limit=0&x=1", "/v2/product/NONE", "/v2/none"] {
        conforms("ApiError", &get(&server, &key, target));
    }
}

/// Adds a field to every object below a value, and exchanges the values of open enums.
fn grow(value: &mut Value) {
    const OPEN: [&str; 9] = [
        "state",
        "availability",
        "payout_type",
        "type",
        "length_unit",
        "redeemable_at",
        "barcode_format",
        "e_code_usage_type",
        "x-later",
    ];
    match value {
        Value::Object(fields) => {
            for (name, value) in fields.iter_mut() {
                match value {
                    Value::String(_) if OPEN.contains(&&**name) => *value = "added_later".into(),
                    _ => grow(value),
                }
            }
            fields.insert("x-later".to_owned(), json!({"any": [1, null]}));
        }
        Value::Array(items) => items.iter_mut().for_each(grow),
        _ => {}
    }
}

#[test]
fn fields_and_values_added_later_fit_the_document() {
    let store = Store::sample();
    let key = store.key("reader", &[]);
    let server = store.serve();
    for (schema, target) in [
        ("ProductList", "/v2/product"),
        ("Product", "/v2/product/HALLOWMERE-GB?content=md"),
        ("Changes", "/v2/product/changes"),
        ("CategoryList", "/v2/product/categories"),
        ("CountryList", "/v2/product/countries"),
        ("ApiError", "/v2/product?limit=0&x=1"),
    ] {
        let mut answer = get(&server, &key, target);
        grow(&mut answer);
        let document = serde_json::from_str(FROZEN).expect("JSON");
        let faults = faults(document, schema, &answer);
        assert!(faults.is_empty(), "{target}: {faults:#?}");
    }
}

/// Of alternatives, generated clients decode the first that fits; what it doesn't name is lost.
#[test]
fn schemas_of_answers_have_no_alternatives_or_closed_enums() {
    let document: Value = serde_json::from_str(FROZEN).expect("JSON");
    let schemas = document["components"]["schemas"]
        .as_object()
        .expect("schemas");
    let or_null = ["Product", "ProductState"].map(|name| {
        let schema = format!("#/components/schemas/{name}");
        format!("\"anyOf\":{}", json!([{"$ref": schema}, {"type": "null"}]))
    });
    for (name, schema) in schemas {
        assert!(schema["additionalProperties"].is_null(), "{name}");
        // A product or null can't be taken for each other.
        let text = schema.to_string();
        let text = or_null
            .iter()
            .fold(text, |text, or_null| text.replace(or_null, ""));
        for word in ["anyOf", "oneOf", "allOf", "\"enum\""] {
            assert!(!text.contains(word), "{name}: {word}");
        }
    }
}

#[test]
fn every_event_is_as_the_document_says() {
    let delivery = Delivery::of(&[gift_card("A")]);
    let _server = delivery.serve();
    let endpoint = delivery.endpoint(&[]);
    delivery.store.ok(&["webhooks", "test", &endpoint.id]);
    let format = ["--format", "product.update"];
    delivery.endpoint_at(&delivery.web.url("/hook"), &format);
    delivery.store.load_products(&[gift_card("B")]);
    let document: Value = serde_json::from_str(FROZEN).expect("JSON");
    for event in delivery.events(4) {
        let kind = event.body["type"].as_str().unwrap_or("product.update");
        let operation = &document["webhooks"][kind]["post"];
        for words in ["operationId", "summary", "description"] {
            assert!(operation[words].is_string(), "{kind}: {words}");
        }
        for header in operation["parameters"].as_array().expect("headers") {
            let name = header["name"].as_str().expect("a name");
            assert!(!event.header(name).is_empty(), "{kind}: {name}");
        }
        let body = &operation["requestBody"]["content"]["application/json"];
        let schema = body["schema"]["$ref"].as_str().expect("a schema");
        let name = schema.rsplit('/').next().expect("a name");
        conforms(name, &event.body);
    }
}

#[test]
fn servers_of_the_document_have_the_public_address() {
    let store = Store::sample();
    let public_url = "https://catalog.shop.example/below";
    let server = store.serve_as(public_url);
    let served = text(&server.send("GET", "/openapi.json", &[]).body);
    let document: Value = serde_json::from_str(&served).expect("JSON");
    assert_eq!(document["servers"][0]["url"], format!("{public_url}/v2"));
    assert_eq!(store.ok(&["openapi", "--public-url", public_url]), served);
}
