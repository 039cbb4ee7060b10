//! A database that is unreachable, doesn't answer, or stops.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use vitrine_store::Publication as _;
use vitrine_store::record::RevisionNote;
use vitrine_store::{IfMissing, StoreError};

use crate::cluster::{Cluster, free_port, is_installed};
use crate::new_database;
use crate::{address, codes, open, product, publish, told, wait_for};

fn assert_unreachable<T>(outcome: Result<T, StoreError>) {
    match outcome {
        Err(StoreError::Unreachable { .. }) => {}
        Err(other) => panic!("{}", told(&other)),
        Ok(_) => panic!("it could be reached"),
    }
}

#[test]
fn refused_connection_is_reported_and_retried() {
    let url = format!("postgres://u:hidden@127.0.0.1:{}/d", free_port());
    let refused = open(&url, IfMissing::Create).err().unwrap();
    let told = told(&refused);
    assert!(
        told.contains("can't reach the database at postgres://u@127.0.0.1"),
        "{told}"
    );
    assert!(!told.contains("hidden"), "{told}");
    let followed = address(&url)
        .open_to_follow(IfMissing::Create, Duration::ZERO)
        .unwrap();
    assert_unreachable(followed.state());
    assert_unreachable(followed.keys());
    assert_unreachable(followed.publish());
}

#[test]
fn silent_server_times_out() {
    // It accepts connections, as the kernel does for a stopped server, and sends nothing.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let url = format!("postgres://u@127.0.0.1:{port}/d");
    let store = address(&url)
        .open_to_follow(IfMissing::Create, Duration::ZERO)
        .unwrap();
    assert_unreachable(store.state());
}

#[test]
fn silent_host_is_skipped() {
    let database = new_database!();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let hosts = format!("@127.0.0.1:{port},");
    let url = database.url.replace('@', &hosts) + "?target_session_attrs=read-write";
    let store = open(&url, IfMissing::Create).unwrap();
    publish(&store, &[product("A", "1")]);
    assert_eq!(codes(&store), ["A"]);
    let (hinted, hint) = std::sync::mpsc::channel();
    let _guard = store.subscribe(Arc::new(move || {
        let _ = hinted.send(());
    }));
    hint.recv().expect("it listens");
}

/// A proxy that stops forwarding answers after a while, and counts open connections.
#[derive(Default)]
struct Stalling {
    is_mute: AtomicBool,
    open: AtomicUsize,
}

impl Stalling {
    /// Starts a proxy in front of a server. It ends with the test's process.
    fn start(server_port: u16) -> (Arc<Self>, u16) {
        let stalling = Arc::new(Self::default());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::clone(&stalling);
        std::thread::spawn(move || {
            for near in listener.incoming() {
                let near = near.unwrap();
                let far = TcpStream::connect(("127.0.0.1", server_port)).unwrap();
                let (answers, asked) = (near.try_clone().unwrap(), far.try_clone().unwrap());
                let (back, forth) = (Arc::clone(&shared), Arc::clone(&shared));
                shared.open.fetch_add(1, Ordering::SeqCst);
                std::thread::spawn(move || back.pass(far, answers, true));
                std::thread::spawn(move || {
                    forth.pass(near, asked, false);
                    forth.open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        (stalling, port)
    }

    fn pass(&self, mut from: TcpStream, mut to: TcpStream, are_answers: bool) {
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            let is_lost = are_answers && self.is_mute.load(Ordering::SeqCst);
            if !is_lost && to.write_all(&buffer[..count]).is_err() {
                break;
            }
        }
    }
}

#[test]
fn abandoned_connection_is_closed() {
    let database = new_database!();
    let (stalling, port) = Stalling::start(database.port());
    let own = format!(":{}/", database.port());
    let store = open(
        &database.url.replace(&own, &format!(":{port}/")),
        IfMissing::Create,
    );
    let store = store.unwrap();
    let is_open = || stalling.open.load(Ordering::SeqCst) > 0;
    assert!(is_open());
    stalling.is_mute.store(true, Ordering::SeqCst);
    assert_unreachable(store.state());
    wait_for("its end", || (!is_open()).then_some(()));
    stalling.is_mute.store(false, Ordering::SeqCst);
    store.state().unwrap();
}

#[test]
fn server_started_before_its_database_recovers() {
    if !is_installed() {
        return;
    }
    let cluster = Cluster::start("");
    cluster.stop();
    let store = address(&cluster.url("postgres"))
        .open_to_follow(IfMissing::Create, Duration::ZERO)
        .unwrap();
    assert_unreachable(store.state());
    cluster.begin();
    wait_for("the database", || store.state().ok());
    assert!(codes(&store).is_empty());
    publish(&store, &[product("A", "1")]);
    cluster.stop();
    assert_unreachable::<()>(Err(wait_for("its end", || store.state().err())));
    cluster.begin();
    wait_for("the database", || store.state().ok());
    assert_eq!(codes(&store), ["A"]);
}

#[test]
fn blocked_statement_times_out_and_is_cancelled() {
    let database = new_database!();
    let store = open(&database.url, IfMissing::Create).unwrap();
    // The table of the state is locked: all reads block.
    let mut holding = std::process::Command::new("psql")
        .arg(&database.url)
        .args(["--quiet", "--command"])
        .arg("begin; lock vitrine.state; select pg_sleep(600)")
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("psql runs");
    let held = "select 1 from pg_locks where relation = 'vitrine.state'::regclass \
                and mode = 'AccessExclusiveLock' and granted";
    wait_for("the lock", || {
        (!database.run(held).is_empty()).then_some(())
    });
    assert_unreachable(store.state());
    // The statement is cancelled at the server, too. So are the next ones, each on a new connection.
    let waiting =
        "select pid from pg_locks where relation = 'vitrine.state'::regclass and not granted";
    wait_for("nobody to wait", || {
        database.run(waiting).is_empty().then_some(())
    });
    assert_unreachable(store.state());
    holding.kill().unwrap();
    holding.wait().unwrap();
    database.run("select pg_terminate_backend(pid) from pg_stat_activity \
         where datname = current_database() and query like '%pg_sleep%' and pid <> pg_backend_pid()");
    wait_for("an answer", || store.state().ok());
}

#[test]
fn lock_wait_beyond_a_day_is_capped() {
    let database = new_database!();
    let address = address(&database.url);
    let followed = address.open_to_follow(IfMissing::Create, Duration::MAX);
    let followed = followed.unwrap();
    publish(&followed, &[product("A", "1")]);
    let of_acts = address.open_for_acts(Duration::MAX).unwrap();
    publish(&of_acts, &[product("B", "1")]);
    assert_eq!(codes(&followed), ["B"]);
}

#[test]
fn publish_on_killed_connection_changes_nothing() {
    let database = new_database!();
    let store = open(&database.url, IfMissing::Create).unwrap();
    publish(&store, &[product("A", "1")]);
    let before = store.state().unwrap();
    let mut publication = store.publish().unwrap();
    for number in 0..3_000 {
        publication
            .put(&product(&format!("P{number}"), &"x".repeat(500)))
            .unwrap();
    }
    let others = "select pg_terminate_backend(pid) from pg_stat_activity \
                  where datname = current_database() and pid <> pg_backend_pid()";
    database.run(others);
    let failed = publication.commit(jiff::Timestamp::now(), &RevisionNote::default());
    assert_unreachable(failed);
    // The connection for short calls was killed, too.
    let after = wait_for("a new connection", || store.state().ok());
    assert_eq!(after, before);
    assert_eq!(codes(&store), ["A"]);
    assert_eq!(store.check().unwrap(), []);
    publish(&store, &[product("B", "1")]);
    assert_eq!(codes(&store), ["B"]);
}
