//! Figures of the process, from the system.

use rustix::process::{Resource, getrlimit};
use rustix::time::{ClockId, clock_gettime};

use super::table::ProcessMetrics;
use super::text::Counted;

/// Returns the metrics of the process. Reads a few files of `/proc`.
pub fn metrics() -> ProcessMetrics {
    let spent = clock_gettime(ClockId::ProcessCPUTime);
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field = |name: &str| -> Option<u64> {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_ascii_whitespace().next()?.parse().ok()
    };
    ProcessMetrics {
        cpu_seconds: Counted(spent.tv_sec as f64 + spent.tv_nsec as f64 / 1e9),
        resident: field("VmRSS:").map(|kilobytes| kilobytes * 1024),
        virtual_memory: field("VmSize:").map(|kilobytes| kilobytes * 1024),
        threads: field("Threads:"),
        open_descriptors: open_descriptors(),
        max_descriptors: getrlimit(Resource::Nofile).current,
    }
}

fn open_descriptors() -> Option<u64> {
    let found = std::fs::read_dir("/proc/self/fd").ok()?.count();
    // One of them is the directory itself, opened for reading.
    Some(found.saturating_sub(1) as u64)
}
