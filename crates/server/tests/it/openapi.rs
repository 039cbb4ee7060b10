//! The OpenAPI document: frozen, served as it is printed, and true of every answer.

use std::collections::{BTreeMap, BTreeSet};

use jsonschema::Validator;
use serde_json::{Map, Value, json};
use vitrine::http::routes::ROUTES;

use crate::harness::receiver::Delivery;
use crate::harness::{Store, gift_card, text};
use crate::openapi_examples::object;

/// Documents with the dates of their versions, the default one first.
pub const DOCUMENTS: [(&str, &str); 2] = [
    (
        "2024-02-05",
        include_str!("../../../../openapi/2024-02-05.json"),
    ),
    (
        "2026-12-01",
        include_str!("../../../../openapi/2026-12-01.json"),
    ),
];

pub fn documents() -> [(&'static str, Value); 2] {
    DOCUMENTS.map(|(date, text)| (date, serde_json::from_str(text).expect("JSON")))
}

#[test]
fn documents_are_printed_and_served_as_they_are() {
    let store = Store::sample();
    let server = store.serve_as("https://catalog.example");
    for (version, file) in DOCUMENTS {
        let printed = store.ok(&["openapi", "--api-version", version]);
        assert!(printed == file, "{version}");
        let target = format!("/openapi.json?version={version}");
        let served = server.send("GET", &target, &[("Origin", "https://any.example")]);
        assert_eq!(served.status, 200);
        assert_eq!(served.header("content-type"), Some("application/json"));
        assert_eq!(served.header("access-control-allow-origin"), Some("*"));
        assert!(text(&served.body) == file, "{version}");
    }
    let default = server.send("GET", "/openapi.json", &[]);
    assert!(text(&default.body) == DOCUMENTS[0].1);
    assert!(store.ok(&["openapi"]) == DOCUMENTS[0].1);
}

#[test]
fn document_of_the_default_version_needs_no_version_header() {
    let store = Store::sample();
    let key = store.key("reader", &[]);
    let server = store.serve();
    let ping = server.get(&key, "/v2/ping");
    for (version, document) in documents() {
        let is_default = ping.header("x-api-version") == Some(version);
        let header = &document["components"]["parameters"]["X-Api-Version"];
        assert_eq!(header["required"], !is_default, "{version}");
        let default = header["schema"].get("default");
        assert_eq!(default.is_some(), is_default, "{version}");
    }
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
fn documents_and_router_have_the_routes_of_the_plain_list() {
    let list = include_str!("../../../../openapi/routes.txt");
    let routed = ROUTES.map(|route| format!("GET {}", route.template));
    assert_eq!(routed.to_vec(), list.lines().collect::<Vec<_>>());
    let operations = list.lines().filter(|route| route.starts_with("GET /v2"));
    let operations: Vec<&str> = operations.collect();
    for (version, document) in documents() {
        let paths = object(&document["paths"]).keys();
        let paths: Vec<String> = paths.map(|path| format!("GET /v2{path}")).collect();
        assert_eq!(paths, operations, "{version}");
    }
}

/// Returns a document that allows nothing but what it names: no further fields or values, and one form of texts at a time.
fn closed(document: &Value) -> Value {
    let mut document = document.clone();
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

/// A document, and what was seen of the members of its schemas.
struct Checked {
    document: Value,
    closed: Value,
    /// Number of objects that a schema describes.
    objects: BTreeMap<String, usize>,
    /// Number of times that a member of a schema was there, and that it was null.
    members: BTreeMap<(String, String), (usize, usize)>,
}

/// Members that are null in no response of these tests.
const NEVER_NULL: [(&str, &str); 1] = [("ApiError", "help")];

impl Checked {
    fn new(document: Value) -> Self {
        Self {
            closed: closed(&document),
            document,
            objects: BTreeMap::new(),
            members: BTreeMap::new(),
        }
    }

    /// Checks an answer against a schema, in which every key and value must be known.
    fn check(&mut self, schema: &str, answer: &Value) {
        let faults = faults(self.closed.clone(), schema, answer);
        assert!(faults.is_empty(), "{schema}: {faults:#?}");
        let reference = json!({"$ref": format!("#/components/schemas/{schema}")});
        self.see(&reference, answer);
    }

    /// Counts the members of a value and of what is in it.
    fn see(&mut self, schema: &Value, value: &Value) {
        if value.is_null() {
            return;
        }
        for alternative in schema["anyOf"].as_array().into_iter().flatten() {
            self.see(alternative, value);
        }
        for item in value.as_array().into_iter().flatten() {
            self.see(&schema["items"], item);
        }
        let Some(name) = name(schema) else {
            return;
        };
        *self.objects.entry(name.to_owned()).or_default() += 1;
        for (member, described) in members(&self.document, name) {
            if let Some(value) = value.get(&member) {
                let seen = self.members.entry((name.to_owned(), member));
                let (present, null) = seen.or_default();
                *present += 1;
                *null += usize::from(value.is_null());
                self.see(&described, value);
            }
        }
    }

    /// Checks that the schemas promise exactly what all answers had: which members are always there, and which may be null.
    fn assert_exact(&self) {
        for (name, objects) in &self.objects {
            let required = &self.document["components"]["schemas"][name]["required"];
            let required = required.as_array().cloned().unwrap_or_default();
            for (member, described) in members(&self.document, name) {
                let key = (name.clone(), member.clone());
                let (present, null) = self.members.get(&key).copied().unwrap_or_default();
                let place = format!("{name}.{member}: {present} of {objects}, null {null} times");
                assert!(present > null, "{place}");
                let is_required = required.contains(&json!(member));
                assert_eq!(is_required, present == *objects, "{place}");
                let may_be_null = described["type"]
                    .as_array()
                    .or(described["anyOf"].as_array())
                    .is_some_and(|types| json!(types).to_string().contains("\"null\""));
                let is_never_null = NEVER_NULL.contains(&(name, &member));
                assert_eq!(may_be_null && !is_never_null, null > 0, "{place}");
            }
        }
    }
}

/// Returns the name of the schema that is referred to.
fn name(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str()?.rsplit('/').next()
}

/// Returns the members of a schema with their own schemas.
fn members(document: &Value, schema: &str) -> Map<String, Value> {
    let properties = &document["components"]["schemas"][schema]["properties"];
    properties.as_object().cloned().unwrap_or_default()
}

/// Returns the products of the sample catalog, for each payout type one without anything that may be missing, a subscription
/// that has everything, and a product whose discount versions show differently.
fn products() -> Vec<Value> {
    const SAMPLE: &str = include_str!("../../../../fixtures/catalog.ndjson");
    let mut products: Vec<Value> = SAMPLE
        .lines()
        .map(|line| serde_json::from_str(line).expect("a product"))
        .collect();
    for payout_type in ["gift_card", "subscription", "payment"] {
        let mut of_type = products.iter();
        let sample = of_type.find(|product| product["payout_type"] == payout_type);
        let mut bare = sample.expect("a product").clone();
        if payout_type == "subscription" {
            let mut full = bare.clone();
            full["code"] = json!("FULL");
            full[payout_type]["balance_check_url"] = json!("https://full.example/balance");
            full[payout_type]["barcode_format"] = json!("QR");
            products.push(full);
        }
        bare["code"] = json!(format!("BARE-{payout_type}"));
        bare["customer_service"] = json!({"phone_number": null, "website_url": null});
        let detail = bare[payout_type].as_object_mut().expect("details");
        for (name, value) in detail {
            match name.as_str() {
                "balance_check_url" | "website_url" | "barcode_format" => *value = Value::Null,
                "assets" | "content_resources" => {
                    let fields = value.as_object_mut().expect("fields");
                    fields.values_mut().for_each(|field| *field = Value::Null);
                }
                "expiry" => value["date_policy"] = Value::Null,
                _ => {}
            }
        }
        products.push(bare);
    }
    let mut exact = gift_card("EXACT");
    exact["discount_multiplier"] = json!("0.051234");
    products.push(exact);
    products
}

#[test]
fn every_answer_is_as_the_document_says() {
    let store = Store::of(&products());
    let key = store.key("reader", &[]);
    let server = store.serve();
    for (version, document) in documents() {
        let mut checked = Checked::new(document);
        let get = |target: &str| {
            let headers = [("X-Api-Key", &*key), ("X-Api-Version", version)];
            server.send("GET", target, &headers).json()
        };
        let list = get("/v2/product");
        for product in list["catalog"].as_array().expect("a list") {
            let code = product["code"].as_str().expect("a code");
            for form in ["url", "md", "html"] {
                let product = get(&format!("/v2/product/{code}?content={form}"));
                checked.check("Product", &product);
            }
        }
        checked.check("ProductList", &list);
        checked.check("ProductList", &get("/v2/product?categories=none"));
        let changes = get("/v2/product/changes");
        checked.check("Changes", &changes);
        let next = changes["next"].as_str().expect("a token");
        store.load_products(&products()[1..]);
        let removal = get(&format!("/v2/product/changes?since={next}&wait=55"));
        assert_eq!(removal["changes"][0]["product"], Value::Null);
        checked.check("Changes", &removal);
        server.wait_for_loaded(&store.load_products(&products()));
        checked.check("CategoryList", &get("/v2/product/categories"));
        checked.check("CountryList", &get("/v2/product/countries"));
        checked.check("Pong", &get("/v2/ping"));
        for target in ["/v2/product?limit=0&x=1", "/v2/product/NONE", "/v2/none"] {
            checked.check("ApiError", &get(target));
        }
        checked.assert_exact();
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
        let mut answer = server.get(&key, target).json();
        grow(&mut answer);
        let [(_, document), _] = documents();
        let faults = faults(document, schema, &answer);
        assert!(faults.is_empty(), "{target}: {faults:#?}");
    }
}

/// Of alternatives, generated clients decode the first that fits; what it doesn't name is lost.
#[test]
fn schemas_of_answers_have_no_alternatives_or_closed_enums() {
    let [(_, document), _] = documents();
    let schemas = object(&document["components"]["schemas"]);
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
    delivery.events(1);
    let many: Vec<Value> = (0..101).map(|n| gift_card(&format!("M{n}"))).collect();
    delivery.store.load_products(&many);
    delivery.events(2);
    let format = ["--format", "product.update"];
    delivery.endpoint_at(&delivery.web.url("/hook"), &format);
    let subscription = products()
        .into_iter()
        .find(|product| product["payout_type"] == "subscription");
    let mut kept = many;
    kept[0] = subscription.expect("a subscription");
    delivery.store.load_products(&kept);
    let [(_, document), _] = documents();
    let mut checked = Checked::new(document.clone());
    let mut kinds = BTreeSet::new();
    // The default format has one event of the last load, the other one for the removed product and one for the new one.
    for event in delivery.events(5) {
        let kind = event.body["type"].as_str().unwrap_or("product.update");
        kinds.insert(kind.to_owned());
        let operation = &document["webhooks"][kind]["post"];
        for words in ["operationId", "summary", "description"] {
            assert!(operation[words].is_string(), "{kind}: {words}");
        }
        let headers = operation["parameters"].as_array().expect("headers");
        let described = headers
            .iter()
            .map(|header| header["name"].as_str().expect("a name"));
        let described: BTreeSet<String> = described.map(str::to_owned).collect();
        let sent = event
            .header_names()
            .filter(|name| name.starts_with("webhook-") || name.starts_with("svix-"));
        assert_eq!(described, sent.collect(), "{kind}");
        let body = &operation["requestBody"]["content"]["application/json"];
        checked.check(name(&body["schema"]).expect("a schema"), &event.body);
    }
    let described: BTreeSet<String> = object(&document["webhooks"]).keys().cloned().collect();
    assert_eq!(kinds, described);
    checked.assert_exact();
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
