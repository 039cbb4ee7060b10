//! The time that rendering Markdown takes is in proportion to its length, for all repeated patterns. Measured is the
//! processor's time of one thread, and only how it grows: how long it is says `cargo bench --bench markdown`.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde_json::Value;
use vitrine_ingest::html::sanitised;

const TEXTS: &str = include_str!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../fixtures/pathological-markdown.ndjson"
));

/// Four times the text takes four times as long; sixteen times, where time grows by the square.
const MAX_GROWTH: f64 = 9.0;

/// Below this, clocks and caches say more than texts do.
const TOO_SHORT: Duration = Duration::from_millis(20);

/// A text of so many bytes at most: a start, parts, a middle, tails.
fn text(case: &Value, bytes: usize) -> String {
    let field = |name: &str| case[name].as_str().expect("a text");
    let [start, part, middle, tail] = ["start", "part", "middle", "tail"].map(field);
    let times = (bytes - start.len() - middle.len()) / (part.len() + tail.len());
    [start, &part.repeat(times), middle, &tail.repeat(times)].concat()
}

/// The least time of the processor that rendering takes in a few tries.
fn time(markdown: &str) -> Duration {
    let now = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        let nanoseconds = u32::try_from(time.tv_nsec).expect("less than a second");
        Duration::new(time.tv_sec.unsigned_abs(), nanoseconds)
    };
    let once = || {
        let before = now();
        std::hint::black_box(sanitised(markdown));
        now() - before
    };
    (0..3).map(|_| once()).min().expect("a try")
}

#[test]
fn rendering_time_is_linear() {
    let mut slow = Vec::new();
    let mut measured = 0;
    for line in TEXTS.lines() {
        let case: Value = serde_json::from_str(line).expect("JSON");
        if time(&text(&case, 64 << 10)) < TOO_SHORT {
            continue;
        }
        measured += 1;
        // Whatever disturbs the processor disturbs one of three; a square shows in each.
        let grows = || {
            let [large, small] = [64, 16].map(|kib| time(&text(&case, kib << 10)));
            eprintln!("{}: {small:?}, then {large:?}", case["name"]);
            large.as_secs_f64() / small.as_secs_f64() > MAX_GROWTH
        };
        if (0..3).all(|_| grows()) {
            slow.push(case["name"].to_string());
        }
    }
    assert!(slow.is_empty(), "{}", slow.join("\n"));
    assert!(
        measured > 0 || cfg!(not(debug_assertions)),
        "all is too quick to be measured"
    );
}

#[test]
fn text_of_a_mebibyte_has_a_bounded_cost() {
    // As much as may be rendered: some 50 ms in a release build.
    let usual = time(&"- a\n".repeat(16 << 10));
    let filled = |start: &str, part: &str| {
        let times = ((1 << 20) - start.len()) / part.len();
        start.to_owned() + &part.repeat(times)
    };
    let prose = "This gift card can be redeemed at any shop of ours in **Sweden** or Norway.\n\n";
    let slow: Vec<String> = [
        ("", "- a\n"),
        ("", "a\n\n"),
        ("", "&amp"),
        ("", "§"),
        ("", prose),
        (&"&".repeat(30_000), "x"),
        ("a", " *"),
        (&"* ".repeat(16_000), "x"),
        (&"> 1. ".repeat(30), "*a* "),
        ("", "- - - - - - - - - - a\n"),
        ("", "<b>"),
        (&"<b>".repeat(10_000), "x "),
        (&"<table><b>".repeat(1_000), "<tr>a "),
        ("<p", " a"),
        (&"<p>a</p>\n".repeat(4_000), "a &lt; b "),
    ]
    .into_iter()
    .filter_map(|(start, part)| {
        let took = time(&filled(start, part));
        eprintln!("{part:?}: {took:?}, usual {usual:?}");
        (took > usual * 4).then(|| format!("{part:?}: {took:?}, usual {usual:?}"))
    })
    .collect();
    assert!(slow.is_empty(), "{}", slow.join("\n"));
    assert!(
        !sanitised(&filled(
            "",
            "Any shop of ours takes it, in all of Sweden.\n"
        ))
        .starts_with("<pre>")
    );
}

#[test]
fn blank_lines_in_lists_are_rendered_up_to_a_limit() {
    for line_end in ["\n", "\r\n", "\r", " \t\n"] {
        let is_rendered = |blank_lines: usize| {
            let markdown = format!("- a{}b", line_end.repeat(blank_lines + 1));
            !sanitised(&markdown).starts_with("<pre><code>")
        };
        assert!(is_rendered(100), "{line_end:?}");
        assert!(!is_rendered(101), "{line_end:?}");
    }
    // Each line goes deeper; each blank one below would be compared with all of the lists.
    let line = |level: usize| " ".repeat(180 * level) + &"- ".repeat(90) + "x\n";
    let lists: String = (0..17).map(line).collect();
    let html = sanitised(&(lists + &"\n".repeat(32 << 10)));
    assert!(html.starts_with("<pre><code>"));
}

#[test]
fn html_of_nearly_only_elements_is_shown_as_written() {
    let is_rendered = |markdown: &str| !sanitised(markdown).starts_with("<pre><code>");
    let deep = "- ".repeat(10) + "a\n";
    assert!(is_rendered(&deep.repeat(100)));
    assert!(!is_rendered(&deep.repeat(3_000)));
    let table = "| Sweden | 20.00 SEK | yes |\n";
    let head = "| a | b | c |\n| - | - | - |\n";
    assert!(is_rendered(&(head.to_owned() + &table.repeat(3_000))));
}
