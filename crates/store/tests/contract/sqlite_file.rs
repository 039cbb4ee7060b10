//! The embedded store's file: creating, recognising and refusing it, and its durability.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use rusqlite::Connection;
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
