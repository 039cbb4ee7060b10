//! Blocking client: it waits for requests, and iterates over streams.
//!
//! ```
//! # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/stand_in.in"));
//! use vitrine_client::{Key, blocking::Client};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let server = StandIn::start();
//! # let (base_url, key) = (server.base_url(), "partner.s3cret");
//! let client = Client::new(&base_url, Key::new(key)?)?;
//! for product in client.iter(client.products().orderable().stream()) {
//!     let product = product?;
//!     println!("{} {}", product.code, product.name);
//! }
//! println!("{:?}", client.wait(client.countries())?);
//! # Ok(())
//! # }
//! ```

use std::ops::Deref;
use std::sync::Arc;

use tokio::runtime::{Builder, Runtime};

use crate::builder::{BuildError, ClientBuilder};
use crate::stream::Results;
use crate::{Key, Result};

/// A [`crate::Client`] with a runtime of its own. It is cheap to clone, and threads may share it.
///
/// It has the operations of a [`crate::Client`]. [`wait`](Self::wait) returns the result of one, and [`iter`](Self::iter) the
/// items of a stream. Both panic if they are called from async code, because they would block its thread: use
/// [`crate::Client`] there.
#[derive(Debug, Clone)]
pub struct Client {
    client: crate::Client,
    runtime: Arc<Runtime>,
}

impl Client {
    /// Creates a client with the default settings. `base_url` may end in `/v2`.
    ///
    /// # Errors
    ///
    /// As [`ClientBuilder::build`].
    pub fn new(base_url: &str, key: Key) -> std::result::Result<Self, BuildError> {
        Self::build(crate::Client::builder(base_url, key))
    }

    /// Creates a client with the settings of [`crate::Client::builder`].
    ///
    /// # Errors
    ///
    /// As [`ClientBuilder::build`].
    pub fn build(builder: ClientBuilder) -> std::result::Result<Self, BuildError> {
        let client = builder.build()?;
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| BuildError::Http(error.to_string()))?;
        Ok(Self {
            client,
            runtime: Arc::new(runtime),
        })
    }

    /// Waits for a request, such as `client.product("A")` or `list.page()`.
    pub fn wait<F: Future>(&self, request: F) -> F::Output {
        self.runtime.block_on(request)
    }

    /// Iterates over a stream, such as `list.stream()` or `changes.sync(token)`.
    pub fn iter<T>(&self, mut stream: Results<T>) -> impl Iterator<Item = Result<T>> + use<T> {
        let runtime = Arc::clone(&self.runtime);
        std::iter::from_fn(move || runtime.block_on(stream.next()))
    }
}

impl Deref for Client {
    type Target = crate::Client;

    fn deref(&self) -> &crate::Client {
        &self.client
    }
}
