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

use self::html::{HtmlRenderer, Rendered, Unrendered};
use self::precomputed::{OpenapiDocuments, Precomputed};
use self::site::{Pages, Site};
use super::discounts::{spliced, spliced_hash};
use super::error::ApiError;
use super::request::parameters;
use super::response::entity_tag::EntityTag;
use super::response::resource::Resource;
use super::routes::{Captured, KeyedOperation};
use super::versions::Version;
use super::visible::Visible;

/// Parts that resources are made of, beside the snapshot.
#[derive(Debug)]
pub struct Endpoints {
    /// URLs of texts.
    pub addresses: TextAddresses,
    /// Renderer of Markdown.
    pub html: Arc<HtmlRenderer>,
    site: Site,
    precomputed: Precomputed,
    openapi: OpenapiDocuments,
}

/// Result of looking for a resource.
pub(super) enum Found<'s> {
    Resource(Resource<'s>),
    /// Texts of the product that have to be rendered first.
    Unrendered(Vec<Unrendered>),
}

impl Endpoints {
    /// Creates the endpoints of a service that has texts at `addresses`, and these pages.
    #[must_use]
    pub fn new(addresses: TextAddresses, pages: Box<dyn Pages>) -> Self {
        Self {
            addresses,
            html: Arc::default(),
            site: Site::new(pages),
            precomputed: Precomputed::default(),
            openapi: OpenapiDocuments::default(),
        }
    }

    /// Returns the resource of an operation that needs a key, in the form of a version, as far as it is visible.
    ///
    /// # Errors
    ///
    /// If a parameter is refused, or the resource doesn't exist.
    pub(super) fn keyed<'s>(
        &'s self,
        version: &Version,
        operation: KeyedOperation,
        snapshot: &'s Arc<Snapshot>,
        visible: Visible,
        query: Option<&'s str>,
    ) -> Result<Resource<'s>, ApiError> {
        let precomputed = || self.precomputed.of(snapshot);
        let responses = || parameters::none(query).map(|()| precomputed());
        match operation {
            KeyedOperation::ListProducts => {
                let precomputed = precomputed();
                let heads = &precomputed.pages[version.index];
                pages::find(snapshot, heads, query, visible)
            }
            // The pipeline answers these: they may wait.
            KeyedOperation::ListChanges | KeyedOperation::GetProduct => {
                Err(ApiError::plain(ErrorType::NotFound))
            }
            KeyedOperation::ListCategories => Ok(responses()?.categories(snapshot, visible.view())),
            KeyedOperation::ListCountries => Ok(responses()?.countries(snapshot, visible.view())),
            KeyedOperation::Ping => parameters::none(query).map(|()| precomputed::pong()),
        }
    }

    /// Returns a product, or the texts that have to be rendered first; `rendered` are those that were.
    ///
    /// # Errors
    ///
    /// If a parameter is refused, or the product doesn't exist.
    pub(super) fn product<'s>(
        &'s self,
        snapshot: &'s Snapshot,
        visible: &Visible,
        captured: &Captured,
        query: Option<&str>,
        rendered: &Rendered,
    ) -> Result<Found<'s>, ApiError> {
        let form = parameters::content_form(query)?;
        let code = match captured {
            Captured::Code(code) => code,
            Captured::EmptyVariable(text) => return Err(parameters::empty_product_code(text)),
            _ => return Err(ApiError::plain(ErrorType::NotFound)),
        };
        let (product, discount) = visible
            .product(snapshot, code)
            .ok_or_else(|| ApiError::no_such_product(code.as_str()))?;
        if let Some(content) = product.content().filter(|_| form != ContentForm::Url) {
            let addresses = &self.addresses;
            let html = |digest: &_| {
                let rendered = rendered.get(digest);
                rendered.or_else(|| self.html.cached(digest).map(Ok))
            };
            return texts::in_product(snapshot, addresses, html, product, discount, content, form);
        }
        let Some(discount) = discount else {
            let tag = EntityTag::from_hash(product.hash());
            let ready = Resource::ready(tag, product.shared_bytes());
            return Ok(Found::Resource(ready));
        };
        let bytes = product.bytes();
        let tag = EntityTag::from_hash(spliced_hash(bytes, &discount));
        let length = bytes.len() - discount.range().len() + discount.text().as_str().len();
        let make = move || Ok(spliced(bytes, &discount));
        Ok(Found::Resource(Resource::made(tag, length, make)))
    }

    /// Returns the OpenAPI document of the version that the query names, else of the default one.
    ///
    /// # Errors
    ///
    /// If a parameter is refused.
    pub(super) fn openapi(&self, query: Option<&str>) -> Result<Resource<'static>, ApiError> {
        let version = parameters::openapi_version(query)?.into();
        Ok(self.openapi.of(self.addresses.public_url(), &version))
    }

    /// Returns the documentation.
    pub(super) fn site(&self) -> &Site {
        &self.site
    }
}
