//! TLS: both protocols, renewed certificates under open connections, and what is refused at the start.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::harness::{
    Certificate, Reply, Store, TlsStream, block_on, read, scrape, text, wait_for,
};

/// One request over a connection that stays open.
fn ping(stream: &mut TlsStream, key: &str) -> Reply {
    let request = format!("GET /v2/ping HTTP/1.1\r\nHost: localhost\r\nX-Api-Key: {key}\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("written");
    let mut answer = Vec::new();
    let mut part = [0; 4096];
    loop {
        let count = stream.read(&mut part).expect("an answer");
        answer.extend_from_slice(&part[..count]);
        let head = answer.windows(4).position(|window| window == b"\r\n\r\n");
        let length = text(&answer).to_lowercase();
        let length = length.split_once("content-length: ");
        let length = length.and_then(|(_, rest)| rest.split('\r').next()?.parse::<usize>().ok());
        if let (Some(head), Some(length)) = (head, length)
            && answer.len() >= head + 4 + length
        {
            return Reply::parse(&answer, "GET");
        }
    }
}

#[test]
fn both_protocols_over_tls_answer_alike() {
    let store = Store::sample();
    let key = store.key("client", &[]);
    let certificate = Certificate::new(&store, "server");
    let server = certificate.serve(&store, &[]);
    assert!(server.stderr().contains(", serving https://127.0.0.1:"));
    for protocols in [&["http/1.1"] as &[_], &[]] {
        let mut stream = certificate.connect(server.address, protocols).expect("TLS");
        assert_eq!(ping(&mut stream, &key).json()["message"], "pong");
    }
    let plain = store.serve();
    let target = "/v2/product?limit=50";
    let expected = plain.get(&key, target);
    block_on(async {
        let mut client = certificate.http2(server.address).await.expect("HTTP/2");
        let (status, body) = client.get(&key, target).await.expect("an answer");
        let codes = |body: &[u8]| -> serde_json::Value {
            let list: serde_json::Value = serde_json::from_slice(body).expect("JSON");
            list["catalog"].clone()
        };
        assert_eq!(status, 200);
        // Addresses of texts differ, since both servers go by where they listen.
        assert_eq!(
            codes(&body).as_array().expect("a list").len(),
            codes(&expected.body).as_array().expect("a list").len()
        );
        for (target, status) in [
            ("/v2/none", 404),
            ("/v2/product?x=1", 400),
            ("/v2/ping", 200),
        ] {
            let (found, _) = client.get(&key, target).await.expect("an answer");
            assert_eq!(found, status, "{target}");
        }
        assert_eq!(
            client.get("none", "/v2/ping").await.expect("an answer").0,
            401
        );
        // As many as there may be at once, and more that wait for their turn.
        let mut asked = Vec::new();
        for _ in 0..300 {
            let answer = client.ask(&key, target).await.expect("asked");
            asked.push(tokio::spawn(read(answer)));
        }
        for answer in asked {
            let (status, found) = answer.await.expect("no panic").expect("an answer");
            assert_eq!((status, found.len()), (200, body.len()));
        }
    });
    // Whoever speaks plain HTTP to it, or a protocol that it doesn't speak, is refused.
    let mut socket = TcpStream::connect(server.address).expect("a connection");
    socket
        .write_all(b"GET / HTTP/1.1\r\n\r\n")
        .expect("written");
    let mut answer = Vec::new();
    let _ = socket.read_to_end(&mut answer);
    assert!(!text(&answer).contains("HTTP/1.1"));
    assert!(certificate.connect(server.address, &["spdy/3"]).is_none());
}

#[test]
fn renewed_certificate_is_shown_to_new_connections() {
    let store = Store::sample();
    let key = store.key("client", &[]);
    let first = Certificate::new(&store, "server");
    let server = first.serve(&store, &["--admin-listen", "127.0.0.1:0"]);
    let mut open = first.connect(server.address, &[]).expect("TLS");
    assert_eq!(ping(&mut open, &key).status, 200);
    let before = scrape(&server).value("vitrine_tls_certificate_not_after_seconds");
    assert!(before > 0.0);

    let second = Certificate::new(&store, "server");
    server.signal("HUP");
    wait_for("the new certificate", || {
        second.connect(server.address, &[])
    });
    assert!(
        first.connect(server.address, &[]).is_none(),
        "the old one is gone"
    );
    assert_eq!(
        ping(&mut open, &key).status,
        200,
        "the old connection is alive"
    );

    // A key that doesn't belong to it: what is shown stays.
    let wrong = Certificate::new(&store, "other");
    std::fs::copy(&wrong.key, &second.key).expect("a copy");
    server.signal("HUP");
    wait_for("the refusal", || {
        let log = server.stderr();
        (log.contains("keeping the old one") && log.contains("doesn't match")).then_some(())
    });
    assert!(second.connect(server.address, &[]).is_some());
    let series = "vitrine_tls_certificate_reloads_total";
    let counts = scrape(&server);
    // At least once each: the files are also looked at without a signal, perhaps between two writes.
    assert!(counts.value(&format!("{series}{{outcome=\"ok\"}}")) >= 1.0);
    assert!(counts.value(&format!("{series}{{outcome=\"failed\"}}")) >= 1.0);
    assert!(counts.value("vitrine_tls_handshake_failures_total") >= 1.0);

    // Nobody says anything: the files are looked at.
    let third = Certificate::new(&store, "server");
    wait_for("the third certificate", || {
        third.connect(server.address, &[])
    });
    assert_eq!(ping(&mut open, &key).status, 200);
}

/// Returns the error of a server that refuses to start with these two files.
fn refusal(store: &Store, chain: &str, key: &str) -> String {
    let arguments = [
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--tls-certificate",
        chain,
        "--tls-key",
        key,
    ];
    let output = store.run(&arguments);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    text(&output.stderr)
}

#[test]
fn faulty_pair_is_refused_with_file_and_fault() {
    let store = Store::new();
    let pair = Certificate::new(&store, "pair");
    let other = Certificate::new(&store, "other");
    let path = |path: &std::path::Path| path.display().to_string();
    let (chain, key) = (path(&pair.chain), path(&pair.key));
    let nothing = path(&store.write("nothing.pem", "nothing of the kind\n"));
    let encrypted =
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
    let encrypted = path(&store.write("encrypted.key", encrypted));
    let half: String = std::fs::read_to_string(&pair.chain).expect("a text");
    let half = path(&store.write("half.pem", &half[..half.len() / 2]));
    let missing = path(&store.path("missing.pem"));
    let broken = "-----BEGIN PRIVATE KEY-----\nSECRET\n-----END PRIVATE KEY-----\n";
    let broken = path(&store.write("broken.key", broken));
    for (chain, key, file, what) in [
        (
            &chain,
            &path(&other.key),
            "other.key",
            "doesn't match the first certificate",
        ),
        (&chain, &encrypted, "encrypted.key", "encrypted"),
        (&chain, &nothing, "nothing.pem", "contains no private key"),
        (&chain, &chain, "pair.pem", "contains no private key"),
        (&chain, &missing, "missing.pem", "can't be read"),
        (&nothing, &key, "nothing.pem", "contains no certificate"),
        (&key, &key, "pair.key", "contains no certificate"),
        (&half, &key, "half.pem", "isn't valid PEM"),
        (&missing, &key, "missing.pem", "can't be read"),
        (&chain, &broken, "broken.key", "key"),
    ] {
        let said = refusal(&store, chain, key);
        assert!(said.contains(file) && said.contains(what), "{said}");
        assert!(!said.contains("SECRET"), "{said}");
    }
    let output = store.run(&["serve", "--tls-key", &key]);
    assert_eq!(output.status.code(), Some(2), "one without the other");
}

#[test]
fn expired_certificate_is_served_with_a_warning() {
    let store = Store::sample();
    let key = rcgen::KeyPair::generate().expect("a key");
    let mut parameters = rcgen::CertificateParams::new(["localhost".to_owned()]).expect("names");
    parameters.not_before = rcgen::date_time_ymd(2019, 1, 1);
    parameters.not_after = rcgen::date_time_ymd(2020, 1, 1);
    let made = parameters.self_signed(&key).expect("a certificate");
    let chain = store.write("old.pem", made.pem()).display().to_string();
    let key = store
        .write("old.key", key.serialize_pem())
        .display()
        .to_string();
    let server = store.serve_with(&[
        "--tls-certificate",
        &chain,
        "--tls-key",
        &key,
        "--admin-listen",
        "127.0.0.1:0",
    ]);
    assert!(
        server.stderr().contains("has expired"),
        "{}",
        server.stderr()
    );
    assert!(
        server.stderr().contains("2020-01-01"),
        "{}",
        server.stderr()
    );
    let not_after = scrape(&server).value("vitrine_tls_certificate_not_after_seconds");
    assert_eq!(not_after, 1_577_836_800.0);
}

#[test]
fn handshake_that_never_ends_is_cut() {
    let store = Store::sample();
    let certificate = Certificate::new(&store, "server");
    let server = certificate.serve(&store, &[]);
    std::thread::scope(|scope| {
        // Nothing at all, and the first bytes of a greeting.
        for sent in [&b""[..], &[22, 3, 1, 2, 0, 1, 0]] {
            let mut socket = server.connect();
            scope.spawn(move || {
                let started = Instant::now();
                socket.write_all(sent).expect("written");
                let mut answer = Vec::new();
                let ended = socket.read_to_end(&mut answer);
                let time = started.elapsed();
                eprintln!("half a handshake was cut in {time:?} (the limit is 5 s): {ended:?}");
                assert!(time >= Duration::from_secs(4), "not before its time");
            });
        }
    });
}
