//! The catalog in PostgreSQL, read by tokio-postgres: one connection, prepared statements, pipelined.

use std::sync::Arc;

use anyhow::Result;
use axum::extract::{Path, State};
use axum::{Json, Router, routing::get};
use axum_extra::extract::Query;
use axum_services::{CustomerService, Failure, GiftCard, ListQuery, Page, Product, serve, setting};
use tokio_postgres::types::{Json as Document, ToSql};
use tokio_postgres::{Client, Error, NoTls, Row, Statement};

struct Database {
    client: Client,
    one: Statement,
    /// Without filter, by country, by category, by both.
    lists: [Statement; 4],
}

fn product(row: &Row) -> Result<Product, Error> {
    let gift_card: Document<GiftCard> = row.try_get("gift_card")?;
    Ok(Product {
        name: row.try_get("name")?,
        code: row.try_get("code")?,
        currency: row.try_get("currency")?,
        state: row.try_get("state")?,
        is_orderable: row.try_get("is_orderable")?,
        payout_type: row.try_get("payout_type")?,
        categories: row.try_get("categories")?,
        countries_redeemable_in: row.try_get("countries_redeemable_in")?,
        customer_service: CustomerService::new(
            row.try_get("phone_number")?,
            row.try_get("customer_service_url")?,
        ),
        discount_multiplier: row.try_get("discount_multiplier")?,
        availability: row.try_get("availability")?,
        gift_card: gift_card.0,
    })
}

async fn one(
    State(database): State<Arc<Database>>,
    Path(code): Path<String>,
) -> Result<Json<Product>, Failure> {
    let row = database.client.query_opt(&database.one, &[&code]).await?;
    let row = row.ok_or(Failure::NOT_FOUND)?;
    Ok(Json(product(&row)?))
}

async fn list(
    State(database): State<Arc<Database>>,
    Query(query): Query<ListQuery>,
) -> Result<Json<Page<Product>>, Failure> {
    let limit = i64::from(query.limit);
    let mut values: Vec<&(dyn ToSql + Sync)> = vec![&query.after, &limit];
    let mut which = 0;
    if !query.countries_redeemable_in.is_empty() {
        values.push(&query.countries_redeemable_in);
        which += 1;
    }
    if !query.categories.is_empty() {
        values.push(&query.categories);
        which += 2;
    }
    let rows = database
        .client
        .query(&database.lists[which], &values)
        .await?;
    let products: Result<Vec<Product>, Error> = rows.iter().map(product).collect();
    Ok(Json(Page::new(products?, query.limit)))
}

async fn connect() -> Result<Database> {
    let (client, connection) = tokio_postgres::connect(&setting("DATABASE_URL")?, NoTls).await?;
    tokio::spawn(connection);
    let list = async |filter: &str| {
        let sql = format!("select * from product where code > $1 {filter} order by code limit $2");
        client.prepare(&sql).await
    };
    let lists = [
        list("").await?,
        list("and countries_redeemable_in && $3").await?,
        list("and categories && $3").await?,
        list("and countries_redeemable_in && $3 and categories && $4").await?,
    ];
    let one = client
        .prepare("select * from product where code = $1")
        .await?;
    Ok(Database { one, lists, client })
}

#[tokio::main]
async fn main() -> Result<()> {
    let routes = Router::new()
        .route("/v2/product", get(list))
        .route("/v2/product/{code}", get(one))
        .with_state(Arc::new(connect().await?));
    serve(routes).await
}
