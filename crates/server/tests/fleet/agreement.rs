//! Servers of one store say the same, and a client that is sent from one to the other notices nothing.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::database::{Database, is_there};
use crate::harness::{Reply, gift_card};
use crate::world::Fleet;

#[test]
fn servers_agree_on_bytes_tags_and_cursors() {
    if !is_there() {
        return;
    }
    let database = Database::new();
    let fleet = Fleet::new(database.url());
    fleet.add("Q1");
    fleet.wait_for_product("Q1");
    // One that reads everything anew beside those that followed.
    let late = fleet.serve(9, &[]);
    for target in [
        "/v2/product?limit=500",
        "/v2/product?limit=7&after=P0100",
        "/v2/product?limit=7&before=P0100",
        "/v2/product?countries_redeemable_in=DE&categories=fashion&limit=50",
        "/v2/product/P0007",
        "/v2/product/P0007?content=md",
        "/v2/product/P0007?content=html",
        "/v2/product/categories",
        "/v2/product/countries",
        "/v2/product/MISSING",
    ] {
        for coding in ["identity", "gzip", "zstd", "br"] {
            let headers = [
                ("X-Api-Key", fleet.key.as_str()),
                ("Accept-Encoding", coding),
            ];
            let said = |reply: &Reply| {
                let header = |name: &str| reply.header(name).map(str::to_owned);
                let headers = ["etag", "link", "content-type", "vary", "cache-control"].map(header);
                (reply.status, headers)
            };
            let first = fleet.servers[0].send("GET", target, &headers);
            for other in fleet.servers[1..].iter().chain([&late]) {
                let reply = other.send("GET", target, &headers);
                assert_eq!(said(&reply), said(&first), "{target}");
                // How long ago a body was asked for decides how well gzip packs it; what it says is the same.
                if coding != "gzip" {
                    assert!(reply.body == first.body, "{target} as {coding}");
                }
                // A tag of one is good at the other.
                if let Some(tag) = first.header("etag") {
                    let headers = [&headers[..], &[("If-None-Match", tag)]].concat();
                    assert_eq!(other.send("GET", target, &headers).status, 304, "{target}");
                }
            }
        }
    }
}

#[test]
fn walk_over_servers_during_loads_is_whole() {
    if !is_there() {
        return;
    }
    let database = Database::new();
    let fleet = Fleet::new(database.url());
    let (stop, loads) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // What comes and goes lies between what stays.
            while !stop.load(Ordering::Relaxed) {
                let number = loads.load(Ordering::Relaxed);
                let mut products: Vec<_> =
                    (0..600).map(|n| gift_card(&format!("P{n:04}"))).collect();
                products.extend((0..50).map(|n| gift_card(&format!("P{n:04}.{}", number % 2))));
                fleet.store.load_products(&products);
                loads.fetch_add(1, Ordering::Relaxed);
            }
        });
        let walks = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            while loads.load(Ordering::Relaxed) < 10 {
                walk(&fleet);
            }
        }));
        stop.store(true, Ordering::Relaxed);
        if let Err(panic) = walks {
            std::panic::resume_unwind(panic);
        }
    });
}

fn walk(fleet: &Fleet) {
    let (mut after, mut seen) = (String::new(), Vec::new());
    for server in fleet.servers.iter().cycle() {
        let codes = server
            .get(&fleet.key, &format!("/v2/product?limit=37{after}"))
            .codes();
        let Some(last) = codes.last() else { break };
        after = format!("&after={last}");
        seen.extend(codes);
    }
    let different: BTreeSet<_> = seen.iter().collect();
    assert_eq!(different.len(), seen.len(), "nothing comes twice");
    let stayed = (0..600).map(|n| format!("P{n:04}"));
    for code in stayed {
        assert!(different.contains(&code), "{code} is missing");
    }
}
