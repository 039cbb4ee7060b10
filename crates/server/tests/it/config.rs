//! `vitrine config`, and settings from a file: what goes before what, every fault with its line, the manual.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Output;

use serde_json::Value;

use crate::harness::{Server, Store, text};

const MANUAL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vitrine.default.toml");

/// Runs a command with a settings file, without what the harness puts into the environment.
fn run(store: &Store, arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    let mut command = store.command(arguments);
    command.env_remove("VITRINE_STORE");
    command.envs(environment.iter().copied());
    command.output().expect("vitrine runs")
}

/// What is in effect: the setting's values and where they come from.
fn effective(
    store: &Store,
    arguments: &[&str],
    environment: &[(&str, &str)],
    setting: &str,
) -> (Value, String) {
    let arguments = [&["config", "show", "--json"], arguments].concat();
    let output = run(store, &arguments, environment);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let shown: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let settings = shown["settings"].as_array().expect("a list");
    let found = settings.iter().find(|found| found["setting"] == setting);
    let found = found.expect("the setting");
    let source = match found["source"].as_str().expect("a source") {
        "file" => format!("line {}", found["line"]),
        source => source.to_owned(),
    };
    (found["values"].clone(), source)
}

/// The faults of a file: line, column, setting, what is wrong and what to do.
fn faults(store: &Store, content: impl AsRef<[u8]>) -> Vec<(u64, u64, String, String)> {
    let file = store.write("vitrine.toml", content);
    let file = file.display().to_string();
    let output = run(store, &["config", "check", "--json", &file], &[]);
    let report: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}{}", text(&output.stdout), text(&output.stderr)));
    assert_eq!(report["file"], file);
    let faults = report["faults"].as_array().expect("a list");
    assert_eq!(report["clean"], faults.is_empty());
    let code = if faults.is_empty() { 0 } else { 3 };
    assert_eq!(output.status.code(), Some(code), "{report}");
    let fault = |fault: &Value| {
        let said = format!(
            "{} → {}",
            fault["what"].as_str().expect("a text"),
            fault["advice"].as_str().expect("a text")
        );
        let setting = fault["setting"].as_str().unwrap_or_default().to_owned();
        let number = |name: &str| fault[name].as_u64().unwrap_or_default();
        (number("line"), number("column"), setting, said)
    };
    faults.iter().map(fault).collect()
}

#[test]
fn flags_go_before_the_environment_before_the_file_before_defaults() {
    let store = Store::new();
    let file = store.write(
        "vitrine.toml",
        "\ncache_mib = 1\nadmin_beyond_loopback = true\n",
    );
    let file = file.display().to_string();
    let of_file = ["--config", file.as_str()];
    let with_flag = ["--config", &file, "--", "--cache-mib", "3"];
    let environment = [("VITRINE_CACHE_MIB", "2")];
    let value = |arguments: &[&str], environment: &[(&str, &str)]| {
        let (values, source) = effective(&store, arguments, environment, "cache_mib");
        (values[0].as_str().expect("a value").to_owned(), source)
    };
    let is = |value: &str, source: &str| (value.to_owned(), source.to_owned());
    assert_eq!(value(&[], &[]), is("96", "default"));
    assert_eq!(value(&of_file, &[]), is("1", "line 2"));
    assert_eq!(value(&of_file, &environment), is("2", "environment"));
    assert_eq!(value(&with_flag, &environment), is("3", "flag"));
    assert_eq!(value(&with_flag, &[]), is("3", "flag"));
    assert_eq!(value(&[], &[("VITRINE_CONFIG", &file)]), is("1", "line 2"));
    // Flags without a value too.
    let switch = |environment: &[(&str, &str)]| {
        effective(&store, &of_file, environment, "admin_beyond_loopback")
    };
    assert_eq!(
        switch(&[]),
        (["true"].as_slice().into(), "line 3".to_owned())
    );
    let environment = [("VITRINE_ADMIN_BEYOND_LOOPBACK", "no")];
    assert_eq!(
        switch(&environment),
        (["false"].as_slice().into(), "environment".to_owned())
    );
    // And for people.
    let output = run(&store, &["config", "show", "--config", &file], &[]);
    let shown = text(&output.stdout);
    let has = |line: &str, source: &str| {
        let found = shown.lines().find(|found| found.starts_with(line));
        found.is_some_and(|found| found.ends_with(&format!("# {source}")))
    };
    assert!(has("cache_mib = 1 ", &format!("{file}:2")), "{shown}");
    assert!(has("listen = \"127.0.0.1:8080\" ", "default"), "{shown}");
    assert!(has("#public_url ", "not set"), "{shown}");
}

#[test]
fn a_server_runs_with_what_its_file_says() {
    let store = Store::sample();
    let content = format!(
        "store = '{}'\nlisten = \"127.0.0.1:0\"\npublic_url = 'https://catalog.example'\n\
         admin_listen = \"127.0.0.1:0\"\naccess_log = \"off\"\n",
        store.url()
    );
    let file = store.write("vitrine.toml", content).display().to_string();
    let mut command = store.command(&["serve", "--config", &file]);
    command.env_remove("VITRINE_STORE");
    let server = Server::start(command);
    let key = store.key("partner", &[]);
    // The key is noticed when it is.
    crate::harness::wait_for("the key", || {
        (server.get(&key, "/v2/ping").status == 200).then_some(())
    });
    assert_eq!(server.ask_admin("GET", "/readyz").status, 200);
    assert!(
        server
            .stderr()
            .contains("serving https://catalog.example/v2")
    );
    assert_eq!(server.stdout(), "");
    // Other commands take from it where the store is, and no more.
    let listed = run(&store, &["keys", "list", "--json", "--config", &file], &[]);
    assert!(
        text(&listed.stdout).contains("partner"),
        "{}",
        text(&listed.stderr)
    );
    let listed = run(&store, &["keys", "list"], &[("VITRINE_CONFIG", &file)]);
    assert!(
        text(&listed.stdout).contains("partner"),
        "{}",
        text(&listed.stderr)
    );
}

#[test]
fn every_fault_of_a_file_is_told_at_once_with_its_place() {
    let store = Store::new();
    let content = r#"# A comment, and a blank line.

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
traces_sample_ratio = 3
"#;
    let expected = [
        (
            3,
            10,
            "listen",
            "`listen` is a number → write ADDR:PORT in quotes, such as \"127.0.0.1:8080\"",
        ),
        (
            4,
            1,
            "listn",
            "there is no setting `listn` → did you mean `listen`?",
        ),
        (
            5,
            1,
            "cache-mib",
            "there is no setting `cache-mib` → did you mean `cache_mib`?",
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
            "`cache_mib` is set twice → remove one of the two lines",
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
            "`public_url` is `https://catalog.example/v2`: expected an address without query, fragment and `/v2` → write URL in quotes, such as \"https://catalog.example\"",
        ),
        (
            12,
            1,
            "wholly_unknown",
            "there is no setting `wholly_unknown` → `vitrine config default` prints all settings",
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
            "`limits` is a table → settings have no tables: write each as `name = value`",
        ),
        (
            19,
            23,
            "traces_sample_ratio",
            "expected a number from 0 to 1",
        ),
    ];
    let found = faults(&store, content);
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (found, expected) in found.iter().zip(expected) {
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
        for (line, column, ..) in expected {
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
fn what_is_no_file_of_settings_is_told_as_such() {
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
fn what_would_only_fail_at_the_start_is_found_by_a_check() {
    let store = Store::new();
    let file = store.write("file", "").display().to_string();
    let content = format!("\nadmin_listen = \"0.0.0.0:0\"\nstate_dir = '{file}'\n");
    let found = faults(&store, content);
    assert_eq!(found.len(), 2, "{found:?}");
    assert_eq!((found[0].0, found[0].2.as_str()), (2, "admin_listen"));
    assert!(found[0].3.contains("--admin-beyond-loopback"), "{found:?}");
    assert_eq!((found[1].0, found[1].2.as_str()), (3, "state_dir"));
    assert!(found[1].3.contains("which is no directory"), "{found:?}");
    let content = "admin_listen = \"0.0.0.0:0\"\nadmin_beyond_loopback = true\n";
    assert_eq!(faults(&store, content), []);
}

#[test]
fn passwords_are_shown_nowhere_and_files_with_them_are_not_for_everybody() {
    let store = Store::new();
    let secret = "hunter2";
    let address = format!("postgres://vitrine:{secret}@127.0.0.1:1/vitrine");
    let content = format!("store = '{address}'\nlisten = '{address}'\n");
    let file = store.write("vitrine.toml", content);
    let name = file.display().to_string();
    let mode = |mode| {
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(&file, mode).expect("a mode");
    };
    let environment = [("VITRINE_STORE", address.as_str())];
    let mut told = String::new();
    for (arguments, environment) in [
        (&["config", "check", &name][..], &[][..]),
        (&["serve", "--config", &name], &[]),
        (&["config", "show"], &environment),
        (&["config", "show", "--json"], &environment),
        (&["serve", "--help"], &environment),
        (&["--help"], &environment),
        (&["man"], &environment),
        (&["completions", "bash"], &environment),
    ] {
        let output = run(&store, arguments, environment);
        let all = text(&output.stdout) + &text(&output.stderr);
        assert!(!all.contains(secret), "{arguments:?}: {all}");
        told.push_str(&all);
    }
    assert!(
        told.contains("postgres://vitrine:(hidden)@127.0.0.1:1/vitrine"),
        "{told}"
    );
    std::fs::write(&file, format!("store = '{address}'\n")).expect("a file");
    let warnings = |mode_bits: u32| {
        mode(mode_bits);
        let output = run(&store, &["config", "check", "--json", &name], &[]);
        assert!(output.status.success(), "{}", text(&output.stdout));
        let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let warnings = report["warnings"].as_array().expect("a list");
        warnings.iter().map(ToString::to_string).collect::<String>()
    };
    let warned = warnings(0o644);
    assert!(
        warned.contains("`store` holds a password") && warned.contains("chmod o-r"),
        "{warned}"
    );
    assert!(!warned.contains(secret));
    assert_eq!(warnings(0o640), "");
}

#[test]
fn the_manual_is_what_the_program_prints_and_says_the_defaults() {
    let store = Store::new();
    let printed = store.ok(&["config", "default"]);
    if std::env::var_os("VITRINE_BLESS").is_some() {
        std::fs::write(MANUAL, &printed).expect("the manual is written");
    }
    let kept = std::fs::read_to_string(MANUAL).unwrap_or_default();
    assert!(
        kept == printed,
        "vitrine.default.toml isn't what `vitrine config default` prints; \
         `VITRINE_BLESS=1 cargo test --test it config` rewrites it"
    );
    assert_eq!(faults(&store, &printed), []);
    // Without its `#`, every setting says what is so without it.
    let is_setting = |line: &&str| line.starts_with('#') && !line.starts_with("# ") && *line != "#";
    let settings: Vec<&str> = printed.lines().filter(is_setting).collect();
    assert!(settings.len() > 8, "{settings:?}");
    let all = settings.iter().map(|line| format!("{}\n", &line[1..]));
    assert_eq!(faults(&store, all.collect::<String>()), []);
    let file = store.path("vitrine.toml").display().to_string();
    let values = |arguments: &[&str]| {
        let output = run(
            &store,
            &[&["config", "show", "--json"], arguments].concat(),
            &[],
        );
        let shown: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let settings = shown["settings"].as_array().expect("a list").clone();
        let value = |setting: Value| (setting["setting"].clone(), setting["values"].clone());
        settings.into_iter().map(value).collect::<Vec<_>>()
    };
    assert_eq!(values(&["--config", &file]), values(&[]));
    // Examples of what has no default are right too: the admin port's is on the loopback interface.
    let example = |line: &str| {
        let line = line.strip_prefix("# ")?;
        let (name, _) = line.split_once(" = ")?;
        let is_name = name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        is_name.then(|| format!("{line}\n"))
    };
    let examples: String = printed.lines().filter_map(example).collect();
    assert!(
        examples.contains("admin_listen = \"127.0.0.1:"),
        "{examples}"
    );
    for (.., said) in faults(&store, &examples) {
        // Files that aren't there, and programs that can't trace.
        assert!(
            said.contains("can't be read") || said.contains("without traces"),
            "{said}"
        );
    }
    assert!(Path::new(MANUAL).exists());
}
