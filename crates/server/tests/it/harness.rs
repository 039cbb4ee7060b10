//! Starts servers on free ports, runs commands, and speaks HTTP to the letter.
//!
//! The client is our own on purpose: what tests send must reach the server byte for byte, and what
//! comes back must be seen as it is.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// The sample catalog.
pub const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/catalog.ndjson");

/// How long a test waits for what must come at once, before it gives up.
const PATIENCE: Duration = Duration::from_secs(60);

/// A store in a directory of its own, and the commands on it.
pub struct Store {
    directory: TempDir,
}

impl Store {
    /// A place for a store; the first command makes it.
    pub fn new() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        Self { directory }
    }

    /// A store that holds the sample catalog.
    pub fn sample() -> Self {
        let store = Self::new();
        store.load(SAMPLE);
        store
    }

    /// A store that holds these products.
    pub fn of(products: &[Value]) -> Self {
        let store = Self::new();
        store.load_products(products);
        store
    }

    /// A file in the store's directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Writes a file into the store's directory.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, content).expect("a file");
        path
    }

    /// The store's address.
    pub fn url(&self) -> String {
        format!("sqlite:{}", self.path("vitrine.db").display())
    }

    /// A command on the store, not yet run.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_vitrine"));
        command.args(arguments).env("VITRINE_STORE", self.url());
        command
    }

    /// Runs a command on the store.
    pub fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("vitrine runs")
    }

    /// Runs a command that must succeed; returns what it prints.
    pub fn ok(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            text(&output.stderr)
        );
        text(&output.stdout)
    }

    /// Loads a file that must be taken; returns the report.
    pub fn load(&self, file: impl AsRef<Path>) -> Value {
        let file = file.as_ref().display().to_string();
        serde_json::from_str(&self.ok(&["load", "--json", &file])).expect("a report")
    }

    /// Loads products that must be taken.
    pub fn load_products(&self, products: &[Value]) -> Value {
        let lines: Vec<String> = products.iter().map(ToString::to_string).collect();
        // A name of its own: tests load from several threads.
        let file = tempfile::NamedTempFile::new_in(self.directory.path()).expect("a file");
        std::fs::write(file.path(), lines.join("\n")).expect("a file");
        self.load(file.path())
    }

    /// Tries to load a text; returns the exit code and the report.
    pub fn try_load(&self, content: impl AsRef<[u8]>) -> (i32, Value) {
        let file = self.write("tried.json", content);
        let output = self.run(&["load", "--json", &file.display().to_string()]);
        let report = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
        (output.status.code().unwrap_or(-1), report)
    }

    /// Makes a key; returns it. `options` are those of `keys create`.
    pub fn key(&self, label: &str, options: &[&str]) -> String {
        let arguments = [&["keys", "create", "--json", "--label", label], options].concat();
        let made: Value = serde_json::from_str(&self.ok(&arguments)).expect("JSON");
        made["key"].as_str().expect("a key").to_owned()
    }

    /// Serves the store.
    pub fn serve(&self) -> Server {
        self.serve_with(&[])
    }

    /// Serves the store with more options.
    pub fn serve_with(&self, options: &[&str]) -> Server {
        let mut command = self.command(&["serve", "--listen", "127.0.0.1:0"]);
        command.args(options);
        Server::start(command)
    }

    /// Serves the store under a public address, which isn't where it listens.
    pub fn serve_as(&self, public_url: &str) -> Server {
        self.serve_with(&["--public-url", public_url])
    }
}

/// Headers to send.
pub type Headers<'h> = &'h [(&'h str, &'h str)];

/// A running server; it ends with its owner.
pub struct Server {
    child: Child,
    pub address: SocketAddr,
    stdout: Arc<Mutex<String>>,
    stderr: Arc<Mutex<String>>,
}

impl Server {
    /// Starts a command that says where it listens on standard error.
    pub fn start(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("vitrine starts");
        let stdout = collect(child.stdout.take().expect("piped"));
        let stderr = collect(child.stderr.take().expect("piped"));
        let address = wait_for("the server's address", || {
            let seen = stderr.lock().expect("unpoisoned");
            let rest = seen.split_once("vitrine: listening on ")?.1;
            rest.split_once(", serving ")?.0.parse().ok()
        });
        Self {
            child,
            address,
            stdout,
            stderr,
        }
    }

    /// What it wrote to standard output until now: the access log.
    pub fn stdout(&self) -> String {
        self.stdout.lock().expect("unpoisoned").clone()
    }

    /// What it wrote to standard error until now.
    pub fn stderr(&self) -> String {
        self.stderr.lock().expect("unpoisoned").clone()
    }

    /// The process.
    pub fn process_id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal by name, such as `TERM`.
    pub fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let killed = Command::new("kill").args(["-s", name, &id]).status();
        assert!(killed.expect("kill runs").success());
    }

    /// Waits for its end; returns its exit code.
    pub fn wait(&mut self) -> Option<i32> {
        wait_for("the server's end", || {
            self.child.try_wait().expect("a child")
        })
        .code()
    }

    /// A GET with a key.
    pub fn get(&self, key: &str, target: &str) -> Reply {
        self.send("GET", target, &[("X-Api-Key", key)])
    }

    /// A request with headers.
    pub fn send(&self, method: &str, target: &str, headers: Headers<'_>) -> Reply {
        let mut head = format!("{method} {target} HTTP/1.1\r\nHost: vitrine.test\r\n");
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("Connection: close\r\n\r\n");
        Reply::parse(&self.raw(head.as_bytes()), method)
    }

    /// Sends bytes and reads until the server closes.
    pub fn raw(&self, bytes: &[u8]) -> Vec<u8> {
        let mut socket = self.connect();
        // The server may answer and close before it has read all of it.
        let _ = socket.write_all(bytes);
        let mut answer = Vec::new();
        let _ = socket.read_to_end(&mut answer);
        answer
    }

    /// A connection.
    pub fn connect(&self) -> TcpStream {
        let socket = TcpStream::connect(self.address).expect("a connection");
        socket.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        socket
    }

    /// A connection that stays open.
    pub fn keep_alive(&self) -> KeepAlive {
        let socket = self.connect();
        KeepAlive {
            reader: BufReader::new(socket.try_clone().expect("a socket")),
            socket,
        }
    }

    /// Waits until what a load published, by its report, is live.
    pub fn wait_for_loaded(&self, report: &Value) {
        let number = report["revision"]["number"].as_u64();
        self.wait_for_revision(number.expect("the load published something"));
    }

    /// Waits until the live revision is `number`.
    pub fn wait_for_revision(&self, number: u64) {
        let line = format!("\"revision\":{number},");
        wait_for("a revision to go live", || {
            self.stderr().contains(&line).then_some(())
        });
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn collect(from: impl Read + Send + 'static) -> Arc<Mutex<String>> {
    let collected = Arc::new(Mutex::new(String::new()));
    let into = Arc::clone(&collected);
    std::thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            let mut into = into.lock().expect("unpoisoned");
            into.push_str(&line);
            into.push('\n');
        }
    });
    collected
}

/// Several requests over one connection.
pub struct KeepAlive {
    socket: TcpStream,
    reader: BufReader<TcpStream>,
}

impl KeepAlive {
    /// Sends a GET with a key and reads its answer; `None` where the server has closed.
    pub fn get(&mut self, key: &str, target: &str) -> Option<Reply> {
        self.write(&format!(
            "GET {target} HTTP/1.1\r\nHost: vitrine.test\r\nX-Api-Key: {key}\r\n\r\n"
        ));
        self.read("GET")
    }

    /// Sends text as it is.
    pub fn write(&mut self, text: &str) {
        let _ = self.socket.write_all(text.as_bytes());
    }

    /// Reads one answer.
    pub fn read(&mut self, method: &str) -> Option<Reply> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let read = self.reader.read_until(b'\n', &mut head).ok()?;
            if read == 0 {
                return None;
            }
        }
        let mut reply = Reply::parse(&head, "HEAD");
        let has_body = method != "HEAD" && reply.status != 304;
        let length = reply.header("content-length").filter(|_| has_body);
        let mut body = vec![0; length.map_or(0, |length| length.parse().expect("a length"))];
        self.reader.read_exact(&mut body).ok()?;
        reply.body = body;
        Some(reply)
    }
}

/// An answer.
#[derive(Debug, Clone)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Reply {
    /// Reads an answer that ends with its connection.
    pub fn parse(bytes: &[u8], method: &str) -> Self {
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n");
        let end = end.unwrap_or_else(|| panic!("no head in {:?}", text(bytes)));
        let head = text(&bytes[..end]);
        let mut lines = head.split("\r\n");
        let status = lines
            .next()
            .and_then(|line| line.split(' ').nth(1)?.parse().ok());
        let header = |line: &str| {
            let (name, value) = line.split_once(':').expect("a header");
            (name.to_ascii_lowercase(), value.trim().to_owned())
        };
        let reply = Self {
            status: status.expect("a status"),
            headers: lines.map(header).collect(),
            body: bytes[end + 4..].to_vec(),
        };
        if method != "HEAD" {
            let length = reply
                .header("content-length")
                .map_or(0, |n| n.parse().expect("a length"));
            assert_eq!(reply.body.len(), length, "the body is whole");
        }
        reply
    }

    /// The value of a header that stands there once.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.iter().filter(|(other, _)| other == name);
        let (_, value) = values.next()?;
        assert!(values.next().is_none(), "{name} stands there twice");
        Some(value)
    }

    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error} in {:?}", text(&self.body)))
    }

    /// The `type` of an error, after checking that the error is as every error must be.
    pub fn error(&self) -> String {
        let body = self.json();
        let error = body.as_object().expect("an object");
        assert_eq!(self.header("content-type"), Some("application/json"));
        assert!(self.header("x-request-id").is_some());
        assert!(
            error["message"].is_string() && error.contains_key("help"),
            "{body}"
        );
        let known = ["type", "message", "help", "details"];
        assert!(
            error.keys().all(|key| known.contains(&key.as_str())),
            "{body}"
        );
        error["type"].as_str().expect("a type").to_owned()
    }

    /// The codes of a list, in order.
    pub fn codes(&self) -> Vec<String> {
        assert_eq!(self.status, 200, "{}", text(&self.body));
        let code = |product: &Value| product["code"].as_str().expect("a code").to_owned();
        let body = self.json();
        body["catalog"]
            .as_array()
            .expect("a list")
            .iter()
            .map(code)
            .collect()
    }
}

/// Bytes as text, for messages.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Waits until `look` finds something.
pub fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(started.elapsed() < PATIENCE, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A valid gift card, to change at will.
pub fn gift_card(code: &str) -> Value {
    serde_json::json!({
        "name": format!("Product {code}"),
        "code": code,
        "currency": "EUR",
        "state": "LIVE",
        "is_orderable": true,
        "payout_type": "gift_card",
        "categories": ["fashion"],
        "countries_redeemable_in": ["DE"],
        "customer_service": {"phone_number": null, "website_url": null},
        "discount_multiplier": "0.05",
        "availability": "realtime",
        "gift_card": {
            "denominations": {
                "type": "fixed",
                "minimum_value": "10.00",
                "maximum_value": "50.00",
                "available_list": ["10.00", "25.00", "50.00"],
            },
            "assets": {"card_image_url": null, "icon_image_url": null, "primary_color": null},
            "balance_check_url": null,
            "expiry": {"date_policy": null, "in_months": 12, "type": "from-issue-date"},
            "redeemable_at": "all",
            "website_url": null,
            "barcode_format": null,
            "e_code_usage_type": "url-recommended",
            "content_resources": {
                "description_md": null,
                "disclaimer_md": null,
                "refund_policy_md": null,
                "reissuance_policy_md": null,
                "terms_buyer_md": null,
                "terms_consumer_md": null,
                "redemption_instructions_md": null,
                "locale": "en_GB",
            },
        },
    })
}
