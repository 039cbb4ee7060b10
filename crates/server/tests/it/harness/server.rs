//! A running server, and a client that sends what a test says, byte for byte, and shows what comes back
//! as it is.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use socket2::SockRef;

use super::{PATIENCE, Reply, wait_for};

/// Headers to send.
pub type Headers<'h> = &'h [(&'h str, &'h str)];

/// A running server; it ends with its owner.
pub struct Server {
    child: Child,
    pub address: SocketAddr,
    /// Its admin port, if it has one.
    admin: Option<SocketAddr>,
    stdout: Arc<Mutex<String>>,
    stderr: Arc<Mutex<String>>,
}

impl Server {
    /// Starts a command that says where it listens on standard error, or that it delivers without listening.
    pub fn start(command: Command) -> Self {
        Self::try_start(command)
            .unwrap_or_else(|(status, said)| panic!("it ended with {status}: {said}"))
    }

    /// Starts a command that may end before it listens: then says how it ended, and what it said.
    pub fn try_start(mut command: Command) -> Result<Self, (ExitStatus, String)> {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("vitrine starts");
        let stdout = collect(child.stdout.take().expect("piped"));
        let stderr = collect(child.stderr.take().expect("piped"));
        // From here on the process has an owner that ends it, whatever happens.
        let mut server = Self {
            child,
            address: SocketAddr::from(([127, 0, 0, 1], 0)),
            admin: None,
            stdout,
            stderr,
        };
        let none = server.address;
        let listens = |said: &str| {
            if said.contains("delivering to webhook endpoints")
                || said.contains("waiting for overrides to begin or end")
            {
                return Some(none);
            }
            let rest = said.split_once("listening on ")?.1;
            rest.split_once(", serving ")?.0.parse().ok()
        };
        let address = wait_for("the server's address", || {
            // In this order: what it said last is seen, too.
            let ended = server.child.try_wait().expect("a child");
            let address = listens(&server.stderr());
            address.map(Ok).or(ended.map(Err))
        });
        match address {
            Ok(address) => server.address = address,
            Err(status) => {
                server.wait_for_last_words();
                return Err((status, server.stderr()));
            }
        }
        // It says so before that.
        server.admin = server.stderr().lines().find_map(|line| {
            let (_, address) = line.split_once("admin port on ")?;
            address.split('"').next()?.parse().ok()
        });
        Ok(server)
    }

    /// Returns its standard output so far: the access log.
    pub fn stdout(&self) -> String {
        self.stdout.lock().expect("unpoisoned").clone()
    }

    /// Returns its standard error so far.
    pub fn stderr(&self) -> String {
        self.stderr.lock().expect("unpoisoned").clone()
    }

    /// Its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal by name, such as `TERM`.
    pub fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let killed = Command::new("kill").args(["-s", name, &id]).status();
        assert!(killed.expect("kill runs").success());
    }

    /// Waits for its end, and until all is read that it wrote; returns its exit code.
    pub fn wait(&mut self) -> Option<i32> {
        let ended = wait_for("the server's end", || {
            self.child.try_wait().expect("a child")
        });
        self.wait_for_last_words();
        ended.code()
    }

    /// Waits until all is read that a process wrote which has ended: those who read let go of it.
    fn wait_for_last_words(&self) {
        wait_for("its last words", || {
            let mut collected = [&self.stdout, &self.stderr].into_iter();
            collected
                .all(|said| Arc::strong_count(said) == 1)
                .then_some(())
        });
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

    /// Its admin port.
    pub fn admin(&self) -> SocketAddr {
        self.admin.expect("an admin port")
    }

    /// A request to its admin port.
    pub fn ask_admin(&self, method: &str, target: &str) -> Reply {
        let head = format!(
            "{method} {target} HTTP/1.1\r\nHost: vitrine.test\r\nConnection: close\r\n\r\n"
        );
        Reply::parse(&exchange(connect(self.admin()), head.as_bytes()), method)
    }

    /// Sends bytes and reads until the server closes.
    pub fn raw(&self, bytes: &[u8]) -> Vec<u8> {
        exchange(self.connect(), bytes)
    }

    /// A connection.
    pub fn connect(&self) -> TcpStream {
        connect(self.address)
    }

    /// A connection that stays open.
    pub fn keep_alive(&self) -> KeepAlive {
        KeepAlive::to(self.address)
    }

    /// A connection to its admin port that stays open.
    pub fn keep_alive_admin(&self) -> KeepAlive {
        KeepAlive::over(connect(self.admin()))
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

fn connect(address: SocketAddr) -> TcpStream {
    let socket = TcpStream::connect(address).expect("a connection");
    socket.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    socket
}

/// Sends bytes and reads until the server closes.
fn exchange(mut socket: TcpStream, bytes: &[u8]) -> Vec<u8> {
    // The server may answer and close before it has read all of it.
    let _ = socket.write_all(bytes);
    let mut answer = Vec::new();
    let _ = socket.read_to_end(&mut answer);
    answer
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
    /// Connects.
    pub fn to(address: SocketAddr) -> Self {
        Self::try_to(address).expect("a connection")
    }

    /// Connects; `None` if nothing listens.
    pub fn try_to(address: SocketAddr) -> Option<Self> {
        let socket = TcpStream::connect(address).ok()?;
        socket.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        Some(Self::over(socket))
    }

    fn over(socket: TcpStream) -> Self {
        Self {
            reader: BufReader::new(socket.try_clone().expect("a socket")),
            socket,
        }
    }

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

    /// Ends what is sent; answers can still be read.
    pub fn finish(&self) {
        self.socket.shutdown(Shutdown::Write).expect("shut down");
    }

    /// Resets the connection.
    pub fn reset(self) {
        let socket = SockRef::from(&self.socket);
        socket
            .set_linger(Some(Duration::ZERO))
            .expect("an option of the socket");
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
