//! HTTP/2 and clients that take their time: the limits hold for it as they do for HTTP/1.1.

use std::io::{ErrorKind, Read, Write};
use std::time::{Duration, Instant};

use crate::harness::{Certificate, Http2, Server, Store, block_on};

/// Start of a client's connection: the preface, and no settings of its own.
pub const START: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
/// A HEADERS frame that ends the stream and not the head: one header, and no CONTINUATION.
const HALF_HEAD: &[u8] = b"\0\0\x01\x01\x01\0\0\0\x01\x82";
/// A HEADERS frame that breaks off.
const HALF_FRAME: &[u8] = b"\0\0\x10\x01\x05\0\0\0\x01\x82\x87";

/// A frame: its type, its flags, its stream and what it bears.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("short").to_be_bytes();
    let mut frame = length[1..].to_vec();
    frame.extend_from_slice(&[kind, flags]);
    frame.extend_from_slice(&stream.to_be_bytes());
    frame.extend_from_slice(payload);
    frame
}

fn served() -> (Store, String, Certificate, Server) {
    let store = Store::sample();
    let key = store.key("client", &[]);
    let certificate = Certificate::new(&store, "server");
    let server = certificate.serve(&store, &[]);
    (store, key, certificate, server)
}

#[test]
fn silent_http2_connections_and_half_heads_are_cut() {
    let (_store, _key, certificate, server) = served();
    std::thread::scope(|scope| {
        for (what, sent) in [
            ("nothing", Vec::new()),
            ("half the start", START[..10].to_vec()),
            ("only the start", START.to_vec()),
            ("half a head", [START, HALF_HEAD].concat()),
            ("half a frame", [START, HALF_FRAME].concat()),
        ] {
            let mut stream = certificate.connect(server.address, &["h2"]).expect("TLS");
            scope.spawn(move || {
                let started = Instant::now();
                stream.write_all(&sent).expect("written");
                stream.flush().expect("written");
                let mut answer = Vec::new();
                match stream.read_to_end(&mut answer) {
                    Err(error) if error.kind() == ErrorKind::WouldBlock => panic!("never cut"),
                    _ => {}
                }
                let time = started.elapsed();
                eprintln!("after {what} cut in {time:?} (the limit is 5 s)");
                assert!(time >= Duration::from_secs(4), "not before its time");
            });
        }
    });
}

#[test]
fn slow_http2_head_is_cut() {
    let (_store, _key, certificate, server) = served();
    let mut stream = certificate.connect(server.address, &["h2"]).expect("TLS");
    stream
        .sock
        .set_read_timeout(Some(Duration::from_secs(2)))
        .expect("a timeout");
    stream
        .write_all(&[START, HALF_HEAD].concat())
        .expect("written");
    let started = Instant::now();
    // An empty part of the head after the other, not too many of them, until the server has had enough.
    loop {
        let more = b"\0\0\0\x09\0\0\0\0\x01";
        if stream
            .write_all(more)
            .and_then(|()| stream.flush())
            .is_err()
        {
            break;
        }
        match stream.read(&mut [0; 1024]) {
            Ok(0) => break,
            Err(error) if error.kind() != ErrorKind::WouldBlock => break,
            _ => {}
        }
    }
    let time = started.elapsed();
    eprintln!("a head without an end was cut in {time:?} (the limit is 5 s)");
    assert!(time >= Duration::from_secs(4), "not before its time");
}

/// A client that takes so much of each answer, and of all, before it says that it has read it.
async fn client(certificate: &Certificate, server: &Server, window: u32) -> Http2 {
    let mut settings = h2::client::Builder::new();
    settings
        .initial_window_size(window)
        .initial_connection_window_size(1 << 24);
    let client = certificate.http2_with(server.address, &settings).await;
    client.expect("a connection")
}

/// Reads what comes of a body, without saying so. Returns its end.
async fn end_of(body: &mut h2::RecvStream) -> Option<h2::Error> {
    loop {
        match body.data().await {
            Some(Ok(_)) => {}
            other => return other?.err(),
        }
    }
}

#[test]
fn responses_behind_shut_windows_are_reset() {
    let (_store, key, certificate, server) = served();
    block_on(async {
        let started = Instant::now();
        let (mut clients, mut bodies) = (Vec::new(), Vec::new());
        for window in [0, 1, 20_000] {
            let mut client = client(&certificate, &server, window).await;
            for _ in 0..10 {
                let answer = client.ask(&key, "/v2/product").await.expect("asked");
                bodies.push((window, answer.await.expect("a head").into_body()));
            }
            clients.push(client);
        }
        for (window, body) in &mut bodies {
            let error = end_of(body).await.expect("not ended well");
            assert!(error.is_reset(), "{error} with a window of {window}");
            let time = started.elapsed();
            assert!(
                time >= Duration::from_secs(59),
                "not before its time: {time:?}"
            );
        }
        eprintln!("reset in {:?} (the limit is 60 s)", started.elapsed());
    });
}

#[test]
fn stream_that_nobody_takes_is_reset_alone() {
    let (_store, key, certificate, server) = served();
    block_on(async {
        let mut client = client(&certificate, &server, 20_000).await;
        let stuck = client.ask(&key, "/v2/product").await.expect("asked");
        let mut stuck = stuck.await.expect("a head").into_body();
        let started = Instant::now();
        let mut answered = 0;
        let reset = loop {
            let (status, _) = client.get(&key, "/v2/product").await.expect("others go on");
            assert_eq!(status, 200);
            answered += 1;
            // What has come is read, and never said to be.
            let more = end_of(&mut stuck);
            match tokio::time::timeout(Duration::from_millis(200), more).await {
                Err(_) => {}
                Ok(ended) => break ended,
            }
        };
        let time = started.elapsed();
        eprintln!(
            "a stuck stream was reset in {time:?} (the limit is 60 s), {answered} others answered"
        );
        let error = reset.expect("not ended well");
        assert!(error.is_reset(), "{error}");
        assert!(time >= Duration::from_secs(59), "not before its time");
        assert_eq!(
            client.get(&key, "/v2/ping").await.expect("an answer").0,
            200
        );
    });
}

/// A request with a key, in HPACK's static table and literals.
fn request(stream: u32, key: &str, target: &str) -> Vec<u8> {
    let literal = |text: &str| {
        let length = u8::try_from(text.len()).expect("short");
        assert!(length < 127, "one octet tells the length");
        [&[length], text.as_bytes()].concat()
    };
    let path = [&[0x04], &literal(target)[..]].concat();
    let key = [&[0x00], &literal("x-api-key")[..], &literal(key)].concat();
    frame(1, 0x5, stream, &[&[0x82, 0x87], &path[..], &key].concat())
}

/// RFC 9113 lets a server cut a body as it likes. But clients count small frames and close a connection on which too
/// many come, and where each of many answers stops at the end of its window, each may leave a crumb.
#[test]
fn body_of_default_window_size_is_sent_whole() {
    const DATA: u8 = 0;
    const END_STREAM: u8 = 1;
    let (_store, key, certificate, server) = served();
    let mut stream = certificate.connect(server.address, &["h2"]).expect("TLS");
    let more = (1_u32 << 20).to_be_bytes();
    let asked = request(1, &key, "/v2/product?limit=50");
    let sent = [START, &frame(8, 0, 0, &more), &asked].concat();
    stream
        .write_all(&sent)
        .and_then(|()| stream.flush())
        .expect("written");
    let mut pieces = Vec::new();
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).expect("a frame");
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let mut payload = vec![0; length];
        stream.read_exact(&mut payload).expect("all of the frame");
        if head[3] != DATA {
            continue;
        }
        pieces.push(length);
        if head[4] & END_STREAM != 0 {
            break;
        }
        // A new window of a stream is 65,535 octets (section 6.9.2).
        if pieces.iter().sum::<usize>() == 65_535 {
            let taken = frame(8, 0, 1, &65_535_u32.to_be_bytes());
            stream
                .write_all(&taken)
                .and_then(|()| stream.flush())
                .expect("written");
        }
    }
    eprintln!("pieces of {pieces:?} octets");
    assert!(pieces.iter().sum::<usize>() > 65_535, "it didn't end there");
    let (_last, before) = pieces.split_last().expect("pieces");
    assert!(before.iter().all(|length| *length >= 256));
}
