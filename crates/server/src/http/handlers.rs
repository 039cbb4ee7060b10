//! The operations: each asks the snapshot and says how its answer is made.

use std::sync::Arc;

use vitrine_model::snapshot::Snapshot;
use vitrine_wire::error::ErrorType;

use super::conditional::EntityTag;
use super::error::ApiError;
use super::resource::Resource;
use super::routes::{Captured, KeyedOperation};
use super::{App, pages, parameters, ready, texts};
use crate::view::ContentForm;

/// Reads what a keyed operation asks for.
pub(super) fn read<'s>(
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
        KeyedOperation::Ping => parameters::none(query).map(|()| ready::pong()),
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
