//! A PostgreSQL server for one test, which the test can stop, slow down, give passwords or a replica. And a PgBouncer.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

/// A server and all its databases, stopped when this is dropped.
#[derive(Debug)]
pub struct Cluster {
    directory: TempDir,
    pub port: u16,
}

impl Cluster {
    /// Starts a server with the superuser `vitrine` without a password. `settings` are lines of its configuration.
    pub fn start(settings: &str) -> Self {
        let cluster = Self::new();
        let mut made = cluster.program(
            "initdb",
            &[
                "--username=vitrine",
                "--auth=trust",
                "--encoding=UTF8",
                "--locale=C",
            ],
        );
        assert!(made.status().expect("initdb runs").success());
        cluster.configure(settings);
        cluster.begin();
        cluster
    }

    /// Starts a replica of this one.
    pub fn replica(&self) -> Self {
        let replica = Self::new();
        let from = format!("host=127.0.0.1 port={} user=vitrine", self.port);
        let mut copied = replica.program(
            "pg_basebackup",
            &[
                "--write-recovery-conf",
                "--checkpoint=fast",
                "--dbname",
                &from,
            ],
        );
        assert!(
            copied
                .args(["--wal-method=stream"])
                .status()
                .expect("it runs")
                .success()
        );
        replica.configure("");
        replica.begin();
        replica
    }

    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        if is_root() {
            let owned = Command::new("chown")
                .arg("nobody")
                .arg(directory.path())
                .status();
            assert!(owned.expect("chown runs").success());
        }
        Self {
            directory,
            port: free_port(),
        }
    }

    fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    /// Returns the path of a file beside the data, which the server can read.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Writes a file in the data directory.
    pub fn write(&self, name: &str, content: &str) {
        fs::write(self.data().join(name), content).expect("a file");
    }

    fn configure(&self, settings: &str) {
        let file = self.data().join("postgresql.conf");
        let mut text = fs::read_to_string(&file).expect("a configuration");
        let port = self.port;
        text.push_str(&format!("\nlisten_addresses = '127.0.0.1'\nport = {port}\nunix_socket_directories = ''\nfsync = off\n{settings}\n"));
        fs::write(file, text).expect("written");
    }

    /// Returns a command of PostgreSQL on the data directory.
    fn program(&self, name: &str, arguments: &[&str]) -> Command {
        let mut command = as_nobody(&programs().join(name));
        command.arg("--pgdata").arg(self.data()).args(arguments);
        command
            .current_dir(self.directory.path())
            .stdout(Stdio::null());
        command
    }

    /// Starts the server after it was stopped.
    pub fn begin(&self) {
        let log = self.directory.path().join("log");
        let started = self
            .program("pg_ctl", &["--silent", "--wait", "start", "--log"])
            .arg(log)
            .status();
        assert!(started.expect("pg_ctl runs").success());
    }

    /// Stops the server at once, as a crash would.
    pub fn stop(&self) {
        let stopped = self
            .program("pg_ctl", &["--silent", "--mode=immediate", "stop"])
            .stderr(Stdio::null())
            .status();
        assert!(stopped.is_ok());
    }

    /// Makes the server reload its configuration.
    pub fn reload(&self) {
        let told = self.program("pg_ctl", &["--silent", "reload"]).status();
        assert!(told.expect("pg_ctl runs").success());
    }

    /// Returns the address of a database.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://vitrine@127.0.0.1:{}/{database}", self.port)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A PgBouncer in transaction mode, stopped when this is dropped.
#[derive(Debug)]
pub struct Bouncer {
    process: Child,
    pub port: u16,
    _directory: TempDir,
}

impl Bouncer {
    /// Starts a PgBouncer in front of the server on this port, with this number of connections to each database.
    pub fn start(server_port: u16, pool_size: u32) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let port = free_port();
        let file = directory.path().join("pgbouncer.ini");
        let settings = format!(
            "[databases]\n* = host=127.0.0.1 port={server_port} user=vitrine\n[pgbouncer]\n\
             listen_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n\
             pool_mode = transaction\ndefault_pool_size = {pool_size}\nmax_client_conn = 200\n"
        );
        fs::write(&file, settings).expect("a file");
        if is_root() {
            let owned = Command::new("chown")
                .args(["-R", "nobody"])
                .arg(directory.path())
                .status();
            assert!(owned.expect("chown runs").success());
        }
        let mut command = as_nobody(Path::new("/usr/sbin/pgbouncer"));
        command.arg("-q").arg(&file).current_dir(directory.path());
        let process = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("pgbouncer runs");
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        Self {
            process,
            port,
            _directory: directory,
        }
    }

    /// Returns the address of the same database through PgBouncer.
    pub fn url(&self, url: &str) -> String {
        let database = url.rsplit('/').next().expect("a database");
        format!("postgres://vitrine@127.0.0.1:{}/{database}", self.port)
    }
}

impl Drop for Bouncer {
    fn drop(&mut self) {
        assert!(self.process.kill().is_ok() && self.process.wait().is_ok());
    }
}

/// Returns whether PostgreSQL and PgBouncer are installed. If they aren't, prints it; if they must be, fails.
pub fn is_installed() -> bool {
    if std::env::var("VITRINE_TEST_POSTGRES").is_ok() {
        return true;
    }
    let must_be = std::env::var("CI").is_ok_and(|ci| ci == "true");
    assert!(!must_be, "run this by ci/with-services");
    let line = "SKIPPED: what needs PostgreSQL's programs: run it by ci/with-services\n";
    std::io::Write::write_all(&mut std::io::stderr(), line.as_bytes()).expect("written");
    false
}

/// Returns the directory of the newest release's programs.
fn programs() -> PathBuf {
    let releases = fs::read_dir("/usr/lib/postgresql").expect("Debian's postgresql");
    let number = |path: &PathBuf| path.file_name()?.to_str()?.parse::<u32>().ok();
    let paths = releases.map(|entry| entry.expect("an entry").path());
    paths.max_by_key(number).expect("a release").join("bin")
}

/// Returns a command that doesn't run as root, which PostgreSQL and PgBouncer refuse.
fn as_nobody(program: &Path) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    // Becomes the program, unlike `runuser`.
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid=nobody", "--regid=nogroup", "--clear-groups"])
        .arg(program);
    command
}

fn is_root() -> bool {
    let output = Command::new("id").arg("-u").output().expect("id runs");
    output.stdout == b"0\n"
}

/// Returns a port that is free at this moment.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}
