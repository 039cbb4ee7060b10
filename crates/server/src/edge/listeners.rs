//! Asynchronous listeners, and closing them without losing connections: the system completes handshakes by itself, and
//! closing a socket resets connections that weren't accepted yet.

use std::io;
use std::net::IpAddr;
use std::task::{Context, Poll};

use socket2::{SockFilter, SockRef, Socket};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

use super::listen::Listener;

/// An accepted connection.
pub(super) enum Accepted {
    Tcp(TcpStream, IpAddr),
    Unix(UnixStream),
}

impl Accepted {
    pub(super) fn remote(&self) -> Option<IpAddr> {
        match self {
            Self::Tcp(_, remote) => Some(*remote),
            Self::Unix(_) => None,
        }
    }
}

type AsyncListener = Listener<TcpListener, UnixListener>;

fn to_async(listener: Listener) -> io::Result<AsyncListener> {
    let tcp = |listener: std::net::TcpListener| {
        listener.set_nonblocking(true)?;
        TcpListener::from_std(listener)
    };
    Ok(match listener {
        Listener::Tcp(listener) => Listener::Tcp(tcp(listener)?),
        Listener::PassedTcp(listener) => Listener::PassedTcp(tcp(listener)?),
        Listener::Unix(listener, file) => {
            listener.set_nonblocking(true)?;
            Listener::Unix(UnixListener::from_std(listener)?, file)
        }
    })
}

/// Packet filter for a listener that is closing: a packet that begins a connection (SYN without ACK, flags in byte 13
/// of the TCP header) is dropped as if it had been lost; all others pass. A client that retries a second later is
/// refused.
fn syn_filter() -> [SockFilter; 5] {
    const LOAD_BYTE: u16 = 0x30;
    const AND: u16 = 0x54;
    const JUMP_IF_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    const SYN: u32 = 0x02;
    const ACK: u32 = 0x10;
    [
        SockFilter::new(LOAD_BYTE, 0, 0, 13),
        SockFilter::new(AND, 0, 0, SYN | ACK),
        SockFilter::new(JUMP_IF_EQUAL, 0, 1, SYN),
        SockFilter::new(RETURN, 0, 0, 0),
        SockFilter::new(RETURN, 0, 0, u32::MAX),
    ]
}

impl AsyncListener {
    fn poll_accept(&self, context: &mut Context<'_>) -> Poll<io::Result<Accepted>> {
        match self {
            Self::Tcp(listener) | Self::PassedTcp(listener) => listener
                .poll_accept(context)
                .map_ok(|(socket, remote)| Accepted::Tcp(socket, remote.ip())),
            Self::Unix(listener, _) => listener
                .poll_accept(context)
                .map_ok(|(socket, _)| Accepted::Unix(socket)),
        }
    }

    fn refuse_new(&mut self) {
        match self {
            Self::Tcp(listener) => {
                let attached = SockRef::from(&*listener).attach_filter(&syn_filter());
                if let Err(error) = attached {
                    tracing::warn!(%error, "connections opened now may be reset");
                }
            }
            Self::PassedTcp(_) => {}
            // Without its file no client finds it.
            Self::Unix(_, file) => *file = None,
        }
    }

    /// Accepts what is queued, and closes. It calls the system directly: the runtime would first wait for an event.
    fn close(self) -> Vec<Accepted> {
        let socket = match &self {
            Self::Tcp(listener) | Self::PassedTcp(listener) => SockRef::from(listener),
            Self::Unix(listener, _) => SockRef::from(listener),
        };
        let mut all = Vec::new();
        loop {
            match accept_ready(&socket) {
                Ok(accepted) => all.push(accepted),
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return all,
                Err(error) => {
                    tracing::warn!(%error, "connections that wait can't be accepted");
                    return all;
                }
            }
        }
    }
}

/// Accepts a connection without waiting.
fn accept_ready(socket: &Socket) -> io::Result<Accepted> {
    let (socket, remote) = socket.accept()?;
    socket.set_nonblocking(true)?;
    Ok(match remote.as_socket() {
        Some(remote) => Accepted::Tcp(TcpStream::from_std(socket.into())?, remote.ip()),
        None => Accepted::Unix(UnixStream::from_std(socket.into())?),
    })
}

/// All listeners of a server.
#[derive(Debug, Default)]
pub(super) struct Listeners {
    all: Vec<AsyncListener>,
    /// Index of the listener to poll first, so that a busy one doesn't starve the others.
    next: usize,
}

impl Listeners {
    pub(super) fn new(listeners: Vec<Listener>) -> io::Result<Self> {
        let all: io::Result<Vec<_>> = listeners.into_iter().map(to_async).collect();
        Ok(Self { all: all?, next: 0 })
    }

    /// Refuses new connections from now on; those whose handshake has begun can still be accepted.
    pub(super) fn refuse_new(&mut self) {
        self.all.iter_mut().for_each(AsyncListener::refuse_new);
    }

    /// Closes all listeners; returns the connections in their queues.
    pub(super) fn close(self) -> Vec<Accepted> {
        self.all
            .into_iter()
            .flat_map(AsyncListener::close)
            .collect()
    }

    /// Returns the next connection of any listener.
    pub(super) async fn accept(&mut self) -> io::Result<Accepted> {
        let Self { all, next } = self;
        std::future::poll_fn(|context| {
            for step in 0..all.len() {
                let index = (*next + step) % all.len();
                if let Poll::Ready(accepted) = all[index].poll_accept(context) {
                    *next = index + 1;
                    return Poll::Ready(accepted);
                }
            }
            Poll::Pending
        })
        .await
    }
}
