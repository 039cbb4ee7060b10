//! A limit on the memory of a server, and how much memory it has.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::harness::skipped;

/// A limit on memory; what it is made of is removed at the end.
pub struct MemoryLimit {
    bytes: u64,
    group: Option<PathBuf>,
}

impl MemoryLimit {
    /// A cgroup of so many bytes below this process's own.
    pub fn new(bytes: u64) -> Self {
        let group = own_groups().into_iter().find_map(|(own, limit)| {
            static NEXT: AtomicUsize = AtomicUsize::new(0);
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let group = own.join(format!("vitrine-attack-{}-{number}", std::process::id()));
            fs::create_dir(&group).ok()?;
            // Without the controller the file isn't there.
            if fs::write(group.join(limit), bytes.to_string()).is_err() {
                let _ = fs::remove_dir(&group);
                return None;
            }
            Some(group)
        });
        if group.is_none() {
            skipped(
                "a memory cgroup can't be made; the server gets a limit on its data segment instead",
            );
        }
        Self { bytes, group }
    }

    /// A command under the limit.
    pub fn command(&self, command: &Command) -> Command {
        let limit = match &self.group {
            Some(group) => format!("echo $$ > {}", group.join("cgroup.procs").display()),
            None => format!("ulimit -d {}", self.bytes / 1024),
        };
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("{limit} && exec \"$@\""), "sh"]);
        shell.arg(command.get_program()).args(command.get_args());
        let set = command.get_envs();
        shell.envs(set.filter_map(|(name, value)| Some((name, value?))));
        shell
    }
}

impl Drop for MemoryLimit {
    fn drop(&mut self) {
        // It is empty once the server has ended, which comes first.
        if let Some(group) = &self.group {
            let _ = fs::remove_dir(group);
        }
    }
}

/// Directories of this process's memory cgroups, with the files that limit: version 1, version 2.
fn own_groups() -> Vec<(PathBuf, &'static str)> {
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let group = |line: &str| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?.trim_start_matches('/'));
        if controllers.split(',').any(|one| one == "memory") {
            let directory = Path::new("/sys/fs/cgroup/memory").join(path);
            return Some((directory, "memory.limit_in_bytes"));
        }
        let directory = Path::new("/sys/fs/cgroup").join(path);
        controllers.is_empty().then_some((directory, "memory.max"))
    };
    own.lines().filter_map(group).collect()
}

/// Resident memory of a process now and at most, in bytes.
pub fn resident(process: u32) -> (u64, u64) {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let of = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        let number = line.trim_start_matches(':').trim().split(' ').next()?;
        Some(number.parse::<u64>().ok()? * 1024)
    };
    (of("VmRSS").unwrap_or(0), of("VmHWM").unwrap_or(0))
}

/// Begins the measuring of the most anew.
pub fn forget_peak(process: u32) {
    let _ = fs::write(format!("/proc/{process}/clear_refs"), "5");
}
