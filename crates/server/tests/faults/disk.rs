//! A disk that fails when a test says so: `io_faults.c` between a program and the system.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::random::Random;

/// Error of a failing call: its name, and its number in the system.
pub type Errno = (&'static str, &'static str);

pub const BROKEN: Errno = ("EIO", "5");
pub const FULL: Errno = ("ENOSPC", "28");
pub const NO_DESCRIPTORS: Errno = ("EMFILE", "24");

/// Calls that count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Calls {
    /// Calls that write.
    Writes,
    /// Calls that use a file in any way.
    All,
    /// Calls that open a file.
    Opens,
    /// Calls that lock a part of a file.
    Locks,
    /// Calls that lock or unlock a part of a file. One lock that isn't given back is held until the file is
    /// closed, and nobody is told.
    LocksAndUnlocks,
}

/// The library that lets calls fail, compiled once.
fn library() -> &'static Path {
    static LIBRARY: OnceLock<(TempDir, PathBuf)> = OnceLock::new();
    let (_, path) = LIBRARY.get_or_init(|| {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("io_faults.so");
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/faults/io_faults.c");
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o"]);
        compiler.arg(&path).args([source, "-ldl"]);
        assert!(compiler.status().expect("cc runs").success());
        (directory, path)
    });
    path
}

/// The disk of some programs, as far as paths begin in one way.
pub struct Disk {
    under: PathBuf,
    log: PathBuf,
    switch: PathBuf,
    calls: Calls,
}

impl Disk {
    /// A disk that fails below `under`. Its own files go to `beside`.
    pub fn new(under: &Path, beside: &Path, calls: Calls) -> Self {
        Self {
            under: under.to_owned(),
            log: beside.join("faults.log"),
            switch: beside.join("faults.switch"),
            calls,
        }
    }

    /// The program is to use this disk, which fails once it is told to.
    pub fn carry(&self, command: &mut Command) {
        command
            .env("LD_PRELOAD", library())
            .env("IO_FAULTS_UNDER", &self.under)
            .env("IO_FAULTS_LOG", &self.log)
            .env("IO_FAULTS_SWITCH", &self.switch);
        if self.calls != Calls::Writes {
            command.env("IO_FAULTS_READS", "1");
        }
        match self.calls {
            Calls::Opens => drop(command.env("IO_FAULTS_ONLY", "open")),
            Calls::Locks | Calls::LocksAndUnlocks => {
                let is_all = self.calls == Calls::LocksAndUnlocks;
                command.env("IO_FAULTS_LOCKS", if is_all { "all" } else { "some" });
                command.env("IO_FAULTS_ONLY", "fcntl");
            }
            Calls::Writes | Calls::All => {}
        }
    }

    /// From now on calls fail: `which` is `nth N`, `from N` or `percent N SEED`.
    pub fn fail(&self, which: &str, error: Errno) {
        // In one step: nobody is to see half of it.
        let whole = self.switch.with_extension("new");
        std::fs::write(&whole, format!("{} {which}", error.1)).expect("a file");
        std::fs::rename(whole, &self.switch).expect("a switch");
    }

    /// The disk is well again.
    pub fn mend(&self) {
        std::fs::remove_file(&self.switch).expect("it failed");
    }

    /// The calls that failed, one a line.
    pub fn failed(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// The same; then it forgets them.
    pub fn take_failed(&self) -> String {
        let failed = self.failed();
        let _ = std::fs::remove_file(&self.log);
        failed
    }
}

/// Returns true if all cases are to be tried, not just a random part.
pub fn is_thorough() -> bool {
    std::env::var("VITRINE_FAULTS").is_ok_and(|value| value == "all")
}

/// 1, 2, 3 and so on; or some of them, `apart` on the average, where a test has no time for all.
pub fn numbers(test: &str, apart: u64) -> impl Iterator<Item = u64> {
    let mut random = (!is_thorough()).then(|| Random::seeded(test));
    std::iter::successors(Some(1), move |number| {
        let step = random
            .as_mut()
            .map_or(1, |random| 1 + random.next() % (2 * apart - 1));
        Some(number + step)
    })
}

/// Waits for a server to write its snapshot file: it rests fifty times as long as the last write took, and a busy
/// machine makes writes slow.
pub fn wait_for_write(what: &str, mut is_written: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(900);
    while !is_written() {
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
