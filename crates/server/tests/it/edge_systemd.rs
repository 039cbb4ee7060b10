//! Messages to the service manager.

use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use crate::harness::{Server, Store, wait_for};

#[test]
fn service_manager_gets_state_messages() {
    let store = Store::sample();
    let path = store.path("notify.sock");
    let socket = UnixDatagram::bind(&path).expect("a socket");
    socket
        .set_read_timeout(Some(Duration::from_millis(20)))
        .expect("a timeout");
    let mut command = store.command(&["serve", "--listen", "127.0.0.1:0"]);
    command
        .env("NOTIFY_SOCKET", &path)
        .env("WATCHDOG_USEC", "200000");
    let mut server = Server::start(command);
    let mut told = String::new();
    // Reads on until a line begins so, and takes it. Who is ready may be told before or after what is served.
    let mut wait = |start: &str| -> String {
        wait_for(start, || {
            let mut message = [0; 1024];
            if let Ok(length) = socket.recv(&mut message) {
                told.push_str(&String::from_utf8_lossy(&message[..length]));
                told.push('\n');
            }
            let at = told.find(start)?;
            let line = told[at..].lines().next()?.to_owned();
            told.replace_range(at..=at + line.len(), "");
            Some(line)
        })
    };
    wait("READY=1");
    assert_eq!(
        wait("STATUS=serving"),
        "STATUS=serving revision 1: 72 products"
    );
    // The runtime lives, and goes on living.
    wait("WATCHDOG=1");
    wait("WATCHDOG=1");
    store.load_products(&[crate::harness::gift_card("ONE")]);
    assert_eq!(
        wait("STATUS=serving"),
        "STATUS=serving revision 2: 1 products"
    );
    server.signal("HUP");
    wait("RELOADING=1");
    let moment = wait("MONOTONIC_USEC=");
    let moment: u64 = moment["MONOTONIC_USEC=".len()..].parse().expect("a number");
    assert!(moment > 0);
    wait("READY=1");
    server.signal("TERM");
    wait("STOPPING=1");
    assert_eq!(server.wait(), Some(0));
}
