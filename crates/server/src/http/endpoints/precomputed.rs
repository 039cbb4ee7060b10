//! Responses that are the same for every request: made and hashed once.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock, Weak};

use arc_swap::ArcSwapOption;
use bytes::Bytes;
use vitrine_model::assortment::View;
use vitrine_model::geo::Country;
use vitrine_model::snapshot::Snapshot;
use vitrine_wire::answer::{Category, CategoryList, CountryList, Pong};

use super::pages::PageHeads;
use crate::http::openapi;
use crate::http::response::Audience;
use crate::http::response::entity_tag::EntityTag;
use crate::http::response::resource::Resource;
use crate::http::versions::Version;

/// A body with its tag.
#[derive(Debug, Clone)]
pub(crate) struct PrecomputedBody {
    tag: EntityTag,
    body: Bytes,
}

impl PrecomputedBody {
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

    /// Returns the resource of this body.
    pub(crate) fn resource(&self) -> Resource<'static> {
        Resource::ready(self.tag, self.body.clone())
    }
}

/// Responses that a snapshot determines, made on their first request, and the heads of its pages.
#[derive(Debug)]
pub(crate) struct SnapshotResponses {
    /// Weak, so that the snapshot goes when it is replaced; no other can have its address meanwhile.
    snapshot: Weak<Snapshot>,
    categories: OnceLock<PrecomputedBody>,
    countries: OnceLock<PrecomputedBody>,
    /// Heads of pages by version: pages may differ in their bytes.
    pub(crate) pages: [PageHeads; Version::COUNT],
}

impl SnapshotResponses {
    fn new(snapshot: &Arc<Snapshot>) -> Self {
        Self {
            snapshot: Arc::downgrade(snapshot),
            categories: OnceLock::new(),
            countries: OnceLock::new(),
            pages: std::array::from_fn(|_| PageHeads::default()),
        }
    }

    /// Returns the categories of its snapshot, or those of a view.
    pub(crate) fn categories(&self, snapshot: &Snapshot, view: Option<&View>) -> Resource<'static> {
        match view {
            None => {
                let make = || categories(snapshot.categories());
                self.categories.get_or_init(make).resource()
            }
            // The names are kept, and few.
            Some(view) => categories(view.categories(snapshot)).resource(),
        }
    }

    /// Returns the countries of its snapshot, or those of a view.
    pub(crate) fn countries(&self, snapshot: &Snapshot, view: Option<&View>) -> Resource<'static> {
        match view {
            None => {
                let make = || countries(snapshot.countries());
                self.countries.get_or_init(make).resource()
            }
            Some(view) => countries(view.countries(snapshot)).resource(),
        }
    }
}

fn categories<'s>(names: impl Iterator<Item = &'s str>) -> PrecomputedBody {
    let category = |code| Category {
        code: Cow::Borrowed(code),
    };
    PrecomputedBody::json(&CategoryList {
        categories: names.map(category).collect(),
    })
}

fn countries(countries: impl Iterator<Item = Country>) -> PrecomputedBody {
    let countries: Vec<String> = countries.map(|country| country.to_string()).collect();
    PrecomputedBody::json(&CountryList {
        countries: countries.iter().map(Into::into).collect(),
    })
}

/// Responses of the snapshot that was asked last.
#[derive(Debug, Default)]
pub(crate) struct Precomputed(ArcSwapOption<SnapshotResponses>);

impl Precomputed {
    /// Returns the responses of a snapshot.
    pub(crate) fn of(&self, snapshot: &Arc<Snapshot>) -> Arc<SnapshotResponses> {
        if let Some(responses) = self.0.load_full()
            && responses.snapshot.as_ptr() == Arc::as_ptr(snapshot)
        {
            return responses;
        }
        let made = Arc::new(SnapshotResponses::new(snapshot));
        self.0.store(Some(Arc::clone(&made)));
        made
    }
}

/// Returns the answer to a key's test.
pub(crate) fn pong() -> Resource<'static> {
    static PONG: OnceLock<PrecomputedBody> = OnceLock::new();
    PONG.get_or_init(|| PrecomputedBody::json(&Pong { message: "pong" }))
        .resource()
}

/// OpenAPI documents of the versions, each made on its first request.
#[derive(Debug, Default)]
pub(crate) struct OpenapiDocuments([OnceLock<PrecomputedBody>; Version::COUNT]);

impl OpenapiDocuments {
    /// Returns the document of a version for the service at `public_url`.
    pub(crate) fn of(&self, public_url: &str, version: &Version) -> Resource<'static> {
        let make = || PrecomputedBody::of(openapi::document(public_url, version).into());
        let made = self.0[version.index].get_or_init(make);
        made.resource().for_audience(Audience::Document)
    }
}
