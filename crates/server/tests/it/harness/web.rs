//! A web server that answers as a test says, and remembers what it was asked.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use super::wait_for;

/// Answer of a page.
#[derive(Debug, Clone)]
pub struct Page {
    status: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    sent: Sent,
}

/// Part of a page that is sent, and its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sent {
    Whole,
    /// All but the last byte.
    Cut,
    /// The body over and over again, without a length.
    Endlessly,
    /// Nothing at all, while the client stays.
    Never,
    /// Whole, once so many requests are in at the same time.
    Together(usize),
    /// Whole, once the gate is open.
    Gated,
    /// A byte a second.
    Slowly,
}

impl Page {
    /// A page with status 200.
    pub fn ok(body: impl Into<Vec<u8>>) -> Self {
        Self {
            status: "200 OK".to_owned(),
            headers: Vec::new(),
            body: body.into(),
            sent: Sent::Whole,
        }
    }

    /// An answer with another status.
    pub fn status(status: &str) -> Self {
        Self {
            status: status.to_owned(),
            ..Self::ok("nothing here")
        }
    }

    /// The page with another status.
    pub fn with_status(self, status: &str) -> Self {
        Self {
            status: status.to_owned(),
            ..self
        }
    }

    /// A redirect.
    pub fn redirect(location: &str) -> Self {
        Self::status("302 Found").with("Location", location)
    }

    /// The page with one more header. With `ETag` or `Last-Modified`, who brings that gets a 304.
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn cut(self) -> Self {
        self.sent(Sent::Cut)
    }

    pub fn endlessly(self) -> Self {
        self.sent(Sent::Endlessly)
    }

    pub fn never(self) -> Self {
        self.sent(Sent::Never)
    }

    pub fn slowly(self) -> Self {
        self.sent(Sent::Slowly)
    }

    /// Answers once so many requests wait at the same time.
    pub fn together(self, count: usize) -> Self {
        self.sent(Sent::Together(count))
    }

    /// Answers once the gate was opened.
    pub fn gated(self) -> Self {
        self.sent(Sent::Gated)
    }

    fn sent(self, sent: Sent) -> Self {
        Self { sent, ..self }
    }
}

/// A request with a body.
#[derive(Debug, Clone)]
pub struct Post {
    head: String,
    pub body: Vec<u8>,
}

impl Post {
    /// Reads the body behind a head; `None` if that isn't one of a request with a body.
    pub fn read(head: &str, mut from: impl Read) -> Option<Self> {
        let mut post = Self {
            head: head.to_owned(),
            body: Vec::new(),
        };
        let length = post.header("content-length")?.parse().ok()?;
        post.body = vec![0; length];
        from.read_exact(&mut post.body).ok()?;
        Some(post)
    }

    /// Returns a header's value.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (found, value) = line.split_once(": ")?;
            found.eq_ignore_ascii_case(name).then_some(value)
        })
    }

    /// Returns the names of its headers, in lower case.
    pub fn header_names(&self) -> impl Iterator<Item = String> {
        let headers = self.head.lines().filter_map(|line| line.split_once(": "));
        headers.map(|(name, _)| name.to_ascii_lowercase())
    }

    /// Returns the path that it was posted to.
    pub fn path(&self) -> &str {
        self.head.split(' ').nth(1).unwrap_or_default()
    }
}

#[derive(Default)]
struct Shared {
    /// Answers of each path: each once, the last one ever after.
    pages: Mutex<HashMap<String, Vec<Page>>>,
    /// The heads of all requests, in lower case.
    requests: Mutex<Vec<String>>,
    posts: Mutex<Vec<Post>>,
    inside: AtomicUsize,
    most_inside: AtomicUsize,
    gate: AtomicBool,
    is_closed: AtomicBool,
}

/// A running web server; it ends with its owner.
pub struct Web {
    pub address: SocketAddr,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

impl Web {
    /// Serves these pages.
    pub fn of(pages: &[(&str, Page)]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let shared = Arc::new(Shared::default());
        let accepting = Arc::clone(&shared);
        let acceptor = std::thread::spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                if accepting.is_closed.load(Ordering::SeqCst) {
                    break;
                }
                let shared = Arc::clone(&accepting);
                std::thread::spawn(move || answer(&shared, socket));
            }
        });
        let web = Self {
            address,
            shared,
            acceptor: Some(acceptor),
        };
        for (path, page) in pages {
            web.set(path, std::slice::from_ref(page));
        }
        web
    }

    /// The address of a path.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// From now on a path gives these pages, one after the other, and then always the last one.
    pub fn set(&self, path: &str, pages: &[Page]) {
        let mut known = self.shared.pages.lock().expect("unpoisoned");
        known.insert(path.to_owned(), pages.to_vec());
    }

    /// The heads of the requests until now, in lower case; then it forgets them.
    pub fn take_requests(&self) -> Vec<String> {
        std::mem::take(&mut self.shared.requests.lock().expect("unpoisoned"))
    }

    /// Returns all that was posted until now.
    pub fn posts(&self) -> Vec<Post> {
        self.shared.posts.lock().expect("unpoisoned").clone()
    }

    /// Waits until it is asked for something.
    pub fn wait_for_request(&self) {
        wait_for("a request", || {
            let requests = self.shared.requests.lock().expect("unpoisoned");
            (!requests.is_empty()).then_some(())
        });
    }

    /// Lets gated pages be answered.
    pub fn open_gate(&self) {
        self.shared.gate.store(true, Ordering::SeqCst);
    }

    /// Returns the maximum number of requests that waited for an answer at the same time.
    pub fn max_concurrent(&self) -> usize {
        self.shared.most_inside.load(Ordering::SeqCst)
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        self.shared.is_closed.store(true, Ordering::SeqCst);
        self.open_gate();
        let _ = TcpStream::connect(self.address);
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
    }
}

fn answer(shared: &Shared, mut socket: TcpStream) {
    let mut reader = BufReader::new(socket.try_clone().expect("a socket"));
    let lines = reader.by_ref().lines().map_while(Result::ok);
    let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
    let Some(path) = head.first().and_then(|line| line.split(' ').nth(1)) else {
        return;
    };
    let page = page(shared, path);
    let head = head.join("\n");
    if let Some(post) = Post::read(&head, reader) {
        shared.posts.lock().expect("unpoisoned").push(post);
    }
    let inside = shared.inside.fetch_add(1, Ordering::SeqCst) + 1;
    shared.most_inside.fetch_max(inside, Ordering::SeqCst);
    let lower = head.to_ascii_lowercase();
    shared.requests.lock().expect("unpoisoned").push(lower);
    wait(shared, &mut socket, page.sent);
    // Before the answer: who has it may ask again before this thread goes on.
    shared.inside.fetch_sub(1, Ordering::SeqCst);
    if page.sent != Sent::Never {
        send(&mut socket, &head, &page);
    }
}

fn page(shared: &Shared, path: &str) -> Page {
    let mut pages = shared.pages.lock().expect("unpoisoned");
    match pages.get_mut(path) {
        Some(pages) if pages.len() > 1 => pages.remove(0),
        Some(pages) => pages[0].clone(),
        None => Page::status("404 Not Found"),
    }
}

/// Waits until a page may be answered.
fn wait(shared: &Shared, socket: &mut TcpStream, sent: Sent) {
    match sent {
        Sent::Never => {
            // Until the client goes away.
            let _ = socket.read(&mut [0]);
        }
        Sent::Together(count) => wait_for("the others", || {
            let inside = shared.most_inside.load(Ordering::SeqCst);
            (inside >= count).then_some(())
        }),
        Sent::Gated => wait_for("the gate", || {
            shared.gate.load(Ordering::SeqCst).then_some(())
        }),
        Sent::Whole | Sent::Cut | Sent::Endlessly | Sent::Slowly => {}
    }
}

fn send(socket: &mut TcpStream, request: &str, page: &Page) {
    let Page {
        status,
        headers,
        body,
        sent,
    } = page;
    let is_brought = headers.iter().any(|(name, value)| {
        let condition = match name.as_str() {
            "ETag" => "if-none-match",
            "Last-Modified" => "if-modified-since",
            _ => return false,
        };
        request.lines().any(|line| {
            let (name, brought) = line.split_once(": ").unwrap_or_default();
            name.eq_ignore_ascii_case(condition) && brought == value
        })
    });
    let (status, body) = match is_brought {
        true => ("304 Not Modified", &Vec::new()),
        false => (status.as_str(), body),
    };
    let mut head = format!("HTTP/1.1 {status}\r\nConnection: close\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    if *sent != Sent::Endlessly {
        head.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    if *sent == Sent::Slowly {
        for byte in head.bytes() {
            if socket.write_all(&[byte]).is_err() {
                return;
            }
            std::thread::sleep(Duration::from_secs(1));
        }
    }
    // The client may have gone by now.
    let mut written = socket.write_all(format!("{head}\r\n").as_bytes());
    let end = body.len() - usize::from(*sent == Sent::Cut);
    written = written.and_then(|()| socket.write_all(&body[..end]));
    while *sent == Sent::Endlessly && written.is_ok() {
        written = socket.write_all(body);
    }
}
