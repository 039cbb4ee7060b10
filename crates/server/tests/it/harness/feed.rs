//! The changes feed as a client uses it: a copy that stays right, and servers whose changes are awaited.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::{ALLOW_ALL, Reply, Server, Store, text, wait_for};

/// Path of the changes feed.
pub const CHANGES: &str = "/v2/product/changes";

/// Body of an answer of the changes feed.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Changes {
    pub changes: Vec<Change>,
    pub next: String,
    pub has_more: bool,
}

/// A change: the product to the letter, or none.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    pub code: String,
    pub product: Option<Box<RawValue>>,
}

impl Changes {
    /// Reads an answer with status 200, after checking what each must keep to.
    pub fn of(reply: &Reply) -> Self {
        let body = text(&reply.body);
        assert_eq!(reply.status, 200, "{body}");
        let changes: Self = serde_json::from_str(&body).expect("changes");
        assert!(
            changes.changes.is_sorted_by(|a, b| a.code < b.code),
            "not ascending: {body}"
        );
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
        let next = &changes.next;
        assert!(
            (1..=400).contains(&next.len()) && next.bytes().all(is_allowed),
            "{next}"
        );
        changes
    }

    /// Returns each code, behind a minus if its product isn't visible any more.
    pub fn named(&self) -> Vec<String> {
        let named = |change: &Change| match &change.product {
            Some(_) => change.code.clone(),
            None => format!("-{}", change.code),
        };
        self.changes.iter().map(named).collect()
    }
}

/// Copy of what a key sees with some filters.
#[derive(Debug, Clone, Default)]
pub struct CatalogCopy {
    /// Products by code, to the letter.
    pub products: BTreeMap<String, String>,
    /// Token of the last answer.
    pub token: Option<String>,
    /// Filters, as in a query.
    filters: &'static str,
    /// Codes that the current walk has named.
    walked: BTreeSet<String>,
    /// True if the walk goes on.
    has_more: bool,
}

impl CatalogCopy {
    /// Returns an empty copy.
    pub fn of(filters: &'static str) -> Self {
        Self {
            filters,
            ..Self::default()
        }
    }

    /// Returns the target of the next request, with further parameters.
    pub fn target(&self, more: &str) -> String {
        let since = self.token.as_ref().map(|token| format!("since={token}"));
        let parts = [self.filters, since.as_deref().unwrap_or_default(), more];
        let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        match parts.is_empty() {
            true => CHANGES.to_owned(),
            false => format!("{CHANGES}?{}", parts.join("&")),
        }
    }

    /// Returns the copy with another token.
    pub fn with_token(&self, token: Option<String>) -> Self {
        Self {
            token,
            ..self.clone()
        }
    }

    /// Returns true if its walk goes on.
    pub fn is_walking(&self) -> bool {
        self.has_more
    }

    /// Applies an answer.
    pub fn apply(&mut self, reply: &Reply) -> Changes {
        let answer = Changes::of(reply);
        for Change { code, product } in &answer.changes {
            assert!(self.walked.insert(code.clone()), "{code} twice in a walk");
            match product {
                Some(product) => drop(self.products.insert(code.clone(), product.to_string())),
                None => {
                    assert!(self.token.is_some(), "{code} is removed without a token");
                    self.products.remove(code);
                }
            }
        }
        // After an empty answer, what changed during the walk may come.
        if !answer.has_more || answer.changes.is_empty() {
            self.walked.clear();
        }
        self.has_more = answer.has_more;
        self.token = Some(answer.next.clone());
        answer
    }

    /// Asks once; returns what is named.
    pub fn ask(&mut self, server: &Server, key: &str, more: &str) -> Vec<String> {
        let reply = server.get(key, &self.target(more));
        self.apply(&reply).named()
    }

    /// Walks until there is no more for now; returns what is named.
    pub fn walk(&mut self, server: &Server, key: &str, more: &str) -> Vec<String> {
        let mut named = Vec::new();
        loop {
            let reply = server.get(key, &self.target(more));
            named.extend(self.apply(&reply).named());
            if !self.is_walking() {
                return named;
            }
        }
    }

    /// Walks until an answer is empty; then the copy must be equal to the list.
    pub fn settle(&mut self, server: &Server, key: &str) {
        wait_for("an empty answer", || {
            self.walk(server, key, "").is_empty().then_some(())
        });
        assert_eq!(self.products, list(server, key, self.filters));
    }
}

/// Returns the products of the list by code, to the letter.
pub fn list(server: &Server, key: &str, filters: &str) -> BTreeMap<String, String> {
    #[derive(Deserialize)]
    struct Page {
        catalog: Vec<Box<RawValue>>,
    }
    let (mut products, mut after) = (BTreeMap::new(), String::new());
    loop {
        let reply = server.get(key, &format!("/v2/product?{filters}{after}"));
        let codes = reply.codes();
        let page: Page = serde_json::from_slice(&reply.body).expect("a list");
        let page = page.catalog.iter().map(ToString::to_string);
        products.extend(codes.iter().cloned().zip(page));
        match reply.json()["pagination"]["cursors"]["after"].as_str() {
            Some(code) => after = format!("&after={code}"),
            None => return products,
        }
    }
}

/// Returns the token as if it had been issued so many seconds earlier: nothing signs it.
pub fn aged(token: &str, seconds: i64) -> String {
    with_time(token, |issued| issued - seconds)
}

/// Returns the token as if it had just been issued, however long a slow machine took since.
pub fn fresh(token: &str) -> String {
    with_time(token, |_| jiff::Timestamp::now().as_second())
}

fn with_time(token: &str, change: impl FnOnce(i64) -> i64) -> String {
    forged(token, |bytes| {
        let issued: &mut [u8; 8] = (&mut bytes[1..9]).try_into().expect("8 bytes");
        *issued = change(i64::from_le_bytes(*issued)).to_le_bytes();
    })
}

/// Returns the token with another revision as the newest that its walk showed.
pub fn of_unknown_revision(token: &str) -> String {
    // Flags, time of issue and two digests, and the number of the revision, are before its id.
    forged(token, |bytes| bytes[33] ^= 1)
}

fn forged(token: &str, forge: impl FnOnce(&mut [u8])) -> String {
    let encoded = token.strip_prefix("c1_").expect("a token");
    let mut bytes = URL_SAFE_NO_PAD.decode(encoded).expect("a token");
    forge(&mut bytes);
    format!("c1_{}", URL_SAFE_NO_PAD.encode(bytes))
}

/// Answers to a token that can't be continued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// 503: perhaps in a moment.
    Unknown,
    /// 410: begin anew.
    Gone,
}

/// Returns the refusal of an answer, after checking its form; none of a 200.
pub fn refusal(reply: &Reply) -> Option<Refusal> {
    if reply.status == 200 {
        return None;
    }
    assert_eq!(reply.header("cache-control"), Some("no-store"));
    let help = reply.json()["help"].to_string();
    match (reply.status, reply.error().as_str()) {
        (503, "unavailable") => {
            assert_eq!(reply.header("retry-after"), Some("1"), "{help}");
            Some(Refusal::Unknown)
        }
        (410, "changes_gone") => {
            assert_eq!(reply.header("retry-after"), None);
            assert!(help.contains("without `since`"), "{help}");
            Some(Refusal::Gone)
        }
        other => panic!("{other:?}: {help}"),
    }
}

/// A store with a key, and a server over it.
pub struct FeedServer {
    pub store: Store,
    pub key: String,
    pub server: Server,
}

/// A store with a key, between two servers.
pub struct StoppedFeed {
    pub store: Store,
    pub key: String,
}

impl StoppedFeed {
    /// Serves the store under an address that stays when it is served again.
    pub fn start(self, options: &[&str]) -> FeedServer {
        let Self { store, key } = self;
        let public_url = ["--public-url", "https://catalog.example"];
        let server = store.serve_with(&[&public_url, options].concat());
        FeedServer { store, key, server }
    }
}

impl FeedServer {
    /// Serves these products.
    pub fn of(products: &[Value], options: &[&str]) -> Self {
        Self::over(Store::of(products), options)
    }

    /// Serves a store.
    pub fn over(store: Store, options: &[&str]) -> Self {
        let key = store.key("reader", &[]);
        StoppedFeed { store, key }.start(options)
    }

    /// Ends the server.
    pub fn stop(self) -> StoppedFeed {
        let Self { store, key, .. } = self;
        StoppedFeed { store, key }
    }

    /// Ends the server and serves the same store again.
    pub fn restart(self, options: &[&str]) -> Self {
        self.stop().start(options)
    }

    /// Does what changes something, and waits until the feed shows that to a client without filters.
    pub fn change(&self, change: impl FnOnce(&Store)) {
        let mut witness = self.copy("");
        change(&self.store);
        wait_for("the change to be shown", || {
            (!self.walk(&mut witness).is_empty()).then_some(())
        });
    }

    /// Loads products, which replace all others, and waits until that is shown.
    pub fn load(&self, products: &[Value]) {
        self.change(|store| drop(store.load_products(products)));
    }

    /// Retires all products, and waits until that is shown.
    pub fn retire_all(&self) {
        let live = list(&self.server, &self.key, "");
        let retired = live.keys().flat_map(|code| ["--retire", code.as_str()]);
        let load = ["load", "--mode", "merge"].into_iter().chain(retired);
        let load: Vec<&str> = load.chain(ALLOW_ALL).collect();
        self.change(|store| drop(store.ok(&load)));
    }

    /// Begins a copy and completes its walk.
    pub fn copy(&self, filters: &'static str) -> CatalogCopy {
        let mut copy = CatalogCopy::of(filters);
        copy.walk(&self.server, &self.key, "");
        copy
    }

    /// Walks a copy until there is no more for now; returns what is named.
    pub fn walk(&self, copy: &mut CatalogCopy) -> Vec<String> {
        copy.walk(&self.server, &self.key, "")
    }

    /// Asks with a copy's token without applying the answer.
    pub fn ask(&self, copy: &CatalogCopy, more: &str) -> Reply {
        self.server.get(&self.key, &copy.target(more))
    }

    /// Returns the refusal of a copy's token, if it is refused, after `change` has changed that.
    pub fn refusal(
        &self,
        copy: &CatalogCopy,
        change: impl FnOnce(&str) -> String,
    ) -> Option<Refusal> {
        let copy = copy.with_token(copy.token.as_deref().map(change));
        refusal(&self.ask(&copy, ""))
    }

    /// Returns the refusals of a copy's token: if it were new, and if it were a minute older than it is.
    pub fn refusals(&self, copy: &CatalogCopy) -> [Option<Refusal>; 2] {
        let new = self.refusal(copy, fresh);
        [new, self.refusal(copy, |token| aged(token, 60))]
    }

    /// Asserts that the copy is equal to the list once an answer is empty.
    pub fn settle(&self, copy: &mut CatalogCopy) {
        copy.settle(&self.server, &self.key);
    }
}
