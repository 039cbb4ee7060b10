//! The file of the embedded store, and its write-ahead log, which doesn't grow with each publish.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use rusqlite::Connection;
use vitrine_store::record::StoredProduct;
use vitrine_store::{IfMissing, Store, StoreAddress, StoreError, open};

use crate::products::{product, publish, read, second};
use crate::webhooks;

fn at(path: &Path, if_missing: IfMissing) -> Result<Arc<Store>, StoreError> {
    open(&format!("sqlite:{}", path.display()), if_missing)
}

fn refused(path: &Path) -> StoreError {
    at(path, IfMissing::Create).err().expect("an error")
}

#[test]
fn new_files_are_readable_only_by_their_owner() {
    let directory = tempfile::tempdir().unwrap();
    let store = at(&directory.path().join("new.db"), IfMissing::Create).unwrap();
    publish(&store, &[product("A", "1")], second(1));
    let mut files = 0;
    for file in std::fs::read_dir(directory.path()).unwrap() {
        let file = file.unwrap();
        let mode = file.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{:?}", file.path());
        files += 1;
    }
    assert!(files >= 1);
}

#[test]
fn committed_data_survives_reopening() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("kept.db");
    let store = at(&path, IfMissing::Create).unwrap();
    publish(&store, &[product("A", "1")], second(1));
    let (changes, seen) = (store.state().unwrap(), read(&store, Timestamp::MIN));
    // Another process sees the data while this one has the file open, and after.
    let other = at(&path, IfMissing::Refuse).unwrap();
    assert_eq!(other.state().unwrap(), changes);
    drop((store, other));
    let again = at(&path, IfMissing::Refuse).unwrap();
    assert_eq!(
        (again.state().unwrap(), read(&again, Timestamp::MIN)),
        (changes, seen)
    );
}

#[test]
fn store_is_created_once_by_many_processes() {
    for _ in 0..20 {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("shared.db");
        std::thread::scope(|scope| {
            let open = || at(&path, IfMissing::Create).map(|store| store.state().unwrap());
            let opened = [(); 6].map(|()| scope.spawn(open));
            for opened in opened {
                let opened = opened.join().unwrap();
                assert!(opened.is_ok(), "{}", opened.unwrap_err());
            }
        });
    }
}

/// Returns the files of the store at `path` that this process has open.
fn open_files(path: &Path) -> Vec<std::path::PathBuf> {
    let start = path.to_str().unwrap();
    let files = std::fs::read_dir("/proc/self/fd").unwrap();
    let files = files.filter_map(|file| std::fs::read_link(file.ok()?.path()).ok());
    files
        .filter(|file| file.to_string_lossy().starts_with(start))
        .collect()
}

#[test]
fn files_are_open_only_during_acts() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("acts.db");
    let followed = at(&path, IfMissing::Create).unwrap();
    webhooks::create(&followed, "one");
    assert!(!open_files(&path).is_empty());
    drop(followed);
    let address: StoreAddress = format!("sqlite:{}", path.display()).parse().unwrap();
    let acts = address.open_for_acts(Duration::ZERO).unwrap();
    for number in 1..3 {
        publish(&acts, &[product("A", &number.to_string())], second(number));
        assert_eq!(
            acts.revisions(9).unwrap().len(),
            usize::try_from(number).unwrap()
        );
        assert_eq!(acts.endpoints().unwrap().len(), 1);
        assert_eq!(open_files(&path), Vec::<std::path::PathBuf>::new());
    }
}

#[test]
fn followers_wait_for_a_missing_store() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("late.db");
    let address: StoreAddress = format!("sqlite:{}", path.display()).parse().unwrap();
    let followed = address.open_to_follow(IfMissing::Refuse, Duration::ZERO);
    let followed = followed.unwrap();
    for outcome in [followed.state().map(drop), followed.keys().map(drop)] {
        let error = outcome.unwrap_err();
        assert!(matches!(error, StoreError::Missing { .. }), "{error}");
        assert!(error.may_come_back() && !path.exists());
    }
    publish(
        &at(&path, IfMissing::Create).unwrap(),
        &[product("A", "1")],
        second(1),
    );
    assert_eq!(read(&followed, Timestamp::MIN).codes(), ["A"]);
    assert!(followed.state().unwrap().revision_id.is_some());
}

#[test]
fn lock_wait_is_capped_however_the_store_is_opened() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("patient.db");
    let Ok(address) = format!("sqlite:{}", path.display()).parse::<StoreAddress>();
    // It doesn't exist yet, so that this one is opened by its first call.
    let followed = address.open_to_follow(IfMissing::Refuse, Duration::MAX);
    let followed = followed.unwrap();
    let opened = address.open(IfMissing::Create, Duration::MAX).unwrap();
    let of_acts = address.open_for_acts(Duration::MAX).unwrap();
    let checked = address.open_to_check(Duration::MAX).unwrap();
    assert_eq!(checked.check().unwrap(), []);
    for (index, store) in [opened, followed, of_acts, checked].iter().enumerate() {
        let time = second(index.try_into().unwrap());
        publish(store, &[product("A", &index.to_string())], time);
        assert_eq!(store.revisions(9).unwrap().len(), index + 1);
    }
}

#[test]
fn missing_store_is_created_only_on_request() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("missing.db");
    let error = at(&path, IfMissing::Refuse).err().expect("an error");
    assert!(
        matches!(&error, StoreError::Missing { place } if *place == path.display().to_string()),
        "{error}"
    );
    assert!(!path.exists());
    let error = refused(&directory.path().join("no/such/directory.db"));
    assert!(matches!(error, StoreError::File { .. }), "{error}");
}

#[test]
fn foreign_file_is_refused_unchanged() {
    let directory = tempfile::tempdir().unwrap();
    let text = directory.path().join("notes.txt");
    let content = "Not a database, but long enough to have a header. ".repeat(100);
    std::fs::write(&text, &content).unwrap();
    let error = refused(&text);
    assert!(matches!(error, StoreError::NotAStore { .. }), "{error}");
    assert!(error.to_string().contains("notes.txt"), "{error}");
    assert_eq!(std::fs::read_to_string(&text).unwrap(), content);
    let error = refused(directory.path());
    assert!(
        matches!(
            error,
            StoreError::File { .. } | StoreError::NotAStore { .. }
        ),
        "{error}"
    );
}

#[test]
fn foreign_database_is_refused_unchanged() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("other.db");
    let other = Connection::open(&path).unwrap();
    other
        .execute_batch("create table theirs (x); insert into theirs values (1)")
        .unwrap();
    drop(other);
    let before = std::fs::read(&path).unwrap();
    let error = refused(&path);
    assert!(matches!(error, StoreError::NotAStore { .. }), "{error}");
    assert!(error.to_string().contains("another program"), "{error}");
    assert!(std::fs::read(&path).unwrap() == before, "it was written to");
}

#[test]
fn invalid_address_is_refused() {
    for address in ["", "vitrine.db", "sqlite:", "postgre://x", "SQLITE:x.db"] {
        let error = open(address, IfMissing::Refuse).err().expect("an error");
        assert!(
            matches!(error, StoreError::WrongAddress { .. }),
            "{address}: {error}"
        );
    }
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
    let [followed, other] = [(); 2].map(|()| at(&path, IfMissing::Create).unwrap());
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
    let [followed, other] = [(); 2].map(|()| at(&path, IfMissing::Create).unwrap());
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
