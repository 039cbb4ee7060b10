//! Parts shared by the axum services: the product as typed structs, the page, the key check and the server.

use std::collections::HashSet;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tower_http::compression::CompressionLayer;

/// A product. The invented catalog holds gift cards only, and so do the services know no more.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Product {
    /// The product's name.
    pub name: String,
    /// Its unique code.
    pub code: String,
    /// ISO 4217 code.
    pub currency: String,
    /// Its state.
    pub state: String,
    /// True if it can be ordered.
    pub is_orderable: bool,
    /// The name of the detail object.
    pub payout_type: String,
    /// Its categories.
    pub categories: Vec<String>,
    /// Countries where it can be spent.
    pub countries_redeemable_in: Vec<String>,
    /// Contact for customers.
    pub customer_service: CustomerService,
    /// The discount.
    pub discount_multiplier: String,
    /// Availability of orders.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub availability: Option<String>,
    /// The details.
    pub gift_card: GiftCard,
}

/// Contact for customers.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CustomerService {
    phone_number: Option<String>,
    website_url: Option<String>,
}

/// The details of a gift card.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct GiftCard {
    denominations: Denominations,
    assets: Assets,
    balance_check_url: Option<String>,
    expiry: Expiry,
    redeemable_at: String,
    website_url: Option<String>,
    barcode_format: Option<String>,
    e_code_usage_type: String,
    content_resources: ContentResources,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Denominations {
    r#type: String,
    minimum_value: String,
    maximum_value: String,
    available_list: Option<Vec<String>>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Assets {
    card_image_url: Option<String>,
    icon_image_url: Option<String>,
    primary_color: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Expiry {
    date_policy: Option<String>,
    in_months: u32,
    r#type: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct ContentResources {
    description_markdown_url: Option<String>,
    disclaimer_markdown_url: Option<String>,
    refund_policy_markdown_url: Option<String>,
    reissuance_policy_markdown_url: Option<String>,
    terms_buyer_markdown_url: Option<String>,
    terms_consumer_markdown_url: Option<String>,
    redemption_instructions_markdown_url: Option<String>,
    locale: Option<String>,
}

/// Parameters of a list.
#[derive(Debug, Deserialize)]
pub struct ListQuery {
    /// Any of these countries.
    #[serde(default)]
    pub countries_redeemable_in: Vec<String>,
    /// Any of these categories.
    #[serde(default)]
    pub categories: Vec<String>,
    /// Codes behind this one.
    #[serde(default)]
    pub after: String,
    /// At most so many.
    #[serde(default = "most")]
    pub limit: u16,
}

fn most() -> u16 {
    500
}

/// A page of products, owned or borrowed.
#[derive(Debug, Serialize)]
pub struct Page<P> {
    catalog: Vec<P>,
    pagination: Pagination,
}

#[derive(Debug, Serialize)]
struct Pagination {
    cursors: Cursors,
    page: PageSize,
}

#[derive(Debug, Serialize)]
struct Cursors {
    before: Option<String>,
    after: Option<String>,
}

#[derive(Debug, Serialize)]
struct PageSize {
    limit: u16,
}

impl<P: std::borrow::Borrow<Product>> Page<P> {
    /// The page with the cursors at its edges.
    pub fn new(catalog: Vec<P>, limit: u16) -> Self {
        let code = |product: &P| product.borrow().code.clone();
        let cursors = Cursors {
            before: catalog.first().map(code),
            after: catalog.last().map(code),
        };
        Self {
            pagination: Pagination {
                cursors,
                page: PageSize { limit },
            },
            catalog,
        }
    }
}

/// The columns that both databases keep alike.
#[derive(Debug, sqlx::FromRow)]
pub struct Columns {
    name: String,
    code: String,
    currency: String,
    state: String,
    is_orderable: bool,
    payout_type: String,
    phone_number: Option<String>,
    customer_service_url: Option<String>,
    discount_multiplier: String,
    availability: Option<String>,
    gift_card: sqlx::types::Json<GiftCard>,
}

impl Columns {
    /// The product of these columns.
    pub fn into_product(self, categories: Vec<String>, countries: Vec<String>) -> Product {
        Product {
            name: self.name,
            code: self.code,
            currency: self.currency,
            state: self.state,
            is_orderable: self.is_orderable,
            payout_type: self.payout_type,
            categories,
            countries_redeemable_in: countries,
            customer_service: CustomerService::new(self.phone_number, self.customer_service_url),
            discount_multiplier: self.discount_multiplier,
            availability: self.availability,
            gift_card: self.gift_card.0,
        }
    }
}

impl CustomerService {
    /// Makes a contact.
    pub fn new(phone_number: Option<String>, website_url: Option<String>) -> Self {
        Self {
            phone_number,
            website_url,
        }
    }
}

/// An answer with a bare status.
pub struct Failure(StatusCode);

impl Failure {
    /// There is no such product.
    pub const NOT_FOUND: Self = Self(StatusCode::NOT_FOUND);
}

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        eprintln!("{error}");
        Self(StatusCode::INTERNAL_SERVER_ERROR)
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        self.0.into_response()
    }
}

/// A setting from the environment.
///
/// # Errors
/// If it isn't there.
pub fn setting(name: &str) -> Result<String> {
    std::env::var(name).with_context(|| format!("{name} isn't set"))
}

type Keys = Arc<HashSet<[u8; 32]>>;

async fn check_key(State(keys): State<Keys>, request: Request, next: Next) -> Response {
    let key = request.headers().get("x-api-key");
    let is_known = key.is_some_and(|key| {
        let hash: [u8; 32] = Sha256::digest(key.as_bytes()).into();
        keys.contains(&hash)
    });
    match is_known {
        true => next.run(request).await,
        false => StatusCode::UNAUTHORIZED.into_response(),
    }
}

/// Serves the routes on `LISTEN`, behind the check of `API_KEY` and with gzip.
///
/// # Errors
/// If it can't listen.
pub async fn serve(routes: Router) -> Result<()> {
    let hash: [u8; 32] = Sha256::digest(setting("API_KEY")?.as_bytes()).into();
    let keys: Keys = Arc::new(HashSet::from([hash]));
    let app = routes
        .layer(middleware::from_fn_with_state(keys, check_key))
        .layer(CompressionLayer::new());
    let listener = tokio::net::TcpListener::bind(setting("LISTEN")?).await?;
    Ok(axum::serve(listener, app).await?)
}
