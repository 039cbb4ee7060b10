//! `vitrine webhooks listen`: a receiver that verifies and prints what comes.

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::harness::gift_card;
use crate::harness::receiver::Delivery;

/// A running command; killed with its owner.
struct Listener(Child);

impl Listener {
    /// Starts the command, and waits until it says that it listens.
    fn start(port: &str, arguments: &[&str], secret: &str) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_vitrine"))
            .args(["webhooks", "listen", "--port", port])
            .args(arguments)
            .env("VITRINE_WEBHOOK_SECRET", secret)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("vitrine runs");
        let stderr = BufReader::new(child.stderr.take().expect("piped"));
        let listener = Self(child);
        let line = stderr.lines().next().expect("a line").expect("a line");
        assert!(line.contains(&format!(":{port}, verifying")), "{line}");
        listener
    }

    fn line(&mut self) -> String {
        let stdout = BufReader::new(self.0.stdout.take().expect("piped"));
        stdout.lines().next().expect("a line").expect("a line")
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn listener_prints_events_with_a_verdict_on_their_signatures() {
    let delivery = Delivery::of(&[gift_card("A")]);
    let _server = delivery.serve();
    let free = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = free.local_addr().expect("an address").port().to_string();
    drop(free);
    let endpoint = delivery.endpoint_at(&format!("http://127.0.0.1:{port}/"), &[]);
    let test = || delivery.store.run(&["webhooks", "test", &endpoint.id]);
    let mut listener = Listener::start(&port, &[], &endpoint.secret);
    assert!(test().status.success());
    let line = listener.line();
    assert!(
        line.contains(" verified {\"type\":\"webhook.test\""),
        "{line}"
    );
    drop(listener);
    let mut listener = Listener::start(&port, &["--json"], "whsec_AAAA");
    assert!(!test().status.success(), "it is answered with 400");
    let line: Value = serde_json::from_str(&listener.line()).expect("JSON");
    let verdict = "refused: webhook-signature isn't by this secret";
    assert_eq!(
        (&line["signature"], &line["body"]["type"]),
        (&verdict.into(), &"webhook.test".into())
    );
    let mut wrong = delivery
        .store
        .command(&["webhooks", "listen", "--port", "0"]);
    let refused = wrong.env("VITRINE_WEBHOOK_SECRET", "secret").output();
    assert_eq!(refused.expect("vitrine runs").status.code(), Some(2));
}
