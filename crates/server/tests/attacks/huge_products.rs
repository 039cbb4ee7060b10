//! Products as large as loads take: pages of them are longer than memory for a copy of each would allow.

use std::io::Write as _;

use serde_json::json;

use crate::harness::{Store, gift_card};
use crate::world::{CODINGS, Edge, World};

const PRODUCTS: usize = 160;
const POLICY_BYTES: usize = 250 << 10;
const TEXT_BYTES: usize = 1 << 20;
const REQUESTS: usize = 50;

#[test]
fn huge_products_leave_the_server_its_memory() {
    let products: Vec<_> = (0..PRODUCTS)
        .map(|number| {
            let mut product = gift_card(&format!("HUGE-{number}"));
            let detail = &mut product["gift_card"];
            detail["expiry"]["date_policy"] = json!("x".repeat(POLICY_BYTES));
            if number < 3 {
                for name in ["description", "disclaimer", "terms_buyer", "terms_consumer"] {
                    let text = format!("{number}{name}").repeat(TEXT_BYTES / 20);
                    detail["content_resources"][format!("{name}_md")] = json!(text);
                }
            }
            product
        })
        .collect();
    let world = World::new(Store::of(&products), Edge::Plain, 100);
    let product = "/v2/product/HUGE-1";
    let with_texts = "/v2/product/HUGE-2?content=md";
    let targets = CODINGS.map(|coding| ("/v2/product", coding));
    for (target, coding) in targets
        .into_iter()
        .chain([(product, "gzip"), (with_texts, "gzip")])
    {
        let what = format!("{REQUESTS} times {target}, {coding}");
        world.survive(&what, world.reader(), || {
            let answered = world.answered() + REQUESTS as f64;
            let unread: Vec<_> = (0..REQUESTS)
                .map(|_| {
                    let mut socket = world.server.connect();
                    let head = world.request(target, coding);
                    socket.write_all(head.as_bytes()).expect("sent");
                    socket
                })
                .collect();
            world.wait_for_answers(answered);
            unread
        });
    }
    world.assert_gives_back();
}
