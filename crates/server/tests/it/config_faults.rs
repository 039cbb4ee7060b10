//! Faults of a settings file: each with its place and its remedy.

use std::path::Path;

use crate::config::{faults, run};
use crate::harness::{Certificate, Store, text};

/// A file in which nearly every line is wrong.
const FAULTY: &str = r#"# A comment, and a blank line.

listen = 8080
listn = "127.0.0.1:8080"
cache-mib = 5
	wait = 100000
cache_mib = "96"
cache_mib = 5
log_level = "inof"
admin_beyond_loopback = "yes"
public_url = "https://catalog.example/v2"
wholly_unknown = 1
store = ["a"]
state_dir = 2026-01-01
log_format = = 3
"Ünknown" = "ü" ; listen

[limits]
access_log = "file"
"#;

/// Its faults: line, column, setting, and some of what is said.
const FAULTS: [(u64, u64, &str, &str); 16] = [
    (
        3,
        10,
        "listen",
        "`listen` is a number → write WHERE in quotes, such as \"127.0.0.1:8080\"",
    ),
    (
        4,
        1,
        "listn",
        "unknown setting `listn` → did you mean `listen`?",
    ),
    (
        5,
        1,
        "cache-mib",
        "unknown setting `cache-mib` → did you mean `cache_mib`?",
    ),
    (
        6,
        9,
        "wait",
        "`wait` is `100000`: 100000 is not in 0..=86400 → write a number without quotes, such as 30",
    ),
    (
        7,
        13,
        "cache_mib",
        "`cache_mib` is a text → write a number without quotes, such as 96",
    ),
    (
        8,
        1,
        "cache_mib",
        "`cache_mib` is set twice → remove one of the two",
    ),
    (
        9,
        13,
        "log_level",
        "`log_level` is `inof` → write one of \"error\", \"warn\", \"info\", \"debug\", \"trace\"; did you mean `info`?",
    ),
    (
        10,
        25,
        "admin_beyond_loopback",
        "`admin_beyond_loopback` is a text → write true or false, without quotes",
    ),
    (
        11,
        14,
        "public_url",
        "`public_url` is `https://catalog.example/v2`: expected an address without query, fragment and `/v2` → give one such as \"https://catalog.example\"",
    ),
    (
        12,
        1,
        "wholly_unknown",
        "unknown setting `wholly_unknown` → `vitrine config default` prints all settings",
    ),
    (
        13,
        9,
        "store",
        "`store` is a list → write URL in quotes, such as \"sqlite:vitrine.db\"",
    ),
    (
        14,
        13,
        "state_dir",
        "`state_dir` is a time → write DIR in quotes, such as \"/var/lib/vitrine/state\"",
    ),
    (
        15,
        14,
        "",
        "this isn't TOML: extra `=`, expected nothing → write it as `name = value`, a text in quotes",
    ),
    (16, 17, "", "this isn't TOML"),
    (
        18,
        2,
        "limits",
        "`limits` is a table → settings have no tables; write each as `name = value`",
    ),
    (19, 14, "access_log", "write one of \"stdout\", \"off\""),
];

#[test]
fn every_fault_of_a_file_is_reported_with_its_place() {
    let store = Store::new();
    let found = faults(&store, FAULTY);
    assert_eq!(found.len(), FAULTS.len(), "{found:#?}");
    for (found, expected) in found.iter().zip(FAULTS) {
        let (line, column, setting, said) = expected;
        assert_eq!(
            (found.0, found.1, found.2.as_str()),
            (line, column, setting),
            "{found:?}"
        );
        assert!(found.3.contains(said), "{found:?}: {said}");
    }
    // People are told the same, by `check` and by whatever was to be run.
    let file = store.path("vitrine.toml").display().to_string();
    let checked = text(&run(&store, &["config", "check", &file], &[]).stdout);
    for arguments in [["serve", "--config"], ["history", "--config"]] {
        let refused = run(&store, &[arguments[0], arguments[1], &file], &[]);
        assert_eq!(refused.status.code(), Some(3));
        let told = text(&refused.stderr);
        for (line, column, ..) in FAULTS {
            let place = format!("{file}:{line}:{column}: ");
            assert!(
                checked.contains(&place) && told.contains(&place),
                "{place}\n{told}"
            );
        }
        assert!(
            told.ends_with("the settings are refused; faults: 16\n"),
            "{told}"
        );
    }
    assert!(!store.path("vitrine.db").exists());
}

#[test]
fn wrong_kinds_of_settings_files_are_refused() {
    let store = Store::new();
    let found = faults(&store, b"listen = \"127.0.0.1:0\"\nstore = \"\xff\"\n");
    assert_eq!(
        (found[0].0, found[0].1, found.len()),
        (2, 10, 1),
        "{found:?}"
    );
    assert!(found[0].3.contains("isn't UTF-8"), "{found:?}");
    let found = faults(&store, vec![b'#'; (1 << 20) + 1]);
    assert!(
        found[0].3.contains("longer than 1048576 bytes"),
        "{found:?}"
    );
    assert_eq!(
        faults(&store, "\u{feff}cache_mib = 0x10\r\nwait = 1_0\r\n"),
        []
    );
    assert_eq!(faults(&store, ""), []);
    let missing = store.path("missing.toml").display().to_string();
    for arguments in [
        &["config", "check", &missing][..],
        &["serve", "--config", &missing],
    ] {
        let failed = run(&store, arguments, &[]);
        assert_eq!(failed.status.code(), Some(1), "{arguments:?}");
        let told = text(&failed.stderr);
        assert!(
            told.contains("can't read the settings file") && told.contains(&missing),
            "{told}"
        );
    }
    let nothing = run(&store, &["config", "check"], &[]);
    assert_eq!(nothing.status.code(), Some(2), "{}", text(&nothing.stderr));
    // Help is given all the same.
    let broken = store.write("broken.toml", "=").display().to_string();
    let help = run(&store, &["serve", "--help"], &[("VITRINE_CONFIG", &broken)]);
    assert!(help.status.success() && text(&help.stdout).contains("--public-url"));
}

#[test]
fn check_finds_faults_of_the_start() {
    let store = Store::new();
    let file = store.write("file", "").display().to_string();
    let content = format!("\nadmin_listen = \"0.0.0.0:0\"\nstate_dir = '{file}'\n");
    let found = faults(&store, content);
    assert_eq!(found.len(), 2, "{found:?}");
    assert_eq!((found[0].0, found[0].2.as_str()), (2, "admin_listen"));
    assert!(found[0].3.contains("--admin-beyond-loopback"), "{found:?}");
    assert_eq!((found[1].0, found[1].2.as_str()), (3, "state_dir"));
    assert!(found[1].3.contains("which isn't a directory"), "{found:?}");
    let content = "admin_listen = \"0.0.0.0:0\"\nadmin_beyond_loopback = true\n";
    assert_eq!(faults(&store, content), []);
}

#[test]
fn check_refuses_what_a_start_refuses() {
    let store = Store::new();
    let socket = store.path("vitrine.sock").display().to_string();
    let limits = "limits = 'redis://:hunter2@limits.internal'";
    let found = faults(&store, format!("\n{limits}\n"));
    assert_eq!((found[0].0, found[0].2.as_str()), (2, "limits"));
    assert!(found[0].3.contains("--limits-password-file"), "{found:?}");
    assert!(!found[0].3.contains("hunter2"), "{found:?}");
    let found = faults(&store, format!("listen = 'unix:{socket}'\n"));
    assert_eq!((found[0].0, found[0].2.as_str()), (1, "listen"));
    assert!(found[0].3.contains("--public-url"), "{found:?}");
    let both = faults(&store, format!("{limits}\nlisten = 'unix:{socket}'\n"));
    let lines: Vec<u64> = both.iter().map(|fault| fault.0).collect();
    assert_eq!(lines, [1, 2], "{both:?}");
    // The server says the same, before it listens.
    let content = format!("listen = 'unix:{socket}'\npublic_url = 'https://a.example'\n{limits}\n");
    let file = store.write("serve.toml", content).display().to_string();
    let refused = run(&store, &["serve", "--config", &file], &[]);
    let told = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{told}");
    assert!(
        told.contains("--limits: the address contains a password"),
        "{told}"
    );
    assert!(!told.contains("hunter2"), "{told}");
    assert!(!store.path("vitrine.sock").exists());
}

#[test]
fn setting_that_needs_another_is_reported_with_its_line() {
    let store = Store::new();
    let file = store.write("a.pem", "").display().to_string();
    for (one, other) in [
        ("tls_key", "--tls-certificate"),
        ("tls_certificate", "--tls-key"),
    ] {
        let content = format!("wait = 1\n\n{one} = '{file}'\ncache_mib = 5\n");
        let found = faults(&store, content);
        let [(3, 1, setting, said)] = found.as_slice() else {
            panic!("{found:?}");
        };
        assert_eq!(setting, one);
        assert!(said.contains(other), "{said}");
    }
}

#[test]
fn check_finds_an_unusable_certificate() {
    let store = Store::new();
    let pair = Certificate::new(&store, "pair");
    let other = Certificate::new(&store, "other");
    let found = |certificate: &Path, key: &Path| {
        let (certificate, key) = (certificate.display(), key.display());
        let content = format!("tls_certificate = '{certificate}'\ntls_key = '{key}'\n");
        faults(&store, content)
    };
    assert_eq!(found(&pair.chain, &pair.key), []);
    for (certificate, key, line, setting, what) in [
        (&pair.chain, &other.key, 2, "tls_key", "doesn't match"),
        (&pair.key, &pair.key, 1, "tls_certificate", "no certificate"),
        (
            &store.path("none"),
            &pair.key,
            1,
            "tls_certificate",
            "can't be read",
        ),
    ] {
        let found = found(certificate, key);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].0, found[0].2.as_str()), (line, setting));
        assert!(found[0].3.contains(what), "{found:?}");
    }
}

#[test]
fn errors_about_values_show_no_password() {
    let store = Store::new();
    let endpoint = "http://u:hunter2@catalog.internal:8080/v1 x";
    for command in [&["serve"][..], &["config", "show"]] {
        let refused = run(&store, command, &[("VITRINE_PUBLIC_URL", endpoint)]);
        let told = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{told}");
        assert!(!told.contains("hunter2"), "{told}");
        let shown =
            "invalid value 'http://u:(hidden)@catalog.internal:8080/v1 x' for '--public-url <URL>'";
        assert!(
            told.contains(shown) && told.contains("without blanks"),
            "{told}"
        );
    }
}

/// The check stopped at the first of several faults between settings.
#[test]
fn every_fault_between_settings_is_reported() {
    let store = Store::new();
    let file = store.write("key.pem", "").display().to_string();
    let content = format!(
        "listen = 'unix:/run/vitrine.sock'\nadmin_listen = '0.0.0.0:9090'\ntls_key = '{file}'\n\
         follow_store = 'postgres://replica.example/catalog'\n"
    );
    let found = faults(&store, &content);
    let told: Vec<(u64, &str)> = found.iter().map(|fault| (fault.0, &*fault.2)).collect();
    assert_eq!(
        told,
        [
            (1, "listen"),
            (2, "admin_listen"),
            (3, "tls_key"),
            (4, "follow_store"),
        ]
    );
    // The server reports the same.
    let name = store.write("serve.toml", content).display().to_string();
    let refused = run(&store, &["serve", "--config", &name], &[]);
    assert_eq!(refused.status.code(), Some(2));
    let said = text(&refused.stderr);
    for (.., what) in &found {
        let what = what.split(" → ").next().unwrap_or_default();
        assert!(said.contains(what), "{what} isn't in {said}");
    }
}

/// The advice was to write in quotes what stood in quotes.
#[test]
fn port_without_an_address_is_answered_with_one() {
    let store = Store::new();
    for (name, port) in [
        ("listen", "8081"),
        ("listen", ":8081"),
        ("admin_listen", "8081"),
    ] {
        let found = faults(&store, format!("{name} = \"{port}\"\n"));
        let [(1, _, setting, said)] = found.as_slice() else {
            panic!("{found:?}");
        };
        assert_eq!(setting, name);
        assert!(said.contains("write 127.0.0.1:8081"), "{said}");
        assert!(!said.contains("in quotes"), "{said}");
    }
}
