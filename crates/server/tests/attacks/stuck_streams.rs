//! HTTP/2 connections whose every stream has a window of 0: answers begin, and nothing of their bodies is ever taken.

use crate::world::{CODINGS, Edge, World, pages};

const CONNECTIONS: usize = 30;
const STREAMS: usize = 100;

#[test]
fn stuck_streams_leave_the_server_its_memory() {
    let world = World::new(pages(), Edge::Tls, 4 * CONNECTIONS as u64);
    for coding in CODINGS {
        let what = format!("{CONNECTIONS} connections of {STREAMS} stuck streams, {coding}");
        world.survive(&what, world.reader(), || {
            let runtime = tokio::runtime::Runtime::new().expect("a runtime");
            let stuck = runtime.block_on(async {
                let mut settings = h2::client::Builder::new();
                settings.initial_window_size(0);
                let headers = [
                    ("x-api-key", world.attacker.as_str()),
                    ("accept-encoding", coding),
                ];
                let (mut clients, mut answers) = (Vec::new(), Vec::new());
                for _ in 0..CONNECTIONS {
                    let to = world.server.address;
                    let mut client = world
                        .certificate
                        .http2_with(to, &settings)
                        .await
                        .expect("TLS");
                    for _ in 0..STREAMS {
                        let page = world.page(answers.len());
                        answers.extend(client.ask_with(&page, &headers).await);
                    }
                    clients.push(client);
                }
                let mut begun = Vec::new();
                for answer in answers {
                    // A connection may be cut already.
                    begun.extend(answer.await.ok());
                }
                assert!(begun.len() > CONNECTIONS * STREAMS / 2, "{}", begun.len());
                (clients, begun)
            });
            (stuck, runtime)
        });
    }
    world.assert_gives_back();
}
