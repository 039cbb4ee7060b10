//! The client crate against the true program: nothing that is served is lost on its way into types and out of them.

use std::collections::BTreeSet;

use vitrine_client::{
    Client, Content, ErrorType, FaultType, Key, Open, Product, Retries, State, blocking,
};

use crate::harness::{Server, Store, block_on, gift_card, text};

fn base(server: &Server) -> String {
    format!("http://{}", server.address)
}

fn client(server: &Server, key: &str) -> blocking::Client {
    blocking::Client::new(&base(server), Key::new(key).expect("a key")).expect("a client")
}

#[test]
fn every_product_is_written_again_byte_for_byte_in_every_form() {
    let store = Store::sample();
    let key = store.key("client", &[]);
    let server = store.serve();
    let client = client(&server, &key);
    let products: Vec<Product> = client
        .iter(client.products().limit(10).stream())
        .collect::<Result<_, _>>()
        .expect("all products");
    let list = server.get(&key, "/v2/product").json();
    assert_eq!(
        products.len(),
        list["catalog"].as_array().expect("a list").len()
    );
    for product in &products {
        let code = &product.code;
        let served = |form: &str| {
            text(
                &server
                    .get(&key, &format!("/v2/product/{code}?content={form}"))
                    .body,
            )
        };
        assert_eq!(written(&product), served("url"));
        assert_eq!(
            written(&client.wait(client.product(code)).expect("a product")),
            served("url")
        );
        let markdown = client
            .wait(client.product_markdown(code))
            .expect("a product");
        assert_eq!(written(&markdown), served("md"));
        let html = client.wait(client.product_html(code)).expect("a product");
        assert_eq!(written(&html), served("html"));
        let raw: vitrine_client::Json = client
            .wait(client.product_as(code, Content::Md))
            .expect("a product");
        assert_eq!(raw.get(), served("md"));
    }
}

fn written(product: &impl serde::Serialize) -> String {
    serde_json::to_string(product).expect("JSON")
}

#[test]
fn filters_and_lists_are_those_of_the_contract() {
    let store = Store::sample();
    let key = store.key("client", &[]);
    let server = store.serve();
    let client = client(&server, &key);
    client.wait(client.ping()).expect("a pong");
    let list = client
        .products()
        .countries(["SE", "DE"])
        .orderable()
        .limit(3);
    let target = "/v2/product?countries_redeemable_in=SE&countries_redeemable_in=DE&is_orderable=true&limit=3";
    let page = client.wait(list.page()).expect("a page");
    let codes: Vec<String> = page
        .catalog
        .iter()
        .map(|product| product.code.clone())
        .collect();
    assert_eq!(codes, server.get(&key, target).codes());
    let after = page.pagination.cursors.after.expect("a cursor");
    let next = client
        .wait(list.clone().after(&after).page())
        .expect("a page");
    assert!(next.catalog.iter().all(|product| product.code > after));
    let back = client
        .wait(list.before(&next.catalog[0].code).page())
        .expect("a page");
    assert_eq!(back.catalog, page.catalog);

    let countries = client.wait(client.countries()).expect("countries");
    assert!(countries.contains(&"SE".to_owned()));
    for category in client.wait(client.categories()).expect("categories") {
        let list = client.products().category(&category.code);
        let products = client
            .iter(list.stream())
            .collect::<Result<Vec<_>, _>>()
            .expect("products");
        assert!(!products.is_empty(), "{category:?}");
        assert!(
            products
                .iter()
                .all(|product| product.categories.contains(&category.code))
        );
    }
    let states: BTreeSet<Open<State>> = client
        .iter(client.products().stream())
        .map(|product| product.expect("one").state)
        .collect();
    assert!(
        states.iter().all(|state| state.known().is_some()),
        "{states:?}"
    );
}

#[test]
fn texts_are_found_by_their_addresses() {
    let store = Store::sample();
    let key = store.key("client", &[]);
    let server = store.serve();
    let client = client(&server, &key);
    let addresses = client
        .wait(client.product("BRIARWICK-GB"))
        .expect("a product");
    let address = addresses
        .content_resources()
        .expect("texts")
        .description_markdown_url
        .clone();
    let markdown = client
        .wait(client.product_markdown("BRIARWICK-GB"))
        .expect("a product");
    let markdown = markdown
        .content_resources()
        .expect("texts")
        .description_md
        .clone();
    assert_eq!(
        client
            .wait(client.text(&address.expect("an address")))
            .expect("a text"),
        markdown.expect("Markdown")
    );
}

#[test]
fn server_errors_reach_the_caller() {
    let store = Store::sample();
    let key = store.key("client", &[]);
    let server = store.serve();
    let refusal = |key: &str, ask: &dyn Fn(&blocking::Client) -> vitrine_client::Error| {
        let error = ask(&client(&server, key));
        assert!(!format!("{error} {error:?}").contains(key));
        error.api().expect("an error of the contract").clone()
    };
    let api = refusal(&key, &|client| {
        client.wait(client.product("NONE")).expect_err("none")
    });
    assert!(api.error_type == ErrorType::NotFound && api.status == 404);
    assert!(api.request_id.is_some());
    let api = refusal("wrong.key", &|client| {
        client.wait(client.ping()).expect_err("a wrong key")
    });
    assert!(api.error_type == ErrorType::InvalidApiKey && api.status == 401);
    let api = refusal(&key, &|client| {
        client
            .wait(client.products().limit(501).page())
            .expect_err("501")
    });
    assert!(api.error_type == ErrorType::PaginationError && api.status == 400);
    assert_eq!(api.details[0].fault_type, FaultType::OutOfRange);
    let empty = Store::new();
    let key = empty.key("client", &[]);
    let server = empty.serve();
    let key = Key::new(&key).expect("a key");
    let client = Client::builder(&base(&server), key).retries(Retries::none());
    let client = blocking::Client::build(client).expect("a client");
    let error = client.wait(client.ping()).expect_err("no catalog");
    let api = error.api().expect("an error of the contract");
    assert_eq!(api.error_type, ErrorType::Unavailable);
    assert!(api.retry_after.is_some());
}

#[test]
fn answer_from_the_cache_costs_no_quota() {
    let store = Store::sample();
    let key = store.key("client", &["--quota", "2/86400"]);
    let server = store.serve();
    let builder = |cache_bytes| {
        let key = Key::new(&key).expect("a key");
        let builder = Client::builder(&base(&server), key).retries(Retries::none());
        blocking::Client::build(builder.cache_bytes(cache_bytes)).expect("a client")
    };
    let client = builder(1 << 20);
    let first = client
        .wait(client.product("BRIARWICK-GB"))
        .expect("a product");
    for _ in 0..5 {
        assert_eq!(
            client
                .wait(client.product("BRIARWICK-GB"))
                .expect("a product"),
            first
        );
    }
    let plain = builder(0);
    plain
        .wait(plain.product("BRIARWICK-GB"))
        .expect("the last one of the quota");
    let error = plain
        .wait(plain.product("BRIARWICK-GB"))
        .expect_err("no quota is left");
    let api = error.api().expect("an error of the contract");
    assert_eq!(api.error_type, ErrorType::RateLimited);
    assert!(api.retry_after.is_some_and(|pause| !pause.is_zero()));
    client
        .wait(client.product("BRIARWICK-GB"))
        .expect("a product from the cache");
    // What changed is new, in the cache too.
    store.load_products(&[gift_card("BRIARWICK-GB")]);
    crate::harness::wait_for("the change", || {
        let error = client.wait(client.product("BRIARWICK-GB")).err()?;
        (error.api()?.error_type == ErrorType::RateLimited).then_some(())
    });
}

#[test]
fn walk_is_whole_while_the_catalog_changes() {
    let store = Store::sample();
    let key = store.key("client", &[]);
    let server = store.serve();
    let client = Client::new(&base(&server), Key::new(&key).expect("a key")).expect("a client");
    let stay: Vec<String> = server.get(&key, "/v2/product").codes();
    let seen = block_on(async {
        let mut pages = client.products().limit(7).pages();
        let mut seen = Vec::new();
        while let Some(page) = pages.next().await {
            let page = page.expect("a page");
            // Products come in front of the walk and behind it.
            let added = [
                gift_card(&format!("AA-{}", seen.len())),
                gift_card(&format!("ZZ-{}", seen.len())),
            ];
            let file = store.write("added.json", serde_json::to_string(&added).expect("JSON"));
            store.ok(&["load", "--mode", "merge", &file.display().to_string()]);
            seen.extend(page.catalog.into_iter().map(|product| product.code));
        }
        seen
    });
    let distinct: BTreeSet<&String> = seen.iter().collect();
    assert_eq!(distinct.len(), seen.len());
    assert!(stay.iter().all(|code| distinct.contains(code)));
    assert!(seen.is_sorted());
}
