//! Search over the documentation: its index holds what the pages say, and its page shows results.

use html5ever::tokenizer::{TagKind, Token};
use serde_json::{Value, json};

use crate::docs_code::pages;
use crate::docs_site::{PUBLIC_URL, VOID, attribute, crawl, page, tokens};
use crate::harness::{Server, Store, text};

const INDEX: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs-site/index.json");

/// Elements whose text isn't prose of a section.
const SKIPPED: [&str; 5] = ["nav", "pre", "form", "details", "button"];

/// Part of a page, as the index holds it.
struct Section {
    anchor: String,
    title: String,
    text: String,
}

/// Returns the sections of a page: its beginning, one for each heading, and one for each parameter and header.
fn sections(html: &str) -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    let mut open: Vec<String> = Vec::new();
    let (mut skipped_at, mut is_heading) = (None, false);
    for token in tokens(html) {
        match token {
            Token::TagToken(tag) if tag.kind == TagKind::StartTag => {
                let name = tag.name.to_string();
                let id = attribute(&tag, "id").unwrap_or_default();
                let is_named = ["parameter-", "header-"]
                    .iter()
                    .find_map(|start| id.strip_prefix(start));
                is_heading |= ["h1", "h2", "h3"].contains(&&*name);
                let is_inside = skipped_at.is_none() && open.iter().any(|name| name == "main");
                if is_inside && (is_heading && name.starts_with('h') || is_named.is_some()) {
                    sections.push(Section {
                        anchor: id.to_owned(),
                        title: is_named.unwrap_or_default().to_owned(),
                        text: String::new(),
                    });
                }
                let is_skipped =
                    SKIPPED.contains(&&*name) || attribute(&tag, "class") == Some("tab-name");
                if is_skipped && skipped_at.is_none() {
                    skipped_at = Some(open.len());
                }
                if !VOID.contains(&&*name) {
                    open.push(name);
                }
            }
            Token::TagToken(tag) => {
                open.pop();
                if skipped_at == Some(open.len()) {
                    skipped_at = None;
                }
                is_heading &= !tag.name.starts_with('h');
                // Words of neighbouring elements are apart.
                if let Some(section) = sections.last_mut() {
                    section.text.push_str(match &*tag.name {
                        "p" | "li" | "td" | "th" | "dt" | "dd" | "h2" | "h3" => " ",
                        _ => "",
                    });
                }
            }
            Token::CharacterTokens(more) if skipped_at.is_none() => {
                if open.iter().any(|name| name == "main")
                    && let Some(section) = sections.last_mut()
                {
                    let part = if is_heading {
                        &mut section.title
                    } else {
                        &mut section.text
                    };
                    part.push_str(&more);
                }
            }
            _ => {}
        }
    }
    sections
}

/// Makes the index of all pages, a line for each section.
fn index(server: &Server) -> String {
    let mut lines = Vec::new();
    for (path, _) in pages(server) {
        let html = text(&server.send("GET", &path, &[]).body);
        let sections = sections(&html);
        let page = sections.first().map(|section| section.title.clone());
        let page = page.expect("a heading");
        for Section {
            anchor,
            title,
            text,
        } in sections
        {
            let words: Vec<&str> = text.split_whitespace().collect();
            let text = words.join(" ").replace(PUBLIC_URL, "");
            if !text.is_empty() {
                let line = json!({"path": path, "anchor": anchor, "page": page, "title": title, "text": text});
                lines.push(line.to_string());
            }
        }
    }
    format!("[\n{}\n]\n", lines.join(",\n"))
}

#[test]
fn search_index_holds_what_the_pages_say() {
    let store = Store::sample();
    let server = store.serve_as(PUBLIC_URL);
    let made = index(&server);
    if std::env::var("VITRINE_BLESS").is_ok() {
        std::fs::write(INDEX, &made).expect("the index is written");
    }
    let kept = std::fs::read_to_string(INDEX).expect("an index");
    let differs = made
        .lines()
        .zip(kept.lines())
        .find(|(made, kept)| made != kept);
    assert!(
        made == kept,
        "VITRINE_BLESS=1 cargo test --test it docs_search writes the index; it has not {differs:?}"
    );
    // All pages that links lead to are in it.
    let sections: Vec<Value> = serde_json::from_str(&made).expect("JSON");
    for (path, reply) in crawl(&server) {
        let is_page = reply.header("content-type") == Some("text/html; charset=utf-8");
        let is_indexed = sections.iter().any(|section| section["path"] == *path);
        assert_eq!(is_page && path != "/docs/search", is_indexed, "{path}");
    }
}

/// Returns the links among the results of a search.
fn results(server: &Server, query: &str) -> Vec<String> {
    let reply = server.send("GET", &format!("/docs/search?q={query}"), &[]);
    assert_eq!(reply.status, 200, "{query}");
    let html = text(&reply.body);
    assert!(page(&html).faults.is_empty(), "{query}");
    let Some((_, list)) = html.split_once("<ol class=\"results\">") else {
        assert!(
            html.contains("Nothing has all of these words") || query.is_empty(),
            "{html}"
        );
        return Vec::new();
    };
    let list = list.split_once("</ol>").expect("its end").0;
    let tags = page(list).tags;
    tags.iter()
        .filter_map(|tag| attribute(tag, "href").map(str::to_owned))
        .collect()
}

#[test]
fn searches_lead_to_sections_that_exist() {
    let store = Store::sample();
    let server = store.serve_as(PUBLIC_URL);
    for (query, expected) in [
        ("rate+limit", "../docs/errors/rate_limited"),
        ("If-None-Match", "../docs/caching#revalidate"),
        (
            "webhook+signature",
            "../docs/webhooks#what-to-do-with-an-event",
        ),
        ("limit", "../docs/reference/listProducts#parameter-limit"),
        (
            "discount_multiplier",
            "../docs/versions#what-changed-in-2026-12-01",
        ),
        (
            "missing+assortment",
            "../docs/assortments#why-a-product-is-missing",
        ),
    ] {
        let found = results(&server, query);
        assert!(
            found.iter().any(|link| link == expected),
            "{query}: {found:?}"
        );
        assert!(found.len() <= 20, "{query}");
        for link in found {
            let (path, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let reply = server.send("GET", path.trim_start_matches(".."), &[]);
            assert_eq!(reply.status, 200, "{link}");
            let id = format!("id=\"{anchor}\"");
            assert!(
                anchor.is_empty() || text(&reply.body).contains(&id),
                "{link}"
            );
        }
    }
    assert!(results(&server, "xyzzy").is_empty());
    assert!(results(&server, "").is_empty());
}

#[test]
fn searches_are_escaped_and_bounded() {
    let store = Store::new();
    store.key("nobody", &[]);
    let server = store.serve();
    let hostile = "%22%3E%3Cscript%3Ealert(1)%3C/script%3E%26%E2%80%AE";
    let html = text(
        &server
            .send("GET", &format!("/docs/search?q={hostile}"), &[])
            .body,
    );
    assert!(
        !html.contains("<script>") && html.contains("&#60;script&#62;"),
        "{html}"
    );
    assert!(page(&html).faults.is_empty(), "{:?}", page(&html).faults);
    let longest = "%C3%A9".repeat(100);
    assert!(results(&server, &longest).is_empty());
    for refused in [
        &*format!("{longest}a"),
        "a&q=b",
        "%ZZ",
        "%FF",
        "%00",
        "a&page=2",
    ] {
        let reply = server.send("GET", &format!("/docs/search?q={refused}"), &[]);
        assert_eq!(reply.error(), "bad_request", "{refused}");
    }
    assert_eq!(
        server.send("POST", "/docs/search", &[]).error(),
        "method_not_allowed"
    );
}
