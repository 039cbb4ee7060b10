//! Files that operators deploy beside the program name only what the program has: metrics of dashboards and
//! alerts, pages of the runbook, options of command lines, tests of protections. `ci/deployment` holds these files
//! against their own schemas and tests.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::harness::{Store, text, wait_for};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../");
const RULES: &str = "deploy/prometheus/vitrine.rules.yaml";
const DASHBOARD: &str = "deploy/grafana/vitrine.json";

fn read(path: &str) -> String {
    std::fs::read_to_string(format!("{ROOT}{path}"))
        .unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// All queries of the dashboard, of its annotations too.
fn queries(of: &Value, into: &mut Vec<String>) {
    match of {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value {
                    Value::String(query) if ["expr", "definition"].contains(&&**name) => {
                        into.push(query.clone());
                    }
                    value => queries(value, into),
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| queries(value, into)),
        _ => {}
    }
}

/// The expressions of the alerts: each goes on until the next key of its rule.
fn expressions(rules: &str) -> Vec<String> {
    let parts = rules.split("        expr:").skip(1);
    let ends = ["\n        for:", "\n        labels:"];
    let end = |part: &str| ends.iter().filter_map(|end| part.find(end)).min();
    let expression = |part: &str| part[..end(part).expect("another key")].to_owned();
    parts.map(expression).collect()
}

/// The metrics that a query selects, with the labels that it asks for between braces.
fn selected(query: &str) -> Vec<(String, Vec<String>)> {
    let is_part = |character: char| character.is_ascii_alphanumeric() || character == '_';
    let mut found = Vec::new();
    let mut rest = query;
    while let Some(start) = rest.find(is_part) {
        rest = &rest[start..];
        let end = rest.find(|character| !is_part(character));
        let (word, after) = rest.split_at(end.unwrap_or(rest.len()));
        rest = after;
        if !word.starts_with("vitrine_") && !word.starts_with("process_") {
            continue;
        }
        let matchers = rest.strip_prefix('{').and_then(|rest| rest.split_once('}'));
        let labels = matchers.map_or("", |(matchers, _)| matchers).split(',');
        let labels = labels.filter_map(|matcher| matcher.split(['=', '!']).next());
        let labels = labels.map(|label| label.trim().to_owned());
        found.push((
            word.to_owned(),
            labels.filter(|label| !label.is_empty()).collect(),
        ));
    }
    found
}

/// The series of a scrape: each name with its labels.
fn served_metrics(scrape: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut told: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in scrape.lines().filter(|line| !line.starts_with('#')) {
        let (series, _) = line.rsplit_once(' ').expect("a series and a value");
        let (name, labels) = series.split_once('{').unwrap_or((series, ""));
        let labels = labels.split(',').filter_map(|label| label.split_once('='));
        let labels = labels.map(|(label, _)| label.to_owned());
        told.entry(name.to_owned()).or_default().extend(labels);
    }
    told
}

/// The metrics of `vitrine mirror`, whose table is held by the tests of `mirror`.
fn mirror_metrics() -> BTreeMap<String, BTreeSet<String>> {
    let document = read("docs/operate/mirror.md");
    let quoted = document.split('`').skip(1).step_by(2);
    let metrics = quoted.filter(|quoted| quoted.starts_with("vitrine_mirror_"));
    let named = metrics.map(|metric| match metric.split_once('{') {
        None => (metric.to_owned(), BTreeSet::new()),
        Some((name, labels)) => {
            let labels = labels.trim_end_matches('}').split(',');
            (name.to_owned(), labels.map(str::to_owned).collect())
        }
    });
    named.collect()
}

/// Labels that Prometheus adds.
const OF_PROMETHEUS: [&str; 2] = ["job", "instance"];

/// Settings with which a server tells all metrics that there are. The limits needn't be there for that.
const EVERYTHING: [[&str; 2]; 4] = [
    ["--admin-listen", "127.0.0.1:0"],
    ["--limits", "redis://127.0.0.1:1"],
    [
        "--tls-certificate",
        concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/tls/server.pem"),
    ],
    [
        "--tls-key",
        concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/tls/server.key"),
    ],
];

#[test]
fn every_metric_of_dashboard_and_alerts_is_there() {
    let store = Store::sample();
    let state = store.path("state").display().to_string();
    let server = store.serve_with(&[EVERYTHING.as_flattened(), &["--state-dir", &state]].concat());
    let mut told = wait_for("the history of changes", || {
        let told = served_metrics(&text(&server.ask_admin("GET", "/metrics").body));
        told.contains_key("vitrine_changes_oldest_timestamp_seconds")
            .then_some(told)
    });
    told.extend(mirror_metrics());
    let dashboard: Value = serde_json::from_str(&read(DASHBOARD)).expect("JSON");
    let mut shown = Vec::new();
    queries(&dashboard, &mut shown);
    let alerts = expressions(&read(RULES));
    assert!(
        shown.len() > 30 && alerts.len() > 10,
        "{shown:?} {alerts:?}"
    );
    let mut gone = Vec::new();
    for query in shown.iter().chain(&alerts) {
        for (metric, labels) in selected(query) {
            let Some(known) = told.get(&metric) else {
                gone.push(format!("{metric}, in {query}"));
                continue;
            };
            let unknown = labels.iter().filter(|label| {
                !known.contains(*label) && !OF_PROMETHEUS.contains(&label.as_str())
            });
            gone.extend(unknown.map(|label| format!("{metric} has no {label}, in {query}")));
        }
    }
    assert!(gone.is_empty(), "{gone:#?}");
}

#[test]
fn alerts_and_runbook_sections_correspond() {
    let rules = read(RULES);
    let alerts = rules
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- alert: "));
    let alerts: BTreeSet<&str> = alerts.collect();
    assert!(alerts.len() > 10, "{alerts:?}");
    let runbook = read("docs/operate/runbook.md");
    let headings = runbook.lines().filter_map(|line| line.strip_prefix("## "));
    let headings: BTreeSet<&str> = headings
        .filter(|heading| heading.starts_with("Vitrine"))
        .collect();
    assert_eq!(alerts, headings);
    // Each rule leads to its own heading, as pages that show Markdown name it.
    for part in rules.split("- alert: ").skip(1) {
        let alert = part.lines().next().expect("a name");
        let page = "runbook_url: https://runbooks.example/vitrine";
        let address = format!("{page}#{}\n", alert.to_lowercase());
        assert!(part.contains(&address), "{alert} lacks {address}");
    }
    // The dashboard names alerts too.
    let dashboard = read(DASHBOARD);
    for word in dashboard.split(|character: char| !character.is_ascii_alphanumeric()) {
        let is_alert = word.starts_with("Vitrine") && word != "Vitrine";
        assert!(
            !is_alert || alerts.contains(word),
            "{DASHBOARD} names {word}"
        );
    }
}

#[test]
fn tests_named_by_the_security_document_exist() {
    let document = read("docs/security.md");
    let rows = document.lines().filter(|line| line.starts_with("| "));
    let cells = rows.filter_map(|row| row.trim_end_matches(" |").rsplit(" | ").next());
    let named = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    let named: Vec<&str> = named.collect();
    assert!(named.len() > 30, "{named:?}");
    for name in named {
        let (file, test) = name.split_once("::").unwrap_or((name, ""));
        let is_there = match (file.contains('/'), test) {
            (true, _) => std::fs::exists(format!("{ROOT}{file}")).expect("a folder"),
            (false, test) => {
                read(&format!("crates/server/tests/it/{file}.rs")).contains(&format!("fn {test}"))
            }
        };
        assert!(is_there, "docs/security.md names {name}, which is gone");
    }
}

#[test]
fn alert_rules_ask_for_no_job_by_name() {
    for expression in expressions(&read(RULES)) {
        assert!(!expression.contains("job="), "{expression}");
    }
}

#[test]
fn dashboard_panels_take_a_third_of_the_width_at_least() {
    let dashboard: Value = serde_json::from_str(&read(DASHBOARD)).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    for panel in panels {
        let width = panel["gridPos"]["w"].as_u64().expect("a width");
        assert!(width >= 8, "{} is {width} of 24 wide", panel["title"]);
    }
    let rows = panels.iter().filter(|panel| panel["type"] == "row");
    let titles: Vec<_> = rows.map(|row| row["title"].as_str()).collect();
    assert!(titles.contains(&Some("Mirrors")), "{titles:?}");
}

#[test]
fn deployed_command_lines_are_valid() {
    let store = Store::new();
    for (path, commands) in [
        ("deploy/systemd/vitrine.service", &["serve"][..]),
        ("deploy/systemd/examples/vitrine-tick.service", &["tick"]),
        ("Dockerfile", &["serve", "ready"]),
        ("deploy/compose/compose.yaml", &["ready", "tick"]),
        ("deploy/kubernetes/deployment.yaml", &["serve"]),
        ("deploy/kubernetes/tick.yaml", &["tick"]),
        ("deploy/kubernetes/jobs/load.yaml", &["load"]),
        ("deploy/kubernetes/jobs/mirror.yaml", &["mirror"]),
    ] {
        let options: BTreeSet<String> = commands
            .iter()
            .flat_map(|command| options_of(&store, command))
            .collect();
        let lines = read(path);
        let lines = lines.lines().filter(|line| {
            let runs = [
                "ExecStart=",
                "CMD [",
                "args: [",
                "[CMD, /usr/bin/vitrine",
                "command: [tick",
            ];
            runs.iter().any(|start| line.contains(start))
        });
        let lines: Vec<&str> = lines.collect();
        assert!(!lines.is_empty(), "{path} runs nothing");
        for line in lines {
            // Docker's own options of a line stand before the list.
            let (_, own) = line.split_once('[').unwrap_or(("", line));
            for option in words(own).filter(|word| word.starts_with("--")) {
                assert!(
                    options.contains(option),
                    "{path} runs {option}, which there isn't"
                );
            }
        }
    }
}

/// The settings files that go with packages, images and manifests.
const SETTINGS: [&str; 3] = [
    "deploy/debian/vitrine.toml",
    "deploy/docker/vitrine.toml",
    "deploy/kubernetes/vitrine.toml",
];

#[test]
fn deployed_settings_files_are_valid() {
    let store = Store::new();
    for path in SETTINGS {
        let file = format!("{ROOT}{path}");
        let mut command = store.command(&["config", "check", &file]);
        let output = command.env_remove("VITRINE_STORE").output();
        let output = output.expect("vitrine runs");
        let said = text(&output.stdout) + &text(&output.stderr);
        assert!(output.status.success(), "{path}: {said}");
    }
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|character: char| !character.is_ascii_alphanumeric() && character != '-')
}

/// The options that a command's help names.
fn options_of(store: &Store, command: &str) -> BTreeSet<String> {
    let help = store.ok(&[command, "--help"]);
    let options = words(&help).filter(|word| word.starts_with("--"));
    options.map(str::to_owned).collect()
}

#[test]
fn systemd_restarts_no_server_whose_settings_are_wrong() {
    let store = Store::new();
    let file = store.write("faulty.toml", "no_setting = 1\n");
    let file = file.display().to_string();
    let unit = read("deploy/systemd/vitrine.service");
    let codes = unit
        .lines()
        .find_map(|line| line.strip_prefix("RestartPreventExitStatus="));
    let codes: Vec<&str> = codes.expect("codes").split(' ').collect();
    for arguments in [
        &["serve", "--config", &file][..],
        &["serve", "--no-such-flag"],
        &["serve", "--admin-listen", "0.0.0.0:0"],
    ] {
        let code = store.run(arguments).status.code().expect("an end");
        assert!(codes.contains(&&*code.to_string()), "{arguments:?}: {code}");
    }
}
