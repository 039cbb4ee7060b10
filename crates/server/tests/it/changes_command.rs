//! `vitrine changes`: lines, tokens and exit codes.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

use crate::harness::{Page, Web, text};

const KEY: &str = "partner.s3cret-part";
const PATH: &str = "/v2/product/changes";

fn command(base: &str, key: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vitrine"));
    command
        .arg("changes")
        .args(arguments)
        .env("VITRINE_URL", base)
        .env("VITRINE_KEY", key);
    command
}

/// Runs the command against a scripted server.
fn run(web: &Web, arguments: &[&str]) -> Output {
    let output = command(&web.url(""), KEY, arguments).output();
    output.expect("vitrine runs")
}

/// Returns exit code, standard output and standard error.
fn parts(output: &Output) -> (Option<i32>, String, String) {
    let stderr = text(&output.stderr);
    assert!(!stderr.contains("s3cret"), "{stderr}");
    (output.status.code(), text(&output.stdout), stderr)
}

/// Returns an answer with changes, which are lines.
fn page(lines: &[&str], next: &str, has_more: bool) -> Page {
    let changes = lines.join(", ");
    json(format!(
        r#"{{"changes":[{changes}],"next":"{next}","has_more":{has_more}}}"#
    ))
}

fn json(body: String) -> Page {
    Page::ok(body).with("Content-Type", "application/json")
}

/// Returns the 410 for a token that the server doesn't know.
fn gone() -> Page {
    let body =
        r#"{"type":"changes_gone","message":"unknown token","help":"begin without `since`"}"#;
    json(body.to_owned()).with_status("410 Gone")
}

/// Returns a directory, and the path of a token's file in it.
fn token_file(content: Option<&str>) -> (TempDir, String) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("token");
    if let Some(content) = content {
        fs::write(&path, content).expect("a file");
    }
    let path = path.display().to_string();
    (directory, path)
}

fn read(path: &str) -> String {
    fs::read_to_string(path).expect("a token")
}

/// Returns the targets of the requests so far.
fn targets(web: &Web) -> Vec<String> {
    let target = |head: &String| head.split(' ').nth(1).unwrap_or_default().to_owned();
    web.take_requests().iter().map(target).collect()
}

const ADDED: &str = r#"{"code":"A","product":{"name":"é","n":1.50,"code":"A"}}"#;
const REMOVED: &str = r#"{"code":"B","product":null}"#;

#[test]
fn changes_are_printed_as_the_server_sent_them() {
    let web = Web::of(&[
        (
            &format!("{PATH}?countries_redeemable_in=SE&categories=a%20b&is_orderable=true"),
            page(&[ADDED, REMOVED], "c1_a", true),
        ),
        (
            &format!(
                "{PATH}?countries_redeemable_in=SE&categories=a%20b&is_orderable=true&since=c1_a"
            ),
            // A line stays one, whatever is between values.
            page(
                &["{\"code\":\"C\",\n\"product\":{\r\n\"code\": \"C\"}}"],
                "c1_b",
                false,
            ),
        ),
        (
            &format!("{PATH}?since=c1_b&wait=9"),
            page(&[], "c1_c", false),
        ),
    ]);
    let filters = ["--country", "SE", "--category", "a b", "--orderable"];
    let printed =
        format!("{ADDED}\n{REMOVED}\n{{\"code\":\"C\",\"product\":{{  \"code\": \"C\"}}}}\n");
    assert_eq!(
        parts(&run(&web, &filters)),
        (Some(0), printed, "next: c1_b\n".to_owned())
    );
    assert_eq!(
        parts(&run(&web, &["--since", "c1_b", "--long-poll", "9"])),
        (Some(0), String::new(), "next: c1_c\n".to_owned())
    );
}

#[test]
fn token_file_is_replaced_after_each_page() {
    let web = Web::of(&[
        (PATH, page(&[ADDED], "c1_a", true)),
        (&format!("{PATH}?since=c1_a"), Page::status("404 Not Found")),
    ]);
    let (directory, file) = token_file(None);
    let (code, stdout, stderr) = parts(&run(&web, &["--token-file", &file]));
    assert_eq!((code, stdout), (Some(1), format!("{ADDED}\n")));
    assert!(stderr.contains("run it again to continue"), "{stderr}");
    assert_eq!(read(&file), "c1_a\n");

    web.set(
        &format!("{PATH}?since=c1_a"),
        &[page(&[REMOVED], "c1_b", false)],
    );
    web.set(&format!("{PATH}?since=c1_b"), &[page(&[], "c1_b", false)]);
    web.take_requests();
    for printed in [format!("{REMOVED}\n"), String::new()] {
        assert_eq!(
            parts(&run(&web, &["--token-file", &file])),
            (Some(0), printed, String::new())
        );
        assert_eq!(read(&file), "c1_b\n");
    }
    assert_eq!(
        targets(&web),
        [format!("{PATH}?since=c1_a"), format!("{PATH}?since=c1_b")]
    );
    let left = fs::read_dir(directory.path()).expect("a directory");
    assert_eq!(left.count(), 1);
}

#[test]
fn interrupted_run_names_the_token_that_continues() {
    let web = Web::of(&[(PATH, page(&[ADDED], "c1_a", true))]);
    let (code, stdout, stderr) = parts(&run(&web, &[]));
    assert_eq!((code, stdout), (Some(1), format!("{ADDED}\n")));
    assert!(stderr.contains("continue with --since c1_a"), "{stderr}");
    // A server whose tokens lead back is asked no further.
    web.set(
        &format!("{PATH}?since=c1_a"),
        &[page(&[ADDED], "c1_a", true)],
    );
    let (code, _, stderr) = parts(&run(&web, &[]));
    assert!(code == Some(1) && stderr.contains("leads back"), "{stderr}");
}

#[test]
fn lost_token_has_an_exit_code_of_its_own() {
    let since = format!("{PATH}?since=c1_a");
    let web = Web::of(&[
        (&since, gone()),
        (&format!("{since}&wait=45"), gone()),
        (PATH, page(&[ADDED], "c1_a", false)),
    ]);
    let (code, stdout, stderr) = parts(&run(&web, &["--since", "c1_a"]));
    assert_eq!((code, stdout.as_str()), (Some(3), ""));
    for part in ["begin without --since", "replace the copy", "changes_gone"] {
        assert!(stderr.contains(part), "{part} in {stderr}");
    }
    let (_directory, file) = token_file(Some("c1_a"));
    for more in [[].as_slice(), &["--follow"]] {
        let arguments = [&["--token-file", &file], more].concat();
        let (code, stdout, stderr) = parts(&run(&web, &arguments));
        assert_eq!((code, stdout.as_str()), (Some(3), ""));
        assert!(stderr.contains(&format!("remove {file}")), "{stderr}");
        assert_eq!(read(&file), "c1_a");
    }
    // A token that came with this run's own lines is no other case.
    let (code, stdout, stderr) = parts(&run(&web, &["--follow"]));
    assert_eq!((code, stdout), (Some(3), format!("{ADDED}\n")));
    assert!(stderr.starts_with("next: c1_a\n"), "{stderr}");
}

#[test]
fn follow_goes_on_through_outages() {
    let web = Web::of(&[(PATH, page(&[ADDED], "c1_a", false))]);
    let unavailable = || Page::status("503 Service Unavailable").with("Retry-After", "0");
    web.set(
        &format!("{PATH}?since=c1_a&wait=45"),
        &[
            unavailable(),
            page(&[], "c1_x", false).cut(),
            page(&[REMOVED], "c1_b", false),
        ],
    );
    web.set(
        &format!("{PATH}?since=c1_b&wait=45"),
        &[unavailable(), gone()],
    );
    let (_directory, file) = token_file(Some("\n"));
    let (code, stdout, stderr) = parts(&run(&web, &["--follow", "--token-file", &file]));
    assert_eq!((code, stdout), (Some(3), format!("{ADDED}\n{REMOVED}\n")));
    assert_eq!(read(&file), "c1_b\n");
    // Each outage is told once.
    assert_eq!(stderr.matches("trying again").count(), 2, "{stderr}");
    assert_eq!(stderr.lines().count(), 3, "{stderr}");
    assert_eq!(web.take_requests().len(), 6);
}

#[test]
fn follow_ends_with_a_failure_that_does_not_pass() {
    let web = Web::of(&[(PATH, page(&[ADDED], "c1_a", false))]);
    let (code, stdout, stderr) = parts(&run(&web, &["--follow", "--long-poll", "5"]));
    assert_eq!((code, stdout), (Some(1), format!("{ADDED}\n")));
    assert!(stderr.contains("status 404"), "{stderr}");
    assert_eq!(
        targets(&web),
        [PATH.to_owned(), format!("{PATH}?since=c1_a&wait=5")]
    );
}

#[test]
fn lines_without_a_reader_store_no_token() {
    for more in [[].as_slice(), &["--follow"]] {
        let web = Web::of(&[(PATH, page(&[ADDED], "c1_a", false).gated())]);
        let (_directory, file) = token_file(None);
        let arguments = [&["--token-file", &file], more].concat();
        let mut child = command(&web.url(""), KEY, &arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("vitrine runs");
        drop(child.stdout.take());
        web.open_gate();
        let output = child.wait_with_output().expect("an end");
        assert_eq!(parts(&output), (Some(0), String::new(), String::new()));
        assert!(!Path::new(&file).exists());
    }
}

#[test]
fn files_without_a_token_are_not_replaced() {
    let web = Web::of(&[(PATH, page(&[ADDED], "c1_a", false))]);
    for content in [
        "a catalog",
        "\u{1b}[31m",
        &"a".repeat(401),
        &"a\n".repeat(300),
    ] {
        let (_directory, file) = token_file(Some(content));
        let (code, stdout, stderr) = parts(&run(&web, &["--token-file", &file]));
        assert_eq!((code, stdout.as_str()), (Some(1), ""));
        assert!(stderr.contains("something else than a token"), "{stderr}");
        assert_eq!(read(&file), content);
    }
    let (directory, _) = token_file(None);
    let missing = directory.path().join("none/token").display().to_string();
    let (code, _, stderr) = parts(&run(&web, &["--token-file", &missing]));
    assert!(
        code == Some(1) && stderr.contains("can't write"),
        "{stderr}"
    );
    let longest = "a".repeat(400);
    web.set(
        &format!("{PATH}?since={longest}"),
        &[page(&[], "c1_b", false)],
    );
    let (_directory, file) = token_file(Some(&format!("{longest}\n")));
    assert!(run(&web, &["--token-file", &file]).status.success());
    for wrong in [
        ["--since", "c1_a", "--token-file", "token"].as_slice(),
        &["--long-poll", "56"],
        &["--store", "sqlite:vitrine.db"],
        &["--wait", "5"],
    ] {
        assert_eq!(run(&web, wrong).status.code(), Some(2), "{wrong:?}");
    }
}

#[test]
fn documented_line_removes_a_line_that_was_cut_off() {
    let document = include_str!("../../../../docs/integrate.md");
    let mut lines = document.lines().map(str::trim);
    let line = lines
        .find(|line| line.contains("tail -c 1"))
        .expect("a line");
    let help = Command::new(env!("CARGO_BIN_EXE_vitrine"))
        .args(["changes", "--help"])
        .output();
    let help = text(&help.expect("vitrine runs").stdout);
    let (command, _) = line.split_once("  #").unwrap_or((line, ""));
    assert!(help.contains(command.trim_end()), "{command}: {help}");
    let directory = TempDir::new().expect("a directory");
    let file = directory.path().join("changes.ndjson");
    for (before, after) in [
        ("a\nb\ncut", "a\nb\n"),
        ("a\nb\n", "a\nb\n"),
        ("cut", ""),
        ("", ""),
    ] {
        fs::write(&file, before).expect("a file");
        let mut shell = Command::new("sh");
        let status = shell
            .args(["-eu", "-c", line])
            .current_dir(&directory)
            .status();
        assert!(status.expect("a shell").success());
        assert_eq!(
            fs::read_to_string(&file).expect("a file"),
            after,
            "{before:?}"
        );
    }
}
