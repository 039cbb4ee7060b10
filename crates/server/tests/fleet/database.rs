//! A PostgreSQL of a test's own, on a free loopback port or in a network namespace: it can be killed, stopped and cut
//! off, and ends with its owner.

use std::fs;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tempfile::TempDir;

use crate::harness::{skipped, text, wait_for};

/// Returns Debian's folder of the server's programs, of the newest version.
fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?;
    let directories = versions.filter_map(|entry| Some(entry.ok()?.path().join("bin")));
    let mut found: Vec<_> = directories
        .filter(|directory| directory.join("initdb").exists())
        .collect();
    found.sort();
    found.pop()
}

/// Returns true if there is a PostgreSQL for tests; if not, says that they are skipped, or fails if they must
/// run.
pub fn is_there() -> bool {
    let is_there = programs().is_some();
    if !is_there {
        assert!(
            std::env::var_os("CI").is_none(),
            "no PostgreSQL on a machine that must have one: see ci/install"
        );
        skipped("a test of a fleet: there is no PostgreSQL (Debian's package `postgresql`)");
    }
    is_there
}

/// A network namespace with a cable to it.
struct Namespace {
    name: String,
    /// The end of the cable that is here.
    link: String,
    /// The address at the other end.
    address: String,
}

impl Namespace {
    /// `None` where this process may make none.
    fn new() -> Option<Self> {
        let id = std::process::id() % 50_000;
        let name = format!("vitrine-{id}");
        let (link, far) = (format!("vt{id}a"), format!("vt{id}b"));
        let (third, fourth) = (id / 60 % 256, id % 60 * 4);
        let here = format!("10.213.{third}.{}", fourth + 1);
        let address = format!("10.213.{third}.{}", fourth + 2);
        if !ip(&["netns", "add", &name]) {
            return None;
        }
        let namespace = Self {
            name: name.clone(),
            link: link.clone(),
            address: address.clone(),
        };
        let (here, there) = (format!("{here}/30"), format!("{address}/30"));
        let inside = ["netns", "exec", &name, "ip"];
        let steps: [&[&str]; 6] = [
            &["link", "add", &link, "type", "veth", "peer", "name", &far],
            &["link", "set", &far, "netns", &name],
            &["addr", "add", &here, "dev", &link],
            &["link", "set", &link, "up"],
            &[&inside[..], &["addr", "add", &there, "dev", &far]].concat(),
            &[&inside[..], &["link", "set", &far, "up"]].concat(),
        ];
        steps.iter().all(|step| ip(step)).then_some(namespace)
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = ip(&["link", "del", &self.link]);
        let _ = ip(&["netns", "del", &self.name]);
    }
}

fn ip(arguments: &[&str]) -> bool {
    let mut command = Command::new("ip");
    let run = command.args(arguments).stderr(Stdio::null()).status();
    run.is_ok_and(|status| status.success())
}

/// A running database.
pub struct Database {
    server: Option<Child>,
    /// A fleet, its database and its clients take all of a small machine: one at a time.
    _turn: MutexGuard<'static, ()>,
    port: u16,
    // Before the namespace: it has processes in it.
    directory: TempDir,
    namespace: Option<Namespace>,
}

impl Database {
    /// On a loopback port.
    pub fn new() -> Self {
        Self::start(None)
    }

    /// At the other end of a cable that can be pulled; `None`, out loud, where this process may not lay one.
    pub fn behind_a_cable() -> Option<Self> {
        let namespace = Namespace::new();
        if namespace.is_none() {
            skipped("pulling the database's cable: this process may not make network namespaces");
        }
        Some(Self::start(Some(namespace?)))
    }

    fn start(namespace: Option<Namespace>) -> Self {
        static TURN: Mutex<()> = Mutex::new(());
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let directory = tempfile::tempdir().expect("a directory");
        // It refuses to run as root; whoever it runs as must own the directory.
        if is_root() {
            run(Command::new("chown").arg("nobody").arg(directory.path()));
        }
        let mut database = Self {
            server: None,
            _turn: turn,
            port: free_port(),
            directory,
            namespace,
        };
        let data = database.data();
        run(as_server("initdb")
            .arg("--pgdata")
            .arg(&data)
            .args(["--username", "vitrine", "--auth", "trust"])
            .args(["--encoding", "UTF8", "--locale", "C"]));
        let rules = data.join("pg_hba.conf");
        let allowed = fs::read_to_string(&rules).expect("the rules");
        fs::write(&rules, allowed + "host all all 10.213.0.0/16 trust\n").expect("the rules");
        database.run();
        database
    }

    fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    fn host(&self) -> &str {
        match &self.namespace {
            Some(namespace) => &namespace.address,
            None => "127.0.0.1",
        }
    }

    /// Returns the address that it listens on.
    pub fn address(&self) -> String {
        format!("{}:{}", self.host(), self.port)
    }

    /// The store's address.
    pub fn url(&self) -> String {
        format!("postgres://vitrine@{}/postgres", self.address())
    }

    /// Starts the server, and waits until it answers.
    pub fn run(&mut self) {
        wait_for("the database", || {
            // Where processes of one that was killed are still there, it ends at once.
            let server = self.server.as_mut();
            if server.is_none_or(|server| server.try_wait().expect("a child").is_some()) {
                self.server = Some(self.spawn());
            }
            self.sql("select 1").status.success().then_some(())
        });
    }

    fn spawn(&self) -> Child {
        let log = fs::File::create(self.directory.path().join("log")).expect("a log");
        let mut command = as_server("postgres");
        if let Some(namespace) = &self.namespace {
            let mut inside = Command::new("ip");
            inside.args(["netns", "exec", &namespace.name]);
            inside.arg(command.get_program()).args(command.get_args());
            command = inside;
        }
        command
            .arg("-D")
            .arg(self.data())
            .args(["-c", &format!("listen_addresses={}", self.host())])
            .args(["-c", &format!("port={}", self.port)])
            .args(["-c", "unix_socket_directories="])
            // The machine isn't what fails here.
            .args(["-c", "fsync=off"])
            .stdout(log.try_clone().expect("a log"))
            .stderr(log);
        command.spawn().expect("postgres starts")
    }

    /// Runs a statement.
    pub fn sql(&self, statement: &str) -> Output {
        let programs = programs().expect("PostgreSQL");
        Command::new(programs.join("psql"))
            .args([&self.url(), "--no-psqlrc", "--tuples-only", "--no-align"])
            .args(["--command", statement])
            .env("PGCONNECT_TIMEOUT", "10")
            .output()
            .expect("psql runs")
    }

    /// The processes of the server, its own first.
    fn processes(&self) -> Vec<String> {
        let file = fs::read_to_string(self.data().join("postmaster.pid")).unwrap_or_default();
        let Some(first) = file.lines().next().map(str::to_owned) else {
            return Vec::new();
        };
        let children = Command::new("ps")
            .args(["-o", "pid=", "--ppid", &first])
            .output();
        let children = text(&children.expect("ps runs").stdout);
        let children = children.split_whitespace().map(str::to_owned);
        std::iter::once(first.clone()).chain(children).collect()
    }

    fn signal(&self, signal: &str) {
        let _ = Command::new("kill")
            .args(["-s", signal])
            .args(self.processes())
            .stderr(Stdio::null())
            .status();
    }

    /// Kills all of it at once.
    pub fn kill(&mut self) {
        self.signal("KILL");
        if let Some(mut server) = self.server.take() {
            let _ = server.wait();
        }
        let _ = fs::remove_file(self.data().join("postmaster.pid"));
    }

    /// Kills it and starts it again, with a copy of its files for [`fail_over`](Self::fail_over).
    pub fn save(&mut self) {
        self.kill();
        run(Command::new("cp")
            .arg("-a")
            .args([self.data(), self.saved()]));
        self.run();
    }

    /// Kills it and starts the copy in its place, as a replica that had fallen behind: what was written since is lost.
    pub fn fail_over(&mut self) {
        self.kill();
        fs::remove_dir_all(self.data()).expect("removed");
        fs::rename(self.saved(), self.data()).expect("renamed");
        self.run();
    }

    fn saved(&self) -> PathBuf {
        self.directory.path().join("saved")
    }

    /// Stops all of it: connections stay open, and nothing answers.
    pub fn stop(&self) {
        self.signal("STOP");
    }

    /// Lets it go on.
    pub fn go_on(&self) {
        self.signal("CONT");
    }

    /// Ends the connections of everybody else.
    pub fn end_connections(&self) {
        let ended = self.sql(
            "select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid()",
        );
        assert!(ended.status.success(), "{}", text(&ended.stderr));
    }

    /// Pulls the cable, or puts it back.
    pub fn cable(&self, plugged: bool) {
        let link = &self.namespace.as_ref().expect("a cable").link;
        let state = if plugged { "up" } else { "down" };
        assert!(ip(&["link", "set", link, state]));
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        self.signal("CONT");
        self.kill();
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// One of the server's programs, as somebody who isn't root.
fn as_server(program: &str) -> Command {
    let program = programs().expect("PostgreSQL").join(program);
    if !is_root() {
        return Command::new(program);
    }
    // Becomes the program, unlike `runuser`, which stays in between and stops where the program is stopped.
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid=nobody", "--regid=nogroup", "--clear-groups"])
        .arg(program);
    command
}

fn run(command: &mut Command) {
    let output = command.output().expect("it runs");
    assert!(output.status.success(), "{}", text(&output.stderr));
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}
