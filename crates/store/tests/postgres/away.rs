//! A database that can't be reached, doesn't answer, or goes away.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use vitrine_store::record::RevisionNote;
use vitrine_store::{IfMissing, StoreError};

use crate::cluster::{Cluster, free_port, is_installed};
use crate::database::Database;
use crate::{address, codes, open, product, publish, told, wait_for};

fn assert_unreachable<T>(outcome: Result<T, StoreError>) {
    match outcome {
        Err(StoreError::Unreachable { .. }) => {}
        Err(other) => panic!("{}", told(&other)),
        Ok(_) => panic!("it could be reached"),
    }
}

#[test]
fn nobody_listening_is_told_and_followed_all_the_same() {
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
    assert_unreachable(followed.changes());
    assert_unreachable(followed.keys());
    assert_unreachable(followed.publish());
}

#[test]
fn who_never_answers_is_given_up() {
    // It takes connections, as the kernel of a stopped server does, and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let url = format!("postgres://u@127.0.0.1:{port}/d");
    let store = address(&url)
        .open_to_follow(IfMissing::Create, Duration::ZERO)
        .unwrap();
    assert_unreachable(store.changes());
}

#[test]
fn a_host_that_never_answers_is_passed_over() {
    let Some(database) = Database::create() else {
        return;
    };
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let hosts = format!("@127.0.0.1:{port},");
    let url = database.url.replace('@', &hosts) + "?target_session_attrs=read-write";
    let store = open(&url, IfMissing::Create).unwrap();
    publish(&*store, &[product("A", "1")]);
    assert_eq!(codes(&*store), ["A"]);
    let (hinted, hint) = std::sync::mpsc::channel();
    let _guard = store.hint_changes(Arc::new(move || {
        let _ = hinted.send(());
    }));
    hint.recv().expect("it listens");
}

/// Passes on what it is sent, and after a while no answers any more. Counts the connections that are open.
#[derive(Default)]
struct Stalling {
    is_mute: AtomicBool,
    open: AtomicUsize,
}

impl Stalling {
    /// Starts one before a server. It ends with the test's process.
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
fn a_connection_that_was_given_up_is_closed() {
    let Some(database) = Database::create() else {
        return;
    };
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
    assert_unreachable(store.changes());
    wait_for("its end", || (!is_open()).then_some(()));
    stalling.is_mute.store(false, Ordering::SeqCst);
    store.changes().unwrap();
}

#[test]
fn a_server_is_started_before_its_database() {
    if !is_installed() {
        return;
    }
    let cluster = Cluster::start("");
    cluster.stop();
    let store = address(&cluster.url("postgres"))
        .open_to_follow(IfMissing::Create, Duration::ZERO)
        .unwrap();
    assert_unreachable(store.changes());
    cluster.begin();
    wait_for("the database", || store.changes().ok());
    assert!(codes(&*store).is_empty());
    publish(&*store, &[product("A", "1")]);
    cluster.stop();
    assert_unreachable::<()>(Err(wait_for("its end", || store.changes().err())));
    cluster.begin();
    wait_for("the database", || store.changes().ok());
    assert_eq!(codes(&*store), ["A"]);
}

#[test]
fn a_database_that_stops_while_it_is_asked_is_given_up() {
    let Some(database) = Database::create() else {
        return;
    };
    let store = open(&database.url, IfMissing::Create).unwrap();
    // Somebody holds the state's table: nobody gets an answer.
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
    assert_unreachable(store.changes());
    // It is given up there, too. So are the next ones, each on a new connection.
    let waiting =
        "select pid from pg_locks where relation = 'vitrine.state'::regclass and not granted";
    wait_for("nobody to wait", || {
        database.run(waiting).is_empty().then_some(())
    });
    assert_unreachable(store.changes());
    holding.kill().unwrap();
    holding.wait().unwrap();
    database.run("select pg_terminate_backend(pid) from pg_stat_activity \
         where datname = current_database() and query like '%pg_sleep%' and pid <> pg_backend_pid()");
    wait_for("an answer", || store.changes().ok());
}

#[test]
fn a_publish_whose_connection_is_killed_leaves_nothing() {
    let Some(database) = Database::create() else {
        return;
    };
    let store = open(&database.url, IfMissing::Create).unwrap();
    publish(&*store, &[product("A", "1")]);
    let before = store.changes().unwrap();
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
    // The killed connection was the one for quick questions, too.
    let after = wait_for("a new connection", || store.changes().ok());
    assert_eq!(after, before);
    assert_eq!(codes(&*store), ["A"]);
    assert_eq!(store.check().unwrap(), []);
    publish(&*store, &[product("B", "1")]);
    assert_eq!(codes(&*store), ["B"]);
}
