//! HTML made of Markdown: only harmless elements come out of hostile Markdown, too.
//!
//! The HTML is read with html5ever's tokenizer. That is as good as a whole parser here: the elements
//! that may come out neither switch the tokenizer's state nor lead into SVG or MathML.

use std::cell::RefCell;
use std::collections::BTreeSet;

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::{
    BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
};
use serde_json::{Value, json};

use crate::harness::{Store, gift_card};

const HOSTILE: &str = include_str!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../fixtures/hostile-markdown.ndjson"
));

/// Elements that CommonMark with tables and strikethrough makes; no others are allowed.
const ALLOWED: [&str; 26] = [
    "a",
    "blockquote",
    "br",
    "code",
    "del",
    "em",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "hr",
    "img",
    "li",
    "ol",
    "p",
    "pre",
    "strong",
    "table",
    "tbody",
    "td",
    "th",
    "thead",
    "tr",
    "ul",
];

/// Attributes that can't do anything; addresses are looked at one by one.
const HARMLESS: [&str; 8] = [
    "href", "src", "rel", "title", "alt", "align", "start", "class",
];

/// Collects tokens.
#[derive(Default)]
struct Tokens(RefCell<Vec<Token>>);

impl TokenSink for Tokens {
    type Handle = ();

    fn process_token(&self, token: Token, _line_number: u64) -> TokenSinkResult<()> {
        self.0.borrow_mut().push(token);
        TokenSinkResult::Continue
    }
}

fn tokens(html: &str) -> Vec<Token> {
    let input = BufferQueue::default();
    input.push_back(StrTendril::from(html));
    let tokenizer = Tokenizer::new(Tokens::default(), TokenizerOpts::default());
    let _ = tokenizer.feed(&input);
    tokenizer.end();
    tokenizer.sink.0.take()
}

/// Returns the faults of a tag.
fn tag_faults(tag: &Tag) -> Vec<String> {
    let element: &str = &tag.name;
    let mut faults = Vec::new();
    if !ALLOWED.contains(&element) {
        faults.push(format!("the element {element}"));
    }
    let mut href = None;
    let mut rel = None;
    for attribute in &tag.attrs {
        let name: &str = &attribute.name.local;
        let value: &str = &attribute.value;
        if name.starts_with("on") || name == "style" || !HARMLESS.contains(&name) {
            faults.push(format!("the attribute {name}=\"{value}\" of {element}"));
        }
        if ["href", "src"].contains(&name) && !is_harmless_address(value) {
            faults.push(format!("the address {value:?}"));
        }
        match name {
            "href" => href = Some(value),
            "rel" => rel = Some(value),
            _ => {}
        }
    }
    if element == "a" && href.is_some() && rel != Some("nofollow noopener noreferrer") {
        faults.push(format!("a link with rel={rel:?}"));
    }
    if href.is_some() && element != "a" {
        faults.push(format!("an href on {element}"));
    }
    faults
}

/// Absolute, and of a scheme that can't act.
fn is_harmless_address(address: &str) -> bool {
    let lower = address.to_ascii_lowercase();
    ["http://", "https://", "mailto:", "tel:"]
        .iter()
        .any(|scheme| lower.starts_with(scheme))
}

/// Returns the faults of some HTML.
fn faults(html: &str) -> Vec<String> {
    let mut faults = Vec::new();
    for token in tokens(html) {
        match token {
            Token::TagToken(tag) => faults.extend(tag_faults(&tag)),
            Token::CommentToken(comment) => faults.push(format!("the comment {comment:?}")),
            Token::DoctypeToken(_) => faults.push("a doctype".to_owned()),
            _ => {}
        }
    }
    faults
}

/// The names of the elements of some HTML.
fn elements(html: &str) -> BTreeSet<String> {
    let start = |token: Token| match token {
        Token::TagToken(tag) if tag.kind == TagKind::StartTag => Some(tag.name.to_string()),
        _ => None,
    };
    tokens(html).into_iter().filter_map(start).collect()
}

#[test]
fn html_check_finds_faults() {
    for html in [
        "<script>alert(1)</script>",
        "<p onclick=\"x\">",
        "<P STYLE=x>",
        "<img src=x>",
        "<img src=https://a.example/ onerror=x>",
        "<a href=\"javascript:x\" rel=\"nofollow noopener noreferrer\">",
        "<a href=\" java\tscript:x\" rel=\"nofollow noopener noreferrer\">",
        "<a href=\"//evil.example/\" rel=\"nofollow noopener noreferrer\">",
        "<a href=\"data:text/html,x\" rel=\"nofollow noopener noreferrer\">",
        "<a href=\"https://a.example/\">",
        "<a href=\"https://a.example/\" rel=\"opener\">",
        "<svg/>",
        "<form>",
        "<iframe src=https://a.example/>",
        "<!-- x -->",
        "<!doctype html>",
        "<br href=https://a.example/>",
    ] {
        assert!(!faults(html).is_empty(), "{html}");
    }
    let fine = "<p>a &lt;script&gt; <a href=\"https://a.example/\" \
                rel=\"nofollow noopener noreferrer\">b</a><img src=\"http://a.example/i.png\"></p>";
    assert_eq!(faults(fine), Vec::<String>::new());
}

/// The ways in which a text of a partner may come: as Markdown, within HTML, and as HTML only. What people see comes
/// first, since a load refuses texts without.
fn ways(markdown: &str) -> [(&'static str, String); 3] {
    let mut options = comrak::Options::default();
    options.render.r#unsafe = true;
    [
        ("description", format!("Visible\n\n{markdown}")),
        ("disclaimer", format!("<p>Visible</p>\n<div>{markdown}")),
        (
            "refund_policy",
            format!(
                "<p>Visible</p>{}",
                comrak::markdown_to_html(markdown, &options)
            ),
        ),
    ]
}

fn described(code: &str, markdown: &str) -> Value {
    let mut product = gift_card(code);
    product["gift_card"]["content_resources"]["description_md"] = json!(markdown);
    product
}

#[test]
fn hostile_markdown_becomes_harmless_html() {
    let vectors: Vec<Value> = HOSTILE
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert!(vectors.len() >= 60, "{} vectors", vectors.len());
    let markdown = |vector: &Value| vector["markdown"].as_str().expect("Markdown").to_owned();
    let products: Vec<Value> = vectors
        .iter()
        .enumerate()
        .map(|(index, vector)| {
            let mut product = gift_card(&format!("V{index:04}"));
            for (name, text) in ways(&markdown(vector)) {
                product["gift_card"]["content_resources"][format!("{name}_md")] = json!(text);
            }
            product
        })
        .collect();
    let store = Store::of(&products);
    let key = store.key("partner", &[]);
    let server = store.serve();
    let mut connection = server.keep_alive();
    let mut bad = Vec::new();
    for (index, vector) in vectors.iter().enumerate() {
        let target = |form| format!("/v2/product/V{index:04}?content={form}");
        let mut content = |form| {
            let reply = connection.get(&key, &target(form)).expect("an answer");
            assert_eq!(reply.status, 200, "{}", vector["name"]);
            reply.json()["gift_card"]["content_resources"].clone()
        };
        let (sent, html) = (content("md"), content("html"));
        for (name, text) in ways(&markdown(vector)) {
            assert_eq!(sent[format!("{name}_md")], text);
            let html = html[format!("{name}_html")].as_str();
            let html = html.unwrap_or_else(|| panic!("{} has HTML", vector["name"]));
            assert!(html.contains("Visible"), "{html}");
            bad.extend(
                faults(html)
                    .iter()
                    .map(|fault| format!("{}, {name}: {fault}", vector["name"])),
            );
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}

#[test]
fn every_element_of_markdown_survives() {
    let markdown = "# 1\n## 2\n### 3\n#### 4\n##### 5\n###### 6\n\n\
        > quote\n\n- item\n\n7. seven\n\n***\n\n*em* **strong** ~~del~~ `code` break  \nend\n\n\
        [link](https://a.example/ \"title\") <mailto:a@b.example> [tel](tel:+49301234)\n\
        ![image](https://a.example/i.png)\n\n```\npre\n```\n\n| a | b |\n| :- | -: |\n| c | d |\n";
    let store = Store::of(&[described("A", markdown)]);
    let key = store.key("partner", &[]);
    let server = store.serve();
    let product = server.get(&key, "/v2/product/A?content=html").json();
    let html = &product["gift_card"]["content_resources"]["description_html"];
    let html = html.as_str().expect("HTML");
    let expected: BTreeSet<String> = ALLOWED.iter().map(ToString::to_string).collect();
    assert_eq!(elements(html), expected, "{html}");
    assert_eq!(faults(html), Vec::<String>::new());
    for kept in [
        "https://a.example/i.png",
        "mailto:a@b.example",
        "tel:+49301234",
        "start=\"7\"",
    ] {
        assert!(html.contains(kept), "{kept} in {html}");
    }
}

#[test]
fn load_of_html_texts_warns_and_refuses_empty_ones() {
    let store = Store::new();
    let terms = "<p>Valid at <b>all</b> shops.</p>\n<ul><li>No cash</ul>";
    let products = ["A", "B"].map(|code| described(code, terms));
    let report = store.load_products(&products);
    assert_eq!(report["warnings"]["html_in_text"]["count"], 2, "{report}");
    let key = store.key("partner", &[]);
    let server = store.serve();
    let product = server.get(&key, "/v2/product/A?content=html").json();
    assert_eq!(
        product["gift_card"]["content_resources"]["description_html"],
        "<p>Valid at <strong>all</strong> shops.</p>\n<ul><li>No cash</li></ul>\n"
    );
    for hidden in [
        "<!-- Terms -->",
        "<script>a()</script>",
        "[terms]: https://a.example",
    ] {
        let (exit, refused) = store.try_load(described("A", hidden).to_string());
        let rule = &refused["faults"][0]["rule"];
        assert_eq!((exit, rule), (3, &json!("text_renders_empty")), "{hidden}");
    }
    assert_eq!(store.revisions(), 1);
}
