//! Confirmations of acts that are sent again, at another server or after a restart.

use crate::browser_acts::{audit, console};
use crate::harness::console::hidden;
use crate::harness::text;

#[test]
fn confirmation_sent_to_two_servers_is_done_once() {
    let mut console = console();
    let owner = console.sign_in("owner");
    let options = ["--admin-listen", "127.0.0.1:0"];
    let mut other = console.store.serve_with(&options);
    for (path, fields, subject) in [
        ("/acts/create-key", &[("label", "partner")][..], "key"),
        (
            "/acts/disable",
            &[("code", "B-1"), ("from", "2h")],
            "override",
        ),
    ] {
        let plan = text(&console.post_form(path, &owner, fields).body);
        let [once, plan] = ["once", "plan"].map(|name| hidden(&plan, name).unwrap_or_default());
        let confirmed = [("confirm", "yes"), ("once", &*once), ("plan", &*plan)];
        let confirmed = [fields, &confirmed].concat();
        let done = console.post_form(path, &owner, &confirmed);
        assert_eq!(done.status, 200, "{}", text(&done.body));
        std::mem::swap(&mut console.server, &mut other);
        let again = console.post_form(path, &owner, &confirmed);
        let shown = text(&again.body);
        assert_eq!(again.status, 409, "{path}: {shown}");
        for part in ["This was done already", "href=\"/audit\""] {
            assert!(shown.contains(part), "{path}: {part}: {shown}");
        }
        let entries = audit(&console);
        let created = entries
            .iter()
            .filter(|entry| entry["subject_kind"] == subject);
        assert_eq!(created.count(), 1, "{path}: {entries:?}");
    }
    let listed = console.store.json(&["overrides", "list", "--json"]);
    assert_eq!(listed.as_array().map(Vec::len), Some(1));
}
