//! A Redis of a test's own, to be killed, stopped and flushed.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use super::{skipped, wait_for};

/// A running Redis; it ends with its owner.
pub struct Redis {
    child: Child,
    address: SocketAddr,
    options: Vec<String>,
    directory: TempDir,
}

impl Redis {
    /// Starts one on a free port; where there is no `redis-server`, says that this was skipped.
    pub fn start(what: &str) -> Option<Self> {
        Self::start_with(what, &[])
    }

    /// Starts one with more options.
    pub fn start_with(what: &str, options: &[&str]) -> Option<Self> {
        let found = Command::new("redis-server").arg("--version").output();
        if found.is_err() {
            assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "no Redis");
            skipped(&format!("{what}, for want of redis-server"));
            return None;
        }
        let options: Vec<String> = options.iter().map(|&option| option.to_owned()).collect();
        // The port may be taken by another process before Redis takes it: then the next is tried.
        let started = wait_for("a Redis", || {
            let address = free_address();
            let directory = tempfile::tempdir().expect("a temporary directory");
            let mut redis = Self {
                child: spawn(address, &options, &directory),
                address,
                options: options.clone(),
                directory,
            };
            redis.is_up().then_some(redis)
        });
        Some(started)
    }

    /// The port on which it listens, or did.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Returns the address that it listens on, or did.
    pub fn url(&self) -> String {
        format!("redis://{}", self.address)
    }

    /// Sends it a signal by name, such as `STOP`.
    pub fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &id]).status();
        assert!(sent.expect("kill runs").success());
    }

    /// Kills it, at once.
    pub fn kill(&mut self) {
        self.child.kill().expect("a process");
        self.child.wait().expect("its end");
    }

    /// Starts it anew at the same address; it remembers nothing.
    pub fn restart(&mut self) {
        wait_for("the Redis to come back", || {
            self.child = spawn(self.address, &self.options, &self.directory);
            self.is_up().then_some(())
        });
    }

    /// Sends it a command in its plain form; returns the first line of the answer.
    pub fn ask(&self, command: &str) -> String {
        let mut socket = TcpStream::connect(self.address).expect("a connection");
        let line = format!("{command}\r\n");
        socket.write_all(line.as_bytes()).expect("written");
        let mut answer = [0; 256];
        let read = socket.read(&mut answer).expect("an answer");
        let answer = String::from_utf8_lossy(&answer[..read]);
        answer.lines().next().unwrap_or_default().to_owned()
    }

    /// Waits until it takes connections, or has ended.
    fn is_up(&mut self) -> bool {
        wait_for("Redis to listen or to end", || {
            let ended = self.child.try_wait().expect("a child").is_some();
            let listens = TcpStream::connect(self.address).is_ok();
            (ended || listens).then_some(listens && !ended)
        })
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn free_address() -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    listener.local_addr().expect("its address")
}

fn spawn(address: SocketAddr, options: &[String], directory: &TempDir) -> Child {
    let port = address.port().to_string();
    let speaks_tls = options.iter().any(|option| option.starts_with("--tls-"));
    let port_option = if speaks_tls { "--tls-port" } else { "--port" };
    Command::new("redis-server")
        .args(["--bind", "127.0.0.1", port_option, &port])
        .args(["--save", "", "--appendonly", "no"])
        .args(options)
        .current_dir(directory.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("redis-server starts")
}
