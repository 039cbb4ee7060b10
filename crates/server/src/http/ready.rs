//! Answers that are the same for every request: made and hashed once, not each time.

use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwapOption;
use bytes::Bytes;
use vitrine_model::snapshot::Snapshot;
use vitrine_wire::answer::{Category, CategoryList, CountryList, Pong};

use super::answer::{Audience, Resource};
use super::conditional::EntityTag;
use super::openapi;

/// A body with its tag.
#[derive(Debug, Clone)]
pub(super) struct ReadyBody {
    tag: EntityTag,
    body: Bytes,
}

impl ReadyBody {
    fn of(body: Bytes) -> Self {
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
    pub(super) fn resource(&self) -> Resource<'static> {
        Resource::ready(self.tag, self.body.clone())
    }
}

/// What the revision alone determines.
#[derive(Debug)]
pub(super) struct OfRevision {
    id: String,
    pub(super) categories: ReadyBody,
    pub(super) countries: ReadyBody,
}

/// The answers of the revision that was asked last.
#[derive(Debug, Default)]
pub(super) struct Ready(ArcSwapOption<OfRevision>);

impl Ready {
    /// The answers of a snapshot, made where nobody asked for them since it went live.
    pub(super) fn of(&self, snapshot: &Snapshot) -> Arc<OfRevision> {
        let id = &snapshot.revision().id;
        if let Some(ready) = self.0.load_full()
            && ready.id == *id
        {
            return ready;
        }
        let categories = snapshot.categories();
        let categories = categories.map(|code| Category { code: code.into() });
        let categories = categories.collect();
        let countries: Vec<String> = snapshot.countries().map(|c| c.to_string()).collect();
        let countries = countries.iter().map(Into::into).collect();
        let made = Arc::new(OfRevision {
            id: id.clone(),
            categories: ReadyBody::json(&CategoryList { categories }),
            countries: ReadyBody::json(&CountryList { countries }),
        });
        self.0.store(Some(Arc::clone(&made)));
        made
    }
}

/// The answer to a try of a key.
pub(super) fn pong() -> Resource<'static> {
    static PONG: OnceLock<ReadyBody> = OnceLock::new();
    PONG.get_or_init(|| ReadyBody::json(&Pong { message: "pong" }))
        .resource()
}

/// The OpenAPI document.
pub(super) fn document() -> Resource<'static> {
    static DOCUMENT: OnceLock<ReadyBody> = OnceLock::new();
    let document = || ReadyBody::of(Bytes::from_static(openapi::document().as_bytes()));
    DOCUMENT
        .get_or_init(document)
        .resource()
        .read_by(Audience::Document)
}
