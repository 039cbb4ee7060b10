//! Limit of file descriptors of this process: each connection takes one, and each socket of webhooks.

use rustix::io::fcntl_dupfd_cloexec;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors reserved for everything else: the store, files, logs, the admin port, refused connections.
const RESERVED: u64 = 192;

/// Numbers of sockets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sockets {
    /// Connections of clients.
    pub connections: usize,
    /// Connections to receivers of webhooks.
    pub webhooks: usize,
}

impl Sockets {
    fn total(self) -> u64 {
        self.connections as u64 + self.webhooks as u64
    }

    /// Returns the numbers for which `descriptors` suffice. Of too few, webhooks get a quarter at most.
    fn within(self, descriptors: u64) -> Self {
        let room = (descriptors.saturating_sub(RESERVED)).max(descriptors / 4);
        let room = usize::try_from(room.min(self.total())).unwrap_or(usize::MAX);
        let webhooks = self.webhooks.min(room / 4);
        Self {
            connections: self.connections.min(room - webhooks),
            webhooks,
        }
    }
}

/// Raises the limit of this process, as far as the system allows, to what these numbers need. Returns the numbers that it
/// then allows.
#[must_use]
pub fn make_room(wanted: Sockets) -> Sockets {
    let needed = wanted.total() + RESERVED;
    let limit = getrlimit(Resource::Nofile);
    // `None` is no limit.
    let enough = |limit: Option<u64>| limit.is_none_or(|limit| limit >= needed);
    if enough(limit.current) {
        grow_table(needed);
        return wanted;
    }
    let raised = limit.maximum.map_or(needed, |most| needed.min(most));
    let increased = Rlimit {
        current: Some(raised),
        maximum: limit.maximum,
    };
    let has = match setrlimit(Resource::Nofile, increased) {
        Ok(()) => raised,
        Err(_) => limit.current.unwrap_or(needed),
    };
    grow_table(has.min(needed));
    if has >= needed {
        return wanted;
    }
    let room = wanted.within(has);
    tracing::warn!(
        descriptors = has,
        connections = room.connections,
        webhooks = room.webhooks,
        wanted = wanted.total(),
        "too few file descriptors for --max-connections and webhooks, so fewer sockets are open at a time; raise the hard \
         limit (LimitNOFILE= of a systemd unit, `ulimit -Hn` of a shell)"
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_few_descriptors_are_shared_with_webhooks() {
        let within = |connections, webhooks, descriptors| {
            let wanted = Sockets {
                connections,
                webhooks,
            };
            let room = wanted.within(descriptors);
            (room.connections, room.webhooks)
        };
        assert_eq!(within(10_000, 0, 1_024), (832, 0));
        assert_eq!(within(10_000, 1_024, 1_024), (624, 208));
        assert_eq!(within(10_000, 100, 1_024), (732, 100));
        assert_eq!(within(10_000, 1_024, 64), (12, 4), "hardly any");
        assert_eq!(within(100, 1_024, 1_216), (100, 256));
    }
}
