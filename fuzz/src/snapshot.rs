//! Snapshot files that are damaged or forged: they are refused, or equal what was written; an accepted one can be
//! queried.

use std::fs;
use std::sync::{Arc, LazyLock};

use jiff::Timestamp;
use tempfile::TempDir;
use vitrine::live::StateDirectory;
use vitrine::live::fuzzing::{path, read_snapshot, write_snapshot};
use vitrine_model::query::{Cursor, Limit, ListQuery};
use vitrine_model::search::Search;
use vitrine_model::selector::Selector;
use vitrine_model::snapshot::Snapshot;
use xxhash_rust::xxh3::xxh3_128;

use crate::catalog::catalog;

/// Length of the preamble: mark, format, length and checksum of the header.
const PREAMBLE_BYTES: usize = 3 * 16;

struct World {
    directory: StateDirectory,
    /// A written file, and its snapshot.
    file: Vec<u8>,
    snapshot: Arc<Snapshot>,
    _place: TempDir,
}

static WORLD: LazyLock<World> = LazyLock::new(|| {
    // On a memory file system, if `ci/fuzz` runs this.
    let place = TempDir::new().expect("a directory");
    let Ok(store) = "sqlite:fuzzing.db".parse();
    let directory = StateDirectory::new(place.path().to_owned(), &store);
    let snapshot = Arc::new(catalog(12).snapshot);
    write_snapshot(&directory, Arc::clone(&snapshot)).expect("a file");
    World {
        file: fs::read(path(&directory)).expect("the file"),
        directory,
        snapshot,
        _place: place,
    }
});

/// Checks an input. The first byte selects if the checksum is corrected after the edits of the file; each edit has two
/// bytes of position, an operation and a value.
pub fn check(bytes: &[u8]) {
    let [how, bytes @ ..] = bytes else {
        return;
    };
    let file = match how & 1 {
        0 => edited(bytes),
        _ => summed(edited(bytes)),
    };
    let is_original = file == WORLD.file;
    fs::write(path(&WORLD.directory), &file).expect("a file");
    let read = read_snapshot(&WORLD.directory);
    let Some(read) = read else {
        assert!(!is_original, "what was written is refused");
        return;
    };
    if how & 1 == 0 {
        assert!(is_same(&read, &WORLD.snapshot), "damage that isn't seen");
    }
    ask(&read);
    drop(read);
    written_again();
}

/// Checks that a snapshot read from a file can be written and read again.
fn written_again() {
    let Some(read) = read_snapshot(&WORLD.directory) else {
        return;
    };
    write_snapshot(&WORLD.directory, Arc::clone(&read)).expect("a file");
    let again = read_snapshot(&WORLD.directory).expect("what was just written");
    // Texts that are no longer served aren't written.
    let now = Timestamp::now();
    let served = read.texts().to_bytes(now);
    assert_eq!(again.texts().to_bytes(now), served);
    assert!(has_same_products(&read, &again));
}

fn edited(edits: &[u8]) -> Vec<u8> {
    let mut file = WORLD.file.clone();
    for edit in edits.chunks_exact(4) {
        let [low, high, what, value] = *edit else {
            break;
        };
        let place = usize::from(u16::from_le_bytes([low, high]));
        let place = match what & 1 {
            // Most positions are in the data.
            0 => place % file.len().max(1),
            _ => place % (PREAMBLE_BYTES + 600).min(file.len()).max(1),
        };
        match what >> 1 & 7 {
            0..=2 => file[place] = value,
            3 => file[place] ^= 1 << (value & 7),
            4 => file.truncate(place),
            5 => file.insert(place, value),
            6 => drop(file.remove(place)),
            _ => {
                let end = (place + usize::from(value)).min(file.len());
                file.drain(place..end);
            }
        }
        if file.is_empty() {
            break;
        }
    }
    file
}

/// Corrects the lengths and the checksums of a file, as far as possible.
fn summed(mut file: Vec<u8>) -> Vec<u8> {
    if file.len() < PREAMBLE_BYTES {
        return file;
    }
    let rest = file.split_off(PREAMBLE_BYTES);
    let length = file[24..32].first_chunk().copied().unwrap_or_default();
    let length = usize::try_from(u64::from_le_bytes(length)).unwrap_or(usize::MAX);
    let (header, parts) = rest.split_at(length.min(rest.len()));
    let mut header = header.to_vec();
    if let Ok(mut fields) = serde_json::from_slice::<serde_json::Value>(&header)
        && let Some(lengths) = fields
            .get_mut("parts")
            .and_then(|parts| parts.as_array_mut())
    {
        let mut left = parts.len();
        for length in lengths.iter_mut() {
            let fitting = length
                .as_u64()
                .map_or(left, |length| left.min(length as usize));
            *length = fitting.into();
            left -= fitting;
        }
        if left > 0 {
            lengths.push(left.into());
        }
        fields["checksum"] = format!("{:032x}", xxh3_128(parts)).into();
        header = fields.to_string().into_bytes();
    }
    file[..24].copy_from_slice(&WORLD.file[..24]);
    file[24..32].copy_from_slice(&(header.len() as u64).to_le_bytes());
    file[32..].copy_from_slice(&xxh3_128(&header).to_le_bytes());
    [file, header, parts.to_vec()].concat()
}

fn has_same_products(left: &Snapshot, right: &Snapshot) -> bool {
    let blocks = left.blocks().iter().zip(right.blocks());
    left.blocks().len() == right.blocks().len()
        && left.revision() == right.revision()
        && left.facet_numbers() == right.facet_numbers()
        && blocks.into_iter().all(|(left, right)| {
            left.directory() == right.directory() && left.arena() == right.arena()
        })
}

fn is_same(left: &Snapshot, right: &Snapshot) -> bool {
    let texts = |snapshot: &Snapshot| snapshot.texts().to_bytes(Timestamp::MIN);
    has_same_products(left, right) && texts(left) == texts(right)
}

/// Runs all queries of requests.
fn ask(snapshot: &Snapshot) {
    let products: Vec<(&str, &[u8])> = snapshot
        .blocks()
        .iter()
        .flat_map(vitrine_model::snapshot::Block::products)
        .collect();
    assert_eq!(products.len(), snapshot.len());
    assert!(
        products.is_sorted_by(|left, right| left.0 < right.0),
        "codes ascend"
    );
    for (code, bytes) in &products {
        let code = code.parse().expect("a code");
        let product = snapshot.product(&code).expect("a product of the snapshot");
        assert_eq!(product.bytes(), *bytes);
        if let Some(content) = product.content() {
            assert!(bytes.get(content).is_some());
        }
    }
    let countries: Vec<_> = snapshot.countries().collect();
    let categories: Vec<String> = snapshot.categories().map(str::to_owned).collect();
    let cursors = products.iter().step_by(5).flat_map(|(code, _)| {
        let code = || code.parse().expect("a code");
        [Cursor::After(code()), Cursor::Before(code())]
    });
    for cursor in std::iter::once(Cursor::Start).chain(cursors) {
        for choice in 0..4 {
            let list = ListQuery {
                filter: Selector {
                    countries: (choice & 1 == 1)
                        .then(|| countries.iter().copied().take(2).collect()),
                    categories: (choice & 2 == 2)
                        .then(|| categories.iter().take(2).cloned().collect()),
                    is_orderable: (choice & 1 == 1).then_some(true),
                    ..Selector::default()
                },
                search: (choice == 2).then(|| Search::parse("gift a").expect("words")),
                cursor: cursor.clone(),
                limit: Limit::new(3).expect("a limit"),
            };
            let page = snapshot.page(&list);
            assert!(page.len() <= 3 && page.products().count() == page.len());
            let sent: usize = page
                .runs()
                .map(|run| snapshot.slice(snapshot.run(run)).len())
                .sum();
            let shared: usize = page
                .runs()
                .map(|run| snapshot.shared_slice(snapshot.run(run)).len())
                .sum();
            assert_eq!(sent, shared);
        }
    }
    let (directory, _) = snapshot.texts().to_bytes(Timestamp::MIN);
    for entry in directory.chunks_exact(48) {
        let digest = entry.first_chunk::<32>().copied().expect("a digest");
        let digest = vitrine_model::content::TextDigest::from_bytes(digest);
        let text = snapshot
            .text(&digest, Timestamp::MIN)
            .expect("a text of the snapshot");
        // It may be damaged, if the checksum was corrected.
        let _ = text.unpack_as(&digest);
    }
}
