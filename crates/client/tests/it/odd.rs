//! A server that answers what a test says, byte for byte, and remembers what it was asked.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use vitrine_client::{Client, ClientBuilder, Key, Retries};

/// The key of all these tests.
pub(crate) const KEY: &str = "partner.s3cret-part";

/// A running server. Its threads end with the process.
pub(crate) struct Odd {
    address: SocketAddr,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Odd {
    /// Gives these answers, one a connection, and the last one ever after. An empty one is silence for as long as the client stays.
    pub(crate) fn of(answers: Vec<Vec<u8>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let heads = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&heads);
        let next = AtomicUsize::new(0);
        std::thread::spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                let number = next.fetch_add(1, Ordering::Relaxed).min(answers.len() - 1);
                let (answer, seen) = (answers[number].clone(), Arc::clone(&seen));
                std::thread::spawn(move || serve(socket, &answer, &seen));
            }
        });
        Self { address, heads }
    }

    /// The server's address.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// A client of it, whose pauses are none.
    pub(crate) fn client(&self) -> Client {
        self.builder().build().expect("a client")
    }

    /// The same, to be changed.
    pub(crate) fn builder(&self) -> ClientBuilder {
        let mut retries = Retries::default();
        retries.first_pause = Duration::ZERO;
        Client::builder(&self.url(), Key::new(KEY).expect("a key")).retries(retries)
    }

    /// The heads of all requests until now, in lower case.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.heads.lock().expect("unpoisoned").clone()
    }

    /// How many requests came.
    pub(crate) fn count(&self) -> usize {
        self.heads().len()
    }
}

fn serve(mut socket: TcpStream, answer: &[u8], seen: &Mutex<Vec<String>>) {
    let reader = BufReader::new(socket.try_clone().expect("a socket"));
    let lines = reader.lines().map_while(Result::ok);
    let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
    seen.lock()
        .expect("unpoisoned")
        .push(head.join("\n").to_ascii_lowercase());
    match answer {
        b"" => drop(socket.read(&mut [0])),
        answer => drop(socket.write_all(answer)),
    }
}

/// An answer with a body, as it goes over the wire. `head` is the status, and lines of headers.
pub(crate) fn answer(head: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let head = format!(
        "HTTP/1.1 {head}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// An answer in JSON.
pub(crate) fn json(head: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    answer(&format!("{head}\r\nContent-Type: application/json"), body)
}

/// An error of the contract.
pub(crate) fn error(head: &str, error_type: &str) -> Vec<u8> {
    json(
        head,
        format!(r#"{{"type":"{error_type}","message":"no","help":null}}"#),
    )
}

/// The answer to a ping.
pub(crate) fn pong() -> Vec<u8> {
    json("200 OK", r#"{"message":"pong"}"#)
}
