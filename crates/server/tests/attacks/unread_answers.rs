//! HTTP/1.1 connections that ask for pages and read nothing of the answers.

use std::io::Write as _;

use rustix::process::{Resource, getrlimit, setrlimit};
use socket2::{Domain, Socket, Type};

use crate::world::{CODINGS, Edge, World, pages};

const CONNECTIONS: u64 = 1_500;

#[test]
fn unread_answers_leave_the_server_its_memory() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).expect("as many descriptors as allowed");
    let world = World::new(pages(), Edge::Plain, 2 * CONNECTIONS);
    for coding in CODINGS {
        let what = format!("{CONNECTIONS} connections that read nothing, {coding}");
        world.survive(&what, world.reader(), || {
            let answered = world.answered() + CONNECTIONS as f64;
            let unread: Vec<Socket> = (0..CONNECTIONS)
                .map(|number| {
                    let mut socket =
                        Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
                    socket.set_recv_buffer_size(4096).expect("a small buffer");
                    socket
                        .connect(&world.server.address.into())
                        .expect("a connection");
                    let head = world.request(&world.page(number as usize), coding);
                    socket.write_all(head.as_bytes()).expect("sent");
                    socket
                })
                .collect();
            world.wait_for_answers(answered);
            unread
        });
    }
    world.assert_gives_back();
}
