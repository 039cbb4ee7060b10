//! The catalog in PostgreSQL, read by sqlx as typed rows.

use anyhow::Result;
use axum::extract::{Path, State};
use axum::{Json, Router, routing::get};
use axum_extra::extract::Query;
use axum_services::{Columns, Failure, ListQuery, Page, Product, serve, setting};
use sqlx::{PgPool, Postgres, QueryBuilder};

#[derive(sqlx::FromRow)]
struct Row {
    #[sqlx(flatten)]
    columns: Columns,
    categories: Vec<String>,
    countries_redeemable_in: Vec<String>,
}

impl Row {
    fn into_product(self) -> Product {
        self.columns
            .into_product(self.categories, self.countries_redeemable_in)
    }
}

async fn one(
    State(pool): State<PgPool>,
    Path(code): Path<String>,
) -> Result<Json<Product>, Failure> {
    let row = sqlx::query_as("select * from product where code = $1").bind(code);
    let row: Option<Row> = row.fetch_optional(&pool).await?;
    row.map(|row| Json(row.into_product()))
        .ok_or(Failure::NOT_FOUND)
}

async fn list(
    State(pool): State<PgPool>,
    Query(query): Query<ListQuery>,
) -> Result<Json<Page<Product>>, Failure> {
    let mut sql = QueryBuilder::<Postgres>::new("select * from product where code > ");
    sql.push_bind(query.after);
    if !query.countries_redeemable_in.is_empty() {
        sql.push(" and countries_redeemable_in && ")
            .push_bind(query.countries_redeemable_in);
    }
    if !query.categories.is_empty() {
        sql.push(" and categories && ").push_bind(query.categories);
    }
    sql.push(" order by code limit ")
        .push_bind(i64::from(query.limit));
    let rows: Vec<Row> = sql.build_query_as().fetch_all(&pool).await?;
    let products = rows.into_iter().map(Row::into_product).collect();
    Ok(Json(Page::new(products, query.limit)))
}

#[tokio::main]
async fn main() -> Result<()> {
    let pool = PgPool::connect(&setting("DATABASE_URL")?).await?;
    let routes = Router::new()
        .route("/v2/product", get(list))
        .route("/v2/product/{code}", get(one))
        .with_state(pool);
    serve(routes).await
}
