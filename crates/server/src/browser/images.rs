//! Pictures that products name by addresses of other servers. A page asks no other origin, so that nobody whom a catalog
//! names learns who looks at it; this server asks instead, and keeps for a while what came.
//!
//! Whoever writes an address into a feed mustn't reach with it what only this machine can reach: unless operators say
//! otherwise, requests stay in the public internet.

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

use super::sniff;

/// Source of pictures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ImageSource {
    /// They are made here: nobody is asked.
    #[default]
    Placeholder,
    /// The servers that products name, in the public internet.
    Fetch,
    /// Those in private networks too, through a proxy if the environment names one.
    FetchPrivate,
}

/// The longest picture, in bytes.
const MAX_IMAGE_BYTES: usize = 2 << 20;
/// Maximum size of kept pictures, in bytes.
const CACHE_BYTES: u64 = 32 << 20;
/// Maximum number of servers asked at once.
const MAX_CONCURRENT: usize = 8;
/// Timeout of a picture, and of waiting for a turn.
const FETCH_TIMEOUT: Duration = Duration::from_secs(5);
/// Time for which a picture is kept.
const IMAGE_TTL: Duration = Duration::from_secs(60 * 60);
/// Time for which an address that gave none isn't asked again.
const FAILURE_TTL: Duration = Duration::from_secs(5 * 60);

/// A picture.
#[derive(Debug, Clone)]
pub(super) struct Image {
    pub(super) content_type: &'static str,
    pub(super) bytes: Bytes,
}

/// Result of asking an address, and its expiry.
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

/// Fetches pictures, and keeps them.
#[derive(Debug)]
pub(super) struct Images {
    /// Client that fetches pictures, in private networks too if so set; none if pictures are made here.
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

    /// The picture at an address; none if it can't be had.
    pub(super) async fn get(&self, address: &str) -> Option<Image> {
        let client = self.client.as_ref()?;
        if let Some(known) = self.known(address) {
            return known.image;
        }
        let turn = tokio::time::timeout(FETCH_TIMEOUT, self.turns.acquire()).await;
        let (Ok(Ok(_turn)), None) = (turn, self.known(address)) else {
            // Too many are asked for, or somebody else asked for this one meanwhile.
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

async fn fetch(client: &Client, source: ImageSource, address: &str) -> Option<Image> {
    let url = Url::parse(address).ok()?;
    if source == ImageSource::Fetch
        && let Err(refused) = guard::judge(&url)
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
        bytes: answer.body.into(),
    })
}
