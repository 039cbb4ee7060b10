//! Endpoints: each reads the snapshot, and returns a resource whose body is made only if it is sent.
//!
//! - `pages`: the list of products; `changes`: the changes feed
//! - `texts`: texts, by digest and in a product; `html` renders them
//! - `precomputed`: answers that a snapshot, or nothing, determines
//! - `site`: the documentation

pub(crate) mod changes;
pub mod html;
pub(crate) mod pages;
pub(crate) mod precomputed;
pub mod site;
pub(crate) mod texts;

use std::sync::Arc;

use vitrine_ingest::view::{ContentForm, TextAddresses};
use vitrine_model::snapshot::Snapshot;
use vitrine_wire::error::ErrorType;

use self::html::HtmlRenderer;
use self::precomputed::{OpenapiDocument, Precomputed};
use self::site::{Pages, Site};
use super::error::ApiError;
use super::request::parameters;
use super::response::entity_tag::EntityTag;
use super::response::resource::Resource;
use super::routes::{Captured, KeyedOperation};
use super::versions::{Version, Versions};

/// Parts that resources are made of, beside the snapshot.
#[derive(Debug)]
pub struct Endpoints {
    /// URLs of texts.
    pub addresses: TextAddresses,
    /// Renderer of Markdown.
    pub html: HtmlRenderer,
    /// Served API versions.
    pub versions: Versions,
    site: Site,
    precomputed: Precomputed,
    openapi: OpenapiDocument,
}

impl Endpoints {
    /// Creates the endpoints of a service that has texts at `addresses`, and these pages.
    #[must_use]
    pub fn new(addresses: TextAddresses, pages: Box<dyn Pages>) -> Self {
        Self {
            addresses,
            html: HtmlRenderer::new(),
            versions: Versions::default(),
            site: Site::new(pages),
            precomputed: Precomputed::default(),
            openapi: OpenapiDocument::default(),
        }
    }

    /// Returns the resource of an operation that needs a key, in the form of a version.
    ///
    /// # Errors
    ///
    /// If a parameter is refused, or the resource doesn't exist.
    pub(super) fn keyed<'s>(
        &'s self,
        version: &Version,
        operation: KeyedOperation,
        snapshot: &'s Arc<Snapshot>,
        captured: &Captured,
        query: Option<&'s str>,
    ) -> Result<Resource<'s>, ApiError> {
        let precomputed = || self.precomputed.of(snapshot, self.versions.count());
        let responses = || {
            parameters::none(query)?;
            Ok(precomputed())
        };
        let newest = match operation {
            KeyedOperation::ListProducts => {
                pages::find(snapshot, &precomputed().pages[version.index], query)
            }
            // The pipeline answers these: they may wait.
            KeyedOperation::ListChanges => Err(ApiError::plain(ErrorType::NotFound)),
            KeyedOperation::GetProduct => self.product(snapshot, captured, query),
            KeyedOperation::ListCategories => Ok(responses()?.categories(snapshot)),
            KeyedOperation::ListCountries => Ok(responses()?.countries(snapshot)),
            KeyedOperation::Ping => parameters::none(query).map(|()| precomputed::pong()),
        };
        Ok(version.render(operation, newest?))
    }

    fn product<'s>(
        &'s self,
        snapshot: &'s Snapshot,
        captured: &Captured,
        query: Option<&str>,
    ) -> Result<Resource<'s>, ApiError> {
        let form = parameters::content_form(query)?;
        let Captured::Code(code) = captured else {
            return Err(ApiError::plain(ErrorType::NotFound));
        };
        let product = snapshot
            .product(code)
            .ok_or_else(|| ApiError::no_such_product(code.as_str()))?;
        let Some(content) = product.content().filter(|_| form != ContentForm::Url) else {
            let tag = EntityTag::from_hash(product.hash());
            return Ok(Resource::ready(tag, product.shared_bytes()));
        };
        let (addresses, html) = (&self.addresses, &self.html);
        texts::in_product(snapshot, addresses, html, product, content, form)
    }

    /// Returns the OpenAPI document.
    pub(super) fn openapi(&self) -> Resource<'static> {
        self.openapi.of(self.addresses.public_url())
    }

    /// Returns the documentation.
    pub(super) fn site(&self) -> &Site {
        &self.site
    }
}
