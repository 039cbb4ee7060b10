//! Pictures at other servers. Pages load them through this server, which caches them, so that a picture's server
//! doesn't learn who looks at it.
//!
//! A URL in a feed mustn't reach servers that only this machine can reach: unless the operator allows private networks,
//! requests go to public addresses only.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use bytes::Bytes;
use http::header::ACCEPT;
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use reqwest::{Client, Url};
use tokio::sync::Semaphore;
use vitrine_ingest::outside::{self, guard};
use vitrine_model::code::ProductCode;

use super::answer::{self, Page};
use super::card::ProductPictures;
use super::{Browser, Picture, placeholder, sniff};

/// Source of pictures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ImageSource {
    /// Placeholders, made by this server.
    #[default]
    Placeholder,
    /// Servers that products name, in the public internet.
    Fetch,
    /// Private networks, too, through a proxy if the environment names one.
    FetchPrivate,
}

/// Maximum length of a picture, in bytes.
const MAX_IMAGE_BYTES: usize = 2 << 20;
/// Maximum size of the cache, in bytes.
const CACHE_BYTES: u64 = 32 << 20;
/// Maximum number of concurrent requests.
const MAX_CONCURRENT: usize = 8;
/// Timeout of a request, and of waiting for a turn.
const FETCH_TIMEOUT: Duration = Duration::from_secs(5);
/// Time for which a picture is cached.
const IMAGE_TTL: Duration = Duration::from_secs(60 * 60);
/// Time for which a failure is cached.
const FAILURE_TTL: Duration = Duration::from_secs(5 * 60);

/// A picture.
#[derive(Debug, Clone)]
pub(super) struct Image {
    pub(super) content_type: &'static str,
    pub(super) bytes: Bytes,
}

/// Cached result of a request, with its expiry.
#[derive(Debug, Clone)]
struct CachedImage {
    image: Option<Image>,
    until: Instant,
}

#[derive(Debug, Clone)]
struct BySize;

impl Weighter<String, CachedImage> for BySize {
    fn weight(&self, address: &String, known: &CachedImage) -> u64 {
        let bytes = known.image.as_ref().map_or(0, |image| image.bytes.len());
        (address.len() + bytes + 128) as u64
    }
}

/// Fetches and caches pictures.
#[derive(Debug)]
pub(super) struct Images {
    /// HTTP client; `None` if placeholders are shown.
    client: Option<Client>,
    source: ImageSource,
    turns: Arc<Semaphore>,
    known: Cache<String, CachedImage, BySize>,
}

impl Images {
    pub(super) fn new(source: ImageSource) -> anyhow::Result<Self> {
        let builder = match source {
            ImageSource::Placeholder => None,
            ImageSource::Fetch => Some(guard::public_only(outside::builder()?)),
            ImageSource::FetchPrivate => Some(outside::builder()?),
        };
        let client = builder.map(reqwest::ClientBuilder::build).transpose();
        Ok(Self {
            client: client.context("can't set up the HTTP client for images")?,
            source,
            turns: Arc::new(Semaphore::new(MAX_CONCURRENT)),
            known: Cache::with_weighter(1_024, CACHE_BYTES, BySize),
        })
    }

    /// Returns the picture at a URL; `None` if it can't be fetched.
    pub(super) async fn get(&self, address: &str) -> Option<Image> {
        let client = self.client.as_ref()?;
        if let Some(known) = self.known(address) {
            return known.image;
        }
        let turn = tokio::time::timeout(FETCH_TIMEOUT, self.turns.acquire()).await;
        let (Ok(Ok(_turn)), None) = (turn, self.known(address)) else {
            // Too many requests wait, or another one has fetched this picture meanwhile.
            return self.known(address).and_then(|known| known.image);
        };
        let image = tokio::time::timeout(FETCH_TIMEOUT, fetch(client, self.source, address)).await;
        let image = image.ok().flatten();
        let counts_for = if image.is_some() {
            IMAGE_TTL
        } else {
            FAILURE_TTL
        };
        let known = CachedImage {
            image: image.clone(),
            until: Instant::now() + counts_for,
        };
        self.known.insert(address.to_owned(), known);
        image
    }

    fn known(&self, address: &str) -> Option<CachedImage> {
        let known = self.known.get(address)?;
        (Instant::now() < known.until).then_some(known)
    }
}

impl Browser {
    /// Returns a product's picture, or its placeholder.
    pub(super) async fn picture(&self, code: &ProductCode, picture: Picture) -> Page {
        let snapshot = self.app.live.snapshot();
        let product = snapshot.as_ref().and_then(|found| found.product(code));
        let Some(product) = product else {
            return answer::svg(placeholder::svg(code.as_str(), None));
        };
        let pictured = ProductPictures::of(product.bytes());
        let (name, colour) = (pictured.name.clone(), pictured.colour);
        let address = pictured.address(picture).map(str::to_owned);
        // Fetching may take seconds; no snapshot is held meanwhile.
        drop(pictured);
        drop(snapshot);
        if let Some(address) = address
            && let Some(image) = self.images.get(&address).await
        {
            return answer::image(image.content_type, image.bytes);
        }
        answer::svg(placeholder::svg(&name, colour))
    }
}

async fn fetch(client: &Client, source: ImageSource, address: &str) -> Option<Image> {
    let url = Url::parse(address).ok()?;
    if source == ImageSource::Fetch
        && let Err(refused) = guard::check(&url)
    {
        tracing::debug!(%refused, "an image is not fetched");
        return None;
    }
    let request = client.get(url).header(ACCEPT, "image/*");
    let answer = match outside::send(request, MAX_IMAGE_BYTES).await {
        Ok(answer) => answer,
        Err(failure) => {
            tracing::debug!(%failure, "an image can't be fetched");
            return None;
        }
    };
    let content_type = sniff::content_type(&answer.body).filter(|_| answer.status == 200)?;
    Some(Image {
        content_type,
        bytes: answer.body,
    })
}
