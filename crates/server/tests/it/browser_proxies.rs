//! Proxies that sign people in to the console.

use crate::harness::console::{Console, hidden};
use crate::harness::{Store, gift_card, text};

fn behind_a_proxy(proxies: &str) -> Console {
    let products = (1..=9).map(|number| gift_card(&format!("A-{number}")));
    let console = Console::open(
        Store::of(&products.collect::<Vec<_>>()),
        &[
            "--operator-header",
            "X-Forwarded-User",
            "--operator-proxies",
            proxies,
        ],
    );
    console.add("ines@partner.example", "editor");
    console
}

#[test]
fn header_of_a_trusted_proxy_signs_in() {
    let console = behind_a_proxy("127.0.0.1");
    let user = ("X-Forwarded-User", "ines@partner.example");
    let page = console.get("/acts/disable", &[user]);
    assert_eq!(page.status, 200);
    assert_eq!(page.header("set-cookie"), None);
    let form = text(&page.body);
    assert!(form.contains("ines@partner.example, editor"), "{form}");
    let token = hidden(&form, "form_token").expect("a token");
    let own = ("Sec-Fetch-Site", "same-origin");
    let send = |headers: &[(&str, &str)], token: &str| {
        let body = format!("form_token={token}&code=A-1&confirm=yes");
        console.send_as("127.0.0.1", "POST", "/acts/disable", headers, &body)
    };
    let elsewhere = ("Sec-Fetch-Site", "cross-site");
    assert_eq!(send(&[user, own], "").status, 403);
    assert_eq!(send(&[user, elsewhere], &token).status, 403);
    assert_eq!(send(&[user, own], &token).status, 200);
    // A change of the operator ends its forms, too.
    let set = [
        "operators",
        "set",
        "ines@partner.example",
        "--role",
        "owner",
    ];
    console.store.ok(&set);
    assert_eq!(send(&[user, own], &token).status, 403);
    for (wrong, status) in [
        (&[("X-Forwarded-User", "nobody@partner.example")][..], 403),
        (&[("X-Forwarded-User", "")], 403),
        (&[user, user], 403),
        (&[], 303),
    ] {
        assert_eq!(console.get("/catalog", wrong).status, status, "{wrong:?}");
    }
}

#[test]
fn forged_proxy_header_is_refused() {
    let console = behind_a_proxy("192.0.2.0/24");
    for name in ["ines@partner.example", "nobody"] {
        let reply = console.get("/catalog", &[("X-Forwarded-User", name)]);
        assert_eq!(reply.status, 403, "{name}");
        assert!(!text(&reply.body).contains("A-1"));
    }
    assert_eq!(
        console
            .get("/livez", &[("X-Forwarded-User", "ines")])
            .status,
        200
    );
    let session = console.sign_in("ines@partner.example");
    assert_eq!(console.get("/catalog", &session.cookie()).status, 200);
    let output = console.store.run(&[
        "serve",
        "--listen=127.0.0.1:0",
        "--admin-listen=127.0.0.1:0",
        "--operator-header=X-User",
    ]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
}
