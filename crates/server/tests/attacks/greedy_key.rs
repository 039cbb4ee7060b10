//! A key with many connections that asks for new pages as fast as they are compressed.

use std::collections::BTreeMap;
use std::io::BufReader;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::healthy::{Stream, ask};
use crate::world::{Edge, World, pages};

const CONNECTIONS: usize = 200;
/// Answers that the greedy key gets.
const ANSWERS: usize = 1_000;

#[test]
fn greedy_key_leaves_other_keys_their_turns() {
    let world = World::new(pages(), Edge::Plain, CONNECTIONS as u64 + 20);
    let own = format!("X-Api-Key: {}\r\nAccept-Encoding: gzip\r\n", world.healthy);
    let mut number = 0;
    let healthy = world.client(move || {
        number += 1;
        (new_page(1_000_000 + number), own.clone())
    });
    let seen = Mutex::new(BTreeMap::<u16, usize>::new());
    world.survive(
        "200 connections of one key that ask for new pages",
        healthy,
        || {
            let (next, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
            let headers = format!("X-Api-Key: {}\r\nAccept-Encoding: gzip\r\n", world.attacker);
            std::thread::scope(|scope| {
                for _ in 0..CONNECTIONS {
                    scope.spawn(|| {
                        let socket: Box<dyn Stream> = Box::new(world.server.connect());
                        let mut connection = BufReader::new(socket);
                        while !is_over.load(Ordering::Relaxed) {
                            let number = next.fetch_add(1, Ordering::Relaxed);
                            let status = ask(&mut connection, &new_page(number), &headers);
                            *seen
                                .lock()
                                .expect("unpoisoned")
                                .entry(status.unwrap_or(0))
                                .or_default() += 1;
                            is_over.fetch_or(number >= ANSWERS, Ordering::Relaxed);
                        }
                    });
                }
            });
        },
    );
    eprintln!(
        "the greedy key itself saw {:?}",
        seen.into_inner().expect("unpoisoned")
    );
}

/// A page that nobody asked for before.
fn new_page(number: usize) -> String {
    let letter = |number: usize| char::from(b'A' + (number % 26) as u8);
    let after = [letter(number), letter(number / 26)]
        .iter()
        .collect::<String>();
    format!(
        "/v2/product?limit={}&after={after}",
        500 - number / 676 % 300
    )
}
