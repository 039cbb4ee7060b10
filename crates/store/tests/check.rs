//! Checks of damaged SQLite stores, and restores over them.

#![expect(
    clippy::unwrap_used,
    reason = "these are tests, though not every function is marked as one"
)]

#[path = "support/audited.rs"]
mod audited;
#[path = "support/damages.rs"]
mod damages;
#[path = "support/packed.rs"]
mod packed;

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use rusqlite::Connection;
use tempfile::TempDir;
use vitrine_model::content::{PackedMarkdown, TextDigest, TextName};
use vitrine_model::key::{KeyKind, KeyRecord, NewKey};
use vitrine_store::Publication as _;
use vitrine_store::check::Severity;
use vitrine_store::record::{FetchedText, Keep, OwnText, RevisionNote, StoredProduct};
use vitrine_store::{IfMissing, Store, StoreError, TextStatus, open};

use damages::damages;

const TEXTS: [&str; 3] = ["# one", "# two", "# ünf"];

/// Returns a product with all kinds of texts, in the order of the contract.
fn product(code: &str, name: &str) -> StoredProduct {
    let own_texts: Vec<OwnText> = TextName::ALL
        .into_iter()
        .zip(TEXTS.into_iter().cycle())
        .map(|(name, markdown)| OwnText {
            name,
            digest: TextDigest::of(markdown),
            source: (markdown == "# two").then(|| "https://a.example/".to_owned()),
        })
        .collect();
    let field = |own: &OwnText| {
        let name = own.name.as_str();
        format!(r#","{name}_markdown_url":"texts/{}.md""#, own.digest)
    };
    let fields: String = own_texts.iter().map(field).collect();
    let document =
        format!(r#"{{"code":"{code}","name":"{name}","content_resources":{{"ü":1{fields}}}}}"#);
    let start = document.find("{\"ü").unwrap();
    StoredProduct {
        code: code.parse().unwrap(),
        content: Some(start..document.len() - 1),
        document,
        discount_multiplier: "0.050".to_owned(),
        is_orderable: true,
        countries: vec!["DE".parse().unwrap()],
        categories: vec!["food".to_owned()],
        own_texts,
    }
}

fn publish(store: &Store, products: &[StoredProduct], second: i64) {
    let mut publication = store.publish().unwrap();
    for markdown in TEXTS {
        let packed = PackedMarkdown::pack(markdown).unwrap();
        let digest = TextDigest::of(markdown);
        publication.put_text(&digest, &packed).unwrap();
    }
    for product in products {
        publication.put(product).unwrap();
    }
    publication.retire_others().unwrap();
    let now = Timestamp::from_second(second).unwrap();
    publication.commit(now, &RevisionNote::default()).unwrap();
}

struct Kept {
    directory: TempDir,
    store: Arc<Store>,
}

impl Kept {
    /// Creates a store of three revisions: one product changed, one was retired, one was created again.
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", directory.path().join("kept.db").display());
        let store = open(&url, IfMissing::Create).unwrap();
        let (a, b, c) = (product("A", "1"), product("B", "1"), product("C", "1"));
        publish(&store, &[a, b.clone(), c], 10);
        publish(&store, &[product("A", "2"), product("C", "1")], 20);
        publish(&store, &[product("A", "2"), b], 30);
        let new = NewKey::from_random(KeyKind::Live, &[7; NewKey::RANDOM_BYTES]);
        let key = KeyRecord {
            api_version: Some("2024-02-05".to_owned()),
            quota: Some("600/60".parse().unwrap()),
            revoked_at: Some(Timestamp::UNIX_EPOCH),
            ..KeyRecord::new(&new, KeyKind::Live, "partner", Timestamp::UNIX_EPOCH)
        };
        store
            .change_keys(&audited::set_key(), None, &mut |_| vec![key.clone()])
            .unwrap();
        Self { directory, store }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Runs SQL on the store's file, without foreign keys.
    fn damage(&self, sql: &str) {
        let connection = packed::connect(&self.path("kept.db"));
        connection
            .pragma_update(None, "foreign_keys", false)
            .unwrap();
        connection.execute_batch(sql).unwrap();
    }

    /// Returns the broken rules, each once.
    fn broken(&self) -> Vec<&'static str> {
        let problems = self.store.check().unwrap();
        let mut rules: Vec<_> = problems.iter().map(|problem| problem.rule).collect();
        rules.sort_unstable();
        rules.dedup();
        rules
    }
}

#[test]
fn undamaged_store_is_clean() {
    let kept = Kept::new();
    assert_eq!(kept.store.check().unwrap(), []);
    let text = TextDigest::of("# one");
    kept.store
        .set_text_status(&text, TextStatus::TakenDown, &audited::take_down())
        .unwrap();
    assert_eq!(kept.store.check().unwrap(), []);
}

#[test]
fn each_damage_breaks_its_own_rules_only() {
    let pristine = Kept::new();
    let backup = pristine.path("pristine.db");
    pristine.store.backup(&backup).unwrap();
    for (sql, rules) in damages() {
        let kept = Kept::new();
        kept.damage(sql);
        assert_eq!(kept.broken(), rules, "{sql}: {:?}", kept.store.check());
        for problem in kept.store.check().unwrap() {
            assert_eq!(problem.severity, Severity::Fault, "{problem:?}");
            assert!(!problem.place.is_empty() && !problem.advice.is_empty());
        }
        // A damaged backup is refused and changes nothing.
        let before = pristine.store.state().unwrap();
        let error = pristine
            .store
            .restore(&kept.path("kept.db"), &audited::restore())
            .unwrap_err();
        let refused = matches!(error, StoreError::UnusableBackup { .. });
        assert!(refused, "{sql}: {error}");
        assert_eq!(pristine.store.state().unwrap(), before, "{sql}");
        // A good backup repairs the damaged store, unless its state was deleted.
        if sql != "delete from state" {
            kept.store.restore(&backup, &audited::restore()).unwrap();
            assert_eq!(kept.store.check().unwrap(), [], "{sql}");
        }
    }
}

#[test]
fn changed_columns_of_a_version_are_found() {
    for fact in "is_orderable=0 countries='[]' categories='[]' code='Z'".split(' ') {
        let kept = Kept::new();
        kept.damage(&format!("update product_version set {fact} where id = 1"));
        assert_eq!(kept.broken(), ["version_digest"], "{fact}");
    }
}

#[test]
fn orphans_are_warnings() {
    let kept = Kept::new();
    kept.damage(
        "delete from product_text; delete from product_document; delete from product_version",
    );
    kept.damage("insert into api_key_use values ('gone', 1)");
    assert_eq!(kept.broken(), ["key_use_orphan", "text_orphan"]);
    let problems = kept.store.check().unwrap();
    assert_eq!(problems.len(), 1 + TEXTS.len());
    let warnings = problems.iter().all(|p| p.severity == Severity::Warning);
    assert!(warnings, "{problems:?}");
    // A text that was taken down is kept, so that it stays down if it is loaded again.
    let text = TextDigest::of("# one");
    kept.store
        .set_text_status(&text, TextStatus::TakenDown, &audited::take_down())
        .unwrap();
    assert_eq!(kept.store.check().unwrap().len(), TEXTS.len());
    let keep = Keep::Newest(NonZeroU32::MAX);
    let pruned = kept.store.prune(keep, Timestamp::MIN).unwrap();
    assert_eq!((pruned.versions, pruned.texts), (0, TEXTS.len() as u64 - 1));
    assert_eq!(kept.broken(), ["key_use_orphan"]);
    assert!(kept.store.text(&text).unwrap().is_some());
}

#[test]
fn problems_beyond_a_hundred_are_counted() {
    let kept = Kept::new();
    let products: Vec<_> = (0..150).map(|n| product(&format!("P{n}"), "1")).collect();
    publish(&kept.store, &products, 40);
    kept.damage("update product_version set digest = zeroblob(16) where code like 'P%'");
    let problems = kept.store.check().unwrap();
    assert_eq!(problems.len(), 101);
    assert!(problems[100].what.contains("50 more"), "{problems:?}");
}

/// Overwrites the beginning of the first page of a table.
fn overwrite_page(path: &Path, table: &str) {
    let connection = Connection::open(path).unwrap();
    let sql = "select rootpage from sqlite_schema where name = ?";
    let page: u64 = connection
        .query_row(sql, [table], |row| row.get(0))
        .unwrap();
    let size: u64 = connection
        .pragma_query_value(None, "page_size", |row| row.get(0))
        .unwrap();
    drop(connection);
    let mut bytes = std::fs::read(path).unwrap();
    let start = usize::try_from((page - 1) * size).unwrap();
    bytes[start..start + 64].fill(0xa5);
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn overwritten_page_is_found_and_its_backup_refused() {
    for table in [
        "product_version",
        "product_document",
        "product_text",
        "markdown_text",
        "revision",
        "state",
    ] {
        let kept = Kept::new();
        let copy = kept.path("copy.db");
        kept.store.backup(&copy).unwrap();
        overwrite_page(&copy, table);
        let error = kept.store.restore(&copy, &audited::restore()).unwrap_err();
        let refused = matches!(error, StoreError::UnusableBackup { .. });
        assert!(refused, "{table}: {error}");
        let url = format!("sqlite:{}", copy.display());
        let problems = open(&url, IfMissing::Refuse).unwrap().check().unwrap();
        let told = |rule| problems.iter().any(|problem| problem.rule == rule);
        assert!(
            told("integrity") || told("unreadable"),
            "{table}: {problems:?}"
        );
    }
}

#[test]
fn lost_index_entry_is_found() {
    let kept = Kept::new();
    kept.damage(
        "pragma writable_schema = on;
         update sqlite_schema set sql = replace(sql, 'is null', 'is not null') \
            where name = 'live_product';",
    );
    assert_eq!(kept.broken(), ["integrity"]);
}

#[test]
fn restore_keeps_store_id_and_texts_taken_down() {
    let kept = Kept::new();
    let backup = kept.path("backup.db");
    kept.damage(
        "insert into fetched_text select 'https://a.example/', min(digest), 'e', null, 7 from markdown_text",
    );
    let fetched = kept.store.fetched_text("https://a.example/").unwrap();
    let saved = kept.store.backup(&backup).unwrap().unwrap();
    kept.damage("delete from fetched_text");
    let down = TextDigest::of("# two");
    kept.store
        .set_text_status(&down, TextStatus::TakenDown, &audited::take_down())
        .unwrap();
    publish(&kept.store, &[product("D", "1")], 40);
    let before = kept.store.state().unwrap();
    let restored = kept
        .store
        .restore(&backup, &audited::restore())
        .unwrap()
        .unwrap();
    let after = kept.store.state().unwrap();
    assert_eq!(
        (restored.number, restored.created_at),
        (saved.number, saved.created_at)
    );
    assert_ne!(
        restored.id, saved.id,
        "servers must tell it from the one before"
    );
    assert_eq!(after.revision_id, Some(restored.id));
    assert_eq!(after.store_id, before.store_id);
    assert!(after.texts > before.texts && after.keys > before.keys);
    let connection = Connection::open(kept.path("kept.db")).unwrap();
    let sql = "select digest from markdown_text where taken_down_at is not null";
    let found: Vec<u8> = connection.query_row(sql, [], |row| row.get(0)).unwrap();
    assert_eq!(found, down.as_bytes());
    let brought_back = kept.store.fetched_text("https://a.example/").unwrap();
    let digest = |(fetched, _): (FetchedText, TextStatus)| fetched.digest;
    assert!(fetched.is_some());
    assert_eq!(brought_back.map(digest), fetched.map(digest));
    assert_eq!(kept.store.check().unwrap(), []);
    // The next publish continues from there.
    publish(&kept.store, &[product("E", "1")], 50);
    assert_eq!(kept.store.check().unwrap(), []);
}

#[test]
fn no_temporary_files_are_left() {
    let kept = Kept::new();
    let backup = kept.path("backup.db");
    kept.store.backup(&backup).unwrap();
    kept.store.backup(&backup).unwrap_err();
    kept.store.restore(&backup, &audited::restore()).unwrap();
    kept.store
        .restore(&kept.path("none.db"), &audited::restore())
        .unwrap_err();
    let entries = std::fs::read_dir(kept.directory.path()).unwrap();
    let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(
        names,
        ["backup.db", "kept.db", "kept.db-shm", "kept.db-wal"]
    );
}
