//! The catalog browser's pages of webhook endpoints.

use crate::browser_acts::perform;
use crate::harness::console::{Console, Session};
use crate::harness::receiver::{Delivery, HOOK};
use crate::harness::{Page, gift_card, text, wait_for};

#[test]
fn webhooks_pages_show_states_and_attempts_and_no_secret() {
    let delivery = Delivery::of(&[gift_card("A")]);
    let own = delivery.options();
    let options = [
        "--deliver-webhooks",
        "--admin-listen",
        "127.0.0.1:0",
        "--admin-host",
        "vitrine.test",
    ]
    .into_iter();
    let options: Vec<&str> = options.chain(own.iter().map(String::as_str)).collect();
    let server = delivery.store.serve_with(&options);
    let page = |target: &str| {
        let reply = server.ask_admin("GET", target);
        assert_eq!(reply.status, 200, "{target}");
        text(&reply.body)
    };
    assert!(page("/webhooks").contains("No endpoints yet"));
    let hostile = delivery.web.url("/<script>alert(1)</script>");
    let paused = delivery.endpoint_at(&hostile, &[]);
    let told = delivery.endpoint(&["--country", "DE"]);
    delivery.store.ok(&["webhooks", "pause", &paused.id]);
    delivery.web.set(HOOK, &[Page::status("418 I'm a teapot")]);
    delivery.store.load_products(&[gift_card("B")]);
    delivery.wait_for_outcome(&told);
    let all = page("/webhooks");
    for part in [
        "Paused",
        "Failing",
        "countries DE",
        "catalog.changed",
        &paused.id,
    ] {
        assert!(all.contains(part), "{part}: {all}");
    }
    let one = page(&format!("/webhooks/{}", told.id));
    for part in ["418", "Failed attempts: 1", "catalog.changed"] {
        assert!(one.contains(part), "{part}: {one}");
    }
    let other = page(&format!("/webhooks/{}", paused.id));
    assert!(other.contains("paused by an operator"), "{other}");
    for html in [&all, &one, &other] {
        assert!(!html.contains("<script>alert") && !html.contains("whsec_"));
    }
    assert_eq!(server.ask_admin("GET", "/webhooks/none").status, 404);
}

const REPLAY: &str = "/acts/replay-webhook";

/// Returns what a replay since the first revision would do.
fn replay_plan(console: &Console, owner: &Session, endpoint: &str) -> String {
    let fields = [("endpoint", endpoint), ("since", "1")];
    let plan = console.post_form(REPLAY, owner, &fields);
    assert_eq!(plan.status, 200, "{}", text(&plan.body));
    text(&plan.body)
}

#[test]
fn replay_since_a_pruned_revision_says_what_is_sent() {
    let delivery = Delivery::of(&[gift_card("A")]);
    for code in ["B", "C"] {
        delivery.store.load_products(&[gift_card(code)]);
    }
    let endpoint = delivery.endpoint(&[]).id;
    let console = Console::open(delivery.store, &[]);
    console.add("owner", "owner");
    let owner = console.sign_in("owner");
    let plan = replay_plan(&console, &owner, &endpoint);
    assert!(!plan.contains("everything"), "{plan}");
    console.store.ok(&["prune", "--keep", "1", "--yes"]);
    let plan = replay_plan(&console, &owner, &endpoint);
    let pruned = "Revision 1 was pruned: a deliverer that was started after that";
    assert!(plan.contains(pruned), "{plan}");
    // One that starts now doesn't know the changes.
    let console = Console::open(console.store, &[]);
    let sent = "the endpoint will be sent everything that it sees";
    wait_for("the history to be read", || {
        replay_plan(&console, &owner, &endpoint)
            .contains(sent)
            .then_some(())
    });
    let fields = [("endpoint", endpoint.as_str()), ("since", "1")];
    let done = perform(&console, &owner, REPLAY, &fields);
    assert!(text(&done.body).contains(sent), "{}", text(&done.body));
}

#[test]
fn endpoint_is_paused_or_enabled_from_its_page() {
    let delivery = Delivery::of(&[gift_card("A")]);
    let endpoint = delivery.endpoint(&[]).id;
    let console = Console::open(delivery.store, &[]);
    console.add("owner", "owner");
    let owner = console.sign_in("owner");
    let [pause, enable] = ["/acts/pause-webhook", "/acts/enable-webhook"];
    for (act, other) in [(pause, enable), (enable, pause)] {
        let target = format!("/webhooks/{endpoint}");
        let page = text(&console.get(&target, &owner.cookie()).body);
        assert!(page.contains(act) && !page.contains(other), "{page}");
        perform(&console, &owner, act, &[("endpoint", endpoint.as_str())]);
    }
}

#[test]
fn waiting_endpoint_is_tried_now_from_its_page() {
    let delivery = Delivery::of(&[gift_card("A")]);
    let made = delivery.endpoint(&[]);
    let busy = Page::status("429 Too Many Requests").with("Retry-After", "3600");
    delivery.web.set(HOOK, &[busy]);
    let server = delivery.serve();
    delivery.store.load_products(&[gift_card("B")]);
    delivery.wait_for_outcome(&made);
    drop(server);
    let console = Console::open(delivery.store, &[]);
    console.add("owner", "owner");
    let owner = console.sign_in("owner");
    let (act, target) = ("/acts/retry-webhook", format!("/webhooks/{}", made.id));
    let page = || text(&console.get(&target, &owner.cookie()).body);
    assert!(page().contains(act), "{}", page());
    let fields = [("endpoint", made.id.as_str())];
    perform(&console, &owner, act, &fields);
    assert!(!page().contains(act), "{}", page());
    let again = console.post_form(act, &owner, &fields);
    assert_eq!(again.status, 400, "{}", text(&again.body));
    let audit = console.store.json(&["audit", "--json"]);
    assert_eq!(
        (&audit[0]["action"], &audit[0]["by"]),
        (&"retry".into(), &"owner".into())
    );
}
