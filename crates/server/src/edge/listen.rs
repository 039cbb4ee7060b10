//! Addresses to listen on: TCP, Unix sockets, and sockets that systemd has opened.

use std::fmt;
use std::fs::{self, File};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::{
    FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context as _, bail};
use listenfd::ListenFd;
use rustix::fs::{Mode, OFlags};
use rustix::process::umask;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

/// Maximum number of connections that the system queues until they are accepted; it may allow fewer.
const BACKLOG: i32 = 4096;

/// Address to listen on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// TCP address and port.
    Tcp(SocketAddr),
    /// Unix socket in the file system.
    Unix(PathBuf),
    /// All sockets that systemd passes.
    Systemd,
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "systemd" {
            return Ok(Self::Systemd);
        }
        if let Some(path) = text.strip_prefix("unix:") {
            return match Path::new(path).is_absolute() {
                true => Ok(Self::Unix(path.into())),
                false => Err(format!(
                    "`{text}` needs an absolute path, such as unix:/run/vitrine.sock"
                )),
            };
        }
        text.parse().map(Self::Tcp).map_err(|_| {
            without_address(text).unwrap_or_else(|| {
                "expected an address with a port (127.0.0.1:8080, [::]:8080), a Unix socket (unix:/run/vitrine.sock) \
                 or `systemd`"
                    .to_owned()
            })
        })
    }
}

/// Returns the suggestion for a port without an address, such as `8080` or `:8080`; `None` for any other text.
pub fn without_address(text: &str) -> Option<String> {
    let port: u16 = text.strip_prefix(':').unwrap_or(text).parse().ok()?;
    Some(format!(
        "a port needs an address: write 127.0.0.1:{port} for this machine alone, or 0.0.0.0:{port} for all networks"
    ))
}

impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(out),
            Self::Unix(path) => write!(out, "unix:{}", path.display()),
            Self::Systemd => out.write_str("systemd"),
        }
    }
}

/// Listening socket, of the standard library or of the runtime.
#[derive(Debug)]
pub enum Listener<T = TcpListener, U = UnixListener> {
    /// TCP socket.
    Tcp(T),
    /// TCP socket of systemd, which outlives this server: connections that this server doesn't accept go to the next process
    /// that listens on it.
    PassedTcp(T),
    /// Unix socket, with its file if this server created it.
    Unix(U, Option<SocketFile>),
}

impl Listener {
    /// Returns its address, as `host:port` for TCP.
    ///
    /// # Errors
    ///
    /// If the system doesn't know the address.
    pub fn address(&self) -> io::Result<Address> {
        Ok(match self {
            Self::Tcp(listener) | Self::PassedTcp(listener) => Address::Tcp(listener.local_addr()?),
            Self::Unix(listener, _) => {
                let address = listener.local_addr()?;
                let path = address.as_pathname().unwrap_or(Path::new("(unnamed)"));
                Address::Unix(path.to_owned())
            }
        })
    }
}

/// Listens on all of these addresses. Files of Unix sockets get the mode `socket_mode`.
///
/// # Errors
///
/// If one of them can't be listened on; the error names it.
pub fn listen_all(addresses: &[Address], socket_mode: u32) -> anyhow::Result<Vec<Listener>> {
    let mut listeners = Vec::new();
    for address in addresses {
        let can_not = || format!("can't listen on {address}");
        match address {
            Address::Tcp(address) => {
                listeners.push(Listener::Tcp(tcp(*address).with_context(can_not)?));
            }
            Address::Unix(path) => listeners.push(unix(path, socket_mode).with_context(can_not)?),
            Address::Systemd => listeners.extend(systemd_listeners().with_context(can_not)?),
        }
    }
    if !addresses.contains(&Address::Systemd) && std::env::var_os("LISTEN_FDS").is_some() {
        tracing::warn!("systemd passed sockets that aren't used: add `--listen systemd`");
    }
    Ok(listeners)
}

/// Listens on an address and a port.
///
/// # Errors
///
/// If the address is in use, or isn't one of this machine.
pub fn tcp(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    // A restarted server needn't wait for the last connections of its predecessor.
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// File of a Unix socket, removed at the end.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    /// Device and inode: another server may have put its own file in the place.
    identity: (u64, u64),
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let is_ours = identity(&self.path).is_ok_and(|found| found == self.identity);
        if is_ours && let Err(error) = fs::remove_file(&self.path) {
            tracing::warn!(path = %self.path.display(), %error, "can't remove the socket's file");
        }
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let file = fs::symlink_metadata(path)?;
    Ok((file.dev(), file.ino()))
}

/// Lock held from before a stale socket is removed until the new one is in its place. Of two servers that start at
/// once, one would otherwise take the other's new socket for a stale one.
struct Lock {
    path: PathBuf,
    /// Locked until it is closed.
    _file: File,
}

impl Lock {
    /// Waits for the lock file beside the socket.
    fn take(socket: &Path) -> anyhow::Result<Self> {
        let mut path = socket.as_os_str().to_owned();
        path.push(".lock");
        let path = PathBuf::from(path);
        loop {
            let file = File::options()
                .create(true)
                .write(true)
                .truncate(false)
                .mode(0o600)
                .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
                .open(&path)
                .with_context(|| format!("`{}` can't be made", path.display()))?;
            file.lock()?;
            let locked = file.metadata()?;
            // The previous holder may have removed the lock file.
            if identity(&path).is_ok_and(|found| found == (locked.dev(), locked.ino())) {
                return Ok(Self { path, _file: file });
            }
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.path) {
            tracing::warn!(path = %self.path.display(), %error, "can't remove the lock's file");
        }
    }
}

fn unix(path: &Path, mode: u32) -> anyhow::Result<Listener> {
    let _lock = Lock::take(path)?;
    remove_stale(path)?;
    // No other process can connect before the file has its mode.
    let usual = umask(Mode::RWXG | Mode::RWXO);
    let bound = UnixListener::bind(path);
    umask(usual);
    let listener = bound?;
    let file = SocketFile {
        identity: identity(path)?,
        path: path.to_owned(),
    };
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
        .context("can't set the socket's mode")?;
    Ok(Listener::Unix(listener, Some(file)))
}

/// Removes a stale socket. A socket on which a program listens stays, and so does any other file.
fn remove_stale(path: &Path) -> anyhow::Result<()> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error.into()),
        Ok(file) if !file.file_type().is_socket() => {
            bail!("a file of that name exists and isn't a socket; use another path, or remove it")
        }
        Ok(_) => {}
    }
    // A program that listens but doesn't accept must not block this one.
    let probe = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    probe.set_nonblocking(true)?;
    match probe.connect(&SockAddr::unix(path)?) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            fs::remove_file(path).context("can't remove the socket of a server that no longer runs")
        }
        Err(error) if error.kind() != io::ErrorKind::WouldBlock => {
            Err(error).context("a socket exists, and its owner is unknown")
        }
        // It would block: the queue of that program is full.
        _ => bail!("another program listens there; stop it first, or use another path"),
    }
}

/// Returns all TCP and Unix sockets that systemd has passed.
fn systemd_listeners() -> anyhow::Result<Vec<Listener>> {
    let mut passed = ListenFd::from_env();
    if passed.len() == 0 {
        bail!(
            "systemd passed no socket (LISTEN_FDS, LISTEN_PID); start the service by its socket unit, or use an \
             address"
        );
    }
    let mut listeners = Vec::new();
    for index in 0..passed.len() {
        // A socket of another kind stays in place.
        let tcp = passed.take_tcp_listener(index);
        let listener = match tcp {
            Ok(Some(listener)) => Listener::PassedTcp(listener),
            _ => match passed.take_unix_listener(index) {
                Ok(Some(listener)) => Listener::Unix(listener, None),
                _ => bail!(
                    "passed socket {index} is neither TCP nor a Unix stream socket; use ListenStream= in the socket unit"
                ),
            },
        };
        listeners.push(listener);
    }
    Ok(listeners)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removed_lock_file_is_held_by_one_at_a_time() {
        use std::sync::atomic::{AtomicBool, Ordering};
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("v.sock");
        let is_taken = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let lock = Lock::take(&socket).unwrap();
                        assert!(!is_taken.swap(true, Ordering::SeqCst));
                        std::thread::yield_now();
                        is_taken.store(false, Ordering::SeqCst);
                        drop(lock);
                    }
                });
            }
        });
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn address_kinds_are_parsed() {
        let read = |text: &str| text.parse::<Address>();
        for text in ["127.0.0.1:8080", "[::]:0", "unix:/run/v.sock", "systemd"] {
            assert_eq!(read(text).unwrap().to_string(), text);
        }
        for text in ["", "8080", "localhost", "unix:", "unix:v.sock", "SYSTEMD"] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
