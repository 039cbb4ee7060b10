//! Requests for what differs since a token, and their pages (docs/contract/changes.md).

use std::marker::PhantomData;
use std::time::Duration;

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize};

use crate::Result;
use crate::client::Client;
use crate::filters::{Filters, Target, filter_methods};
use crate::product::Product;
use crate::retry::{Retries, with_retries};
use crate::stream::Results;
use crate::sync::{self, SyncEvent};

/// Maximum length of a token, in characters (docs/contract/changes.md#tokens).
const MAX_TOKEN_CHARS: usize = 400;

/// Request for what differs since a token. Values of one filter are alternatives; filters narrow each other.
///
/// [`sync`](Self::sync) makes all requests that keep a copy right; [`page`](Self::page) makes one.
///
/// `T` is the type of each product; [`read_as`](Self::read_as) changes it.
#[derive(Debug, Clone)]
#[must_use = "a request does nothing until a page or a sync is taken of it"]
pub struct ChangesRequest<T = Product> {
    client: Client,
    filters: Filters,
    pub(crate) since: Option<String>,
    pub(crate) wait: Option<Duration>,
    product: PhantomData<fn() -> T>,
}

/// One page of changes. `T` is the type of each product.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(bound(deserialize = "T: Deserialize<'de>"))]
#[non_exhaustive]
pub struct ChangesPage<T = Product> {
    /// The changes, ordered by code, byte-wise ascending.
    pub changes: Vec<Change<T>>,
    /// Token for the next request: at most 400 characters of `A-Z`, `a-z`, `0-9`, `_` and `-`.
    #[serde(deserialize_with = "read_token")]
    pub next: String,
    /// True if the server has more changes by now.
    pub has_more: bool,
    /// Time to wait before the next request, from `Retry-After`: the server can't hold more answers.
    #[serde(skip)]
    pub retry_after: Option<Duration>,
}

/// A change of one product.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(bound(deserialize = "T: Deserialize<'de>"))]
#[non_exhaustive]
pub struct Change<T = Product> {
    /// Code of the product.
    pub code: String,
    /// The product as the list has it; `None` if it isn't visible any more with this key and these filters.
    // Not by default: a field that is missing must not remove a product.
    #[serde(deserialize_with = "Option::deserialize")]
    pub product: Option<T>,
}

impl ChangesRequest {
    pub(crate) fn new(client: Client) -> Self {
        Self {
            client,
            filters: Filters::default(),
            since: None,
            wait: None,
            product: PhantomData,
        }
    }
}

impl<T> ChangesRequest<T> {
    filter_methods!();

    /// Asks for what differs since this token, [`next`](ChangesPage::next) of an earlier page of a request with the same
    /// filters. Without a token all products are changes: a copy begins with that. `now` gives what changes from now on,
    /// without a copy.
    pub fn since(mut self, token: impl Into<String>) -> Self {
        self.since = Some(token.into());
        self
    }

    /// Sets the time for which the server may hold the answer until something changes: whole seconds, at most 55. Default: 0
    /// of [`page`](Self::page), 45 s of [`sync`](Self::sync). It is sent only with a token.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = Some(wait);
        self
    }

    /// Reads each product as another type; [`Json`](crate::Json) is the JSON that the server sent, byte for byte.
    pub fn read_as<U: DeserializeOwned>(self) -> ChangesRequest<U> {
        ChangesRequest {
            client: self.client,
            filters: self.filters,
            since: self.since,
            wait: self.wait,
            product: PhantomData,
        }
    }

    /// Returns the time for which the server may hold the answer.
    fn hold(&self) -> Duration {
        let wait = self.wait.filter(|_| self.since.is_some());
        Duration::from_secs(wait.unwrap_or_default().as_secs())
    }

    pub(crate) fn retries(&self) -> &Retries {
        &self.client.0.retries
    }

    fn target(&self) -> String {
        let mut target = Target::new("/product/changes");
        self.filters.put(&mut target);
        if let Some(token) = &self.since {
            target.put("since", token);
        }
        let hold = self.hold().as_secs();
        if hold > 0 {
            target.put("wait", &hold.to_string());
        }
        target.into_string()
    }
}

impl<T: DeserializeOwned> ChangesRequest<T> {
    /// Fetches one page.
    ///
    /// # Errors
    ///
    /// See [`Error`](crate::Error). If the server no longer knows the token,
    /// [`Error::is_changes_gone`](crate::Error::is_changes_gone) is true: begin without one, and replace the copy.
    pub async fn page(&self) -> Result<ChangesPage<T>> {
        let retries = *self.retries();
        let retries = Retries {
            longest_total: retries.longest_total.saturating_add(self.hold()),
            ..retries
        };
        with_retries(&retries, self.client.0.on_retry, || self.attempt()).await
    }

    /// Fetches one page, without retries.
    pub(crate) async fn attempt(&self) -> Result<ChangesPage<T>> {
        let answer = self.client.0.get_once(&self.target(), self.hold()).await?;
        Ok(ChangesPage {
            retry_after: answer.retry_after(),
            ..self.client.0.decode(&answer.body)?
        })
    }
}

impl<T: DeserializeOwned + Send + 'static> ChangesRequest<T> {
    /// Keeps a copy of the catalog right: returns the changes as a stream, each with the token to store together with it. It
    /// ends only with an error.
    ///
    /// `stored` is the last stored token; it replaces [`since`](Self::since). `None` begins a copy.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/stand_in.in"));
    /// # use std::collections::BTreeMap;
    /// # use vitrine_client::{Client, Key, Product};
    /// use vitrine_client::SyncEvent;
    ///
    /// # #[derive(Default)]
    /// # struct Copy { products: BTreeMap<String, Product>, token: Option<String> }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = StandIn::start();
    /// # let client = Client::new(&server.base_url(), Key::new("partner.s3cret")?)?;
    /// # let mut copy = Copy::default();
    /// // The copy is a table of products and the token, in one database.
    /// let mut sync = client.changes().country("SE").sync(copy.token.clone());
    /// let mut starts_over = false;
    /// while let Some(event) = sync.next().await {
    ///     match event? {
    ///         SyncEvent::StartOver => starts_over = true,
    ///         SyncEvent::Changes { changes, token, at_rest, .. } => {
    ///             // One transaction begins…
    ///             if std::mem::take(&mut starts_over) {
    ///                 copy.products.clear();
    ///             }
    ///             for change in changes {
    ///                 match change.product {
    ///                     Some(product) => copy.products.insert(change.code, product),
    ///                     None => copy.products.remove(&change.code),
    ///                 };
    ///             }
    ///             copy.token = Some(token);
    ///             // … and ends.
    ///             if at_rest {
    ///                 println!("{} products", copy.products.len());
    /// #               break;
    ///             }
    ///         }
    ///         SyncEvent::Retrying(error) => eprintln!("{error}; trying again"),
    ///         _ => {}
    ///     }
    /// }
    /// # assert_eq!(copy.products.len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Requests
    ///
    /// - Until the copy is at rest, one request follows the other. From then on they have a
    ///   [`wait`](Self::wait): the server holds its answer until something changes.
    /// - Requests that fail for a time ([`Retries`](crate::Retries)) are repeated with the same token, without an end; of
    ///   `Retries` only the pauses count. All other failures, such as a revoked key, end the stream.
    /// - `Retry-After` is waited for, of answers too, up to an hour. Answers without progress are followed by pauses as failures are, so that
    ///   no server keeps the sync busy.
    ///
    /// # Crashes
    ///
    /// If changes and token are stored together, a sync that begins with the stored token continues without a loss. If storing
    /// fails, drop the stream and begin again with the stored token: the next request would build on changes that the
    /// copy doesn't have. Dropping the future of [`next`](Results::next) loses nothing.
    pub fn sync(mut self, stored: Option<String>) -> Results<SyncEvent<T>> {
        self.since = stored;
        sync::events(self)
    }
}

/// Reads a token, which callers store and send back.
fn read_token<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<String, D::Error> {
    let token = String::deserialize(deserializer)?;
    let is_token = (1..=MAX_TOKEN_CHARS).contains(&token.len())
        && token
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    match is_token {
        true => Ok(token),
        false => Err(D::Error::custom("it isn't a token")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Key;

    #[test]
    fn wait_is_sent_only_with_a_token() {
        let client = Client::new("http://127.0.0.1", Key::new("a.b").unwrap()).unwrap();
        let request = client.changes().wait(Duration::from_millis(5_900));
        assert_eq!(request.target(), "/product/changes");
        assert_eq!(request.hold(), Duration::ZERO);
        let request = request.category("a b").countries(["SE", "DE"]).limit(5);
        let request = request.orderable().since("c1_x-Y");
        assert_eq!(
            request.target(),
            "/product/changes?countries_redeemable_in=SE&countries_redeemable_in=DE\
             &categories=a%20b&is_orderable=true&limit=5&since=c1_x-Y&wait=5"
        );
        assert_eq!(request.hold(), Duration::from_secs(5));
    }
}
