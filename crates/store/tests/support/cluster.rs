//! A PostgreSQL of a test's own, for what one that others use isn't to suffer: to be stopped, to be slow, to ask for
//! passwords, to have a replica. And a PgBouncer.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

/// A server and all its databases. It ends with its owner.
#[derive(Debug)]
pub struct Cluster {
    directory: TempDir,
    pub port: u16,
}

impl Cluster {
    /// Starts one whose superuser is `vitrine`, without a password. `settings` are lines of its configuration.
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

    /// A file beside the data, which the server can read.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// A file in the data directory.
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

    /// One of PostgreSQL's programs on the data directory.
    fn program(&self, name: &str, arguments: &[&str]) -> Command {
        let mut command = as_nobody(&programs().join(name));
        command.arg("--pgdata").arg(self.data()).args(arguments);
        command
            .current_dir(self.directory.path())
            .stdout(Stdio::null());
        command
    }

    /// Starts the server where it was stopped.
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

    /// Lets the server read its configuration again.
    pub fn reload(&self) {
        let told = self.program("pg_ctl", &["--silent", "reload"]).status();
        assert!(told.expect("pg_ctl runs").success());
    }

    /// The address of a database.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://vitrine@127.0.0.1:{}/{database}", self.port)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A PgBouncer in transaction mode. It ends with its owner.
#[derive(Debug)]
pub struct Bouncer {
    process: Child,
    pub port: u16,
    _directory: TempDir,
}

impl Bouncer {
    /// Starts one before the server on this port, with so many connections to each database.
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

    /// The same database through this one.
    pub fn url(&self, url: &str) -> String {
        let database = url.rsplit('/').next().expect("a database");
        format!("postgres://vitrine@127.0.0.1:{}/{database}", self.port)
    }
}

impl Drop for Bouncer {
    fn drop(&mut self) {
        // `runuser` passes a signal on that it can catch.
        let told = Command::new("kill")
            .arg(self.process.id().to_string())
            .status();
        assert!(told.is_ok());
        let _ = self.process.wait();
    }
}

/// Whether PostgreSQL's programs and PgBouncer are here. Where they aren't, says so; where they must be, fails.
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

/// Where the newest release's programs are.
fn programs() -> PathBuf {
    let releases = fs::read_dir("/usr/lib/postgresql").expect("Debian's postgresql");
    let number = |path: &PathBuf| path.file_name()?.to_str()?.parse::<u32>().ok();
    let paths = releases.map(|entry| entry.expect("an entry").path());
    paths.max_by_key(number).expect("a release").join("bin")
}

/// PostgreSQL and PgBouncer refuse to run as root.
fn as_nobody(program: &Path) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("runuser");
    command.args(["-u", "nobody", "--"]).arg(program);
    command
}

fn is_root() -> bool {
    let output = Command::new("id").arg("-u").output().expect("id runs");
    output.stdout == b"0\n"
}

/// A port that nobody listens on at this moment.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}
