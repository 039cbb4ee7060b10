//! The catalog as a `Vec` of structs in memory, filtered and serialised at each request.

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::Result;
use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use axum::{Json, Router, routing::get};
use axum_extra::extract::Query;
use axum_services::{Failure, ListQuery, Page, Product, serve, setting};

struct Catalog {
    products: Vec<Product>,
    places: HashMap<String, usize>,
}

async fn one(State(catalog): State<Arc<Catalog>>, Path(code): Path<String>) -> Response {
    match catalog.places.get(&code) {
        Some(place) => Json(&catalog.products[*place]).into_response(),
        None => Failure::NOT_FOUND.into_response(),
    }
}

async fn list(State(catalog): State<Arc<Catalog>>, Query(query): Query<ListQuery>) -> Response {
    let is_any = |wanted: &[String], own: &[String]| {
        wanted.is_empty() || own.iter().any(|own| wanted.contains(own))
    };
    let start = catalog
        .products
        .partition_point(|product| product.code <= query.after);
    let found = catalog.products[start..].iter().filter(|product| {
        is_any(
            &query.countries_redeemable_in,
            &product.countries_redeemable_in,
        ) && is_any(&query.categories, &product.categories)
    });
    let products: Vec<&Product> = found.take(usize::from(query.limit)).collect();
    Json(Page::new(products, query.limit)).into_response()
}

#[tokio::main]
async fn main() -> Result<()> {
    let lines = std::fs::read_to_string(setting("PRODUCTS")?)?;
    let products: Result<Vec<Product>, _> = lines.lines().map(serde_json::from_str).collect();
    let mut products = products?;
    drop(lines);
    products.sort_by(|a, b| a.code.cmp(&b.code));
    let places = products.iter().enumerate();
    let places = places
        .map(|(place, product)| (product.code.clone(), place))
        .collect();
    let routes = Router::new()
        .route("/v2/product", get(list))
        .route("/v2/product/{code}", get(one))
        .with_state(Arc::new(Catalog { products, places }));
    serve(routes).await
}
