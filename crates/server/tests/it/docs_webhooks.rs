//! The programs of the guide "Receive webhooks", as printed: each takes what is signed, also during the rotation of a secret,
//! and refuses everything else.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

use crate::docs_copies::node;
use crate::docs_recipes::write_programs;
use crate::harness::receiver::{Delivery, Event};
use crate::harness::{PATIENCE, Server, gift_card, skipped, text, wait_for};

/// A running program of the guide; killed with its owner.
struct Program {
    child: Child,
    lines: Receiver<String>,
    port: u16,
    _directory: tempfile::TempDir,
}

impl Program {
    /// Starts a program as the page shows it, with all others and packages beside it, and waits until it listens.
    fn start(server: &Server, file: &str, interpreter: &Path, secret: &str) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        write_programs(server, directory.path());
        let packages = root().join("target/clients/node/node_modules");
        let beside = directory.path().join("node_modules");
        std::os::unix::fs::symlink(packages, beside).expect("a link");
        let free = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = free.local_addr().expect("an address").port();
        drop(free);
        let mut child = Command::new(interpreter)
            .arg(file)
            .current_dir(directory.path())
            .env("WEBHOOK_SECRET", secret)
            .env("PORT", port.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let read = BufReader::new(child.stdout.take().expect("piped")).lines();
        let (send, lines) = channel();
        std::thread::spawn(move || {
            for line in read.map_while(Result::ok) {
                let _ = send.send(line);
            }
        });
        let mut program = Self {
            child,
            lines,
            port,
            _directory: directory,
        };
        wait_for("a program that listens", || {
            let ended = program.child.try_wait().expect("a child");
            assert!(ended.is_none(), "{file} ended: {ended:?}");
            TcpStream::connect(("127.0.0.1", port)).ok()
        });
        program
    }

    fn line(&self) -> String {
        self.lines.recv_timeout(PATIENCE).expect("a line")
    }

    /// Posts bytes with the headers of an event, and returns the status.
    fn post(&self, event: &Event, body: &[u8], timestamp: &str) -> u16 {
        let mut socket = TcpStream::connect(("127.0.0.1", self.port)).expect("a connection");
        let head = format!(
            "POST /hook HTTP/1.1\r\nHost: hook\r\nConnection: close\r\nContent-Type: application/json\r\n\
             webhook-id: {}\r\nwebhook-timestamp: {timestamp}\r\nwebhook-signature: {}\r\nContent-Length: {}\r\n\r\n",
            event.id(),
            event.header("webhook-signature"),
            body.len()
        );
        socket
            .write_all(&[head.as_bytes(), body].concat())
            .expect("written");
        let mut answer = Vec::new();
        socket.read_to_end(&mut answer).expect("an answer");
        let status = text(&answer)
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        status.expect("a status")
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns true if a program can run a line; if not, says that the receiver is skipped, save where it is required.
fn has(interpreter: &Path, arguments: &[&str], is_required: bool, what: &str) -> bool {
    let tried = Command::new(interpreter)
        .args(arguments)
        .current_dir(root().join("target"))
        .output();
    let has = tried.is_ok_and(|output| output.status.success());
    let is = |name: &str, value: &str| std::env::var(name).as_deref() == Ok(value);
    let is_required = is_required && is("CI", "true") || is("VITRINE_RECIPES", "all");
    assert!(has || !is_required, "{what} is missing");
    if !has {
        skipped(&format!("a receiver of webhooks: there is no {what}"));
    }
    has
}

/// Runs a receiver through events, a rotation and forgeries.
fn takes_what_is_signed(file: &str, interpreter: &Path) {
    let delivery = Delivery::of(&[gift_card("A")]);
    let server = delivery.serve();
    let endpoint = delivery.endpoint(&[]);
    let program = Program::start(&server, file, interpreter, &endpoint.secret);
    // What the test was sent, the program is sent by the test, and what it makes of that.
    let post = |event: &Event, body: &[u8]| {
        let status = program.post(event, body, event.header("webhook-timestamp"));
        (status, program.line())
    };
    let load = |code: &str, number: usize| {
        delivery
            .store
            .load_products(&[gift_card("A"), gift_card(code)]);
        delivery.events(number).remove(number - 1)
    };
    let first = load("B", 1);
    let (status, line) = post(&first, first.bytes());
    assert_eq!(status, 204, "{line}");
    assert!(
        line.starts_with("catalog.changed") && line.contains("\"B\"") || line.contains("'B'"),
        "{line}"
    );
    assert_eq!(post(&first, first.bytes()), (204, "came before".to_owned()));
    let rotate = |overlap: &str| {
        let [option, path, ..] = delivery.options();
        let rotate = ["webhooks", "rotate", &endpoint.id, "--overlap", overlap];
        delivery
            .store
            .ok(&[&rotate[..], &[&option, &path]].concat());
    };
    rotate("1h");
    let second = load("C", 2);
    assert_eq!(post(&second, second.bytes()).0, 204);
    let mut flipped = second.bytes().to_vec();
    flipped[10] ^= 1;
    assert_eq!(post(&second, &flipped).0, 400);
    let sent: i64 = second.header("webhook-timestamp").parse().expect("seconds");
    let old = (sent - 400).to_string();
    assert_eq!(program.post(&second, second.bytes(), &old), 400);
    program.line();
    rotate("0s");
    let third = load("D", 3);
    assert_eq!(
        post(&third, third.bytes()).0,
        400,
        "the older secret has ended"
    );
    // Delivered to by the server itself.
    let url = format!("http://127.0.0.1:{}/hook", program.port);
    let own = delivery.endpoint_at(&url, &[]);
    let test = delivery.store.run(&["webhooks", "test", &own.id]);
    assert!(!test.status.success(), "it has another secret");
    assert!(program.line().starts_with("refused"));
}

#[test]
fn python_receiver_takes_what_is_signed() {
    let installed = root().join("target/python/bin/python3");
    let python = if installed.exists() {
        installed
    } else {
        "python3".into()
    };
    if has(
        &python,
        &["-c", "import standardwebhooks"],
        true,
        "standardwebhooks for Python",
    ) {
        takes_what_is_signed("receive.py", &python);
    }
}

#[test]
fn javascript_receiver_takes_what_is_signed() {
    let Some(node) = node() else {
        return;
    };
    let import = [
        "-e",
        "require('./clients/node/node_modules/standardwebhooks')",
    ];
    if has(&node, &import, true, "standardwebhooks for Node.js") {
        takes_what_is_signed("receive.mjs", &node);
    }
}

#[test]
fn ruby_receiver_takes_what_is_signed() {
    let ruby = Path::new("ruby");
    if has(
        ruby,
        &["-e", "require 'webrick'; require 'standardwebhooks'"],
        false,
        "Ruby with webrick and standardwebhooks",
    ) {
        takes_what_is_signed("receive.rb", ruby);
    }
}
