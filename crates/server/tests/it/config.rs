//! `vitrine config`, and settings from a file: what goes before what, the manual, secrets.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Output;

use serde_json::Value;

use crate::harness::{Server, Store, text};

const MANUAL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vitrine.default.toml");

/// Runs a command with a settings file, without what the harness puts into the environment.
pub fn run(store: &Store, arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    let mut command = store.command(arguments);
    command.env_remove("VITRINE_STORE");
    command.envs(environment.iter().copied());
    command.output().expect("vitrine runs")
}

/// Returns the settings in effect: their values and sources.
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
pub fn faults(store: &Store, content: impl AsRef<[u8]>) -> Vec<(u64, u64, String, String)> {
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
fn sources_of_settings_have_their_order() {
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
fn server_takes_settings_from_its_file() {
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
fn passwords_are_hidden_and_their_files_private() {
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
        told.contains("postgres://vitrine@127.0.0.1:1/vitrine (hidden)"),
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
        warned.contains("`store` contains a password") && warned.contains("chmod o-r"),
        "{warned}"
    );
    assert!(!warned.contains(secret));
    assert_eq!(warnings(0o640), "");
}

#[test]
fn settings_manual_is_printed_with_the_defaults() {
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
        // Files that aren't there, and a replica of nothing.
        let expected = ["can't be read", "--follow-store needs"];
        assert!(expected.iter().any(|words| said.contains(words)), "{said}");
    }
    assert!(Path::new(MANUAL).exists());
}
