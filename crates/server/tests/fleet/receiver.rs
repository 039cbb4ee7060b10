//! A receiver of webhooks as a process of its own, which can be killed: it keeps a copy for each endpoint by following
//! `changes_url`, and answers once the changes are applied.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use crate::harness::feed::{CHANGES, Changes};
use crate::harness::receiver::Event;
use crate::harness::web::Post;
use crate::harness::{KeepAlive, wait_for};

/// The receiver; killed with its owner.
pub struct Receiver {
    child: Child,
    command: Command,
    address: SocketAddr,
    directory: tempfile::TempDir,
}

impl Receiver {
    /// Starts a receiver that asks a server with a key.
    pub fn start(server: SocketAddr, key: &str) -> Self {
        let free = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = free.local_addr().expect("an address");
        drop(free);
        let directory = tempfile::tempdir().expect("a directory");
        let mut command = Command::new(std::env::current_exe().expect("a program"));
        command
            .args(["receiver::receiver_program", "--exact", "--ignored"])
            .env("HOOK_ADDRESS", address.to_string())
            .env("HOOK_DIRECTORY", directory.path())
            .env("HOOK_SERVER", server.to_string())
            .env("HOOK_KEY", key)
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        let child = command.spawn().expect("it starts");
        let receiver = Self {
            child,
            command,
            address,
            directory,
        };
        receiver.wait();
        receiver
    }

    /// Returns the address of an endpoint.
    pub fn url(&self, endpoint: usize) -> String {
        format!("http://{}/{endpoint}", self.address)
    }

    /// Tells it the secret of an endpoint, and begins its copy with these products.
    pub fn set(&self, endpoint: usize, secret: &str, copy: &BTreeMap<String, String>) {
        fs::write(self.path(endpoint, "secret"), secret).expect("a secret");
        fs::write(self.path(endpoint, "json"), written(copy)).expect("a copy");
    }

    /// Kills it.
    pub fn stop(&mut self) {
        self.child.kill().expect("a child");
        self.child.wait().expect("an end");
    }

    /// Kills it and starts it again.
    pub fn restart(&mut self) {
        self.stop();
        self.child = self.command.spawn().expect("it starts");
        self.wait();
    }

    fn wait(&self) {
        wait_for("the receiver", || TcpStream::connect(self.address).ok());
    }

    fn path(&self, endpoint: usize, ending: &str) -> PathBuf {
        self.directory.path().join(format!("{endpoint}.{ending}"))
    }

    /// Returns the copy of an endpoint.
    pub fn copy(&self, endpoint: usize) -> BTreeMap<String, String> {
        read(&self.path(endpoint, "json"))
    }

    /// Returns what happened to an endpoint: a word and the id of an event for each.
    pub fn log(&self, endpoint: usize) -> Vec<(String, String)> {
        let log = fs::read_to_string(self.path(endpoint, "log")).unwrap_or_default();
        let entries = log.lines().filter_map(|line| line.split_once(' '));
        entries
            .map(|(word, id)| (word.to_owned(), id.to_owned()))
            .collect()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn written(copy: &BTreeMap<String, String>) -> String {
    serde_json::to_string(copy).expect("JSON")
}

fn read(path: &Path) -> BTreeMap<String, String> {
    let text = fs::read_to_string(path).expect("a copy");
    serde_json::from_str(&text).expect("JSON")
}

#[test]
#[ignore = "is the receiver as a process of its own, which another test here starts"]
fn receiver_program() {
    let variable = |name: &str| std::env::var(name).expect("a variable");
    let listener = TcpListener::bind(variable("HOOK_ADDRESS")).expect("the port");
    let hook = Arc::new(Hook {
        directory: variable("HOOK_DIRECTORY").into(),
        server: variable("HOOK_SERVER").parse().expect("an address"),
        key: variable("HOOK_KEY"),
        busy: Mutex::default(),
    });
    for socket in listener.incoming().map_while(Result::ok) {
        let hook = Arc::clone(&hook);
        std::thread::spawn(move || hook.serve(socket));
    }
}

/// State of the process.
struct Hook {
    directory: PathBuf,
    server: SocketAddr,
    key: String,
    /// Endpoints with an attempt in flight.
    busy: Mutex<Vec<String>>,
}

impl Hook {
    fn serve(&self, mut socket: TcpStream) {
        let mut reader = BufReader::new(socket.try_clone().expect("a socket"));
        let lines = reader.by_ref().lines().map_while(Result::ok);
        let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
        let Some(post) = Post::read(&head.join("\n"), reader) else {
            return;
        };
        let event = Event::of(&post);
        let status = match self.take(&event) {
            true => "204 No Content",
            false => "500 Internal Server Error",
        };
        let answer = format!("HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
        let _ = socket.write_all(answer.as_bytes());
    }

    /// Applies an event; returns true once that is stored.
    fn take(&self, event: &Event) -> bool {
        let endpoint = event.path().trim_start_matches('/').to_owned();
        let path = |ending: &str| self.directory.join(format!("{endpoint}.{ending}"));
        let log = |word: &str| {
            let log = fs::File::options()
                .create(true)
                .append(true)
                .open(path("log"));
            let line = format!("{word} {}\n", event.id());
            log.expect("a log")
                .write_all(line.as_bytes())
                .expect("written");
        };
        let secret = fs::read_to_string(path("secret")).expect("a secret");
        if !event.is_signed_by(&secret) {
            log("forged");
            return false;
        }
        let mut busy = self.busy.lock().expect("unpoisoned");
        if busy.contains(&endpoint) {
            log("overlap");
        }
        busy.push(endpoint.clone());
        drop(busy);
        log("begin");
        let applied = self.apply(event, &path("json"));
        if applied.is_some() {
            log("end");
        }
        let mut busy = self.busy.lock().expect("unpoisoned");
        let at = busy.iter().position(|name| *name == endpoint);
        busy.remove(at.expect("it began"));
        applied.is_some()
    }

    /// Follows `changes_url`, and stores the copy.
    fn apply(&self, event: &Event, path: &Path) -> Option<()> {
        let mut copy = read(path);
        if event.data()["resync"] == true {
            copy.clear();
        }
        let mut target = event.changes().to_owned();
        loop {
            let reply = KeepAlive::try_to(self.server)?.get(&self.key, &target)?;
            if reply.status != 200 {
                return None;
            }
            let page = Changes::of(&reply);
            for change in page.changes {
                match change.product {
                    Some(product) => copy.insert(change.code, product.to_string()),
                    None => copy.remove(&change.code),
                };
            }
            if !page.has_more {
                break;
            }
            let (_, query) = target.split_once('?').unwrap_or_default();
            let filters = query.split('&').filter(|part| !part.starts_with("since="));
            let since = format!("since={}", page.next);
            let parts: Vec<&str> = filters
                .chain([since.as_str()])
                .filter(|part| !part.is_empty())
                .collect();
            target = format!("{CHANGES}?{}", parts.join("&"));
        }
        let new = path.with_extension("new");
        fs::write(&new, written(&copy)).expect("a copy");
        fs::rename(new, path).expect("a copy");
        Some(())
    }
}
