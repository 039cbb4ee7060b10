//! The way of a newcomer: load, make a key, serve, read.

use crate::harness::Store;

#[test]
fn a_loaded_catalog_is_served() {
    let store = Store::sample();
    let key = store.key("partner", &[]);
    let server = store.serve();
    assert_eq!(server.get(&key, "/v2/ping").json()["message"], "pong");
    let list = server.get(&key, "/v2/product");
    assert_eq!(list.codes().len(), 72);
    let product = server.get(&key, "/v2/product/BRIARWICK-GB?content=html");
    assert_eq!(product.json()["code"], "BRIARWICK-GB");
}
