//! The OpenAPI document: frozen, served as it is printed, and true of every answer.

use jsonschema::Validator;
use serde_json::Value;

use crate::harness::{Server, Store, text};

const FROZEN: &str = include_str!("../../../../openapi/2024-02-05.json");
const ROUTES: &str = include_str!("../../../../openapi/routes.txt");

#[test]
fn the_frozen_document_is_what_the_code_makes_and_the_server_serves() {
    let store = Store::sample();
    assert_eq!(store.ok(&["openapi"]), FROZEN, "see openapi/README.md");
    let served = store.serve().send("GET", "/openapi.json", &[]);
    assert_eq!(served.status, 200);
    assert_eq!(served.header("content-type"), Some("application/json"));
    assert_eq!(text(&served.body), FROZEN);
}

#[test]
fn the_document_has_exactly_the_routes_of_the_plain_list() {
    let document: Value = serde_json::from_str(FROZEN).expect("JSON");
    let paths = document["paths"].as_object().expect("paths");
    let mut routes: Vec<String> = paths.keys().map(|path| format!("GET /v2{path}")).collect();
    let others = [
        "/openapi.json",
        "/docs",
        "/docs/{page}",
        "/docs/errors/{type}",
        "/docs/assets/{name}",
    ];
    routes.extend(others.map(|path| format!("GET {path}")));
    let listed: Vec<&str> = ROUTES.lines().collect();
    assert_eq!(routes, listed);
}

/// Checks an answer against a schema of the document, in which every key must be known.
fn conforms(schema: &str, answer: &Value) {
    let mut document: Value = serde_json::from_str(FROZEN).expect("JSON");
    // The document stays open for growth; here, what isn't described is a fault.
    let schemas = document["components"]["schemas"]
        .as_object_mut()
        .expect("schemas");
    for (name, schema) in schemas.iter_mut() {
        if schema["type"] == "object" && name != "Product" {
            schema["additionalProperties"] = false.into();
        }
        // Enums are open for values added later; here, each must be known.
        if schema["anyOf"][1]["description"] == "A value added later." && name != "PayoutType" {
            *schema = schema["anyOf"][0].clone();
        }
    }
    document["$ref"] = format!("#/components/schemas/{schema}").into();
    let validator: Validator = jsonschema::draft202012::new(&document).expect("a schema");
    let faults: Vec<String> = validator
        .iter_errors(answer)
        .map(|fault| format!("{} at {}", fault, fault.instance_path()))
        .collect();
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
    conforms("Pong", &get(&server, &key, "/v2/ping"));
    for target in ["/v2/product?limit=0&x=1", "/v2/product/NONE", "/v2/none"] {
        conforms("Error", &get(&server, &key, target));
    }
}
