//! A mock server that sends a test's responses byte for byte, and records the requests.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use vitrine_client::{Client, ClientBuilder, Key, Retries};

/// Key of all tests.
pub(crate) const KEY: &str = "partner.s3cret-part";

/// A running mock server. Its threads end with the process.
pub(crate) struct MockServer {
    address: SocketAddr,
    heads: Arc<Mutex<Vec<String>>>,
}

impl MockServer {
    /// Starts a server that sends one of these responses per connection, and the last one for all further ones. An empty
    /// response is silence until the client disconnects.
    pub(crate) fn of(answers: Vec<Vec<u8>>) -> Self {
        Self::holding(answers, Duration::ZERO)
    }

    /// Starts a server that holds each response for a time.
    pub(crate) fn holding(answers: Vec<Vec<u8>>, hold: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let heads = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&heads);
        let next = AtomicUsize::new(0);
        std::thread::spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                let number = next.fetch_add(1, Ordering::Relaxed).min(answers.len() - 1);
                let (answer, seen) = (answers[number].clone(), Arc::clone(&seen));
                std::thread::spawn(move || serve(socket, &answer, hold, &seen));
            }
        });
        Self { address, heads }
    }

    /// Returns the server's URL.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns a client of it that retries without pauses.
    pub(crate) fn client(&self) -> Client {
        self.builder().build().expect("a client")
    }

    /// Returns the builder of such a client.
    pub(crate) fn builder(&self) -> ClientBuilder {
        let mut retries = Retries::default();
        retries.first_pause = Duration::ZERO;
        Client::builder(&self.url(), Key::new(KEY).expect("a key")).retries(retries)
    }

    /// Returns the heads of all requests so far, in lower case.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.heads.lock().expect("unpoisoned").clone()
    }

    /// Returns the queries of all requests so far, in lower case. `path` is that of their operation.
    pub(crate) fn queries(&self, path: &str) -> Vec<String> {
        let query = |head: &String| {
            let target = head.split(' ').nth(1).unwrap_or_default();
            target.strip_prefix(path).expect("that path").to_owned()
        };
        self.heads().iter().map(query).collect()
    }

    /// Returns the number of requests.
    pub(crate) fn count(&self) -> usize {
        self.heads().len()
    }
}

fn serve(mut socket: TcpStream, answer: &[u8], hold: Duration, seen: &Mutex<Vec<String>>) {
    let reader = BufReader::new(socket.try_clone().expect("a socket"));
    let lines = reader.lines().map_while(Result::ok);
    let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
    seen.lock()
        .expect("unpoisoned")
        .push(head.join("\n").to_ascii_lowercase());
    std::thread::sleep(hold);
    match answer {
        b"" => drop(socket.read(&mut [0])),
        answer => drop(socket.write_all(answer)),
    }
}

/// Returns the bytes of a response with a body. `head` is the status, followed by header lines.
pub(crate) fn answer(head: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let head = format!(
        "HTTP/1.1 {head}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// Returns the bytes of a JSON response.
pub(crate) fn json(head: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    answer(&format!("{head}\r\nContent-Type: application/json"), body)
}

/// Returns the bytes of an error of the contract.
pub(crate) fn error(head: &str, error_type: &str) -> Vec<u8> {
    json(
        head,
        format!(r#"{{"type":"{error_type}","message":"no","help":null}}"#),
    )
}

/// Returns the bytes of the response to a ping.
pub(crate) fn pong() -> Vec<u8> {
    json("200 OK", r#"{"message":"pong"}"#)
}
