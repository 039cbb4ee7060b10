//! Parameters in the OpenAPI documents: the server takes exactly those that are described, with exactly such values.

use serde_json::{Value, json};

use crate::harness::console::encoded;
use crate::harness::{Reply, Server, Store};
use crate::openapi::documents;
use crate::openapi_examples::{operations, parameters, resolved, validator};

/// Values to try for every parameter.
const VALUES: [&str; 42] = [
    "",
    "a",
    "A",
    "GB",
    "Gb",
    "GBR",
    "GBP",
    "gBP",
    "GB,SE",
    "A B",
    "A/B",
    "Ü",
    "%",
    "A.b_c~d-9",
    "true",
    "false",
    "True",
    "yes",
    "0",
    "1",
    "2",
    "55",
    "56",
    "500",
    "501",
    "-1",
    "+1",
    "01",
    "1.5",
    "1e1",
    "url",
    "md",
    "html",
    "pdf",
    "URL",
    "gift_card",
    "Gift_card",
    "9_card",
    "food-and-drink",
    "2026-12-01",
    "null",
    "[]",
];

/// A server of the sample catalog, and a version to ask for.
struct Asked<'s> {
    server: &'s Server,
    key: &'s str,
    version: &'s str,
}

impl Asked<'_> {
    fn get(&self, target: &str) -> Reply {
        let headers = [("X-Api-Key", self.key), ("X-Api-Version", self.version)];
        self.server.send("GET", target, &headers)
    }

    /// Returns a token of a walk that isn't at its end, so that no request with it waits.
    fn token(&self) -> String {
        let begun = self.get("/v2/product/changes?limit=1").json();
        begun["next"].as_str().expect("a token").to_owned()
    }

    /// Sends a request with parameters that are named alike.
    fn send(&self, path: &str, name: &str, values: &[&str]) -> Reply {
        let pairs = values
            .iter()
            .map(|value| format!("{name}={}", encoded(value)));
        let mut pairs: Vec<String> = pairs.collect();
        if name == "wait" {
            pairs.push(format!("since={}", self.token()));
        }
        self.get(&format!("/v2{path}?{}", pairs.join("&")))
    }
}

/// Calls a function for each operation of each document. Paths have a product and a text of the sample catalog.
fn for_each_operation(mut check: impl FnMut(&Asked<'_>, &str, &Value, &[&Value])) {
    let store = Store::sample();
    let key = store.key("reader", &[]);
    let server = store.serve();
    for (version, document) in documents() {
        let asked = Asked {
            server: &server,
            key: &key,
            version,
        };
        for (path, operation) in operations(&document) {
            let described: Vec<&Value> = parameters(&document, operation).collect();
            let mut path = path.to_owned();
            for parameter in described.iter().filter(|one| one["in"] == "path") {
                let name = parameter["name"].as_str().expect("a name");
                let mut examples = parameter["examples"]
                    .as_object()
                    .expect("examples")
                    .values();
                let example = &examples.next().expect("an example")["value"];
                path = path.replace(&format!("{{{name}}}"), example.as_str().expect("a text"));
            }
            let query = described.into_iter().filter(|one| one["in"] == "query");
            check(&asked, &path, &document, &query.collect::<Vec<_>>());
        }
    }
}

fn name(parameter: &Value) -> &str {
    parameter["name"].as_str().expect("a name")
}

/// Reads a value as clients would write it in JSON.
fn typed(schema: &Value, value: &str) -> Value {
    let json: Option<Value> = serde_json::from_str(value).ok();
    let is_of_type = |json: &Value| match schema["type"].as_str() {
        Some("boolean") => json.is_boolean(),
        Some("integer") => json.is_i64(),
        _ => false,
    };
    json.filter(is_of_type).unwrap_or_else(|| json!(value))
}

#[test]
fn operations_take_exactly_the_described_parameters() {
    for_each_operation(|asked, path, _, query| {
        let refused = asked.get(&format!("/v2{path}?zzzz=1"));
        assert_eq!(refused.error(), "bad_request", "{path}");
        let body = refused.json();
        let help = body["help"].as_str().expect("help");
        let taken: Vec<&str> = help.split('`').skip(1).step_by(2).collect();
        let described: Vec<&str> = query.iter().map(|one| name(one)).collect();
        assert_eq!(taken, described, "{path}: {help}");
    });
}

#[test]
fn parameters_take_exactly_the_described_values() {
    let long = [63, 64, 65, 400, 401].map(|length| "x".repeat(length));
    let values = VALUES.into_iter().chain(long.iter().map(String::as_str));
    let values: Vec<&str> = values.collect();
    let mut taken = 0;
    for_each_operation(|asked, path, document, query| {
        for parameter in query {
            let schema = resolved(document, &parameter["schema"]);
            let is_list = schema["type"] == "array";
            let item = if is_list { &schema["items"] } else { schema };
            let validator = validator(document, item);
            let name = name(parameter);
            for value in &values {
                let reply = asked.send(path, name, &[value]);
                // A schema can only say what tokens look like, and a `not` in it would spoil the types of generated clients.
                let may_be_null = *value != "null" || ["payout_types", "q"].contains(&name);
                let is_sayable = name != "since" && may_be_null;
                let is_valid = validator.is_valid(&typed(item, value)) && is_sayable;
                let expected = if is_valid { 200 } else { 400 };
                assert_eq!(reply.status, expected, "{path}: {name}={value}: {schema}");
                taken += u32::from(is_valid);
            }
        }
    });
    assert!(taken > 200, "{taken} values were taken");
}

#[test]
fn parameters_are_repeated_exactly_as_described() {
    for_each_operation(|asked, path, document, query| {
        for parameter in query {
            let name = name(parameter);
            let schema = resolved(document, &parameter["schema"]);
            let is_list = schema["type"] == "array";
            let item = if is_list { &schema["items"] } else { schema };
            let validator = validator(document, item);
            let mut fit = VALUES
                .into_iter()
                .filter(|value| validator.is_valid(&typed(item, value)));
            let token = asked.token();
            let value = if name == "since" {
                &token
            } else {
                fit.next().expect("a value")
            };
            let max = schema["maxItems"]
                .as_u64()
                .map(|max| usize::try_from(max).expect("a number"));
            for count in [1, 2, 100, 101] {
                let is_taken = count == 1 || is_list && max.is_none_or(|max| count <= max);
                let reply = asked.send(path, name, &vec![value; count]);
                assert_eq!(
                    reply.status == 200,
                    is_taken,
                    "{path}: {count} times {name}"
                );
            }
            let is_exploded = parameter["style"] == "form" && parameter["explode"] == true;
            assert_eq!(is_exploded, is_list, "{path}: {name}");
        }
    });
}

#[test]
fn default_of_a_parameter_is_what_its_absence_means() {
    let mut compared = 0;
    for_each_operation(|asked, path, _, query| {
        for parameter in query {
            let default = &parameter["schema"]["default"];
            if default.is_null() {
                continue;
            }
            let default = default
                .as_str()
                .map_or_else(|| default.to_string(), str::to_owned);
            let bodies = [&[&*default][..], &[]].map(|values| {
                let mut body = asked.send(path, name(parameter), values).json();
                // Each token is another one.
                body["next"] = Value::Null;
                body
            });
            assert_eq!(bodies[0], bodies[1], "{path}: {parameter}");
            compared += 1;
        }
    });
    assert_eq!(compared, 8);
}

#[test]
fn path_parameters_take_exactly_the_described_values() {
    let store = Store::sample();
    let key = store.key("reader", &[]);
    let server = store.serve();
    let long = [63, 64, 65].map(|length| "x".repeat(length));
    let digests = ["0".repeat(64), "A".repeat(64)];
    let values = VALUES
        .into_iter()
        .chain(long.iter().chain(&digests).map(String::as_str));
    let values: Vec<&str> = values.collect();
    for (_, document) in documents() {
        for (path, operation) in operations(&document) {
            for parameter in parameters(&document, operation).filter(|one| one["in"] == "path") {
                let validator = validator(&document, &parameter["schema"]);
                for value in &values {
                    let place = format!("{{{}}}", name(parameter));
                    let target = format!("/v2{}", path.replace(&place, &encoded(value)));
                    let body = server.get(&key, &target).json();
                    let is_known = body["message"] != "there is nothing at this path";
                    assert_eq!(is_known, validator.is_valid(&json!(value)), "{target}");
                }
            }
        }
    }
}
