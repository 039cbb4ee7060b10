//! Limit of file descriptors of this process: each connection takes one.

use rustix::io::fcntl_dupfd_cloexec;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors reserved for everything but connections: the store, files, logs, the admin port, refused connections.
const RESERVED: u64 = 192;

/// Raises the limit of this process, as far as the system allows, to what this number of connections needs. Returns the
/// number of connections that it then allows.
#[must_use]
pub fn make_room(connections: usize) -> usize {
    let needed = connections as u64 + RESERVED;
    let limit = getrlimit(Resource::Nofile);
    // `None` is no limit.
    let enough = |limit: Option<u64>| limit.is_none_or(|limit| limit >= needed);
    if enough(limit.current) {
        grow_table(needed);
        return connections;
    }
    let raised = limit.maximum.map_or(needed, |most| needed.min(most));
    let wanted = Rlimit {
        current: Some(raised),
        maximum: limit.maximum,
    };
    let has = match setrlimit(Resource::Nofile, wanted) {
        Ok(()) => raised,
        Err(_) => limit.current.unwrap_or(needed),
    };
    grow_table(has.min(needed));
    if has >= needed {
        return connections;
    }
    let room = usize::try_from(has.saturating_sub(RESERVED).max(has / 4)).unwrap_or(connections);
    tracing::warn!(
        descriptors = has,
        connections = room,
        wanted = connections,
        "too few file descriptors for --max-connections, so fewer connections are accepted; raise the hard limit \
         (LimitNOFILE= of a systemd unit, `ulimit -Hn` of a shell)"
    );
    room
}

/// Makes the system allocate its table of descriptors at once: growing it later stops all threads that open one, for
/// several milliseconds.
fn grow_table(descriptors: u64) {
    let last = i32::try_from(descriptors).map_or(i32::MAX, |count| count - 1);
    let grown = std::fs::File::open("/dev/null")
        .and_then(|file| Ok(fcntl_dupfd_cloexec(&file, last).map(drop)?));
    if let Err(error) = grown {
        tracing::debug!(%error, "can't enlarge the table of descriptors in advance");
    }
}
