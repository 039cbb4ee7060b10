//! Answers that are the same for every request: made and hashed once, not each time.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock, Weak};

use arc_swap::ArcSwapOption;
use bytes::Bytes;
use vitrine_model::snapshot::Snapshot;
use vitrine_wire::answer::{Category, CategoryList, CountryList, Pong};

use super::pages::PageHeads;
use crate::http::openapi;
use crate::http::response::Audience;
use crate::http::response::entity_tag::EntityTag;
use crate::http::response::resource::Resource;

/// A body with its tag.
#[derive(Debug, Clone)]
pub(crate) struct ReadyBody {
    tag: EntityTag,
    body: Bytes,
}

impl ReadyBody {
    pub(crate) fn of(body: Bytes) -> Self {
        Self {
            tag: EntityTag::of(&body),
            body,
        }
    }

    fn json(body: &impl serde::Serialize) -> Self {
        // Lists of texts can't fail to become JSON.
        Self::of(serde_json::to_vec(body).unwrap_or_default().into())
    }

    /// What a request for it finds.
    pub(crate) fn resource(&self) -> Resource<'static> {
        Resource::ready(self.tag, self.body.clone())
    }
}

/// What a snapshot alone determines, made when somebody asks for it, and what is remembered of its pages.
#[derive(Debug)]
pub(crate) struct OfSnapshot {
    /// Weak, so that the snapshot goes when it is replaced; no other can have its address meanwhile.
    snapshot: Weak<Snapshot>,
    categories: OnceLock<ReadyBody>,
    countries: OnceLock<ReadyBody>,
    pub(crate) pages: PageHeads,
}

impl OfSnapshot {
    fn new(snapshot: &Arc<Snapshot>) -> Self {
        Self {
            snapshot: Arc::downgrade(snapshot),
            categories: OnceLock::new(),
            countries: OnceLock::new(),
            pages: PageHeads::default(),
        }
    }

    /// The categories of its snapshot.
    pub(crate) fn categories(&self, snapshot: &Snapshot) -> Resource<'static> {
        let list = || {
            let category = |code| Category {
                code: Cow::Borrowed(code),
            };
            ReadyBody::json(&CategoryList {
                categories: snapshot.categories().map(category).collect(),
            })
        };
        self.categories.get_or_init(list).resource()
    }

    /// The countries of its snapshot.
    pub(crate) fn countries(&self, snapshot: &Snapshot) -> Resource<'static> {
        let list = || {
            let countries: Vec<String> = snapshot.countries().map(|c| c.to_string()).collect();
            ReadyBody::json(&CountryList {
                countries: countries.iter().map(Into::into).collect(),
            })
        };
        self.countries.get_or_init(list).resource()
    }
}

/// What belongs to the snapshot that was asked last.
#[derive(Debug, Default)]
pub(crate) struct Ready(ArcSwapOption<OfSnapshot>);

impl Ready {
    /// What belongs to a snapshot.
    pub(crate) fn of(&self, snapshot: &Arc<Snapshot>) -> Arc<OfSnapshot> {
        if let Some(ready) = self.0.load_full()
            && ready.snapshot.as_ptr() == Arc::as_ptr(snapshot)
        {
            return ready;
        }
        let made = Arc::new(OfSnapshot::new(snapshot));
        self.0.store(Some(Arc::clone(&made)));
        made
    }
}

/// The answer to a try of a key.
pub(crate) fn pong() -> Resource<'static> {
    static PONG: OnceLock<ReadyBody> = OnceLock::new();
    PONG.get_or_init(|| ReadyBody::json(&Pong { message: "pong" }))
        .resource()
}

/// OpenAPI document of a server, made on its first request.
#[derive(Debug, Default)]
pub(crate) struct Document(OnceLock<ReadyBody>);

impl Document {
    /// Returns the document of the service at `public_url`.
    pub(crate) fn of(&self, public_url: &str) -> Resource<'static> {
        let make = || ReadyBody::of(openapi::document(public_url).into());
        let made = self.0.get_or_init(make);
        made.resource().for_audience(Audience::Document)
    }
}
