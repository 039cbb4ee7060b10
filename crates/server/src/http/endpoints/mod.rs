//! Endpoints: each reads the snapshot, and returns a resource whose body is made only if it is sent.
//!
//! - `pages`: the list of products
//! - `texts`: texts, by digest and in a product; `html` renders them
//! - `precomputed`: answers that a snapshot, or nothing, determines
//! - `site`: the documentation

pub mod html;
pub(crate) mod pages;
pub(crate) mod precomputed;
pub(crate) mod site;
pub(crate) mod texts;

use std::sync::Arc;

use vitrine_model::snapshot::Snapshot;
use vitrine_wire::error::ErrorType;

use super::App;
use super::error::ApiError;
use super::request::parameters;
use super::response::entity_tag::EntityTag;
use super::response::resource::Resource;
use super::routes::{Captured, KeyedOperation};
use crate::view::ContentForm;

/// Reads what a keyed operation asks for.
pub(crate) fn read<'s>(
    operation: KeyedOperation,
    snapshot: &'s Arc<Snapshot>,
    app: &'s App,
    captured: &Captured,
    query: Option<&'s str>,
) -> Result<Resource<'s>, ApiError> {
    match operation {
        KeyedOperation::ListProducts => pages::find(snapshot, app, query),
        KeyedOperation::GetProduct => get_product(snapshot, app, captured, query),
        KeyedOperation::ListCategories => {
            parameters::none(query).map(|()| app.ready.of(snapshot).categories(snapshot))
        }
        KeyedOperation::ListCountries => {
            parameters::none(query).map(|()| app.ready.of(snapshot).countries(snapshot))
        }
        KeyedOperation::Ping => parameters::none(query).map(|()| precomputed::pong()),
    }
}

fn get_product<'s>(
    snapshot: &'s Snapshot,
    app: &'s App,
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
    texts::in_product(snapshot, app, product, content, form)
}
