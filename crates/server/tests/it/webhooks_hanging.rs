//! Receivers that hang: they don't take the places of good ones, or the descriptors of clients.

use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::time::{Duration, Instant};

use vitrine::webhooks::position_now;
use vitrine::webhooks::secret::KeyFile;
use vitrine_store::IfMissing;
use vitrine_store::audit::{AuditAction, AuditContext};
use vitrine_store::webhooks::Endpoint;

use crate::changes_waits::ADMIN;
use crate::harness::receiver::{Delivery, HOOK};
use crate::harness::{KeepAlive, Page, Server, gift_card, scrape, wait_for};

/// Number of receivers that hang, each at a host of its own: more than the places that there once were.
const HANGING: u8 = 200;
const PORTS: usize = 2;

/// Creates endpoints at receivers that accept and never answer.
fn create_hanging(delivery: &Delivery, ports: &[u16]) {
    let url = delivery.store.url();
    let store = vitrine_store::open(&url, IfMissing::Refuse).expect("a store");
    let key_file = KeyFile::read(&delivery.store.path("webhooks.key")).expect("a key file");
    let position = position_now(&store, delivery.prefix()).expect("a position");
    let context = AuditContext {
        by: "test".to_owned(),
        note: None,
        action: AuditAction::CreateWebhook,
        confirmation: None,
    };
    for (network, port) in (1_u8..).zip(ports) {
        for host in 1..=HANGING {
            let new = Endpoint::new(
                format!("wh_{network}_{host}"),
                delivery.prefix().to_owned(),
                format!("http://127.0.{network}.{host}:{port}/"),
                [network ^ host; 16],
                position.clone(),
            );
            store
                .create_endpoint(&new, &key_file.fingerprint(), &context)
                .expect("created");
        }
    }
}

/// Takes the connections that wait.
fn accept(listeners: &[TcpListener], held: &mut Vec<TcpStream>) {
    for listener in listeners {
        listener.set_nonblocking(true).expect("set");
        held.extend(std::iter::from_fn(|| listener.accept().ok()).map(|(stream, _)| stream));
    }
}

#[test]
fn hanging_receivers_leave_descriptors_for_clients() {
    let delivery = Delivery::of(&[gift_card("A")]);
    delivery.endpoint(&[]);
    let listener = TcpListener::bind("0.0.0.0:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    create_hanging(&delivery, &[port]);
    let mut command = Command::new("sh");
    command
        .args(["-c", "ulimit -n 256; exec \"$0\" \"$@\""])
        .arg(env!("CARGO_BIN_EXE_vitrine"))
        .args(["serve", "--listen", "127.0.0.1:0", "--deliver-webhooks"])
        .args(ADMIN)
        .args(delivery.options())
        .env("VITRINE_STORE", delivery.store.url());
    let server = Server::start(command);
    delivery.store.load_products(&[gift_card("B")]);
    // A quarter of what connections and webhooks have: half for attempts, half for idle connections.
    let (mut held, attempts) = (Vec::new(), 8);
    wait_for("all places to be taken", || {
        accept(std::slice::from_ref(&listener), &mut held);
        (held.len() >= attempts).then_some(())
    });
    let connect = |_| {
        let mut client = server.keep_alive();
        let reply = client.get(&delivery.key, "/v2/ping").expect("an answer");
        assert_eq!(reply.status, 200);
        client
    };
    let _clients: Vec<KeepAlive> = (0..40).map(connect).collect();
    let counts = scrape(&server);
    assert_eq!(counts.value("vitrine_http_accept_failures_total"), 0.0);
    assert!(counts.value("process_open_fds") <= 192.0);
}

#[test]
fn good_receiver_does_not_wait_for_hanging_ones() {
    let delivery = Delivery::of(&[gift_card("A")]);
    delivery.web.set(HOOK, &[Page::ok("")]);
    // Its event is sent at once; the second is measured.
    delivery.endpoint(&[]);
    let bind = |_| TcpListener::bind("0.0.0.0:0").expect("a port");
    let listeners: Vec<TcpListener> = (0..PORTS).map(bind).collect();
    let port = |listener: &TcpListener| listener.local_addr().expect("an address").port();
    create_hanging(&delivery, &listeners.iter().map(port).collect::<Vec<_>>());
    let _server = delivery.serve();
    delivery.store.load_products(&[gift_card("B")]);
    let mut held: Vec<TcpStream> = Vec::new();
    wait_for("all places to be taken", || {
        accept(&listeners, &mut held);
        (held.len() >= 256).then_some(())
    });
    let before = delivery.events(0).len();
    delivery.store.load_products(&[gift_card("C")]);
    let loaded = Instant::now();
    delivery.events(before + 1);
    let waited = loaded.elapsed();
    eprintln!(
        "{} hang; the good receiver waited for {waited:?}",
        held.len()
    );
    assert!(waited < Duration::from_secs(7), "{waited:?}");
}
