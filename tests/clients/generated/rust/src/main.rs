//! Uses the client that openapi-generator makes of the OpenAPI document; `ci/generated-clients` runs this.

use std::collections::BTreeSet;
use std::env::var;

use openapi::apis::configuration::{ApiKey, Configuration};
use openapi::apis::products_api::{GetProductError, ListProductsError, get_product, list_products};
use openapi::apis::service_api::head_ping;
use openapi::models::{ContentResources, Product, ProductList};

fn settings(base: &str) -> Configuration {
    let key = var("VITRINE_KEY").expect("VITRINE_KEY");
    let api_key = ApiKey { prefix: None, key };
    Configuration {
        base_path: var(base).expect("a base address"),
        api_key: Some(api_key),
        ..Configuration::new()
    }
}

#[derive(Default)]
struct Query<'q> {
    countries: Option<Vec<String>>,
    is_orderable: Option<bool>,
    before: Option<&'q str>,
    after: Option<&'q str>,
}

type Listed = Result<ProductList, openapi::apis::Error<ListProductsError>>;

fn list(settings: &Configuration, query: Query<'_>) -> Listed {
    list_products(
        settings,
        query.is_orderable,
        query.countries,
        None,
        None,
        None,
        None,
        query.before,
        query.after,
        Some(7),
        None,
        None,
        None,
        None,
        None,
        None,
    )
}

fn everything(settings: &Configuration) -> Vec<Product> {
    let mut found = Vec::new();
    let mut after: Option<String> = None;
    loop {
        let query = Query {
            after: after.as_deref(),
            ..Query::default()
        };
        let page = list(settings, query).expect("a page");
        found.extend(page.catalog);
        after = page.pagination.cursors.after;
        if after.is_none() {
            return found;
        }
    }
}

type Got = Result<Product, openapi::apis::Error<GetProductError>>;

fn product(settings: &Configuration, code: &str, form: Option<&str>) -> Got {
    get_product(
        settings, code, form, None, None, None, None, None, None,
    )
}

fn texts(settings: &Configuration, form: &str) -> ContentResources {
    let product = product(settings, "HALLOWMERE-GB", Some(form)).expect("a product");
    *product.gift_card.expect("a gift card").content_resources
}

fn refused(got: Got) -> String {
    match got {
        Err(openapi::apis::Error::ResponseError(answer)) => match answer.entity {
            Some(GetProductError::Status400(error) | GetProductError::Status404(error)) => {
                error.r#type
            }
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

fn main() {
    let settings_now = settings("VITRINE_BASE");

    // A walk.
    let walked = everything(&settings_now);
    let codes: BTreeSet<&str> = walked.iter().map(|product| &*product.code).collect();
    let count: usize = var("VITRINE_PRODUCTS")
        .expect("a count")
        .parse()
        .expect("a number");
    assert_eq!((walked.len(), codes.len()), (count, count));
    assert!(
        walked
            .iter()
            .any(|product| product.payout_type == "prepaid_card")
    );

    // Filters.
    let query = Query {
        countries: Some(vec!["SE".to_owned(), "DK".to_owned()]),
        is_orderable: Some(true),
        ..Query::default()
    };
    let found = list(&settings_now, query).expect("a page").catalog;
    assert!(found.len() > 2);
    for product in found {
        let countries = &product.countries_redeemable_in;
        assert!(product.is_orderable && countries.iter().any(|one| one == "SE" || one == "DK"));
    }

    // The three forms of texts.
    let text = |text: Option<Option<String>>| text.flatten().expect("a text");
    let (url, md, html) = (
        texts(&settings_now, "url"),
        texts(&settings_now, "md"),
        texts(&settings_now, "html"),
    );
    assert!(text(url.description_markdown_url).ends_with(".md"));
    assert!(text(url.terms_consumer_markdown_url).ends_with(".md"));
    assert!(text(md.description_md).contains("**Half day"));
    assert!(text(md.terms_consumer_md).len() > 20);
    assert!(text(html.description_html).contains("<li><strong>Half day"));
    assert!(text(html.terms_consumer_html).len() > 20);

    // Errors.
    assert_eq!(refused(product(&settings_now, "NONE", None)), "not_found");
    let query = Query {
        before: Some("A"),
        after: Some("B"),
        ..Query::default()
    };
    match list(&settings_now, query) {
        Err(openapi::apis::Error::ResponseError(answer)) => {
            assert!(
                answer.content.contains("mutually_exclusive"),
                "{}",
                answer.content
            );
            assert!(matches!(
                answer.entity,
                Some(ListProductsError::Status400(_))
            ));
        }
        other => panic!("{other:?}"),
    }
    head_ping(&settings_now, None, None, None, None, None, None).expect("a good key");

    // Values and fields added later.
    let later = settings("VITRINE_LATER");
    assert_eq!(everything(&later).len(), count);
    let grown = product(&later, "HALLOWMERE-GB", None).expect("a product");
    assert_eq!(
        (&*grown.state, &*grown.payout_type),
        ("RESTING", "meal_voucher")
    );
    let card = grown.gift_card.expect("a gift card");
    assert_eq!(card.barcode_format.as_deref(), Some("aztec"));
    assert_eq!(refused(product(&later, "NONE", None)), "added_later");

    println!("Rust: {count} products walked, filters, three forms, errors, values added later");
}
