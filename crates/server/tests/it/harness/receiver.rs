//! Receivers of webhooks, which verify what comes with the public library, and a server that delivers to them.

use http::HeaderMap;
use http::header::{HeaderName, HeaderValue};
use serde_json::Value;
use standardwebhooks::Webhook;

use super::web::Post;
use super::{Page, Server, Store, Web, wait_for};

/// Path of the receiver.
pub const HOOK: &str = "/hook";

/// An event as it came.
#[derive(Debug, Clone)]
pub struct Event {
    post: Post,
    pub body: Value,
}

impl Event {
    /// Reads an event.
    pub fn of(post: &Post) -> Self {
        assert_eq!(post.header("content-type"), Some("application/json"));
        Self {
            post: post.clone(),
            body: serde_json::from_slice(&post.body).expect("JSON"),
        }
    }

    /// Returns the path that it was sent to.
    pub fn path(&self) -> &str {
        self.post.path()
    }

    pub fn header(&self, name: &str) -> &str {
        self.post.header(name).expect("a header")
    }

    /// Returns the names of its headers, in lower case.
    pub fn header_names(&self) -> impl Iterator<Item = String> {
        self.post.header_names()
    }

    pub fn id(&self) -> &str {
        self.header("webhook-id")
    }

    pub fn data(&self) -> &Value {
        &self.body["data"]
    }

    /// Returns the codes that it names.
    pub fn codes(&self) -> Vec<&str> {
        let codes = self.data()["codes"].as_array().expect("codes");
        let codes = codes.iter().map(|code| code.as_str().expect("a code"));
        codes.collect()
    }

    /// Returns path and query of its `changes_url`.
    pub fn changes(&self) -> &str {
        let url = self.data()["changes_url"].as_str().expect("an address");
        &url[url.find("/v2/").expect("a path")..]
    }

    /// Returns true if the public library accepts it with this secret.
    pub fn is_signed_by(&self, secret: &str) -> bool {
        self.is_accepted(secret, &self.post.body, self.header("webhook-timestamp"))
    }

    /// Returns true if the public library accepts these bytes of this time with its signatures.
    pub fn is_accepted(&self, secret: &str, body: &[u8], timestamp: &str) -> bool {
        let headers: HeaderMap = [
            ("webhook-id", self.id()),
            ("webhook-timestamp", timestamp),
            ("webhook-signature", self.header("webhook-signature")),
        ]
        .into_iter()
        .map(|(name, value)| {
            let value = HeaderValue::from_str(value).expect("a value");
            (HeaderName::from_static(name), value)
        })
        .collect();
        let library = Webhook::new(secret).expect("a secret");
        library.verify(body, &headers).is_ok()
    }

    /// Returns the bytes that were signed.
    pub fn bytes(&self) -> &[u8] {
        &self.post.body
    }
}

/// A store with a key, and receivers of its events.
pub struct Delivery {
    pub store: Store,
    pub key: String,
    pub web: Web,
}

/// An endpoint of [`Delivery`].
#[derive(Debug, Clone)]
pub struct Endpoint {
    pub id: String,
    pub secret: String,
}

impl Delivery {
    /// A store with these products and receivers that take everything.
    pub fn of(products: &[Value]) -> Self {
        Self::over(Store::of(products))
    }

    /// A store, and receivers that take everything.
    pub fn over(store: Store) -> Self {
        Self {
            key: store.key("reader", &[]),
            web: Web::of(&[(HOOK, Page::status("204 No Content"))]),
            store,
        }
    }

    /// Creates an endpoint of the key. `options` are further ones of `webhooks create`.
    pub fn endpoint(&self, options: &[&str]) -> Endpoint {
        self.endpoint_at(&self.web.url(HOOK), options)
    }

    /// Creates an endpoint of the key at an address.
    pub fn endpoint_at(&self, url: &str, options: &[&str]) -> Endpoint {
        let prefix = self.prefix();
        let create = ["webhooks", "create", "--json", "--url", url];
        let mut command = self
            .store
            .command(&[&create[..], &["--key", prefix], options].concat());
        command.args(self.options());
        let output = command.output().expect("vitrine runs");
        assert!(output.status.success(), "{}", super::text(&output.stderr));
        let made: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let member = |name: &str| made[name].as_str().expect("a text").to_owned();
        Endpoint {
            id: member("id"),
            secret: member("secret"),
        }
    }

    /// Returns the prefix of the key.
    pub fn prefix(&self) -> &str {
        self.key.rsplit_once('.').expect("a prefix").0
    }

    /// Options of whoever creates endpoints or delivers.
    pub fn options(&self) -> [String; 4] {
        let key_file = self.store.path("webhooks.key").display().to_string();
        [
            "--webhook-key-file".to_owned(),
            key_file,
            "--webhook-networks".to_owned(),
            "127.0.0.0/8".to_owned(),
        ]
    }

    /// Starts a server that delivers.
    pub fn serve(&self) -> Server {
        let own = self.options();
        let own = own.iter().map(String::as_str);
        let options: Vec<&str> = ["--deliver-webhooks"].into_iter().chain(own).collect();
        self.store.serve_with(&options)
    }

    /// Waits until so many events have come; returns all.
    pub fn events(&self, count: usize) -> Vec<Event> {
        wait_for(&format!("{count} events"), || {
            let posts = self.web.posts();
            (posts.len() >= count).then(|| posts.iter().map(Event::of).collect())
        })
    }

    /// Returns what `webhooks show` tells of an endpoint.
    pub fn show(&self, endpoint: &Endpoint) -> Value {
        self.store
            .json(&["webhooks", "show", &endpoint.id, "--json"])
    }

    /// Waits for the outcome of an endpoint's newest attempt.
    pub fn wait_for_outcome(&self, endpoint: &Endpoint) -> String {
        wait_for("an attempt", || {
            let shown = self.show(endpoint);
            shown["attempts"][0]["outcome"].as_str().map(str::to_owned)
        })
    }

    /// Waits until a member of `webhooks show` has a value.
    pub fn wait_for_member(&self, endpoint: &Endpoint, name: &str, value: &Value) -> Value {
        wait_for(&format!("{name} to be {value}"), || {
            Some(self.show(endpoint)).filter(|shown| shown[name] == *value)
        })
    }
}
