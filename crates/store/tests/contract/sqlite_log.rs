//! The write-ahead log of the embedded store: it doesn't grow with each publish.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use rusqlite::Connection;
use vitrine_store::record::StoredProduct;
use vitrine_store::{IfMissing, Store, open};

use crate::products::{product, publish, second};

fn at(path: &Path) -> Arc<Store> {
    open(&format!("sqlite:{}", path.display()), IfMissing::Create).unwrap()
}

/// Returns products of over 40 MB when packed, which differ in each revision.
fn large_catalog(revision: i64) -> Vec<StoredProduct> {
    const LETTERS: &[u8; 64] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_";
    let mut state = revision.unsigned_abs() | 1;
    let mut letter = || {
        // Xorshift: letters that can't be packed to less than six bits each.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(LETTERS[usize::from(state as u8 % 64)])
    };
    let product = |number| {
        let document: String = (0..1_500_000).map(|_| letter()).collect();
        product(&format!("P{number}"), &document)
    };
    (10..50).map(product).collect()
}

fn log_bytes(path: &Path) -> u64 {
    std::fs::metadata(path.with_extension("db-wal"))
        .unwrap()
        .len()
}

/// Begins a read transaction on the current state.
fn pinned(path: &Path) -> Connection {
    let connection = Connection::open(path).unwrap();
    let sql = "begin; select count(*) from product_version";
    connection.execute_batch(sql).unwrap();
    connection
}

/// Five replaces made a log of 5.7 GB beside a server that was reading one catalog whenever the next was published.
#[test]
fn log_is_reused_if_a_publish_meets_a_reader() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("read.db");
    let (followed, other) = (at(&path), at(&path));
    // While this reads, nothing is copied from the log, so that the next reader reads from the log.
    let before = pinned(&path);
    publish(&other, &large_catalog(1), second(1));
    let first = log_bytes(&path);
    std::thread::scope(|scope| {
        let (reads, is_reading) = std::sync::mpsc::channel();
        let followed = &*followed;
        let probe = Connection::open(&path).unwrap();
        probe.busy_timeout(Duration::ZERO).unwrap();
        scope.spawn(move || {
            let read = followed.read_catalog(Timestamp::MIN, &mut |_| {
                let _ = reads.send(());
                while probe.execute_batch("begin immediate; rollback").is_ok() {
                    std::thread::yield_now();
                }
                Err("the publish has begun".into())
            });
            read.unwrap_err();
        });
        is_reading.recv().unwrap();
        drop(before);
        publish(&other, &large_catalog(2), second(2));
    });
    let second = log_bytes(&path);
    // Twice the new data: the previous row of each product changed, too.
    assert!(second < first * 5 / 2, "{first} bytes became {second}");
}

#[test]
fn large_log_is_emptied_once_nobody_reads_from_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("emptied.db");
    let (followed, other) = (at(&path), at(&path));
    publish(&other, &[product("A", "1")], second(1));
    let small = log_bytes(&path);
    assert_eq!(
        followed.checkpoint_log().unwrap(),
        Some(small),
        "left alone"
    );
    let before = pinned(&path);
    publish(&other, &large_catalog(2), second(2));
    let large = log_bytes(&path);
    assert!(large > 40_000_000, "{large}");
    assert_eq!(
        followed.checkpoint_log().unwrap(),
        Some(large),
        "a reader is in the way"
    );
    drop(before);
    assert_eq!(followed.checkpoint_log().unwrap(), Some(0));
    assert_eq!(log_bytes(&path), 0);
}
