//! The catalog in SQLite, read by sqlx as typed rows.

use std::str::FromStr as _;

use anyhow::Result;
use axum::extract::{Path, State};
use axum::{Json, Router, routing::get};
use axum_extra::extract::Query;
use axum_services::{Columns, Failure, ListQuery, Page, Product, serve, setting};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::types::Json as Document;
use sqlx::{QueryBuilder, Sqlite, SqlitePool};

#[derive(sqlx::FromRow)]
struct Row {
    #[sqlx(flatten)]
    columns: Columns,
    categories: Document<Vec<String>>,
    countries_redeemable_in: Document<Vec<String>>,
}

impl Row {
    fn into_product(self) -> Product {
        self.columns
            .into_product(self.categories.0, self.countries_redeemable_in.0)
    }
}

async fn one(
    State(pool): State<SqlitePool>,
    Path(code): Path<String>,
) -> Result<Json<Product>, Failure> {
    let row = sqlx::query_as("select * from product where code = ?").bind(code);
    let row: Option<Row> = row.fetch_optional(&pool).await?;
    row.map(|row| Json(row.into_product()))
        .ok_or(Failure::NOT_FOUND)
}

/// Narrows to products that a joined table has with any of `values`.
fn any_of(sql: &mut QueryBuilder<'_, Sqlite>, start: &str, values: Vec<String>) {
    if values.is_empty() {
        return;
    }
    sql.push(start);
    let mut list = sql.separated(", ");
    for value in values {
        list.push_bind(value);
    }
    sql.push("))");
}

async fn list(
    State(pool): State<SqlitePool>,
    Query(query): Query<ListQuery>,
) -> Result<Json<Page<Product>>, Failure> {
    let mut sql = QueryBuilder::<Sqlite>::new("select * from product where code > ");
    sql.push_bind(query.after);
    any_of(
        &mut sql,
        " and exists (select 1 from product_country where product_code = code and country in (",
        query.countries_redeemable_in,
    );
    any_of(
        &mut sql,
        " and exists (select 1 from product_category where product_code = code and category in (",
        query.categories,
    );
    sql.push(" order by code limit ")
        .push_bind(i64::from(query.limit));
    let rows: Vec<Row> = sql.build_query_as().fetch_all(&pool).await?;
    let products = rows.into_iter().map(Row::into_product).collect();
    Ok(Json(Page::new(products, query.limit)))
}

#[tokio::main]
async fn main() -> Result<()> {
    let options = SqliteConnectOptions::from_str(&setting("DATABASE_URL")?)?.read_only(true);
    let pool = SqlitePool::connect_with(options).await?;
    let routes = Router::new()
        .route("/v2/product", get(list))
        .route("/v2/product/{code}", get(one))
        .with_state(pool);
    serve(routes).await
}
