//! An answer.

use serde_json::Value;

use super::text;

/// An answer.
#[derive(Debug, Clone)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Reply {
    /// Reads an answer that ends with its connection.
    pub fn parse(bytes: &[u8], method: &str) -> Self {
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n");
        let end = end.unwrap_or_else(|| panic!("no head in {:?}", text(bytes)));
        let head = text(&bytes[..end]);
        let mut lines = head.split("\r\n");
        let status = lines
            .next()
            .and_then(|line| line.split(' ').nth(1)?.parse().ok());
        let header = |line: &str| {
            let (name, value) = line.split_once(':').expect("a header");
            (name.to_ascii_lowercase(), value.trim().to_owned())
        };
        let reply = Self {
            status: status.expect("a status"),
            headers: lines.map(header).collect(),
            body: bytes[end + 4..].to_vec(),
        };
        if method != "HEAD" {
            let length = reply
                .header("content-length")
                .map_or(0, |n| n.parse().expect("a length"));
            assert_eq!(reply.body.len(), length, "the body is whole");
        }
        reply
    }

    /// The value of a header that stands there once.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.iter().filter(|(other, _)| other == name);
        let (_, value) = values.next()?;
        assert!(values.next().is_none(), "{name} stands there twice");
        Some(value)
    }

    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error} in {:?}", text(&self.body)))
    }

    /// The `type` of an error, after checking that the error is as every error must be.
    pub fn error(&self) -> String {
        let body = self.json();
        let error = body.as_object().expect("an object");
        assert_eq!(self.header("content-type"), Some("application/json"));
        assert!(self.header("x-request-id").is_some());
        assert!(
            error["message"].is_string() && error.contains_key("help"),
            "{body}"
        );
        let known = ["type", "message", "help", "details"];
        assert!(
            error.keys().all(|key| known.contains(&key.as_str())),
            "{body}"
        );
        error["type"].as_str().expect("a type").to_owned()
    }

    /// The codes of a list, in order.
    pub fn codes(&self) -> Vec<String> {
        assert_eq!(self.status, 200, "{}", text(&self.body));
        let code = |product: &Value| product["code"].as_str().expect("a code").to_owned();
        let body = self.json();
        body["catalog"]
            .as_array()
            .expect("a list")
            .iter()
            .map(code)
            .collect()
    }
}
