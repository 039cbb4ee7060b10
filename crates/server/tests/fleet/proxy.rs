//! A TCP proxy that can stall: connections stay open, new ones are taken, and nothing passes in the directions that
//! were cut.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

#[derive(Default)]
struct State {
    /// True while bytes from the database don't arrive.
    answers_cut: AtomicBool,
    /// True while bytes to the database don't arrive.
    requests_cut: AtomicBool,
    ended: AtomicBool,
}

/// A proxy in front of a database.
pub struct Proxy {
    pub address: SocketAddr,
    state: Arc<State>,
}

impl Proxy {
    pub fn new(to: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let state = Arc::<State>::default();
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                if shared.ended.load(Ordering::Relaxed) {
                    return;
                }
                let Ok(server) = TcpStream::connect(&to) else {
                    continue;
                };
                let (client_too, server_too) = (copy(&client), copy(&server));
                let (one, other) = (Arc::clone(&shared), Arc::clone(&shared));
                thread::spawn(move || pass(client, server, &one, |state| &state.requests_cut));
                thread::spawn(move || {
                    pass(server_too, client_too, &other, |state| &state.answers_cut);
                });
            }
        });
        Self { address, state }
    }

    /// Lets nothing through.
    pub fn stall(&self) {
        self.state.requests_cut.store(true, Ordering::Relaxed);
        self.state.answers_cut.store(true, Ordering::Relaxed);
    }

    /// Lets requests through, and no answers.
    pub fn cut_answers(&self) {
        self.state.answers_cut.store(true, Ordering::Relaxed);
    }

    /// Lets everything through again, what was held back first.
    pub fn heal(&self) {
        self.state.requests_cut.store(false, Ordering::Relaxed);
        self.state.answers_cut.store(false, Ordering::Relaxed);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.state.ended.store(true, Ordering::Relaxed);
        self.heal();
        // Wakes the one that accepts.
        let _ = TcpStream::connect(self.address);
    }
}

fn copy(socket: &TcpStream) -> TcpStream {
    socket.try_clone().expect("a socket")
}

fn pass(mut from: TcpStream, mut to: TcpStream, state: &State, cut: fn(&State) -> &AtomicBool) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        while cut(state).load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(5));
        }
        if to.write_all(&buffer[..read]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
    let _ = from.shutdown(Shutdown::Read);
}
