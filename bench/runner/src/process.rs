//! Processes of servers: started on one core, watched through `/proc`, ended whatever happens.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, kill_process_group};

/// Time that a server may take to end when it is told to; then it is killed.
const PATIENCE: Duration = Duration::from_secs(10);

/// A server's process with all its children. Dropping it ends them.
pub struct Process {
    name: String,
    child: Child,
    log: PathBuf,
    ends_at: Signal,
}

/// Start of a process.
pub struct Start<'a> {
    /// Name for people; its log is `NAME.log`.
    pub name: &'a str,
    /// The cores that it and its children run on, as `taskset` takes them.
    pub cores: &'a str,
    /// User that runs it; the runner's own without.
    pub user: Option<&'a str>,
    /// The folder of its log.
    pub folder: &'a Path,
}

impl Start<'_> {
    /// A command that runs `program` as described. It dies with the runner, even if that is killed.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "INT"]);
        if let Some(user) = self.user {
            command.args(["--reuid", user, "--regid", user, "--init-groups"]);
        }
        command.args(["taskset", "--cpu-list", self.cores]);
        command.arg(program);
        command
    }

    /// Starts the command with its output in the log. `NAME.out` gets standard output.
    ///
    /// # Errors
    /// If it can't be started.
    pub fn spawn(&self, mut command: Command, ends_at: Signal) -> Result<Process> {
        let log = self.folder.join(format!("{}.log", self.name));
        let out = self.folder.join(format!("{}.out", self.name));
        let create = |path: &Path| {
            File::create(path).with_context(|| format!("can't write {}", path.display()))
        };
        let child = command
            .stdin(Stdio::null())
            .stdout(create(&out)?)
            .stderr(create(&log)?)
            // A group of its own: Ctrl-C reaches the runner alone, which ends all in order.
            .process_group(0)
            .spawn()
            .with_context(|| format!("can't start {}: {command:?}", self.name))?;
        Ok(Process {
            name: self.name.to_owned(),
            child,
            log,
            ends_at,
        })
    }
}

impl Process {
    /// Its id; `setpriv` and `taskset` have become the server, so it is the server's own.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns its standard error so far.
    pub fn said(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Ends it; gives all that it has said.
    pub fn end(self) -> String {
        let log = self.log.clone();
        drop(self);
        std::fs::read_to_string(log).unwrap_or_default()
    }

    /// Fails if the process has ended by itself.
    ///
    /// # Errors
    /// With the end of its log.
    pub fn must_run(&mut self) -> Result<()> {
        if let Some(status) = self.child.try_wait()? {
            let said = self.said();
            let from = said.len().saturating_sub(2_000);
            let said = said.get(from..).unwrap_or(&said);
            bail!("{} ended with {status}; it said:\n{said}", self.name);
        }
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let group = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        let Some(group) = group else { return };
        let _ = kill_process_group(group, self.ends_at);
        let told = Instant::now();
        while told.elapsed() < PATIENCE && matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(5));
        }
        // What is left of the group, children without their parent included.
        let _ = kill_process_group(group, Signal::KILL);
        let _ = self.child.wait();
    }
}

/// One process as `/proc` shows it.
struct Stat {
    parent: u32,
    /// User and system time of it and of those of its children that have ended, in clock ticks.
    ticks: u64,
}

/// The processes below `roots`, these included.
fn tree(roots: &[u32]) -> Result<HashMap<u32, Stat>> {
    let mut all = HashMap::new();
    for entry in std::fs::read_dir("/proc").context("/proc can't be read: is this Linux?")? {
        let id = entry?.file_name();
        let Some(id) = id.to_str().and_then(|id| id.parse::<u32>().ok()) else {
            continue;
        };
        // It may have ended meanwhile.
        if let Some(stat) = stat(id) {
            all.insert(id, stat);
        }
    }
    let parents: HashMap<u32, u32> = all.iter().map(|(id, stat)| (*id, stat.parent)).collect();
    all.retain(|id, _| {
        let mut id = *id;
        loop {
            if roots.contains(&id) {
                return true;
            }
            match parents.get(&id) {
                Some(parent) => id = *parent,
                None => return false,
            }
        }
    });
    Ok(all)
}

fn stat(id: u32) -> Option<Stat> {
    let text = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name stands in parentheses and may hold anything; what follows it is fields 3 and on.
    let fields: Vec<&str> = text.get(text.rfind(')')? + 2..)?.split(' ').collect();
    let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
    Some(Stat {
        parent: u32::try_from(number(1)?).ok()?,
        ticks: number(11)? + number(12)? + number(13)? + number(14)?,
    })
}

/// User and system time that the processes below `roots` have used.
///
/// # Errors
/// If `/proc` can't be read.
pub fn cpu(roots: &[u32]) -> Result<Duration> {
    let ticks: u64 = tree(roots)?.values().map(|stat| stat.ticks).sum();
    let nanoseconds = ticks * (1_000_000_000 / rustix::param::clock_ticks_per_second());
    Ok(Duration::from_nanos(nanoseconds))
}

/// User and system time that the threads of one process have used. It is exact, unlike that of `cpu`, but lacks threads
/// that have ended.
///
/// # Errors
/// If there is no such process, or the kernel doesn't count.
pub fn cpu_of_threads(id: u32) -> Result<Duration> {
    let mut nanoseconds = 0;
    for thread in std::fs::read_dir(format!("/proc/{id}/task"))? {
        // It may have ended meanwhile.
        let Ok(stat) = std::fs::read_to_string(thread?.path().join("schedstat")) else {
            continue;
        };
        let first = stat.split(' ').next().unwrap_or_default();
        nanoseconds += first.parse::<u64>().context("no time of a thread")?;
    }
    Ok(Duration::from_nanos(nanoseconds))
}

/// Memory of one process that is its own or of mapped files, MiB.
#[derive(Debug, Clone, Copy)]
pub struct Resident {
    /// Now.
    pub now: f64,
    /// The most since its start, or since `forget_peak`.
    pub peak: f64,
}

/// Returns the memory of one process.
///
/// # Errors
/// If there is no such process.
pub fn resident(id: u32) -> Result<Resident> {
    let status = std::fs::read_to_string(format!("/proc/{id}/status"))?;
    let mebibytes = |name: &str| -> Result<f64> {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let value = line.and_then(|line| line.split_whitespace().next());
        let value = value.with_context(|| format!("the kernel says no {name}"))?;
        Ok(value.parse::<f64>()? / 1024.0)
    };
    Ok(Resident {
        now: mebibytes("VmRSS:")?,
        peak: mebibytes("VmHWM:")?,
    })
}

/// Lets the kernel begin anew with the most that the process held.
///
/// # Errors
/// If the process isn't the runner's own.
pub fn forget_peak(id: u32) -> Result<()> {
    std::fs::write(format!("/proc/{id}/clear_refs"), "5").context("the peak can't be forgotten")
}

/// Memory of the processes below `roots` in MiB: resident, what they share counted once.
///
/// # Errors
/// If `/proc` can't be read.
pub fn memory(roots: &[u32]) -> Result<f64> {
    let mut kibibytes = 0.0;
    for id in tree(roots)?.keys() {
        let rollup = std::fs::read_to_string(format!("/proc/{id}/smaps_rollup"));
        let rollup = rollup.unwrap_or_default();
        let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:"));
        let value = line.and_then(|line| line.split_whitespace().next());
        kibibytes += value.and_then(|kib| kib.parse::<f64>().ok()).unwrap_or(0.0);
    }
    Ok(kibibytes / 1024.0)
}
