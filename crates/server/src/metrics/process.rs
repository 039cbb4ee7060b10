//! Figures of the process, from the system, with the names that Prometheus's client libraries use.
//!
//! A figure that the system doesn't have gets no sample.

use rustix::process::{Resource, getrlimit};
use rustix::time::{ClockId, clock_gettime};

use super::text::Exposition;

/// Adds the metrics of the process. Reads a few files of `/proc`.
pub fn describe(into: &mut Exposition) {
    let spent = clock_gettime(ClockId::ProcessCPUTime);
    into.counter(
        "process_cpu_seconds_total",
        "Processor time, user and system, in seconds.",
        spent.tv_sec as f64 + spent.tv_nsec as f64 / 1e9,
    );
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field = |name: &str| -> Option<u64> {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_ascii_whitespace().next()?.parse().ok()
    };
    for (name, help, value) in [
        (
            "process_resident_memory_bytes",
            "Resident memory, in bytes.",
            field("VmRSS:").map(|kilobytes| kilobytes * 1024),
        ),
        (
            "process_virtual_memory_bytes",
            "Virtual memory, in bytes.",
            field("VmSize:").map(|kilobytes| kilobytes * 1024),
        ),
        (
            "process_threads",
            "Threads of the process.",
            field("Threads:"),
        ),
        ("process_open_fds", "Open descriptors.", open_descriptors()),
        (
            "process_max_fds",
            "Maximum number of open descriptors.",
            getrlimit(Resource::Nofile).current,
        ),
    ] {
        if let Some(value) = value {
            into.gauge(name, help, value);
        }
    }
}

fn open_descriptors() -> Option<u64> {
    let found = std::fs::read_dir("/proc/self/fd").ok()?.count();
    // One of them is the directory itself, opened for reading.
    Some(found.saturating_sub(1) as u64)
}
