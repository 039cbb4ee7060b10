//! Output on a terminal, and logs: what steers a terminal or reorders text is escaped. Files and pipes get the bytes.

use serde_json::{Value, json};

use crate::harness::{Server, Store, gift_card, wait_for};
use crate::terminal::at_terminal;

/// A name that clears the screen, colours it, sets a title and turns the order of what follows.
const NAME: &str = "x\u{9b}2J\u{1b}[31m\u{1b}]0;t\u{7}\u{7f}\u{202e}\u{2066}\u{200f}\u{61c}y";

fn is_steering(character: char) -> bool {
    let is_structure = matches!(character, '\n' | '\r' | '\t');
    let is_direction = ('\u{2028}'..='\u{202e}').contains(&character)
        || ('\u{2066}'..='\u{2069}').contains(&character)
        || ['\u{200e}', '\u{200f}', '\u{61c}'].contains(&character);
    (character.is_control() && !is_structure) || is_direction
}

fn steering() -> Store {
    let mut product = gift_card("A");
    let store = Store::of(std::slice::from_ref(&product));
    product["name"] = json!(NAME);
    product["categories"] = json!([NAME]);
    store.load_products(&[product]);
    store
}

/// Runs a command on a terminal; returns what is seen, in which nothing steers.
fn seen(store: &Store, arguments: &str) -> Option<String> {
    let (code, seen) = at_terminal(store, arguments, "")?;
    assert_eq!(code, 0, "{arguments}: {seen}");
    let found = seen.chars().find(|character| is_steering(*character));
    assert_eq!(found, None, "{arguments}: {seen:?}");
    assert!(seen.contains("\\u009b2J"), "{arguments}: {seen:?}");
    Some(seen)
}

#[test]
fn steering_characters_on_a_terminal_are_escaped() {
    let store = steering();
    if seen(&store, "show A").is_none() {
        return;
    }
    for arguments in [
        "show A",
        "export",
        "export --format json",
        "export --format csv",
        "diff 1 2",
        "diff 1 2 --json",
    ] {
        let seen = seen(&store, arguments).expect("as before");
        if arguments == "show A" || arguments == "export" {
            let product: Value = serde_json::from_str(&seen).expect("JSON");
            assert_eq!(product["name"], NAME);
        }
    }
    let seen = seen(&store, "diff 1 2 --json").expect("as before");
    let plan: Value = serde_json::from_str(&seen).expect("JSON");
    let new = plan["changed"][0]["fields"][0]["new"]
        .as_str()
        .expect("a value");
    assert_eq!(serde_json::from_str::<String>(new).expect("JSON"), NAME);
}

#[test]
fn steering_characters_in_a_pipe_stay() {
    let store = steering();
    let raw = "\u{9b}2J";
    assert!(store.ok(&["show", "A"]).contains(raw));
    for format in ["ndjson", "json", "csv"] {
        assert!(
            store.ok(&["export", "--format", format]).contains(raw),
            "{format}"
        );
    }
}

#[test]
fn steering_characters_in_a_path_are_escaped_in_the_log() {
    let store = Store::sample();
    let mut server = store.serve();
    let path = "/v2/\u{9b}31m\u{202e}\u{7f}";
    server.raw(format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").as_bytes());
    server.raw(b"GET /v2/\xe2\x80\x8f HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    server.signal("TERM");
    server.wait();
    let log = server.stdout();
    assert!(!log.contains(is_steering), "{log:?}");
    let lines: Vec<Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let paths: Vec<&str> = lines
        .iter()
        .filter_map(|line| line["path"].as_str())
        .collect();
    assert!(paths.contains(&"/v2/\u{200f}"), "{log:?}");
}

#[test]
fn steering_characters_in_messages_are_escaped_in_the_log() {
    let store = Store::sample();
    let file = store.write("a\u{9b}31m\u{202e}.toml", "log_level = 'info'\n");
    let mut command = store.command(&["serve", "--listen", "127.0.0.1:0"]);
    command.args(["--config", &file.display().to_string()]);
    let server = Server::start(command);
    server.signal("HUP");
    let message = wait_for("the settings", || {
        let log = server.stderr();
        let mut lines = log.lines().map(str::to_owned);
        lines.find(|line| line.contains("settings reloaded"))
    });
    assert!(!message.contains(is_steering), "{message:?}");
    let message: Value = serde_json::from_str(&message).expect("JSON");
    assert_eq!(message["fields"]["file"], json!(file));
}

/// The cells of a catalog's one row, by column.
fn cell(csv: &str, column: &str) -> String {
    let mut lines = csv.lines();
    let head = lines.next().expect("columns").split(',');
    let row = lines.next().expect("a row").split(',');
    let mut cells = head.zip(row);
    cells
        .find(|(name, _)| *name == column)
        .expect("a column")
        .1
        .to_owned()
}

#[test]
fn formulas_and_apostrophes_in_csv_stay_what_they_are() {
    for name in ["=1+1", "+1", "-1", "@x", "'=1+1", "''+x", "plain", "'plain"] {
        let mut product = gift_card("A");
        product["name"] = json!(name);
        product["customer_service"]["phone_number"] = json!("+4930555010");
        let store = Store::of(&[product]);
        let csv = store.ok(&["export", "--format", "csv"]);
        assert_eq!(cell(&csv, "name"), name);
        assert_eq!(cell(&csv, "customer_service_phone_number"), "+4930555010");
        let copy = Store::new();
        let report = copy.load(copy.write("copy.csv", &csv));
        assert_eq!(copy.ok(&["export"]), store.ok(&["export"]), "{name}: {csv}");
        assert_eq!(report["warnings"], json!({}), "{csv}");
    }
}
