//! Invalid directories of blocks, each with a single fault.

use std::collections::BTreeMap;

use vitrine_model::snapshot::Block;

use crate::naive::{Catalog, Made, made, snapshot};

/// A directory, as the table in the documentation of blocks describes it.
#[derive(Clone)]
struct Directory {
    ends: Vec<u32>,
    content: Vec<[u32; 2]>,
    discount_starts: Vec<u32>,
    discounts: Vec<u128>,
    hashes: Vec<[u8; 16]>,
    code_ends: Vec<u16>,
    codes: Vec<u8>,
    facets: Vec<(u32, [u8; 32])>,
}

impl Directory {
    fn read(bytes: &[u8]) -> Self {
        let mut rest = bytes;
        let mut take = |count: usize| rest.split_off(..count).expect("more bytes");
        let mut header = [0; 3];
        header.fill_with(|| u32_of(take(4)) as usize);
        let [count, facets, codes] = header;
        let directory = Self {
            ends: (0..count).map(|_| u32_of(take(4))).collect(),
            content: (0..count)
                .map(|_| [u32_of(take(4)), u32_of(take(4))])
                .collect(),
            discount_starts: (0..count).map(|_| u32_of(take(4))).collect(),
            discounts: (0..count)
                .map(|_| u128::from_le_bytes(take(16).try_into().expect("sixteen")))
                .collect(),
            hashes: (0..count)
                .map(|_| take(16).try_into().expect("sixteen"))
                .collect(),
            code_ends: (0..count)
                .map(|_| u16::from_le_bytes(take(2).try_into().expect("two")))
                .collect(),
            codes: take(codes).to_vec(),
            facets: (0..facets)
                .map(|_| (u32_of(take(4)), take(32).try_into().expect("a set")))
                .collect(),
        };
        assert!(rest.is_empty(), "the table tells of every byte");
        directory
    }

    fn bytes(&self) -> Vec<u8> {
        let lengths = [self.ends.len(), self.facets.len(), self.codes.len()];
        let header = lengths.map(|length| u32::try_from(length).expect("short"));
        let mut bytes: Vec<u8> = header.into_iter().flat_map(u32::to_le_bytes).collect();
        bytes.extend(self.ends.iter().flat_map(|end| end.to_le_bytes()));
        let places = self.content.iter().flatten().chain(&self.discount_starts);
        bytes.extend(places.flat_map(|at| at.to_le_bytes()));
        bytes.extend(self.discounts.iter().flat_map(|bits| bits.to_le_bytes()));
        bytes.extend(self.hashes.iter().flatten());
        bytes.extend(self.code_ends.iter().flat_map(|end| end.to_le_bytes()));
        bytes.extend(&self.codes);
        for (number, members) in &self.facets {
            bytes.extend(number.to_le_bytes());
            bytes.extend(members);
        }
        bytes
    }
}

fn u32_of(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(bytes.try_into().expect("four bytes"))
}

/// Three products, with five facets; the second has a discount of many digits.
fn sound() -> Block {
    let made = |is_orderable: bool, country: &str| Made {
        countries: vec![country.parse().expect("a country")],
        discount: (is_orderable && country == "DE")
            .then(|| "0.0100000000000000001".parse().expect("a discount")),
        ..made(is_orderable)
    };
    let catalog: Catalog = BTreeMap::from([
        ("AA".parse().expect("a code"), made(true, "AT")),
        ("BB".parse().expect("a code"), made(true, "DE")),
        ("CC".parse().expect("a code"), made(false, "DE")),
    ]);
    snapshot(&catalog, &[256]).blocks()[0].clone()
}

/// A fault: its description, and the function that causes it.
type Damage = (&'static str, fn(&mut Directory));

/// Faults of discounts.
const DISCOUNTS: [Damage; 3] = [
    ("a discount's text lies behind its product", |it| {
        it.discount_starts[1] = 1_000;
    }),
    ("a discount is above 1", |it| {
        it.discounts[1] = 1_000_001 << 8 | 6;
    }),
    ("a discount has more digits than any", |it| {
        it.discounts[1] = 1 << 8 | 29;
    }),
];

#[test]
fn directories_with_one_fault_are_refused() {
    let block = sound();
    let arena = block.arena();
    let whole = Directory::read(block.directory());
    assert_eq!(whole.bytes(), block.directory()[..], "the table is true");
    let words = block.words();
    let is_taken =
        |bytes: Vec<u8>| Block::from_bytes(bytes.into(), arena.clone(), words.clone()).is_ok();
    assert!(is_taken(whole.bytes()));
    let damages: [Damage; 15] = [
        ("a product ends ahead of its beginning", |it| {
            it.ends[1] = it.ends[0];
        }),
        ("a product ends behind the next", |it| {
            it.ends[1] = it.ends[2] + 1;
        }),
        ("the last ends ahead of the arena's end", |it| {
            it.ends[2] -= 1;
        }),
        ("the last ends behind the arena's end", |it| it.ends[2] += 1),
        ("content ends ahead of its beginning", |it| {
            it.content[1] = [3, 2];
        }),
        ("content ends behind its product", |it| {
            it.content[1][1] += 1;
        }),
        ("a code ends ahead of its beginning", |it| {
            it.code_ends[0] = 5;
        }),
        ("the last code ends ahead of the codes' end", |it| {
            it.code_ends[2] -= 1;
        }),
        ("the last code ends behind the codes' end", |it| {
            it.code_ends[2] += 1;
        }),
        ("something is no code", |it| it.codes[2] = b'/'),
        ("a code is empty", |it| it.code_ends[0] = 0),
        ("codes descend", |it| it.codes[0] = b'X'),
        ("a code is there twice", |it| {
            it.codes[..2].copy_from_slice(b"BB");
        }),
        ("facets descend", |it| it.facets.reverse()),
        ("a facet is there twice", |it| {
            it.facets[1].0 = it.facets[0].0;
        }),
    ];
    for (what, damage) in damages.into_iter().chain(DISCOUNTS) {
        let mut directory = whole.clone();
        damage(&mut directory);
        assert!(!is_taken(directory.bytes()), "{what}");
    }
    for member in [3, 63, 64, 255] {
        let mut directory = whole.clone();
        directory.facets[0].1[member / 8] |= 1 << (member % 8);
        assert!(!is_taken(directory.bytes()), "member {member} of three");
    }
    for (what, bytes) in [
        ("nothing", vec![]),
        ("half a header", whole.bytes()[..6].to_vec()),
        (
            "a byte too few",
            whole.bytes()[..whole.bytes().len() - 1].to_vec(),
        ),
        ("a byte too many", [whole.bytes(), vec![0]].concat()),
    ] {
        assert!(!is_taken(bytes), "{what}");
    }
}

#[test]
fn blocks_of_none_or_too_many_products_are_refused() {
    let block = sound();
    let whole = Directory::read(block.directory());
    let made = |count: usize| {
        let codes: Vec<String> = (0..count).map(|number| format!("P{number:03}")).collect();
        let end = |length: usize| u32::try_from(length).expect("short");
        let directory = Directory {
            ends: (0..count).map(|place| end(place * 2 + 1)).collect(),
            content: vec![[0, 0]; count],
            discount_starts: vec![0; count],
            discounts: vec![0; count],
            hashes: vec![[0; 16]; count],
            code_ends: (1..=count)
                .map(|place| u16::try_from(place * 4).expect("short"))
                .collect(),
            codes: codes.concat().into_bytes(),
            facets: vec![],
        };
        let arena = vec!["1"; count].join(",");
        let words = "\n".repeat(count);
        Block::from_bytes(directory.bytes().into(), arena.into(), words.into())
    };
    assert!(made(1).is_ok());
    assert!(made(Block::CAPACITY).is_ok());
    assert!(made(Block::CAPACITY + 1).is_err());
    assert!(made(0).is_err());
    let words = block.words();
    // Numbers beyond the end of the directory.
    for place in [0, 4, 8] {
        let mut bytes = whole.bytes();
        bytes[place..place + 4].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(Block::from_bytes(bytes.into(), block.arena().clone(), words.clone()).is_err());
    }
}
