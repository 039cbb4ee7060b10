//! `traceparent` in the access log.

use serde_json::Value;

use crate::harness::{Server, Store, wait_for};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const SPAN: &str = "b7ad6b7169203331";

/// The line of the access log of a request with this id.
fn line(server: &Server, request_id: &str) -> Value {
    wait_for("a line of the access log", || {
        let log = server.stdout();
        let mut lines = log.lines();
        let line = lines.find(|line| line.contains(request_id))?;
        Some(serde_json::from_str(line).expect("JSON"))
    })
}

#[test]
fn valid_traceparent_is_in_the_access_log() {
    let server = Store::sample().serve();
    let ask = |request_id: &str, parents: &[&str]| {
        let mut headers = vec![("X-Request-Id", request_id)];
        headers.extend(parents.iter().map(|parent| ("traceparent", *parent)));
        server.send("GET", "/openapi.json", &headers);
        line(&server, request_id)["trace_id"].clone()
    };
    let parent = format!("00-{TRACE}-{SPAN}-00");
    assert_eq!(ask("valid", &[&parent]), TRACE);
    assert_eq!(ask("without", &[]), Value::Null);
    assert_eq!(ask("twice", &[&parent, &parent]), Value::Null);
    let upper = parent.to_uppercase();
    assert_eq!(ask("upper-case", &[&upper]), Value::Null);
    assert_eq!(ask("nonsense", &["{\"}"]), Value::Null);
}
