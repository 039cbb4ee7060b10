//! `traceparent` in the access log; and, where the program is built with traces, spans that reach a collector.

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

#[cfg(not(feature = "traces"))]
#[test]
fn traces_without_the_feature_are_refused() {
    use crate::harness::text;

    let store = Store::sample();
    let arguments = ["serve", "--traces-endpoint", "http://127.0.0.1:1/v1/traces"];
    let refused = store.run(&arguments);
    assert_eq!(refused.status.code(), Some(2));
    let told = text(&refused.stderr);
    assert!(told.contains("built without traces"), "{told}");
}

#[cfg(feature = "traces")]
mod spans {
    //! A collector that keeps the bytes which it is sent, and looks for what must and mustn't be in them.

    use std::io::{BufRead as _, BufReader, Read as _, Write as _};
    use std::net::TcpListener;
    use std::sync::{Arc, Mutex};

    use super::*;

    /// Takes requests for ever; returns its address and what it was sent.
    fn collector(status: &'static str) -> (String, Arc<Mutex<Vec<Vec<u8>>>>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let taken = Arc::new(Mutex::new(Vec::new()));
        let into = Arc::clone(&taken);
        std::thread::spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                let mut reader = BufReader::new(socket);
                let (mut length, mut head, mut line) = (0, Vec::new(), String::new());
                while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
                    head.extend_from_slice(line.as_bytes());
                    line.make_ascii_lowercase();
                    if let Some(value) = line.strip_prefix("content-length:") {
                        length = value.trim().parse().expect("a length");
                    }
                    line.clear();
                }
                let mut body = vec![0; length];
                if reader.read_exact(&mut body).is_ok() {
                    into.lock().expect("unpoisoned").push([head, body].concat());
                    let answer = format!(
                        "HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
                    );
                    let _ = reader.get_mut().write_all(answer.as_bytes());
                }
            }
        });
        (format!("http://{address}/v1/traces"), taken)
    }

    fn contains(bytes: &[u8], part: &[u8]) -> bool {
        bytes.windows(part.len()).any(|window| window == part)
    }

    fn bytes_of(hexadecimal: &str) -> Vec<u8> {
        let digits = |at| u8::from_str_radix(&hexadecimal[at..at + 2], 16).expect("digits");
        (0..hexadecimal.len()).step_by(2).map(digits).collect()
    }

    #[test]
    fn spans_have_parents_and_no_secrets() {
        let (endpoint, taken) = collector("200 OK");
        let store = Store::sample();
        let key = store.key("partner", &[]);
        let mut server = store.serve_with(&[
            "--traces-endpoint",
            &endpoint,
            "--traces-sample-ratio",
            "0",
            "--traces-service-name",
            "catalog-of-tests",
        ]);
        let ask = |request_id: &str, parent: &str, target: &str| {
            let headers = [
                ("X-Api-Key", key.as_str()),
                ("X-Request-Id", request_id),
                ("traceparent", parent),
                ("tracestate", "vendor=passed-on"),
            ];
            server.send("GET", target, &headers);
            line(&server, request_id)
        };
        let sampled = format!("00-{TRACE}-{SPAN}-01");
        let target = "/v2/product/BRIARWICK-GB?content=html";
        assert_eq!(
            ask("sampled-by-its-client", &sampled, target)["trace_id"],
            TRACE
        );
        let unsampled = "00-11111111111111111111111111111111-b7ad6b7169203331-00";
        ask("not-sampled", unsampled, "/v2/ping");
        ask("without-a-trace", "none", "/v2/ping");
        // What waits is sent before the end.
        server.signal("TERM");
        assert_eq!(server.wait(), Some(0));
        let taken = taken.lock().expect("unpoisoned").concat();
        for part in [
            b"POST /v1/traces HTTP/1.1".to_vec(),
            b"application/x-protobuf".to_vec(),
            bytes_of(TRACE),
            bytes_of(SPAN),
            b"GET /v2/product/{product_code}".to_vec(),
            b"sampled-by-its-client".to_vec(),
            b"http.response.status_code".to_vec(),
            b"vitrine.revision".to_vec(),
            b"vendor=passed-on".to_vec(),
            b"catalog-of-tests".to_vec(),
        ] {
            assert!(
                contains(&taken, &part),
                "{} is missing",
                String::from_utf8_lossy(&part)
            );
        }
        let (prefix, secret) = key.split_once('.').expect("a key");
        for part in [
            "not-sampled",
            "without-a-trace",
            "BRIARWICK",
            "content=html",
            prefix,
            secret,
        ] {
            assert!(!contains(&taken, part.as_bytes()), "{part} was sent");
        }
    }

    #[test]
    fn sampled_request_gets_a_logged_trace() {
        let (endpoint, taken) = collector("200 OK");
        let store = Store::sample();
        let options = ["--traces-endpoint", &endpoint, "--traces-sample-ratio", "1"];
        let mut server = store.serve_with(&options);
        server.send("GET", "/openapi.json", &[("X-Request-Id", "a-new-trace")]);
        let trace = line(&server, "a-new-trace")["trace_id"].clone();
        let trace = trace.as_str().expect("a trace").to_owned();
        server.signal("TERM");
        assert_eq!(server.wait(), Some(0));
        let taken = taken.lock().expect("unpoisoned").concat();
        assert!(contains(&taken, &bytes_of(&trace)), "{trace}");
    }

    #[test]
    fn refusing_collector_is_logged_and_harmless() {
        let (endpoint, taken) = collector("400 Bad Request");
        let store = Store::sample();
        let options = ["--traces-endpoint", &endpoint, "--traces-sample-ratio", "1"];
        let server = store.serve_with(&options);
        wait_for("the warning", || {
            assert_eq!(server.send("GET", "/openapi.json", &[]).status, 200);
            let told = server.stderr();
            told.contains("the collector refuses traces").then_some(())
        });
        assert!(!taken.lock().expect("unpoisoned").is_empty());
        let told = server.stderr();
        assert!(told.contains("it answered with 400"), "{told}");
    }
}
