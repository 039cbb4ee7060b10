//! HTTP/2 frames in floods: each ends its connection or is answered, others are served meanwhile, and the server rests as
//! soon as the flood is over.

use std::io::{ErrorKind, Read as _, Write as _};
use std::time::Duration;

use crate::edge_http2::{START, frame};
use crate::harness::{Certificate, Server, Store};
use crate::hostile_http::assert_rests;

/// Number of frames in a flood.
const FLOOD: u32 = 100_000;

/// A whole request without a key, in HPACK's static table: GET, https, `/`.
fn request(stream: u32) -> Vec<u8> {
    frame(1, 0x5, stream, &[0x82, 0x87, 0x84])
}

/// Maker of a flood's frames.
type Frames = Box<dyn FnMut(u32) -> Vec<u8>>;

/// End of a flood.
#[derive(Debug, PartialEq, Eq)]
enum End {
    /// The server closed the connection.
    Closed,
    /// All of it was taken.
    Taken,
}

/// Sends a flood, reading nothing or all that comes meanwhile.
fn flood(
    certificate: &Certificate,
    server: &Server,
    first: &[u8],
    mut next: impl FnMut(u32) -> Vec<u8>,
) -> End {
    let mut stream = certificate.connect(server.address, &["h2"]).expect("TLS");
    let short = Some(Duration::from_millis(1));
    stream.sock.set_read_timeout(short).expect("a timeout");
    let mut sent = [START, first].concat();
    let mut end = End::Taken;
    for number in 0..FLOOD {
        sent.extend(next(number));
        if sent.len() < 16_000 {
            continue;
        }
        let written = stream.write_all(&sent).and_then(|()| stream.flush());
        sent.clear();
        let read = match stream.read(&mut [0; 16_384]) {
            Ok(0) => Err(ErrorKind::UnexpectedEof),
            Err(error) if error.kind() != ErrorKind::WouldBlock => Err(error.kind()),
            _ => Ok(()),
        };
        if written.is_err() || read.is_err() {
            end = End::Closed;
            break;
        }
    }
    end
}

#[test]
fn floods_of_frames_harm_nobody() {
    let store = Store::sample();
    let key = store.key("client", &[]);
    let certificate = Certificate::new(&store, "server");
    let server = certificate.serve(&store, &[]);
    let reset = |stream: u32| frame(3, 0, stream, &8_u32.to_be_bytes());
    let cases: [(&str, Vec<u8>, Frames, Option<End>); 6] = [
        (
            "requests that are taken back at once",
            Vec::new(),
            Box::new(move |n| [request(2 * n + 1), reset(2 * n + 1)].concat()),
            Some(End::Closed),
        ),
        (
            "a head that never ends",
            frame(1, 0x1, 1, &[0x82]),
            Box::new(|_| frame(9, 0, 1, &[0x0f, 0x00, 0x00])),
            Some(End::Closed),
        ),
        (
            "a head of empty parts",
            frame(1, 0x1, 1, &[0x82]),
            Box::new(|_| frame(9, 0, 1, &[])),
            Some(End::Closed),
        ),
        // These are answered one by one, no faster than the client reads.
        (
            "pings",
            Vec::new(),
            Box::new(|n| frame(6, 0, 0, &u64::from(n).to_be_bytes())),
            None,
        ),
        (
            "settings",
            Vec::new(),
            Box::new(|_| frame(4, 0, 0, &[])),
            None,
        ),
        (
            "priorities of streams that aren't there",
            Vec::new(),
            Box::new(|n| frame(2, 0, 2 * n + 1, &[0, 0, 0, 0, 1])),
            None,
        ),
    ];
    for (what, first, next, expected) in cases {
        let end = flood(&certificate, &server, &first, next);
        eprintln!("{what}: {end:?}");
        if let Some(expected) = expected {
            assert_eq!(end, expected, "{what}");
        }
        let answer = crate::harness::block_on(async {
            let mut client = certificate.http2(server.address).await.expect("others");
            client.get(&key, "/v2/ping").await.expect("an answer")
        });
        assert_eq!(answer.0, 200, "others are served after {what}");
        assert_rests(&server, what);
    }
    // Nothing of it is kept.
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.id())).expect("status");
    let resident = status.lines().find(|line| line.starts_with("VmRSS:"));
    eprintln!("{}", resident.unwrap_or_default());
}
